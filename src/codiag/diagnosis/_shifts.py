r"""Whether profiles shift from sample to sample, which CP does not allow and PARAFAC2 does.

If the profile b of a component along a mode moves by :math:`\tau_s` points in sample s, the residual is
:math:`-\tau_s a_s\, b' \otimes c` to first order: the derivative of the profile times the profiles of the other modes,
with a coefficient by sample. A component that is missing looks like that only in part, and vanishes if it is added.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np

from codiag.least_squares import strongest_terms

SMOOTH = 0.25
"""Mean square of the derivative of a profile, relative to the profile, below which it is a curve."""

SHARE = 0.25
"""Share of the residual, in so many directions, that derivatives of the profiles must explain."""

CLEAR_SHARE = 0.9
"""The same, from which no missing component explains it better."""

EXCESS = 5.0
"""What they explain relative to what they would explain of white noise."""

LEAST_SHIFT = 0.1
"""Root mean square of the shifts of a profile, in points, below which they do not matter."""


class Shift(NamedTuple):
    """Profiles that shift.

    Attributes
    ----------
    mode, sample_mode : int
        The mode along which they do, and that of the samples.
    points : float
        Root mean square of the shifts of the profile that shifts most.
    share : float
        What derivatives of the profiles explain of the residual, relative to as many directions that explain most.
    """

    mode: int
    sample_mode: int
    points: float
    share: float


def shift_of(
    residual: np.ndarray, weights: np.ndarray, factors: Sequence[np.ndarray], ordered: Sequence[bool]
) -> Shift | None:
    """Return along which mode profiles shift, if the residual shows that; None otherwise.

    What the strongest term of the residual explains, as a component that is missing does, is no shift, unless it is
    the derivative of a profile.
    """
    found = _strongest_shift(residual, weights, factors, ordered)
    if found is None or found.share > CLEAR_SHARE:
        return found
    (weight,), columns = strongest_terms(residual[None])
    rest = residual - weight * reduce(np.multiply.outer, [column[0] for column in columns])
    return None if _strongest_shift(rest, weights, factors, ordered) is None else found


def _strongest_shift(
    residual: np.ndarray, weights: np.ndarray, factors: Sequence[np.ndarray], ordered: Sequence[bool]
) -> Shift | None:
    best: Shift | None = None
    order, total = len(factors), float(np.sum(residual**2))
    if not total > 0:
        return None
    for mode in range(order):
        factor = factors[mode]
        slopes = np.gradient(factor, axis=0) if ordered[mode] and factor.shape[0] >= 8 else None
        if slopes is None or np.median(np.sum(slopes**2, axis=0) / np.sum(factor**2, axis=0)) > SMOOTH:
            continue
        for sample_mode in range(order):
            if sample_mode == mode:
                continue
            others = [other for other in range(order) if other not in (mode, sample_mode)]
            columns = [slopes, *[factors[other] for other in others]]
            directions = np.stack([reduce(np.multiply.outer, [part[:, r] for part in columns]).ravel()
                                   for r in range(weights.size)], axis=1)  # fmt: skip
            unfolded = np.transpose(residual, (sample_mode, mode, *others)).reshape(residual.shape[sample_mode], -1)
            basis = np.linalg.qr(directions)[0]
            explained = float(np.sum((unfolded @ basis) ** 2))
            gram = unfolded @ unfolded.T if unfolded.shape[0] <= unfolded.shape[1] else unfolded.T @ unfolded
            strongest = float(np.sum(np.linalg.eigvalsh(gram)[-weights.size :]))
            expected = total * weights.size / unfolded.shape[1]
            coefficients = unfolded @ np.linalg.pinv(directions).T
            sizes = np.sum((factors[sample_mode] * weights) ** 2, axis=0)
            points = float(np.sqrt(np.max(np.sum(coefficients**2, axis=0) / np.where(sizes > 0, sizes, np.inf))))
            share = explained / strongest
            is_clear = share > SHARE and explained > EXCESS * expected and points > LEAST_SHIFT
            if is_clear and (best is None or share > best.share):
                best = Shift(mode, sample_mode, points, share)
    return best
