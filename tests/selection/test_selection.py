"""The number of components: what is planted is found, noise is not, and each measure is what it says."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np
import pytest
from numpy.testing import assert_allclose

import codiag
from benchmarks.noise_kinds import NOISES, spectra
from codiag.constraints import Fixed, NonNegative, Orthogonal
from codiag.metrics import core_consistency
from codiag.selection import Evidence, decide, excess_over_draws, is_settled
from codiag.synthetic import fluorescence, noisy_tensor
from codiag.tensors import DenseTensor, FactoredTensor, SparseTensor
from codiag.theory import largest_noise_term, restricted_sensitivity


def planted(shape, rank, noise=0.02, collinearity=0.0, seed=0):
    """Return a tensor of equal weights whose components have one cosine between each two of them in every mode."""
    rng = np.random.default_rng(seed)
    triangle = np.linalg.cholesky((1 - collinearity) * np.eye(rank) + collinearity)
    factors = [np.linalg.qr(rng.standard_normal((size, rank)))[0] @ triangle.T for size in shape]
    clean = FactoredTensor(np.ones(rank), factors, symmetric=False).to_dense()
    errors = rng.standard_normal(shape)
    return clean + noise * np.linalg.norm(clean) / np.linalg.norm(errors) * errors


CASES = {
    "orthogonal": lambda: planted((9, 10, 8), 3),
    "collinear": lambda: planted((12, 10, 11), 3, collinearity=0.8),
    "single precision": lambda: planted((9, 10, 8), 3).astype(np.float32),
    "order four": lambda: planted((6, 5, 7, 6), 3),
    "symmetric": lambda: noisy_tensor((9, 9, 9), 3, symmetric=True, noise=0.01, seed=1).tensor,
    "tiny numbers": lambda: planted((9, 10, 8), 3) * 1e-80,
    "exact": lambda: planted((6, 7, 8), 3, noise=0.0),
}


@pytest.mark.parametrize("kind", CASES)
def test_the_planted_rank_is_chosen(kind):
    choice = codiag.choose_rank(CASES[kind](), range(1, 6), seed=0)
    assert choice.rank == 3
    assert choice.fit.converged
    assert choice.table["flaw"][:3].tolist() == ["", "", ""]
    assert all(choice.table["flaw"][3:])


def test_noise_has_no_rank():
    noise = np.random.default_rng(0).standard_normal((6, 7, 8))
    choice = codiag.choose_rank(noise, range(1, 4), seed=0)
    assert choice.rank is None
    assert "No rank is supported" in str(choice)
    with pytest.raises(ValueError, match="No rank is supported"):
        _ = choice.fit
    with pytest.raises(ValueError, match="rank cannot be 'auto'"):
        codiag.factorize(noise, "auto", seed=0)


def test_auto_is_the_rank_that_is_chosen():
    tensor = planted((5, 6, 5), 2)
    fit, choice = codiag.factorize(tensor, "auto", seed=3), codiag.choose_rank(tensor, seed=3)
    assert np.array_equal(fit.weights, choice.fit.weights)
    assert fit.rank == choice.rank == 2
    assert fit.rank_choice.reason == choice.reason
    np.testing.assert_allclose(fit.weights, codiag.factorize(tensor, 2, seed=3).weights, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("rank", [11, 15])
@pytest.mark.parametrize("seed", [1, 2])  # one component of 11 of seed 0 is below the noise
def test_auto_has_no_largest_rank(rank, seed):
    fit = codiag.factorize(noisy_tensor((30, 25, 20), rank, noise=0.01, seed=seed).tensor, "auto", seed=0)
    assert fit.rank == rank
    assert fit.rank_choice.reason.endswith("Ranks 1 to 20 were tried.")


def test_ranks_are_tried_until_no_higher_one_predicts_better():
    falling = [of_rank(rank, [1 / rank, 1.1 / rank]) for rank in range(1, 6)]
    flat = [of_rank(rank, [0.2, 0.22]) for rank in (6, 7)]
    assert not is_settled(falling, 3)
    assert not is_settled(falling + flat[:1], 5)
    assert is_settled(falling + flat, 5)
    assert not is_settled(falling + flat, 6)  # what is chosen has two ranks above it
    unknown = [of_rank(rank, None, flaw="fits noise" if rank > 1 else "") for rank in (1, 2, 3)]
    assert is_settled(unknown, 1)
    assert not is_settled(unknown[:2], 1)


def test_the_reason_names_the_ranks_that_were_compared():
    table = [of_rank(1, [0.9, 0.9]), of_rank(2, [0.5, 0.5], congruence=0.3), of_rank(3, [0.1, 0.1], flaw="fits noise")]
    rank, reason = decide(table)
    assert rank == 1
    assert "found in both halves of the data (1)" in reason
    assert "rank 3 predicts better" in reason
    choice = codiag.choose_rank(planted((6, 7, 8), 2), [1, 2], seed=0)
    assert choice.reason.endswith("Ranks 1 and 2 were tried.")


@pytest.mark.slow
def test_processes_change_nothing():
    """The tensor and its halves are scanned at the same time."""
    tensor = noisy_tensor((8, 9, 10), 2, noise=0.1, seed=0).tensor
    one, two = (codiag.choose_rank(tensor, range(1, 4), seed=0, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert str(one) == str(two)
    np.testing.assert_array_equal(one.fit.factors[0], two.fit.factors[0])
    with pytest.raises(ValueError, match=r"^n_jobs must"):
        codiag.choose_rank(tensor, n_jobs=0)


def test_the_same_seed_gives_the_same_table():
    tensor = planted((8, 9, 7), 2)
    before = tensor.copy()
    one, other = (codiag.choose_rank(tensor, [3, 1, 2, 2], seed=5) for _ in range(2))
    assert np.array_equal(tensor, before)
    assert one.table["rank"].tolist() == [1, 2, 3]
    for name, column in one.table.items():
        assert np.array_equal(column, other.table[name], equal_nan=column.dtype.kind == "f")


@pytest.mark.parametrize("constraints", [None, "nonnegative"])
def test_spectra_with_missing_entries(constraints):
    measured = fluorescence((8, 18, 12), 2, scatter=True, seed=2)
    choice = codiag.choose_rank(measured.tensor, range(1, 4), constraints=constraints, seed=0)
    assert choice.rank == 2
    assert codiag.factor_error(choice.fit, measured) < 0.1
    if constraints is not None:
        assert all(np.min(factor) >= 0 for fit in choice.fits.values() for factor in fit.factors)


@pytest.mark.parametrize("seed", [103, 120])
def test_noise_is_no_component_under_constraints_either(seed):
    # To first order the third component of these is worth more than noise; what it gains over two is less.
    rng = np.random.default_rng(seed)
    factors = [np.abs(rng.standard_normal((size, 2))) for size in (10, 9, 8)]
    clean, errors = np.einsum("ir,jr,kr->ijk", *factors), rng.standard_normal((10, 9, 8))
    tensor = clean + 0.2 * np.linalg.norm(clean) / np.linalg.norm(errors) * errors
    choice = codiag.choose_rank(tensor, [2, 3], constraints="nonnegative", seed=0)
    gained = np.diff((choice.table["relative_error"] * np.linalg.norm(tensor)) ** 2)
    assert -gained < largest_noise_term(choice.fits[3]) ** 2
    assert choice.rank == 2


@pytest.mark.parametrize("n_seen", [0, 2])
def test_rows_that_were_hardly_observed_are_named_and_do_not_count(n_seen):
    tensor = planted((7, 8, 6), 3)
    tensor[4].flat[n_seen:] = np.nan
    choice = codiag.choose_rank(tensor, range(2, 5), seed=0)
    assert choice.rank == 3
    assert ("index 4 of mode 0" in choice.reason) == (n_seen > 0)
    assert choice.evidence[1].open_rows == (((0, 4),) if n_seen > 0 else ())
    assert np.isnan(choice.fit.factors[0][4]).all() == (n_seen == 0)


def test_components_that_too_few_entries_leave_open_are_not_chosen():
    tensor = planted((6, 7, 8), 3)
    tensor[:, :, 1:] = np.nan  # one slice, a matrix: its components may be mixed as one likes
    choice = codiag.choose_rank(tensor, [2], seed=0)
    assert choice.rank is None
    assert choice.table["flaw"].tolist() == ["not determined"]


@pytest.mark.parametrize("constraints", [None, "nonnegative"])
def test_ranks_above_all_modes_but_one_are_told_from_noise(constraints):
    # With 96 parameters for 160 entries the law of large matrices says nothing, and halves cannot be fitted.
    rng = np.random.default_rng(0)
    factors = [rng.standard_normal((size, 6)) for size in (4, 4, 10)]
    factors = factors if constraints is None else [np.abs(factor) ** 3 for factor in factors]
    clean, errors = np.einsum("ir,jr,kr->ijk", *factors), rng.standard_normal((4, 4, 10))
    tensor = clean + 1e-3 * np.linalg.norm(clean) / np.linalg.norm(errors) * errors
    choice = codiag.choose_rank(tensor, range(4, 8), constraints=constraints, seed=0)
    assert choice.rank == 6
    assert choice.table["residual_excess"][2] <= 1


def test_draws_tell_noise_from_components():
    rng = np.random.default_rng(2)
    factors = [rng.standard_normal((size, 6)) for size in (4, 5, 6)]
    clean = np.einsum("ir,jr,kr->ijk", *factors)
    one = FactoredTensor(np.ones(6), factors, symmetric=False)
    problem = codiag.Problem(clean, 6)
    jacobian = np.concatenate(
        [np.einsum("ix,jr,kr->ijkxr", np.eye(4), *factors[1:]).reshape(120, -1),
         np.einsum("ir,jx,kr->ijkxr", factors[0], np.eye(5), factors[2]).reshape(120, -1),
         np.einsum("ir,jr,kx->ijkxr", factors[0], factors[1], np.eye(6)).reshape(120, -1)], axis=1)  # fmt: skip
    inside = np.linalg.matrix_rank(jacobian)
    basis = np.linalg.svd(jacobian)[0][:, inside:]
    excesses = []
    for _ in range(20):
        left = basis @ (basis.T @ rng.standard_normal(120))
        excesses.append(excess_over_draws(one, problem.with_tensor(problem.tensor + DenseTensor.of(
            1e-3 * left.reshape(4, 5, 6), symmetric=False))))  # fmt: skip
    assert max(excesses) < 1
    term = basis @ (basis.T @ np.einsum("i,j,k->ijk", *(rng.standard_normal(size) for size in (4, 5, 6))).ravel())
    planted_term = DenseTensor.of(term.reshape(4, 5, 6), symmetric=False)
    assert excess_over_draws(one, problem.with_tensor(problem.tensor + planted_term)) > 1


def test_a_list_of_entries():
    tensor = planted((10, 9, 8), 2)
    coords = np.argwhere(np.random.default_rng(1).random(tensor.shape) < 0.6).T
    listed = SparseTensor(coords, tensor[tuple(coords)], tensor.shape, absent="missing")
    choice = codiag.choose_rank(listed, range(1, 4), seed=0)
    assert choice.rank == 2
    assert np.all(np.isfinite(choice.table["held_out_error"]))


def test_a_large_tensor_is_seen_through_its_core():
    tensor = planted((130, 129, 128), 3, noise=0.3)
    choice = codiag.choose_rank(tensor, range(2, 5), seed=0)
    assert choice.rank == 3
    for rank in (2, 4):  # computed from the core alone
        fit = choice.fits[rank]
        assert_allclose(fit.relative_error, np.linalg.norm(tensor - fit.to_tensor()) / fit.norm, rtol=1e-8)
        assert_allclose(choice.table["core_consistency"][rank - 2], core_consistency(fit, tensor), atol=1e-6)


def test_exact_components_replicate_and_predict():
    table = codiag.choose_rank(planted((8, 9, 10), 3, noise=0.0), [3], seed=0).table
    assert table["congruence"][0] > 1 - 1e-10
    assert table["held_out_error"][0] < 1e-10


def test_what_is_left_out_is_predicted_up_to_noise():
    # Factors from half of the data carry k (d_2 + d_3) / (n / 2) of the variance, scores a third of their columns more.
    tensor = planted((20, 18, 16), 2, noise=0.1)
    error = codiag.choose_rank(tensor, [2], seed=0).table["held_out_error"][0]
    noise = 0.1 / math.sqrt(1.01)
    assert noise < error < 1.1 * noise


@pytest.mark.parametrize(("ranks", "kind"), [([], ValueError), ([0], ValueError), ("12", TypeError), (3, TypeError)])
def test_ranks_are_checked(ranks, kind):
    with pytest.raises(kind, match="ranks must"):
        codiag.choose_rank(np.ones((3, 3, 3)), ranks)


def test_ranks_that_are_too_high_are_left_out():
    tensor = planted((3, 4, 5), 1)
    assert list(codiag.choose_rank(tensor, [1, 13], seed=0).fits) == [1]  # 3 times 4 are enough for every tensor
    assert list(codiag.choose_rank(tensor, [1, 3, 4], constraints="orthogonal", seed=0).fits) == [1, 3]


def of_rank(rank, held_out, *, congruence=1.0, excess=2.0, flaw=""):
    errors = None if held_out is None else np.array(held_out)
    return Evidence(rank, 0.1, 100.0, errors, congruence, 10.0, excess, flaw == "components cancel", flaw)


def test_of_white_noise_the_largest_sound_rank_is_chosen():
    table = [of_rank(1, [4.0, 4.0]), of_rank(2, [1.0, 1.0], excess=0.9), of_rank(3, [0.9, 0.9], flaw="fits noise")]
    rank, reason = decide(table)
    assert rank == 2
    assert "rank 3 is not supported (fits noise)" in reason


def test_otherwise_the_smallest_that_predicts_as_well_as_the_best():
    table = [of_rank(1, [4.0, 4.1, 3.9]), of_rank(2, [1.0, 1.2, 0.8]), of_rank(3, [0.9, 1.3, 0.75])]
    assert decide(table)[0] == 2  # the gain from 2 to 3 is within one standard error
    assert decide([table[0], of_rank(2, [1.0, 1.2, 0.8], congruence=0.5), table[2]])[0] == 3
    assert decide([of_rank(1, [4.0], congruence=0.2)])[0] is None
    assert decide([of_rank(1, [4.0], flaw="components cancel")])[0] is None
    assert decide([of_rank(1, None, congruence=math.nan, excess=math.nan)])[0] == 1
    rank, reason = decide([of_rank(1, [4.0], congruence=0.2, excess=math.nan)])
    assert rank is None
    assert "whether the residual is noise is not known" in reason


def test_noise_that_is_not_white_is_told_by_halves():
    rng = np.random.default_rng(0)
    tensor = planted((24, 12, 10), 2, noise=0.0)
    loud = rng.uniform(0, 0.02, (1, 12, 10)) ** 2 * 100  # some entries are much noisier than others
    choice = codiag.choose_rank(tensor + loud * rng.standard_normal(tensor.shape), range(1, 5), seed=0)
    assert choice.table["residual_excess"][1] > 1
    assert choice.rank == 2
    assert "noise that is not white (" in choice.reason


FEW_NOISES = [kind if place == 0 else pytest.param(kind, marks=pytest.mark.slow) for place, kind in enumerate(NOISES)]


@pytest.mark.parametrize("constraints", [None, pytest.param("nonnegative", marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", FEW_NOISES)
def test_five_samples_show_three_substances_whatever_the_noise(kind, constraints):
    """Halves of five samples may lack a substance; channels can be halved."""
    tensor = spectra(kind, shape=(5, 40, 30), rank=3, level=0.03, seed=1)[2]
    assert codiag.choose_rank(tensor, range(1, 6), constraints=constraints, seed=0).rank == 3


def core_by_least_squares(factors, tensor):
    """Return the Tucker core that fits best, by one large system."""
    design = reduce(np.kron, factors)
    return np.linalg.lstsq(design, tensor.ravel(), rcond=None)[0]


def test_core_consistency_is_that_of_the_best_core():
    tensor = planted((5, 6, 7), 3, noise=0.3)
    fit = codiag.factorize(tensor, 3, seed=0)
    core = core_by_least_squares([fit.factors[0] * fit.weights, *fit.factors[1:]], tensor)
    ideal = np.zeros((3, 3, 3))
    ideal[range(3), range(3), range(3)] = 1
    expected = 100 * (1 - np.sum((core - ideal.ravel()) ** 2) / 3)
    assert_allclose(core_consistency(fit, tensor), expected, rtol=1e-8)


def test_core_consistency_of_holes_is_that_of_what_the_fit_puts_there():
    tensor = planted((6, 6, 7), 2, noise=0.2)
    holes = np.random.default_rng(0).random(tensor.shape) < 0.2
    fit = codiag.factorize(np.where(holes, np.nan, tensor), 2, seed=0)
    expected = core_consistency(codiag.Factorization(fit.weights, fit.factors, 0.2, 1.0, True),
                                np.where(holes, fit.to_tensor(), tensor))  # fmt: skip
    assert_allclose(core_consistency(fit, np.where(holes, np.nan, tensor)), expected, rtol=1e-8)
    told = codiag.factorize(tensor, 2, observed=~holes, seed=0)
    assert_allclose(core_consistency(told, tensor), expected, rtol=1e-4)
    with pytest.raises(ValueError, match="shape of the fit"):
        core_consistency(fit, tensor[:5])
    with pytest.raises(TypeError, match="^fit must"):
        core_consistency(3, tensor)


def test_weight_errors_are_those_of_the_jacobian():
    tensor = planted((4, 5, 6), 2, noise=0.1, collinearity=0.5)
    fit = codiag.factorize(tensor, 2, seed=0)
    a, b, c = (factor * fit.weights ** (1 / 3) for factor in fit.factors)
    blocks = [np.einsum("ix,jr,kr->ijkxr", np.eye(4), b, c), np.einsum("ir,jx,kr->ijkxr", a, np.eye(5), c)]
    blocks.append(np.einsum("ir,jr,kx->ijkxr", a, b, np.eye(6)))
    jacobian = np.concatenate([block.reshape(tensor.size, -1) for block in blocks], axis=1)
    covariance = np.linalg.pinv(jacobian.T @ jacobian, rcond=1e-10)
    for i in range(2):
        slope = np.concatenate([np.outer(f[:, i], np.eye(2)[i]).ravel() / np.sum(f[:, i] ** 2) for f in (a, b, c)])
        expected = fit.noise * fit.weights[i] * math.sqrt(slope @ covariance @ slope)
        assert_allclose(fit.weight_standard_errors[i], expected, rtol=1e-6)
    known = codiag.Problem(tensor, 2, observed=np.full(tensor.shape, 2.0))
    assert_allclose(restricted_sensitivity(fit.tensor, known).weights, fit._sensitivity.weights, rtol=1e-6)


def test_weight_errors_are_saved(tmp_path):
    fit = codiag.factorize(planted((4, 5, 6), 2), 2, seed=0)
    errors = fit.weight_standard_errors
    fit.save(tmp_path / "fit.npz")
    assert_allclose(codiag.Factorization.load(tmp_path / "fit.npz").weight_standard_errors, errors, rtol=1e-12)


def test_what_constraints_say_about_some_rows():
    rows = np.array([2, 0])
    nonnegative = NonNegative()
    assert nonnegative.on_rows(rows) is nonnegative
    assert Orthogonal().on_rows(rows) is None
    assert_allclose(Fixed(np.arange(6.0).reshape(3, 2)).on_rows(rows).factor, [[4, 5], [0, 1]])


def test_a_choice_is_drawn():
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    choice = codiag.choose_rank(planted((8, 9, 7), 2), range(1, 4), seed=0)
    figure = choice.plot()
    assert len(figure.axes) == 4
    assert_allclose(figure.axes[0].lines[0].get_ydata(), choice.table["relative_error"])
    given = Figure().subplots(1, 4)
    assert choice.plot(given) is given[0].figure
    with pytest.raises(ValueError, match="2 x 2 axes"):
        choice.plot(given[:2])


def test_a_fixed_factor_leaves_its_number_of_columns_to_be_chosen():
    planted = noisy_tensor((6, 8, 9), 3, noise=0.01, seed=0)
    fit = codiag.factorize(planted.tensor, "auto", constraints=[Fixed(planted.factors[0]), None, None], seed=0)
    assert fit.rank == 3
    assert_allclose(np.abs(fit.factors[0].T @ planted.factors[0]).max(axis=1), 1, rtol=1e-9)


@pytest.mark.slow
def test_problems_are_chosen_for_like_their_tensors():
    planted = noisy_tensor((6, 8, 9), 3, noise=0.01, seed=0)
    problem = codiag.Problem(planted.tensor, 1, constraints="nonnegative")
    chosen = codiag.choose_rank(problem, [2, 3], seed=0)
    expected = codiag.choose_rank(planted.tensor, [2, 3], constraints="nonnegative", seed=0)
    assert (chosen.rank, chosen.reason) == (expected.rank, expected.reason)
