"""Estimators of blind sources, signals they separate, and how mixings are compared."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from codiag.models import JADE, SOBI
from codiag.synthetic import mixed_signals

COLORED = ["sinusoid", "autoregressive", "square", "bursts", "autoregressive"]
CURVED = ["uniform", "laplace", "binary", "exponential", "sparse"]
CASES = {
    "SOBI": (SOBI(lags=10), COLORED),
    "SOBI by joint diagonalization": (SOBI(lags=10, max_iter=0), COLORED),
    "SOBI of some lags": (SOBI(lags=[1, 3, 7], max_iter=0), COLORED),
    "JADE": (JADE(), CURVED),
    "JADE by joint diagonalization": (JADE(max_iter=0), CURVED),
}
ROUNDING = 1e-6
"""What rounding may leave of pairs that data hardly determines: 1e-8 and more of lines and square waves, depending on
where arrays lie in memory."""
EVERY = pytest.mark.parametrize("name", CASES)


def drawn(name, n=2000, seed=0):
    model, kinds = CASES[name]
    return model, mixed_signals(n, kinds, rng=seed)


def aligned(found, reference):
    """Return columns in the order and with the signs that bring them nearest to the reference, and that order."""
    cosines = (reference / np.linalg.norm(reference, axis=0)).T @ (found / np.linalg.norm(found, axis=0))
    order = linear_sum_assignment(-np.abs(cosines))[1]
    return found[:, order] * np.sign(cosines[np.arange(order.size), order]), order
