"""Standard errors of parameters from estimates without blocks of the data, each left out in turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from scipy.optimize import linear_sum_assignment

from codiag.models._components import Components

C = TypeVar("C", bound=Components)

AT_BOUND = 1e-8
"""Distance from 0 or 1 within which shares are at that bound: models keep them a little inside, by 1e-9 at most."""


def jackknife(whole: C, replicates: Sequence[C], sizes: np.ndarray) -> dict[str, Any]:
    """Return standard errors of the parameters of components, by name: arrays, lists of arrays or numbers, as these.

    Replicate b is the estimate without block b, of the given size; its components may come in any order.
    """
    aligned = [replicate.reordered(nearest_order(whole, replicate)) for replicate in replicates]
    ratios = np.sum(sizes) / np.asarray(sizes, dtype=np.float64)
    errors: dict[str, Any] = {}
    for name in whole.parameter_names():
        value, others = getattr(whole, name), [getattr(one, name) for one in aligned]
        errors_of = jackknife_errors if name in whole.unbounded else share_errors
        if isinstance(value, list):
            pairs = zip(value, zip(*others, strict=True), strict=True)
            errors[name] = [errors_of(part, np.stack(rest), ratios) for part, rest in pairs]
        else:
            found = errors_of(np.asarray(value), np.stack([np.asarray(one) for one in others]), ratios)
            errors[name] = found if isinstance(value, np.ndarray) else float(found)
    return errors


def jackknife_errors(value: np.ndarray, others: np.ndarray, ratios: np.ndarray) -> np.ndarray:
    r"""Return standard errors of an estimate, from estimates (blocks, ...) without each of the blocks.

    Block b holds a share :math:`1 / h_b` of the data. With pseudo-values :math:`h_b \theta - (h_b - 1) \theta_b` and
    their mean :math:`\bar\theta` the variance is the mean over blocks of their squared distances from it, each over
    :math:`h_b - 1` (Busing, Meijer & van der Leeden, 1999); where blocks are of one size this is the delete-a-group
    jackknife.
    """
    h = np.asarray(ratios).reshape(-1, *[1] * value.ndim)
    pseudo = h * value - (h - 1) * others
    # For blocks of one size this is the mean of the pseudo-values.
    center = len(others) * value - np.sum((1 - 1 / h) * others, axis=0)
    return np.asarray(np.sqrt(np.mean((pseudo - center) ** 2 / (h - 1), axis=0)))


def share_errors(value: np.ndarray, others: np.ndarray, ratios: np.ndarray, unit: float = 1.0) -> np.ndarray:
    """Return standard errors of shares or rates, NaN for those held at 0, or at the unit, with and without each block.

    That such an estimate does not vary is no sign of certainty. The only share of its row is certain.
    """
    errors = jackknife_errors(value, others, ratios)
    if value.ndim == 0 or value.shape[-1] == 1:
        return errors
    every = np.concatenate([value[None], others]) / unit
    held = [np.all(np.abs(every - bound) <= AT_BOUND, axis=0) for bound in (0, 1)]
    return np.where(held[0] | held[1], np.nan, errors)


def nearest_order(whole: C, replicate: C) -> np.ndarray:
    """Return the order in which the components of a replicate are nearest to those of the whole."""
    rows, others = (getattr(one, one.key) for one in (whole, replicate))
    if isinstance(rows, list):  # of several views, each in a unit of its own
        units = [max(float(np.linalg.norm(part)), 1e-300) for part in rows]
        rows, others = (
            np.hstack([part / unit for part, unit in zip(one, units, strict=True)]) for one in (rows, others)
        )
    return linear_sum_assignment(np.linalg.norm(rows[:, None] - others[None], axis=2))[1]
