"""Numbers that are to be probabilities.

Several estimates of the same components, brought into one order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment, nnls


def on_simplex(columns: np.ndarray) -> tuple[np.ndarray, float]:
    """Return columns with positive entries that sum to one, and the share of their mass that had to be clipped."""
    signed = columns * np.where(columns.sum(axis=0) < 0, -1.0, 1.0)
    kept = np.maximum(signed, 0)
    clipped = float(np.sum(kept - signed) / max(np.sum(np.abs(signed)), 1e-300))
    floor = 1e-12 / columns.shape[0]
    kept = kept + floor
    return kept / kept.sum(axis=0), clipped


def on_simplex_rows(rows: np.ndarray) -> np.ndarray:
    """Return rows without negative entries, of sum one; even where nothing is left."""
    kept = np.maximum(rows, 0)
    sums = kept.sum(axis=1, keepdims=True)
    return np.where(sums > 0, kept / np.where(sums > 0, sums, 1), 1 / rows.shape[1])


def mixture_weights(components: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Return the weights, positive and of sum one, with which columns add up to the mean, nearly."""
    weights = nnls(components, mean, maxiter=100 + 10 * components.shape[1])[0] + 1e-12
    return weights / weights.sum()


def common_order(estimates: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return for each of several estimates (m, k) the order of its columns that fits the one most like the others."""
    n, k = len(estimates), estimates[0].shape[1]
    products = np.hstack(estimates)
    products = (products.T @ products).reshape(n, k, n, k)
    likeness = np.zeros((n, n))
    orders = np.empty((n, n, k), dtype=np.int64)
    for i in range(n):
        for j in range(i, n):
            order = linear_sum_assignment(-products[i, :, j])[1]
            orders[i, j], orders[j, i] = order, np.argsort(order)
            likeness[i, j] = likeness[j, i] = products[i, range(k), j, order].sum()
    return list(orders[int(np.argmax(likeness.sum(axis=1)))])
