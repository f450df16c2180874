"""Several estimates of the same components, brought into one order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment


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
