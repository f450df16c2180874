"""TensorLy's function, done by codiag."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from codiag.drop_in import parafac
from codiag.synthetic import noisy_tensor

PROBLEM = noisy_tensor((6, 7, 8), 3, noise=1e-3, seed=0)


def rebuilt(weights, factors):
    return np.einsum("r,ar,br,cr->abc", weights, *factors)


def test_the_signature_is_theirs():
    tensorly = pytest.importorskip("tensorly.decomposition", reason="TensorLy is not installed")
    ours, theirs = (inspect.signature(function).parameters for function in (parafac, tensorly.parafac))
    assert list(ours) == list(theirs)
    assert {name: item.default for name, item in ours.items()} == {name: item.default for name, item in theirs.items()}


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
    with pytest.raises(ValueError, match="init must be 'svd', 'random', a CPTensor"):
        parafac(PROBLEM.tensor, 3, init="best")


def test_seeds():
    for seed in (3, np.random.RandomState(3)):
        state = np.random.RandomState(3) if isinstance(seed, np.random.RandomState) else seed
        first = parafac(PROBLEM.tensor, 3, init="random", random_state=seed)
        second = parafac(PROBLEM.tensor, 3, init="random", random_state=state)
        assert_array_equal(first[1][0], second[1][0])


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
    with pytest.raises(ValueError, match="n_iter_max must be positive"):
        parafac(PROBLEM.tensor, 3, n_iter_max=0)


def test_few_iterations_are_few():
    start = (np.ones(3), [np.ones((size, 3)) + np.eye(size, 3) for size in (6, 7, 8)])
    with pytest.warns(UserWarning, match="did not converge in 2 sweeps"):
        _, errors = parafac(PROBLEM.tensor, 3, init=start, n_iter_max=2, return_errors=True)
    assert len(errors) == 3


@pytest.mark.parametrize(
    "option",
    [
        {"mask": np.ones((6, 7, 8))},
        {"sparsity": 0.1},
        {"l2_reg": 0.1},
        {"fixed_modes": [0]},
        {"orthogonalise": True},
        {"linesearch": True},
        {"verbose": 1},
        {"svd": "randomized_svd"},
        {"svd_mask_repeats": 2},
        {"cvg_criterion": "rec_error"},
    ],
    ids=lambda option: next(iter(option)),
)
def test_what_is_not_honoured_is_refused(option):
    name, value = next(iter(option.items()))
    shown = re.escape(repr(value)) if np.isscalar(value) else r"\.\.\."
    with pytest.raises(ValueError, match=f"{name}={shown} is not supported by codiag.drop_in.parafac"):
        parafac(PROBLEM.tensor, 3, **option)
