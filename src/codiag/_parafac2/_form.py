"""The form of a result: unit columns, largest components first, signs, and B as the root of the correlations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from codiag._parafac2._model import Factors


class Form(NamedTuple):
    """Weights, unit factors and bases."""

    weights: np.ndarray
    factors: tuple[np.ndarray, np.ndarray, np.ndarray]
    projections: tuple[np.ndarray, ...]


def in_form(factors: Factors, bases: Sequence[np.ndarray]) -> Form:
    """Return the result.

    B is the symmetric root of the correlations, so that each basis is as close to its evolving factors as it can be. A
    slice and its basis may change their sign together; the largest component of a slice is then positive.
    """
    units = factors.scaled()
    weights = np.linalg.norm(units.a, axis=0)
    order = np.argsort(-weights, kind="stable")
    a, b, c, weights = units.a[:, order], units.b[:, order], units.c[:, order], weights[order]
    a = a / np.where(weights > 0, weights, 1.0)
    sizes = a * weights
    turns = np.where(np.sum(sizes * np.abs(sizes), axis=1) < 0, -1.0, 1.0)
    a = a * turns[:, None]
    signs_a = np.where(a.sum(axis=0) < 0, -1.0, 1.0)
    peaks = c[np.argmax(np.abs(c), axis=0), np.arange(c.shape[1])]
    signs_c = np.where(peaks < 0, -1.0, 1.0)
    left, sizes_b, right = np.linalg.svd(b * (signs_a * signs_c))
    turned = left @ right
    projections = tuple(sign * (basis @ turned) for sign, basis in zip(turns, bases, strict=True))
    return Form(weights, (a * signs_a, (right.T * sizes_b) @ right, c * signs_c), projections)
