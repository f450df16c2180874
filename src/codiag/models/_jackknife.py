"""Standard errors of parameters from sums over blocks of the data, each left out in turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from scipy.optimize import linear_sum_assignment

from codiag.models._components import Components

C = TypeVar("C", bound=Components)


def jackknife(whole: C, replicates: Sequence[C], sizes: np.ndarray) -> dict[str, np.ndarray]:
    r"""Return standard errors of the parameters of components, by name.

    Replicate b is the estimate without block b, which holds a share :math:`1 / h_b` of the data. With pseudo-values
    :math:`h_b \theta - (h_b - 1) \theta_b` and their mean :math:`\bar\theta` the variance is the mean over blocks of
    their squared distances from it, each over :math:`h_b - 1` (Busing, Meijer & van der Leeden, 1999); where blocks are
    of one size this is the delete-a-group jackknife.
    """
    aligned = [replicate.reordered(_order(whole, replicate)) for replicate in replicates]
    ratios = np.sum(sizes) / np.asarray(sizes, dtype=np.float64)
    errors = {}
    for name in whole.parameter_names():
        value = np.asarray(getattr(whole, name))
        others = np.stack([np.asarray(getattr(one, name)) for one in aligned])
        h = ratios.reshape(-1, *[1] * value.ndim)
        pseudo = h * value - (h - 1) * others
        # For blocks of one size this is the mean of the pseudo-values.
        center = len(others) * value - np.sum((1 - 1 / h) * others, axis=0)
        errors[name] = np.sqrt(np.mean((pseudo - center) ** 2 / (h - 1), axis=0))
    return errors


def _order(whole: C, replicate: C) -> np.ndarray:
    """Return the order in which the components of a replicate are nearest to those of the whole."""
    rows, others = (np.asarray(getattr(one, one.key)) for one in (whole, replicate))
    return linear_sum_assignment(np.linalg.norm(rows[:, None] - others[None], axis=2))[1]
