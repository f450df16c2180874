"""What the fuzzer has found: degenerate starts, extreme scales, and arguments that passed for something else."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

import codiag
from codiag import datasets, drop_in, metrics, models
from codiag.diagonalize import UWEDGE, TwoSided
from codiag.drop_in import parafac
from codiag.methods import ALS
from codiag.synthetic import unit_factor
from codiag.tensors import (
    CrossMomentTensor,
    FactoredTensor,
    MomentTensor,
    SparseTensor,
    as_tensor,
    symmetrize,
)

RNG = np.random.default_rng(0)
FACTOR = RNG.standard_normal((3, 3))
STACK = (FACTOR * RNG.standard_normal((4, 1, 3))) @ FACTOR.T
CUBE = np.ones((2, 2, 2))
ENTRIES = SparseTensor(np.zeros((3, 1), dtype=int), np.ones(1), (2, 2, 2))

DEFECTIVE = np.zeros((3, 3, 3))
DEFECTIVE[0, 0, 1] = DEFECTIVE[0, 1, 0] = DEFECTIVE[1, 0, 0] = 2
DEFECTIVE[1, 1, 2] = DEFECTIVE[1, 2, 1] = DEFECTIVE[2, 1, 1] = 1
"""Every pencil of these matrices has one eigenvector, and all of them vanish on it."""


@pytest.mark.filterwarnings("ignore::codiag.ConvergenceWarning")
@pytest.mark.parametrize("method", [UWEDGE(), UWEDGE(fallback=False), TwoSided(), TwoSided(fallback=False)])
def test_defective_pencils_are_no_start_of_nan(method):
    for seed in range(5):
        fit = method(DEFECTIVE, rng=seed)
        assert np.all(np.isfinite(fit.factor))
        assert np.all(np.isfinite(fit.inverse))


@pytest.mark.parametrize("scale", [1e127, 1e-127])
def test_standard_errors_do_not_depend_on_the_scale(scale):
    noise = np.random.default_rng(1).standard_normal(STACK.shape) * 1e-3
    noisy = STACK + noise + noise.transpose(0, 2, 1)
    fit, scaled = (codiag.joint_diagonalize(one, rng=0) for one in (noisy, noisy * scale))
    assert_allclose(scaled.standard_errors, fit.standard_errors, rtol=1e-4)


@pytest.mark.parametrize("shape", [(2, 3, 3, 4), (3, 4, 5)])
def test_singular_vectors_start_as_many_components_as_asked_for(shape):
    tensor = np.zeros(shape)
    tensor[(0,) * len(shape)], tensor[(1,) * len(shape)] = 1, 2
    fit = codiag.factorize(tensor, 1, method=ALS(init="svd"), rng=0)
    assert_allclose(fit.relative_error, np.sqrt(1 / 5))


def test_symmetric_tensors_are_told_by_their_noise_not_by_one_projection():
    rng = np.random.default_rng(1)
    for _ in range(300):
        column = rng.standard_normal(2)
        clean, errors = np.einsum("a,b,c->abc", column, column, column), rng.standard_normal((2, 2, 2))
        noisy = clean + 0.1 * errors * np.linalg.norm(clean) / np.linalg.norm(errors)
        assert as_tensor(noisy, symmetric=True).symmetric


def test_components_given_by_an_array():
    factors = np.random.default_rng(0).standard_normal((3, 4, 2))
    tensor = FactoredTensor(np.ones(2), factors)
    assert_allclose(tensor.to_dense(), np.einsum("ai,bi,ci->abc", *factors))


@pytest.mark.filterwarnings("ignore:n_components=2 may be more")
def test_topics_for_scikit_learn_leave_the_generator_of_numpy_alone():
    counts = np.random.default_rng(0).poisson(2, (60, 8))
    model = models.LatentDirichlet(2, alpha_0=5.0, random_state=0).fit(counts)
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    copy = model.to_sklearn()
    assert np.array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    assert copy.doc_topic_prior_ > 1  # which scikit-learn's own fit refuses
    assert_allclose(copy.transform(counts).sum(axis=1), 1)


def test_crowds_of_fewer_tasks_than_classes_begin_with_the_majority():
    votes = {"task": np.repeat([0, 1], 5), "worker": np.tile(np.arange(5), 2), "label": np.arange(10) % 4}
    with pytest.warns(UserWarning, match="majority vote"):
        models.DawidSkene(random_state=0).fit(votes)


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: codiag.joint_diagonalize(STACK, orthogonal="no"), TypeError, "^orthogonal must"),
        (lambda: parafac(CUBE, 1, normalize_factors=np.nan), TypeError, "^normalize_factors must"),
        (lambda: parafac(CUBE, 1, return_errors="no"), TypeError, "^return_errors must"),
        (lambda: parafac(CUBE, 1, random_state=2.5), TypeError, "^random_state must"),
        (lambda: FactoredTensor(np.array(1.0), [FACTOR] * 3), ValueError, "^weights must"),
        (lambda: FactoredTensor(np.ones(3), None), TypeError, "^factors must"),
        (lambda: symmetrize(object), TypeError, "^array must"),
        (lambda: symmetrize(np.ones((2, 2, 3))), ValueError, "^array must"),
        (lambda: symmetrize(np.full((1, 1, 1), np.inf)), ValueError, "^array must"),
        (lambda: datasets.names([]), ValueError, "^folder must"),
        (lambda: MomentTensor(FACTOR, order=np.nan), TypeError, "^order must"),
        (lambda: unit_factor(3, 10**30), ValueError, "^rank must"),
        (lambda: drop_in.ajd.rjd(np.ones((2, 2, 2)), init=np.full((2, 2), "a")), TypeError, "^init must"),
        (lambda: ENTRIES.without_empty_rows("abc"), TypeError, "^at_least must"),
        (lambda: models.DawidSkene(one_coin=np.nan).fit(np.eye(3, dtype=int)), TypeError, "^one_coin must"),
        (lambda: models.LatentDirichlet(2, alpha_0=1e300).fit(np.ones((5, 4))), ValueError, "^alpha_0 must"),
        (lambda: metrics.factor_error((np.ones(3), (object, FACTOR)), FACTOR), ValueError, "estimate must"),
        (lambda: codiag.factorize(np.ones((1, 3, 4)), 2, method="nojd1"), ValueError, "^tensor must"),
        (
            lambda: models.HiddenMarkov(3, method="ojd1", random_state=0).fit([3, 2, 1, 2, 2, 1, 2, 2, 2, 1]),
            ValueError,
            "n_components=3 is more",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:n_components=3 may be more")
def test_refusals_name_the_argument(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def test_views_that_are_vectors():
    vector = sparse.coo_array(np.ones(3))
    if vector.ndim == 2:
        pytest.skip("SciPy before 1.13 has no sparse vectors")
    with pytest.raises(ValueError, match="^views must"):
        CrossMomentTensor(vector, vector, vector)
