"""Many fits at once: the same answers as one after another, and the process is left as it was."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import codiag
from codiag.models import SphericalGaussianMixture
from codiag.synthetic import matrix_stack, mild_factor, noisy_tensor


def fitted(seed):
    """Return what one of five kinds of fits finds, as bytes."""
    kind = seed % 5
    if kind == 3:
        stack = matrix_stack(mild_factor(5, 5, seed), 8, noise=1e-3, seed=seed)
        return codiag.joint_diagonalize(stack.matrices, seed=seed).factor.tobytes()
    if kind == 4:
        rng = np.random.default_rng(seed)
        samples = rng.standard_normal((600, 4)) + 6 * np.eye(4)[rng.integers(0, 3, 600)]
        return SphericalGaussianMixture(3, random_state=seed).fit(samples).means_.tobytes()
    planted = noisy_tensor((5, 5, 5), 3, symmetric=kind == 1, noise=1e-3, seed=seed)
    fit = codiag.factorize(planted.tensor, 3, method="nojd1" if kind == 2 else None, seed=seed)
    return b"".join(array.tobytes() for array in (fit.weights, *fit.factors))


def test_fits_in_threads_are_fits_in_turn_and_leave_filters_alone():
    before = list(warnings.filters)
    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(fitted, range(200)))
    assert list(warnings.filters) == before
    assert together == [fitted(seed) for seed in range(200)]
