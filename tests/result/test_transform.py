"""Coefficients of new samples: those of old ones are the fitted factor, and all are least squares, sample by sample."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass
from itertools import permutations
from typing import ClassVar

import numpy as np
import pytest
from array_api_compat import array_namespace
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import nnls

import codiag
from assertions import assert_same_to_rounding
from codiag.constraints import Constraint, Fixed, NonNegative, Ridge
from codiag.losses import Gaussian, Huber, Poisson
from codiag.tensors import SparseTensor, symmetrize
from experiments.fitting import silent_fit
from tensor_cases import LIBRARIES, TENSORS

SHAPE, RANK = (7, 8, 9), 3
KNOWN = np.random.default_rng(9).random((8, RANK)) * [1, 5, 0.2]
ASKED = {
    "free": None,
    "nonnegative": "nonnegative",
    "ridge": Ridge(0.02),
    "unequal ridges": [Ridge(0.02), Ridge(0.04), Ridge(0.08)],
    "a ridge that holds nothing back": [Ridge(0.5), Ridge(0.1), None],
    "ridges and a fixed factor": [Ridge(0.5), Fixed(KNOWN), Ridge(2.0)],
    "nonnegative and a fixed factor": ["nonnegative", Fixed(KNOWN), None],
}


def noisy(seed=0, noise=0.02, known=None, shape=SHAPE):
    rng = np.random.default_rng(seed)
    factors = [rng.random((size, RANK)) * (rng.random((size, RANK)) < 0.7) for size in shape]
    if known is not None:
        factors[1] = known
    clean = np.einsum("ir,jr,kr->ijk", *factors)
    return clean + noise * np.sqrt(np.mean(clean**2)) * rng.standard_normal(shape)


def modes_of(constraints):
    given = constraints if isinstance(constraints, list) else [constraints] * 3
    return [mode for mode, constraint in enumerate(given) if not isinstance(constraint, Fixed)]


def assert_same(found, expected):
    assert_allclose(found, expected, atol=1e-8 * np.max(np.abs(expected)), rtol=0)


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("asked", ASKED)
def test_old_samples_have_the_fitted_factor(asked, missing):
    constraints = ASKED[asked]
    tensor = noisy(1, noise=0.5, known=KNOWN if "fixed" in asked else None)
    tensor[np.random.default_rng(1).random(SHAPE) < missing] = np.nan
    fit = codiag.factorize(tensor, RANK, constraints=constraints, rng=0)
    assert fit.converged
    for mode in modes_of(constraints):
        assert_same(fit.transform(tensor, mode), fit.factors[mode] * fit.weights)


@pytest.mark.parametrize("asked", [None, "nonnegative"])
def test_old_samples_of_too_many_components_have_the_fitted_factor(asked):
    tensor = noisy(noise=0.3)
    fit = codiag.factorize(tensor, RANK + 1, constraints=asked, rng=0)
    assert fit.converged
    for mode in (-3, 1, 2):
        assert_same(fit.transform(tensor, mode), fit.factors[mode] * fit.weights)


def test_weights_of_entries_count():
    tensor, weights = noisy(), np.random.default_rng(2).random(SHAPE)
    fit = codiag.factorize(tensor, RANK, constraints=Ridge(0.02), weights=weights, rng=0)
    assert_same(fit.transform(tensor, weights=weights), fit.factors[0] * fit.weights)
    assert np.max(np.abs(fit.transform(tensor) - fit.factors[0] * fit.weights)) > 1e-4


def test_modes_that_share_a_factor():
    rng = np.random.default_rng(0)
    a, c = rng.random((6, RANK)), rng.random((5, RANK))
    stack = np.einsum("ir,jr,kr->ijk", a, a, c) + 1e-4 * rng.standard_normal((6, 6, 5))
    stack = (stack + np.swapaxes(stack, 0, 1)) / 2
    fit = codiag.factorize(stack, RANK, symmetric=(0, 1), rng=0)
    for mode in range(3):
        assert_same(fit.transform(stack, mode), fit.factors[mode] * fit.weights)
    cube = symmetrize(np.einsum("ir,jr,kr->ijk", a, a, a) + 1e-4 * rng.standard_normal((6, 6, 6)))
    fit = codiag.factorize(cube, RANK, symmetric=True, rng=0)
    assert fit._symmetric
    assert_same(fit.transform(cube[:4]), fit.factors[0][:4] * fit.weights)


def design(fit):
    """Return the matrix (d_1 d_2, rank) that coefficients along mode 0 multiply, column by column."""
    return np.einsum("jr,kr->jkr", *fit.factors[1:]).reshape(-1, fit.rank)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_new_samples_are_at_the_oracle(missing):
    rng = np.random.default_rng(3)
    new = noisy(4, noise=1.0, shape=(5, 8, 9))
    new[rng.random(new.shape) < missing] = np.nan
    free, kept = (codiag.factorize(noisy(), RANK, constraints=asked, rng=0) for asked in (None, "nonnegative"))
    for sample, row, positive in zip(new, free.transform(new), kept.transform(new), strict=True):
        seen = np.isfinite(sample.ravel())
        assert_same(row, np.linalg.lstsq(design(free)[seen], sample.ravel()[seen], rcond=None)[0])
        assert_same(positive, nnls(design(kept)[seen], sample.ravel()[seen])[0])
    assert np.any(kept.transform(new) == 0)


def test_ridges_hold_new_coefficients_back():
    fit = codiag.factorize(noisy(), RANK, constraints=Ridge(0.5), rng=0)
    sizes = fit.weights ** (2 / 3)  # in the other two modes, since all have the same ridge
    new = noisy(4, shape=(5, 8, 9)).reshape(5, -1)
    matrix = np.vstack([design(fit) * sizes, np.sqrt(0.5) * np.eye(RANK)])
    expected = np.linalg.lstsq(matrix, np.hstack([new, np.zeros((5, RANK))]).T, rcond=None)[0].T * sizes
    assert_same(fit.transform(new.reshape(5, 8, 9)), expected)


@dataclass(frozen=True, eq=False)
class NotPositive(Constraint):
    """A constraint of a user's own, of rows one by one."""

    is_separable: ClassVar[bool] = True

    def project(self, factor):
        return np.minimum(factor, 0)


def test_constraints_of_ones_own_hold_for_new_samples():
    fit = codiag.factorize(noisy(), RANK, constraints=[NotPositive(), None, None], rng=0)
    new = noisy(4, noise=1.0)
    expected = np.stack([-nnls(-design(fit), sample.ravel())[0] for sample in new])
    assert np.any(expected == 0)
    assert_same(fit.transform(new), expected)


@pytest.mark.parametrize(
    "asked", ["orthogonal", [Fixed(np.eye(7, RANK) + 0.1), None, None]], ids=["orthogonal", "fixed"]
)
def test_what_ties_samples_together_leaves_new_ones_free(asked):
    fit = codiag.factorize(noisy(), RANK, constraints=asked, rng=0)
    new = noisy(4, shape=(2, 8, 9))
    assert_same(fit.transform(new), np.linalg.lstsq(design(fit), new.reshape(2, -1).T, rcond=None)[0].T)


@pytest.mark.parametrize("asked", [None, "nonnegative", Ridge(0.1)], ids=["free", "nonnegative", "ridge"])
def test_samples_do_not_depend_on_each_other(asked):
    fit = codiag.factorize(noisy(), RANK, constraints=asked, rng=0)
    new = noisy(4, shape=(5, 8, 9))
    new[3, :5] = np.nan
    alone = np.concatenate([fit.transform(new[i : i + 1]) for i in range(5)])
    assert_same(fit.transform(new), alone)


def test_samples_of_which_too_little_was_observed_have_the_smallest_coefficients():
    fit = codiag.factorize(noisy(), RANK, rng=0)
    new = np.full((2, 8, 9), np.nan)
    assert_array_equal(fit.transform(new), np.zeros((2, RANK)))
    new[1, 2, 3], row = 1.0, fit.factors[1][2] * fit.factors[2][3]
    assert_allclose(fit.transform(new), [np.zeros(RANK), row / (row @ row)], atol=1e-9)


@pytest.mark.parametrize("kind", TENSORS)
def test_every_kind_of_tensor(kind):
    fit = codiag.factorize(noisy(shape=(5, 6, 7)), RANK, rng=0)
    new = noisy(4, shape=(5, 6, 7))
    found = fit.transform(TENSORS[kind](new, False))
    assert_same(np.asarray(found), fit.transform(new))


@pytest.mark.parametrize("asked", [None, "nonnegative"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_every_library(library, asked):
    fit = codiag.factorize(noisy(), RANK, constraints=asked, rng=0)
    new = noisy(4, shape=(4, 8, 9))
    new[0, 0] = np.nan
    given = LIBRARIES[library](new)
    found = fit.transform(given)
    assert array_namespace(found) is array_namespace(given)
    assert_same(np.asarray(found), fit.transform(new))


def test_precision_is_that_of_the_samples():
    fit = codiag.factorize(noisy(), RANK, rng=0)
    new = noisy(4).astype(np.float32)
    assert fit.transform(new).dtype == np.float32
    assert_allclose(fit.transform(new), fit.transform(new.astype(float)), atol=1e-5)


def test_entries_that_a_list_leaves_out_are_missing_if_it_says_so():
    fit = codiag.factorize(noisy(), RANK, rng=0)
    new = noisy(4, shape=(4, 8, 9))
    seen = np.random.default_rng(0).random(new.shape) < 0.5
    listed = SparseTensor(np.stack(np.nonzero(seen)), new[seen], new.shape, absent="missing")
    assert_same(fit.transform(listed), fit.transform(np.where(seen, new, np.nan)))
    assert_same(fit.transform(np.ma.masked_array(new, ~seen)), fit.transform(new, mask=seen))


@pytest.mark.parametrize("asked", ASKED)
def test_files_and_copies_keep_what_was_asked(asked, tmp_path):
    fit = codiag.factorize(noisy(known=KNOWN), RANK, constraints=ASKED[asked], rng=0)
    fit.save(tmp_path / "fit.npz")
    new = -noisy(4)
    for again in (codiag.Factorization.load(tmp_path / "fit.npz"), pickle.loads(pickle.dumps(fit))):
        for mode in range(3):
            assert_same_to_rounding(again.transform(new, mode), fit.transform(new, mode))


class OwnPoisson(Poisson):
    """A loss that is not codiag's own."""


@pytest.mark.parametrize("own", [{"constraints": [NotPositive(), NonNegative(), None]}, {"loss": OwnPoisson()}])
def test_what_is_not_codiags_own_is_given_again_to_load_a_file(own, tmp_path):
    fit = codiag.factorize(np.abs(noisy()), 1, **own, rng=0)
    fit.save(tmp_path / "fit.npz")
    argument = next(iter(own))
    for wrong in (None, Poisson() if argument == "loss" else "orthogonal"):
        with pytest.raises(ValueError, match=f"^{argument} must be that of the fit"):
            codiag.Factorization.load(tmp_path / "fit.npz", **{argument: wrong})
    with pytest.raises(ValueError, match="^loss must be that of the fit"):
        codiag.Factorization.load(tmp_path / "fit.npz", **own | {"loss": Huber(1.0)})
    again = codiag.Factorization.load(tmp_path / "fit.npz", **own)
    assert (type(again.problem.loss), again.deviance.total) == (type(fit.problem.loss), fit.deviance.total)
    assert_same_to_rounding(again.transform(np.abs(noisy(4))), fit.transform(np.abs(noisy(4))))


LOSSES = [
    "poisson",
    "negative_binomial",
    Huber(2.0),
    Gaussian([np.linspace(1, 2, 7), None, np.eye(9) + 0.5]),
    Gaussian("modes"),
]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss if isinstance(loss, str) else type(loss).__name__)
def test_files_copies_and_pickles_keep_the_loss(loss, tmp_path):
    tensor = np.round(np.abs(40 * noisy())) + np.random.default_rng(0).poisson(3.0, noisy().shape)
    fit = codiag.factorize(tensor, 1, loss=loss, rng=0)
    fit.save(tmp_path / "fit.npz")
    saved = codiag.Factorization.load(tmp_path / "fit.npz")
    new = tensor[:3] + 1.0
    for again in (saved, copy.copy(fit), copy.deepcopy(fit), pickle.loads(pickle.dumps(fit))):
        assert type(again.problem.loss) is type(again.problem.loss) is type(fit.problem.loss)
        assert again.deviance.total == fit.deviance.total
        assert_same_to_rounding(again.transform(new), fit.transform(new))
        assert_same_to_rounding(again.standard_errors, fit.standard_errors)
        assert_same_to_rounding(again.bootstrap(n=2, rng=0).weights, fit.bootstrap(n=2, rng=0).weights)


def test_coefficients_take_covariances_into_account():
    """They are those of the fit for the samples that were fitted, as under all losses."""
    covariance = np.diag(np.geomspace(0.01, 100, 8))
    fit = codiag.factorize(noisy(), RANK, loss=Gaussian([None, covariance, None]), rng=0)
    assert_allclose(fit.transform(noisy()), fit.factors[0] * fit.weights, atol=1e-6 * fit.weights.max())
    with pytest.raises(ValueError, match="^new must be complete"):
        fit.transform(np.where(np.arange(9) > 7, np.nan, noisy()))


@pytest.mark.parametrize(
    ("new", "mode", "error", "said"),
    [
        (np.ones((8, 9)), 0, ValueError, "^new must"),
        (np.ones((4, 9, 8)), 0, ValueError, "^new must"),
        (np.ones((7, 8, 4)), 1, ValueError, "^new must"),
        (np.ones((0, 8, 9)), 0, ValueError, "^new must"),
        (np.ones((4, 8, 9)), 3, ValueError, "^mode must"),
        (np.ones((4, 8, 9)), "0", TypeError, "^mode must"),
        (np.full((4, 8, 9), np.inf), 0, ValueError, "^tensor must"),
        (np.ones((4, 8, 9)) * 1j, 0, TypeError, "real"),
    ],
)
def test_what_is_refused(new, mode, error, said):
    fit = codiag.factorize(noisy(), RANK, rng=0)
    with pytest.raises(error, match=said):
        fit.transform(new, mode)
    with pytest.raises(ValueError, match="^mask and weights must"):
        fit.transform(np.ones((4, 8, 9)), mask=np.ones((4, 8)))


def test_the_last_steps_never_lead_up():
    """Where components cancel, an undamped step that is short relative to them may change the tensor a lot."""
    tensor = np.zeros((4, 4, 4))
    tensor[1, 1, 1] = 1
    for place in permutations((0, 2, 3)):
        tensor[place] = 1
    fit = silent_fit(tensor, 2, seed=773221248)
    assert fit.relative_error == pytest.approx(fit.history[-1].objective, rel=1e-6)
