"""What functions beside `factorize` and `joint_diagonalize` refuse, and what they take from other libraries."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import codiag
from codiag import datasets, diagnosis, metrics, models, synthetic
from codiag._checks import as_generator
from codiag.diagonalize import UWEDGE
from codiag.methods import ALS, NLS
from codiag.tensors import DenseTensor, FactoredTensor, SparseTensor, SumTensor

FACTOR = synthetic.unit_factor(5, 3, 0)
WEIGHTS = np.array([1.0, 2.0, 3.0])
STACK = synthetic.matrix_stack(FACTOR, 4, rng=0)
PROBLEM = synthetic.noisy_tensor((4, 5, 6), 2, noise=1e-3, rng=0)
BAD = np.where(np.eye(5, 3) > 0, np.nan, FACTOR)
CONFUSIONS = synthetic.worker_confusions(3, 2, rng=0)
CUBE = np.random.default_rng(0).standard_normal((3, 3, 3))


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: diagnosis.incoherence(0 * FACTOR), ValueError, "^factor must"),
        (lambda: diagnosis.incoherence(BAD), ValueError, "^factor must"),
        (lambda: diagnosis.factor_condition("abc"), TypeError, "^factor must"),
        (lambda: diagnosis.uniqueness_moduli(np.zeros((4, 2))), ValueError, "^diagonals must"),
        (lambda: diagnosis.kruskal_rank(FACTOR, tol=-1), ValueError, "^tol must"),
        (lambda: diagnosis.kruskal_condition([FACTOR]), ValueError, "three modes or"),
        (lambda: diagnosis.kruskal_condition([FACTOR, FACTOR, FACTOR[:, :2]]), ValueError, "one number of columns"),
        (lambda: diagnosis.assess(3), TypeError, "^fit must"),
    ],
)
def test_diagnosis(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def test_a_column_of_zeros_is_a_dependent_one():
    degenerate = np.column_stack([FACTOR, np.zeros(5)])
    assert diagnosis.factor_condition(degenerate) == np.inf
    assert diagnosis.kruskal_rank(degenerate) == 0
    assert not diagnosis.kruskal_condition([degenerate] * 3)


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: synthetic.orthonormal_factor(3, 4), ValueError, "^rank must"),
        (lambda: synthetic.unit_factor(-3, 2), ValueError, "^size must"),
        (lambda: synthetic.unit_factor(3, 2.0), TypeError, "^rank must"),
        (lambda: synthetic.mild_factor(3, 2, spread=np.nan), ValueError, "^spread must"),
        (lambda: synthetic.matrix_stack(FACTOR, 0), ValueError, "^n_matrices must"),
        (lambda: synthetic.matrix_stack(FACTOR, 2, noise=-1.0), ValueError, "^noise must"),
        (lambda: synthetic.matrix_stack(BAD, 2), ValueError, "^factor must"),
        (lambda: synthetic.matrix_stack(FACTOR, 2, right_factor=np.ones((4, 2))), ValueError, r"shape \(n, 3\); got"),
        (lambda: synthetic.noisy_tensor((3.7, 3, 3), 2), TypeError, "^shape must"),
        (lambda: synthetic.noisy_tensor((-3, -3, 3), 2), ValueError, "^shape must"),
        (lambda: synthetic.noisy_tensor(5, 2), TypeError, "^shape must"),
        (lambda: synthetic.noisy_tensor((3, 3), 2), ValueError, "at least three modes"),
        (lambda: synthetic.noisy_tensor((3, 4, 5), 2, symmetric=True), ValueError, "modes of one size"),
        (lambda: synthetic.noisy_tensor((3, 3, 3), 2, symmetric="no"), TypeError, "^symmetric must"),
        (lambda: synthetic.noisy_tensor((3, 3, 3), 2, noise=np.inf), ValueError, "^noise must"),
        (lambda: synthetic.worker_confusions(3, 1), ValueError, "^n_classes must"),
        (lambda: synthetic.worker_confusions(3, 2, adversarial=2.0), ValueError, "^adversarial must"),
        (lambda: synthetic.crowd_votes(4, CONFUSIONS[0]), ValueError, "^confusions must"),
        (
            lambda: synthetic.crowd_votes(4, CONFUSIONS[:, :1]),
            ValueError,
            r"shape \(n_workers, k, k\); got \(3, 1, 2\)",
        ),
        (lambda: synthetic.crowd_votes(4, 2 * CONFUSIONS), ValueError, "^confusions must"),
        (lambda: synthetic.crowd_votes(4, CONFUSIONS, priors=[0.5, 0.6]), ValueError, "^priors must"),
        (lambda: synthetic.crowd_votes(4, CONFUSIONS, density=-0.5), ValueError, "^density must"),
        (lambda: synthetic.mixed_membership_graph(5, 0), ValueError, "^k must"),
        (lambda: synthetic.mixed_membership_graph(5, 2, inside=1.5), ValueError, "^inside must"),
        (lambda: synthetic.mixed_membership_graph(5, 2, degrees=[1.0]), ValueError, "^degrees must"),
        (lambda: synthetic.mixed_membership_graph(2, 2, degrees=[1, -1]), ValueError, "^degrees must"),
    ],
)
def test_synthetic(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: codiag.factor_error("abc", FACTOR), TypeError, "^estimate must"),
        (lambda: codiag.factor_error(FACTOR, BAD), ValueError, "^truth must"),
        (lambda: codiag.match_components((FACTOR, FACTOR[:, :2]), (FACTOR,) * 2), ValueError, "number of components"),
        (lambda: metrics.nearest_error(np.ones((5, 0)), FACTOR), ValueError, "not empty"),
        (lambda: metrics.overlapping_nmi("abc", np.ones((3, 1))), TypeError, "^estimate must"),
    ],
)
def test_metrics(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def test_huge_and_tiny_factors_have_directions_too():
    for scale in (1e200, 1e-200):
        assert codiag.factor_error(scale * FACTOR, FACTOR) < 1e-15
        assert diagnosis.incoherence(scale * FACTOR) == pytest.approx(diagnosis.incoherence(FACTOR))


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: SumTensor([]), ValueError, "^terms must"),
        (lambda: SumTensor(5), TypeError, "^terms must"),
        (lambda: SumTensor([CUBE, np.ones((3, 3, 4))]), ValueError, "^terms must"),
        (lambda: DenseTensor(CUBE) * np.nan, ValueError, "^scale must"),
        (lambda: DenseTensor(CUBE) * 10**400, ValueError, "^scale must"),
        (lambda: DenseTensor(CUBE.astype(np.float32)) * 1e100, ValueError, "^scale must"),
        (lambda: FactoredTensor(np.ones(1), [np.ones((3, 1))] * 3) * np.inf, ValueError, "^scale must"),
        (
            lambda: codiag.factorize(DenseTensor(CUBE) * 1e200, 1),
            ValueError,
            "finite, and not",
        ),
        (lambda: DenseTensor(np.ones((3, 3, 3)), symmetric="no"), TypeError, "^symmetric must"),
        (lambda: SparseTensor([[0]] * 3, [1.0], (3, 3, 3), symmetric="no"), TypeError, "^symmetric must"),
        (lambda: SparseTensor([[0]] * 3, [1.0], (3.7, 3, 3)), TypeError, "^shape must"),
        (lambda: SparseTensor([[0]] * 3, [1.0], (-3, -3, 3)), ValueError, "^shape must"),
        (lambda: SparseTensor([[0]] * 3, [1.0], 5), TypeError, "^shape must"),
        (lambda: datasets.is_local("nope"), ValueError, "^name must"),
        (lambda: datasets.load_crowd("nope", download=False), ValueError, "^name must"),
        (lambda: NLS(init=([1, 2], [[[1]] * 4] * 3)), ValueError, "a weight for every column"),
        (lambda: NLS(init=5), TypeError, "^init must"),
    ],
)
def test_tensors_methods_and_data(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def test_sums_take_arrays_and_multiples_of_multiples_stay_in_range():
    assert_array_equal(SumTensor([CUBE, DenseTensor(CUBE)]).to_dense(), 2 * CUBE)
    back = (DenseTensor(CUBE) * 1e200) * 1e-200
    assert back.squared_norm() == pytest.approx(np.sum(CUBE**2))


SEEDED = {
    "joint_diagonalize": lambda seed: codiag.joint_diagonalize(STACK.matrices, rng=seed),
    "diagonalizer": lambda seed: UWEDGE()(STACK.matrices, rng=seed),
    "unit_factor": lambda seed: synthetic.unit_factor(3, 2, seed),
    "noisy_tensor": lambda seed: synthetic.noisy_tensor((3, 3, 3), 2, rng=seed),
    "crowd_votes": lambda seed: synthetic.crowd_votes(3, CONFUSIONS, rng=seed),
    "graph": lambda seed: synthetic.mixed_membership_graph(9, 2, rng=seed),
}


@pytest.mark.parametrize("name", SEEDED)
def test_seeds_outside_factorize(name):
    for seed, kind in (("abc", TypeError), ("12", TypeError), (1.5, TypeError), (-1, ValueError)):
        with pytest.raises(kind, match=f"rng must be None, a non-negative integer.* got {re.escape(repr(seed))}"):
            SEEDED[name](seed)
    for seed in (None, 3, [1, 2], np.random.default_rng(0), np.random.RandomState(0), np.random.SeedSequence(4)):
        SEEDED[name](seed)


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (models.LatentDirichlet(2), np.ones((5, 4))),
        (models.MultiviewMixture(2), [np.ones((5, 3))] * 3),
        (models.SphericalGaussianMixture(2), np.ones((5, 3))),
        (models.HiddenMarkov(2), [0, 1, 0, 1]),
        (models.DawidSkene(), {"task": [0], "worker": [0], "label": [0]}),
        (models.MixedMembershipSBM(2), np.ones((9, 9))),
    ],
    ids=lambda item: type(item).__name__,
)
def test_seeds_of_estimators(model, data):
    for seed, kind in (("abc", TypeError), (-1, ValueError)):
        with pytest.raises(kind, match=f"random_state must be None, a non-negative integer.*got {seed!r}"):
            model.set_params(random_state=seed).fit(data)


def test_seeds_are_those_of_numpy():
    assert as_generator(5).random() == np.random.default_rng(5).random()
    assert as_generator([1, 2]).random() == np.random.default_rng([1, 2]).random()
    assert as_generator(5, apart=True).random() != np.random.default_rng(5).random()
    sequence = np.random.SeedSequence(5)
    assert as_generator(sequence, apart=True).random() == as_generator(5, apart=True).random()


def test_components_are_compared_whatever_holds_them():
    fit = codiag.factorize(PROBLEM.tensor, 2, rng=0)
    expected = codiag.factor_error(fit, PROBLEM)
    pair = (fit.weights, list(fit.factors))
    for same in (pair, (None, fit.factors), list(fit.factors), [fit.weights, fit.factors]):
        assert codiag.factor_error(same, PROBLEM) == expected
        assert_array_equal(codiag.match_components(same, pair).permutation, [0, 1])
        assert metrics.nearest_error(same, PROBLEM) <= expected


@pytest.mark.parametrize("method", [NLS, ALS])
def test_starts_are_taken_whatever_holds_them(method):
    pyttb = pytest.importorskip("pyttb", reason="pyttb is not installed")
    start = pyttb.ktensor([factor.copy() for factor in PROBLEM.factors], np.abs(PROBLEM.weights))
    fit = codiag.factorize(PROBLEM.tensor, 2, method=method(init=start), rng=0)
    assert codiag.factor_error(fit, start) < 0.01


def test_starts_may_be_lists():
    fit = codiag.factorize(np.ones((4, 4, 4)) + 0.1 * np.eye(4), 1, method=NLS(init=([1], [[[1]] * 4] * 3)), rng=0)
    assert fit.relative_error < 0.2


def test_single_precision_goes_to_pyttb():
    pytest.importorskip("pyttb", reason="pyttb is not installed")
    fit = codiag.factorize(PROBLEM.tensor.astype(np.float32), 2, rng=0)
    assert_allclose(codiag.io.to_pyttb(fit).full().data, PROBLEM.tensor, atol=0.01)


def test_modes_of_a_tensorly_result_have_memory_of_their_own():
    pytest.importorskip("tensorly", reason="TensorLy is not installed")
    tensor = synthetic.noisy_tensor((4, 4, 4), 2, symmetric=True, rng=0).tensor
    fit = codiag.factorize(tensor, 2, symmetric=True, rng=0)
    before = fit.factors[0].copy()
    weights, factors = codiag.io.to_tensorly(fit)
    factors[0][:] = 0
    weights[:] = 0
    assert_array_equal(factors[1], before)
    assert_array_equal(fit.factors[0], before)
    assert np.all(fit.weights != 0)
