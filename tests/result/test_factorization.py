"""What a fit is, and who else understands it."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import codiag
from assertions import assert_same_to_rounding
from codiag.methods import NLS
from codiag.synthetic import noisy_tensor, unit_factor
from codiag.tensors import FactoredTensor, symmetrize


@pytest.fixture(params=[True, False], ids=["symmetric", "asymmetric"])
def fit(request):
    problem = noisy_tensor((6, 6, 6), 3, symmetric=request.param, noise=0.01, rng=0)
    return codiag.factorize(problem.tensor, 3, rng=0)


def test_it_unpacks(fit):
    weights, factors = fit
    assert weights is fit.weights
    assert [factor.shape for factor in factors] == [(6, 3)] * 3
    assert len(fit) == 2
    assert fit[0] is fit.weights
    assert_allclose(np.einsum("r,ar,br,cr->abc", weights, *factors), fit.to_tensor(), atol=1e-12)


def test_it_has_what_scripts_use(fit):
    names = """weights factors rank shape relative_error explained_variance converged history problem rank_choice
    standard_errors entry_standard_errors weight_standard_errors conf_int bootstrap noise_model diagnose describe
    transform predict to_tensor to_table to_xarray plot save load""".split()  # noqa: SIM905
    assert [name for name in names if not hasattr(fit, name)] == []
    told = fit.diagnose()
    assert all(hasattr(told, name) for name in ("components", "samples", "pairs", "modes", "p_missed"))
    choice = codiag.choose_rank(fit.to_tensor(), range(1, 4), rng=0)
    assert all(hasattr(choice, name) for name in ("rank", "table", "fits", "reason", "plot"))


def test_entries_are_predicted_without_the_tensor(fit):
    indices = np.random.default_rng(0).integers(0, 6, (20, 3))
    assert_allclose(fit.predict(indices), fit.to_tensor()[tuple(indices.T)], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("indices", [[0, 1, 2], [[0, 1]], [[0.0, 1.0, 2.0]], [[0, 0, 6]], [[0, -1, 0]]])
def test_entries_that_do_not_exist_are_not_predicted(fit, indices):
    with pytest.raises(ValueError, match="^indices must"):
        fit.predict(indices)


def test_it_says_what_it_is(fit):
    kind = "symmetric tensor" if fit._symmetric else "tensor"
    assert repr(fit).startswith(f"Factorization(3 components of a {kind} 6 x 6 x 6, relative_error=0.0")
    assert (fit.rank, fit.shape) == (3, (6, 6, 6))


def test_files_keep_everything(fit, tmp_path):
    path = tmp_path / "fit.npz"
    fit.save(path)
    again = codiag.Factorization.load(path)
    assert_array_equal(again.weights, fit.weights)
    for ours, theirs in zip(again.factors, fit.factors, strict=True):
        assert_array_equal(ours, theirs)
    assert (again.relative_error, again._norm, again.converged) == (fit.relative_error, fit._norm, fit.converged)
    assert again.history == fit.history
    assert again._symmetric == fit._symmetric
    assert [item.name for item in tmp_path.iterdir()] == ["fit.npz"]


def test_nothing_is_written_half(fit, tmp_path, monkeypatch):
    path = tmp_path / "fit.npz"
    fit.save(path)
    before = path.read_bytes()

    def fail(file, **arrays):
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="disk full"):
        fit.save(path)
    assert path.read_bytes() == before
    assert [item.name for item in tmp_path.iterdir()] == ["fit.npz"]


@pytest.mark.parametrize("content", [{"a": np.ones(3)}, {"meta": np.array("[1]")}, {"meta": np.array("{")}, None])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "other.npz"
    if content is None:
        path.write_bytes(b"nonsense")
    else:
        np.savez(path, **content)
    with pytest.raises(ValueError, match="was not written"):
        codiag.Factorization.load(path)


def test_names_and_folders(fit, tmp_path):
    fit.save(tmp_path / "plain")
    assert (tmp_path / "plain.npz").is_file()
    with pytest.raises(FileNotFoundError, match="is not a"):
        fit.save(tmp_path / "nowhere" / "fit.npz")
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(OSError):  # noqa: PT011
        fit.save(tmp_path / "folder.npz")
    assert sorted(item.name for item in tmp_path.iterdir()) == ["folder.npz", "plain.npz"]


def test_tensorly_takes_it(fit):
    tensorly = pytest.importorskip("tensorly", reason="TensorLy is not installed")
    from tensorly.cp_tensor import CPTensor, cp_norm

    assert_allclose(tensorly.cp_to_tensor(fit), fit.to_tensor(), atol=1e-12)
    assert cp_norm(fit) == pytest.approx(np.linalg.norm(fit.to_tensor()))
    converted = codiag.io.to_tensorly(fit)
    assert isinstance(converted, CPTensor)
    assert_allclose(tensorly.cp_to_tensor(converted), fit.to_tensor(), atol=1e-12)


def test_tlviz_takes_it(fit):
    tlviz = pytest.importorskip("tlviz", reason="TLViz is not installed")
    from tlviz.factor_tools import factor_match_score, get_cp_permutation

    assert factor_match_score(fit, codiag.io.to_tensorly(fit)) == pytest.approx(1)
    assert list(get_cp_permutation(fit)) == [0, 1, 2]
    assert tlviz.model_evaluation.relative_sse(fit, fit.to_tensor()) < 1e-20


@pytest.mark.filterwarnings("ignore")
def test_tlviz_takes_labelled_factors():
    tlviz = pytest.importorskip("tlviz", reason="TLViz is not installed")
    xarray = pytest.importorskip("xarray")
    tensor = noisy_tensor((6, 5, 4), 2, noise=0.01, rng=0).tensor
    data = xarray.DataArray(tensor, [("sample", list("abcdef")), ("day", np.arange(5)), ("wave", np.arange(4))])
    fit = codiag.factorize(data, 2, rng=0)
    found = fit.to_xarray(standard_errors=False)
    labelled = (fit.weights, [found[f"factor_{name}"].to_pandas() for name in data.dims])
    assert tlviz.visualisation.outlier_plot(labelled, data) is not None
    assert tlviz.postprocessing.postprocess(labelled, data) is not None


def test_pyttb_takes_it(fit):
    pytest.importorskip("pyttb", reason="pyttb is not installed")
    assert_allclose(codiag.io.to_pyttb(fit).full().double(), fit.to_tensor(), atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "rank", "symmetric"), [((12,) * 3, 5, True), ((6, 12, 9), 5, False), ((5,) * 4, 3, True)], ids=str
)
def test_standard_errors_are_what_is_measured(shape, rank, symmetric):
    """Over 100 draws of noise, root mean square errors agree with the mean prediction, as far as 100 draws tell."""
    rng = np.random.default_rng(0)
    factors = [unit_factor(size, rank, rng) for size in (shape[:1] if symmetric else shape)]
    factors = factors * len(shape) if symmetric else factors
    clean = FactoredTensor(np.linspace(2, 1, rank), factors).to_dense()
    squares, predicted, noise = [], [], []
    for _ in range(100):
        errors = 1e-3 * rng.standard_normal(shape)
        tensor = clean + (symmetrize(errors) if symmetric else errors)
        fit = codiag.factorize(tensor, rank, symmetric=symmetric, rng=0)
        matching = codiag.match_components(fit, factors)
        squares.append([np.sum((a - b) ** 2, axis=0) for a, b in zip(matching.factors, factors, strict=True)])
        predicted.append(fit.standard_errors[:, matching.permutation])
        noise.append(fit.noise_model.standard_deviation)
    assert np.mean(noise) == pytest.approx(1e-3, rel=0.02)
    # A mean of 100 squares of several degrees of freedom is known to about 10 %, its root to half of that.
    assert_allclose(np.sqrt(np.mean(squares, axis=0)), np.mean(predicted, axis=0), rtol=0.15)


def test_noise_is_unknown_where_every_entry_is_spent():
    fit = codiag.factorize(np.random.default_rng(0).standard_normal((2, 2, 2)), 2, symmetric=False, rng=0)
    assert np.isnan(fit.noise_model.standard_deviation)


def test_a_fit_is_loaded_by_the_name_it_was_saved_under(tmp_path):
    fit = codiag.factorize(noisy_tensor((4, 5, 6), 2, rng=0).tensor, 2, rng=0)
    fit.save(tmp_path / "plain")
    assert codiag.Factorization.load(tmp_path / "plain").history == fit.history


@pytest.mark.parametrize(
    "stated", [{"constraints": "nonnegative"}, {"weights": True}, {"loss": "poisson"}, {}], ids=str
)
def test_nothing_computes_standard_errors_but_reading_them(stated, monkeypatch, tmp_path):
    tensor = np.random.default_rng(0).poisson(
        np.einsum("ir,jr,kr->ijk", *np.random.default_rng(1).random((3, 7, 2)) * 4)
    )
    stated |= {"weights": np.random.default_rng(1).random(tensor.shape) > 0.2} if "weights" in stated else {}
    fit = codiag.factorize(tensor, 2, **stated, rng=0)
    with monkeypatch.context() as patch:
        for name in ("sensitivity_of", "noise_errors", "noise_model_of", "noise_level"):
            patch.setattr(f"codiag.inference.{name}", lambda *_: pytest.fail("error bars are computed"))
        fit.save(tmp_path / "fit.npz")
        others = [codiag.Factorization.load(tmp_path / "fit.npz"), copy.copy(fit), copy.deepcopy(fit)]
        others.append(pickle.loads(pickle.dumps(fit)))
        fit.bootstrap(n=2, rng=0)
        fit.transform(tensor[:2])
    for other in others:
        assert_array_equal(other.problem.tensor.to_dense(), fit.problem.tensor.to_dense())
        assert_same_to_rounding(other.standard_errors, fit.standard_errors)
        assert str(other.diagnose()) == str(fit.diagnose())


@pytest.mark.filterwarnings("ignore::codiag.ConvergenceWarning")
@pytest.mark.parametrize(("noise", "n_others"), [(0.0, 0), (0.1, 0), (0.02, 2)])
def test_fits_without_a_best_one_have_not_converged(noise, n_others):
    """Limits of rank two have rank three. With noise, some have a minimum: then components are bounded, and stay so."""
    for seed in range(20 if noise == 0 else 8):
        rng = np.random.default_rng(seed)
        a, b, c = (rng.standard_normal((size, 2 + n_others)) for size in (12, 15, 18))
        pairs = [(0, 0, 1), (0, 1, 0), (1, 0, 0), *[(i, i, i) for i in range(2, 2 + n_others)]]
        tensor = sum(np.einsum("i,j,k->ijk", a[:, i], b[:, j], c[:, k]) for i, j, k in pairs)
        tensor += noise * np.sqrt(np.mean(tensor**2)) * rng.standard_normal(tensor.shape)
        fit = codiag.factorize(tensor, 2 + n_others, rng=0)
        assert not (noise == 0 and fit.converged)
        if fit.converged:
            assert fit.weights.max() < 10 * fit._norm
            again = codiag.factorize(tensor, fit.rank, method=NLS(init=fit), rng=0)
            assert_allclose(again.weights, fit.weights, rtol=0.01)


def test_components_that_cancel_exactly_have_converged():
    a = np.random.default_rng(0).standard_normal((3, 9, 2))
    a[:, :, 1] = a[:, :, 0] + 0.05 * a[:, :, 1]
    tensor = np.einsum("r,ir,jr,kr->ijk", [1.0, -1.0], *a)
    with pytest.warns(codiag.ConvergenceWarning, match="^the fit is degenerate"):
        fit = codiag.factorize(tensor, 2, rng=0)
    assert fit.converged
    assert fit.relative_error < 1e-9


def test_results_are_shown_as_people_read_them():
    fit = codiag.factorize(noisy_tensor((4, 5, 6), 1, noise=0.1, rng=0).tensor, 1, rng=0)
    assert repr(fit).startswith("Factorization(1 component of a tensor 4 x 5 x 6")
    lines = repr(fit.history).splitlines()
    assert lines[0].split() == ["stage", "iterations", "objective", "seconds"]
    assert len(lines) == 1 + len(fit.history)
    assert fit.history[-1].name in lines[-1]
    assert fit.history[-1].name in fit.history._repr_html_()
    verdict = fit.diagnose()
    assert repr(verdict) == str(verdict)
    assert "1 of 1 component is determined" in verdict._repr_html_()
    assert pickle.loads(pickle.dumps(fit)).history == fit.history
