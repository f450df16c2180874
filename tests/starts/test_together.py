"""Starts of many tensors together."""

from __future__ import annotations

import numpy as np

from codiag.least_squares import NormalEquations, settle
from codiag.starts import assign_roles, diagonal_starts
from codiag.synthetic import noisy_tensor


def test_starts_lead_to_the_minimum_next_to_the_components():
    planted = [noisy_tensor((10, 9, 8), 4, noise=0.2, rng=seed) for seed in range(60)]
    tensors = np.stack([one.tensor for one in planted])
    roles, rngs = assign_roles((10, 9, 8), 4), [np.random.default_rng(seed) for seed in range(60)]
    begun = [np.stack([one.factors[mode] for one in planted]) for mode in range(3)]
    begun[0] = begun[0] * np.stack([one.weights for one in planted])[:, None, :]
    near, ends = (
        settle(NormalEquations(tensors), starts, max_sweeps=40, tol=1e-6).objectives
        for starts in (begun, diagonal_starts(tensors, roles, 4, rngs))
    )
    assert np.mean(ends <= near + 1e-4 * np.abs(near)) > 0.9
