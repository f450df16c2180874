"""TensorLy's function, done by codiag."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import codiag
from assertions import assert_same_to_rounding
from codiag.drop_in import CP, parafac
from codiag.synthetic import noisy_tensor

PROBLEM = noisy_tensor((6, 7, 8), 3, noise=1e-3, rng=0)


def rebuilt(weights, factors):
    return np.einsum("r,ar,br,cr->abc", weights, *factors)


def test_it_returns_what_they_return():
    cp_tensor = pytest.importorskip("tensorly.cp_tensor", reason="TensorLy is not installed")
    result, errors = parafac(PROBLEM.tensor, 3, random_state=0, return_errors=True)
    assert isinstance(result, cp_tensor.CPTensor)
    assert_allclose(rebuilt(*result), PROBLEM.tensor, atol=0.02)
    left = np.linalg.norm(PROBLEM.tensor - rebuilt(*result)) / np.linalg.norm(PROBLEM.tensor)
    assert errors[-1] == pytest.approx(left)


@pytest.mark.parametrize("normalize", [True, False])
def test_normalization(normalize):
    weights, factors = parafac(PROBLEM.tensor, 3, normalize_factors=normalize, random_state=0)
    norms = [np.linalg.norm(factor, axis=0) for factor in factors]
    if normalize:
        assert_allclose(norms, 1, atol=1e-12)
        assert not np.allclose(weights, 1)
    else:
        assert_array_equal(weights, 1)
    assert_allclose(rebuilt(weights, factors), PROBLEM.tensor, atol=0.02)


def test_starts():
    for init in ("svd", "random", (PROBLEM.weights, list(PROBLEM.factors)), (None, list(PROBLEM.factors))):
        assert_allclose(rebuilt(*parafac(PROBLEM.tensor, 3, init=init, random_state=0)), PROBLEM.tensor, atol=0.02)
    with pytest.raises(ValueError, match="^init must"):
        parafac(PROBLEM.tensor, 3, init="best")


def test_seeds():
    for seed in (3, np.random.RandomState(3)):
        state = np.random.RandomState(3) if isinstance(seed, np.random.RandomState) else seed
        first = parafac(PROBLEM.tensor, 3, init="random", random_state=seed)
        second = parafac(PROBLEM.tensor, 3, init="random", random_state=state)
        assert_same_to_rounding(first[1][0], second[1][0])


def test_callbacks_see_the_errors_and_can_stop():
    seen = []
    parafac(PROBLEM.tensor, 3, init="random", random_state=0, callback=lambda _, error: seen.append(error))
    assert len(seen) > 2
    assert seen[-1] < seen[0]
    stopped = []

    def stop(cp, error):
        stopped.append((cp, error))
        return True

    with pytest.warns(UserWarning, match="did not converge"):
        parafac(PROBLEM.tensor, 3, init="random", random_state=0, callback=stop)
    assert len(stopped) == 1
    cp, error = stopped[0]
    left = np.linalg.norm(PROBLEM.tensor - rebuilt(cp[0], cp[1])) / np.linalg.norm(PROBLEM.tensor)
    assert error == pytest.approx(left, rel=1e-6)


def test_harmless_options():
    weights, _ = parafac(PROBLEM.tensor, 3, fixed_modes=[], random_state=0)
    assert_array_equal(weights, 1)
    with pytest.raises(ValueError, match="^n_iter_max must"):
        parafac(PROBLEM.tensor, 3, n_iter_max=-1)


@pytest.mark.parametrize(
    "hint",
    [
        {"orthogonalise": True},
        {"orthogonalise": 5},
        {"linesearch": True},
        {"svd": "randomized_svd"},
        {"svd_mask_repeats": 2},
        {"cvg_criterion": "rec_error"},
    ],
    ids=str,
)
def test_hints_change_nothing(hint, capsys):
    plain = parafac(PROBLEM.tensor, 3, random_state=0)
    hinted = parafac(PROBLEM.tensor, 3, random_state=0, **hint)
    for first, second in zip(plain[1], hinted[1], strict=True):
        assert_array_equal(first, second)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("hint", "kind"),
    [
        ({"cvg_criterion": "best"}, ValueError),
        ({"verbose": "a"}, TypeError),
        ({"linesearch": "a"}, TypeError),
        ({"svd": 3}, TypeError),
    ],
    ids=str,
)
def test_hints_that_are_none(hint, kind):
    with pytest.raises(kind, match=f"{next(iter(hint))} must be"):
        parafac(PROBLEM.tensor, 3, **hint)


def test_few_iterations_are_few():
    start = (np.ones(3), [np.ones((size, 3)) + np.eye(size, 3) for size in (6, 7, 8)])
    with pytest.warns(UserWarning, match="did not converge") as caught:  # after one of another kind
        _, errors = parafac(PROBLEM.tensor, 3, init=start, n_iter_max=2, return_errors=True)
    assert len(errors) == 3
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="did not converge") as caught:
        _, errors = parafac(PROBLEM.tensor, 3, init=start, n_iter_max=1, return_errors=True)
    assert len(errors) == 2
    assert caught[0].filename == __file__


@pytest.mark.parametrize("n_iter_max", [1, 2])
def test_few_iterations_from_a_start_gain_what_a_sweep_gains(n_iter_max):
    rng = np.random.default_rng(0)
    start = (np.ones(3), [rng.random((size, 3)) for size in (6, 7, 8)])
    _, errors = with_warnings(parafac, PROBLEM.tensor, 3, init=start, n_iter_max=n_iter_max, return_errors=True)
    norm, solved = np.linalg.norm(PROBLEM.tensor), list(start[1])
    before = np.linalg.norm(PROBLEM.tensor - rebuilt(*start)) / norm
    for mode in range(3):  # alternating least squares, written down once more
        columns = np.einsum("ar,br->abr", *(solved[other] for other in range(3) if other != mode)).reshape(-1, 3)
        unfolded = np.moveaxis(PROBLEM.tensor, mode, -1).reshape(columns.shape[0], -1)
        solved[mode] = np.linalg.lstsq(columns, unfolded, rcond=None)[0].T
    swept = np.linalg.norm(PROBLEM.tensor - rebuilt(np.ones(3), solved)) / norm
    assert swept < 0.9 * before
    assert errors[0] == pytest.approx(swept)
    assert errors[-1] <= errors[0]


def with_warnings(function, *arguments, **options):
    with pytest.warns(UserWarning, match="did not converge"):
        return function(*arguments, **options)


def test_components_stay_where_the_start_has_them():
    order, signs = [2, 0, 1], np.array([1.0, -1.0, 1.0])
    first, second, third = (factor[:, order] for factor in PROBLEM.factors)
    start = (PROBLEM.weights[order], [first * signs, second, third * signs])
    _, factors = parafac(PROBLEM.tensor, 3, init=start, normalize_factors=True)
    for found, given in zip(factors[:2], start[1][:2], strict=True):
        assert_allclose(np.sum(found * given, axis=0), 1, atol=1e-3)


@pytest.mark.parametrize("fixed", [[0], [1], [0, 1]])
def test_fixed_modes_stay_and_the_rest_fits(fixed):
    start = (np.array([2.0, 3.0, 4.0]), [factor.copy() for factor in PROBLEM.factors])
    rng = np.random.default_rng(0)
    for mode in {0, 1, 2} - set(fixed):
        start[1][mode] = rng.standard_normal(start[1][mode].shape)
    kept = [factor.copy() for factor in start[1]]
    asked = list(fixed)
    (weights, factors), errors = parafac(
        PROBLEM.tensor, 3, init=start, fixed_modes=asked, n_iter_max=3000, tol=1e-12, return_errors=True
    )
    for mode in fixed:
        assert_array_equal(factors[mode], kept[mode])
    for factor, before in zip(start[1], kept, strict=True):
        assert_array_equal(factor, before)
    assert asked == fixed
    assert_array_equal(weights, 1)
    assert errors[-1] < 2e-3  # noise of 1e-3
    assert np.all(np.diff(errors) <= 1e-12)
    assert errors[-1] == pytest.approx(
        np.linalg.norm(PROBLEM.tensor - rebuilt(weights, factors)) / np.linalg.norm(PROBLEM.tensor)
    )


def test_one_free_mode_is_linear_least_squares():
    first, second, _ = PROBLEM.factors
    _, factors = parafac(PROBLEM.tensor, 3, init=(None, [first, second, np.ones((2, 3))]), fixed_modes=[0, 1])
    columns = np.einsum("ar,br->abr", first, second).reshape(-1, 3)
    assert_allclose(factors[2].T, np.linalg.lstsq(columns, PROBLEM.tensor.reshape(-1, 8), rcond=None)[0], atol=1e-10)


def test_fixed_modes_that_cannot_be():
    start = (None, list(PROBLEM.factors))
    for init, fixed, words in (
        ("svd", [0], "init must be a CPTensor or a pair"),
        (start, [3], r"fixed_modes must contain modes from 0 to 2; got \[3\]"),
        ((None, start[1][::-1]), [0], "init must have 6 rows in mode 0"),
        ((None, start[1][:2]), [0], "init must have 3 factors with 3 columns"),
    ):
        with pytest.raises(ValueError, match=words):
            parafac(PROBLEM.tensor, 3, init=init, fixed_modes=fixed)
    with pytest.warns(UserWarning, match="fixed_modes holds the") as caught:
        parafac(PROBLEM.tensor, 3, init=start, fixed_modes=[2], n_iter_max=2000)
    assert caught[0].filename == __file__


def test_a_sparse_part_is_the_largest_of_what_is_left():
    spoiled = PROBLEM.tensor.copy()
    spoiled[1, 2, 3] += 5
    components, rest = parafac(spoiled, 3, sparsity=1, init="svd", random_state=0)
    assert np.count_nonzero(rest) == 1
    assert_allclose(rest[np.nonzero(rest)], (spoiled - rebuilt(*components))[np.nonzero(rest)])
    components, most = parafac(spoiled, 3, sparsity=0.5, random_state=0)
    assert np.count_nonzero(most) == spoiled.size // 2
    kept = np.abs(most[most != 0]).min()
    left = np.abs(spoiled - rebuilt(*components))[most == 0]
    assert left.max() <= kept * (1 + 1e-12)
    with pytest.raises(TypeError, match="^sparsity must"):
        parafac(spoiled, 3, sparsity="a")


def test_ranks_by_share():
    assert parafac(PROBLEM.tensor, 0.2, random_state=0)[1][0].shape == (6, round(0.2 * 336 / 21))
    for name, words in (("some", "rank must be an integer, a share"), (0.0, "rank must be positive")):
        with pytest.raises(ValueError, match=words):
            parafac(PROBLEM.tensor, name)
    small = np.random.default_rng(0).standard_normal((2, 3, 4))
    assert parafac(small, "same", random_state=0)[1][0].shape == (2, round(24 / 9))


def test_ranks_are_theirs():
    cp_tensor = pytest.importorskip("tensorly.cp_tensor", reason="TensorLy is not installed")
    for shape in ((2, 3, 4), (3, 3, 3), (2, 5, 3)):
        tensor = np.random.default_rng(0).standard_normal(shape)
        for rank in ("same", 0.5):
            found = parafac(tensor, rank, random_state=0, n_iter_max=1000)[1][0].shape[1]
            assert found == cp_tensor.validate_cp_rank(shape, rank)


def test_matrices_are_their_singular_vectors():
    matrix = np.random.default_rng(0).standard_normal((5, 4))
    (weights, factors), errors = parafac(matrix, 2, normalize_factors=True, return_errors=True)
    left, sizes, right = np.linalg.svd(matrix)
    assert_allclose(weights, sizes[:2])
    assert_allclose((factors[0] * weights) @ factors[1].T, (left[:, :2] * sizes[:2]) @ right[:2], atol=1e-12)
    assert errors[-1] == pytest.approx(np.linalg.norm(sizes[2:]) / np.linalg.norm(sizes))
    with pytest.raises(ValueError, match="^rank must"):
        parafac(matrix, 5)
    with pytest.raises(ValueError, match="must be finite"):
        parafac(matrix * np.nan, 1)


def complex_problem(shape=(6, 7, 8), rank=3):
    rng = np.random.default_rng(0)
    factors = [rng.standard_normal((size, rank)) + 1j * rng.standard_normal((size, rank)) for size in shape]
    return factors, np.einsum("ar,br,cr->abc", *factors)


@pytest.mark.parametrize("init", ["svd", "random"])
def test_complex_tensors(init):
    truth, tensor = complex_problem()
    seen = []
    (weights, factors), errors = parafac(
        tensor,
        3,
        init=init,
        random_state=0,
        tol=1e-12,
        n_iter_max=2000,
        normalize_factors=True,
        return_errors=True,
        callback=lambda _, error: seen.append(error),
    )
    assert_allclose(rebuilt(weights, factors), tensor, atol=1e-4)
    assert np.all(np.diff(seen) <= 1e-12)
    assert errors[:-1] == seen
    assert np.all(np.diff(weights) <= 0)
    for found, true in zip(factors, truth, strict=True):
        cosines = np.abs(found.conj().T @ true) / np.linalg.norm(true, axis=0)
        assert_allclose(cosines.max(axis=0), 1, atol=1e-6)


def test_complex_tensors_keep_fixed_modes():
    truth, tensor = complex_problem()
    start = [truth[0], truth[1] + 0.1, truth[2]]
    _, factors = parafac(tensor, 3, init=(None, start), fixed_modes=[0], tol=1e-13, n_iter_max=2000)
    assert_array_equal(factors[0], truth[0])
    assert_allclose(factors[1] / factors[1][0], truth[1] / truth[1][0], atol=1e-4)


def test_complex_matrices():
    matrix = complex_problem()[1][:, :, 0]
    weights, factors = parafac(matrix, 6, normalize_factors=True)
    assert_allclose((factors[0] * weights) @ factors[1].T, matrix, atol=1e-12)


def test_complex_tensors_that_are_refused():
    tensor = complex_problem()[1]
    for spoiled, options, words in (
        (tensor * np.nan, {}, "tensor must have entries that are numbers"),
        (tensor, {"init": "best"}, "init must be 'svd', 'random'"),
        (tensor, {"init": (None, [np.ones((2, 3))] * 3)}, "init must have factors of shapes"),
    ):
        with pytest.raises(ValueError, match=words):
            parafac(spoiled, 3, **options)


def test_the_class_is_the_function():
    model = CP(3, random_state=0, normalize_factors=True)
    weights, factors = model.fit_transform(PROBLEM.tensor)
    expected, errors = parafac(PROBLEM.tensor, 3, random_state=0, normalize_factors=True, return_errors=True)
    assert_array_equal(weights, expected[0])
    assert model.errors_ == errors
    assert model.fit(PROBLEM.tensor) is model
    assert_array_equal(model.decomposition_[1][0], factors[0])
    assert repr(model) == "Rank-3 CP decomposition."


def test_the_class_calls_the_function_of_its_module(monkeypatch):
    """TensorLy's own tests of its classes put another function there."""
    monkeypatch.setattr(sys.modules[parafac.__module__], "parafac", lambda tensor, **options: (tensor, options["rank"]))
    model = CP(3).fit("tensor")
    assert (model.decomposition_, model.errors_) == ("tensor", 3)


@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_the_scale_of_a_start_does_not_matter(scale):
    factors = [np.random.default_rng(mode).standard_normal((size, 3)) for mode, size in enumerate(PROBLEM.tensor.shape)]
    expected = parafac(PROBLEM.tensor, 3, init=(None, factors))
    found = parafac(PROBLEM.tensor, 3, init=(None, [factor * scale for factor in factors]))
    assert_allclose(rebuilt(*found), rebuilt(*expected), atol=1e-6)


@pytest.mark.parametrize("array", [np.array(1j), np.ones(3, dtype=complex), np.ones(3), np.array(2.0)])
def test_arrays_with_fewer_than_two_modes_are_refused(array):
    with pytest.raises(ValueError, match="^tensor must"):
        parafac(array, 1)


@pytest.mark.parametrize("init", ["svd", "random", "given"])
def test_no_iterations_return_the_start(init):
    given = (
        np.ones(2),
        [np.random.default_rng(mode).random((size, 2)) for mode, size in enumerate(PROBLEM.tensor.shape)],
    )
    fit, errors = parafac(PROBLEM.tensor, 2, n_iter_max=0, init=given if init == "given" else init, random_state=0,
                          return_errors=True)  # fmt: skip
    error = np.linalg.norm(rebuilt(*fit) - PROBLEM.tensor) / np.linalg.norm(PROBLEM.tensor)
    assert_allclose(errors, [error])
    if init == "given":
        assert_allclose(rebuilt(*fit), rebuilt(*given))
    if init == "svd":
        leading = np.linalg.svd(PROBLEM.tensor.reshape(PROBLEM.tensor.shape[0], -1))[0][:, :2]
        first = fit[1][0] / np.linalg.norm(fit[1][0], axis=0)
        assert_allclose(np.abs(np.sum(first * leading, axis=0)), 1)


def test_filling_in_missing_entries_improves_the_start():
    tensor = np.einsum("i,j,k->ijk", *(np.random.default_rng(mode).uniform(1, 2, 4) for mode in range(3)))
    mask = np.ones((4, 4, 4))
    mask[1, :, 3] = 0
    starts = [parafac(tensor, 1, n_iter_max=0, mask=mask, svd_mask_repeats=repeats) for repeats in (0, 10)]
    errors = [np.linalg.norm(rebuilt(*start) - tensor) for start in starts]
    assert errors[1] < 0.5 * errors[0]


def test_verbose_prints_every_iteration(capsys):
    _, errors = parafac(PROBLEM.tensor, 3, random_state=0, verbose=1, return_errors=True)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(errors)
    assert lines[0] == f"iteration 1, relative error: {errors[0]}"
    assert lines[-1].startswith("converged after")


def test_a_rank_given_as_a_share_ends_after_the_iterations_of_all_starts():
    tensor = np.random.default_rng(0).random((8, 7, 6))
    with pytest.warns(codiag.ConvergenceWarning):
        _, errors = parafac(tensor, "same", n_iter_max=5, random_state=0, return_errors=True)
    assert len(errors) <= 5 + 2


def test_it_works_without_tensorly(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorly", None)
    monkeypatch.setitem(sys.modules, "tensorly.cp_tensor", None)
    seen = []
    fit = parafac(PROBLEM.tensor, 3, random_state=0, callback=lambda fit, error: seen.append((fit, error)))
    assert isinstance(fit, codiag.Factorization)
    assert_allclose(rebuilt(*fit), PROBLEM.tensor, atol=0.02)
    weights, factors = seen[-1][0]
    assert_allclose(rebuilt(weights, factors), PROBLEM.tensor, atol=0.02)
    assert CP(3, random_state=0).fit(PROBLEM.tensor).errors_


def test_arrays_of_different_shapes_are_no_tensor():
    with pytest.raises(ValueError, match="^tensor must"):
        parafac([np.ones((2, 3, 4)), np.ones((2, 3))], 1)


def test_the_start_of_a_complex_array_is_complex():
    rng = np.random.default_rng(0)
    factors = [rng.standard_normal((5, 2)) + 1j * rng.standard_normal((5, 2)) for _ in range(3)]
    tensor = np.einsum("ir,jr,kr->ijk", *factors)
    _, start = codiag.drop_in.parafac(tensor, 2, n_iter_max=0, init="svd")
    leading = [np.linalg.svd(np.moveaxis(tensor, mode, 0).reshape(5, -1))[0][:, :2] for mode in range(3)]
    for found, expected in zip(start, leading, strict=True):
        assert np.linalg.norm(expected - found @ np.linalg.lstsq(found, expected, rcond=None)[0]) < 1e-10


def test_what_is_not_offered_is_said_with_what_is():
    pytest.importorskip("tensorly.decomposition", reason="TensorLy is not installed")
    with pytest.raises(ImportError, match="does not offer"):
        from codiag.drop_in import tucker  # noqa: F401
    assert not hasattr(codiag.drop_in, "nonsense")
