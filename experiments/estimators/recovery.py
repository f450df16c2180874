"""Recovery and error of overlapping communities at several thresholds of membership (Huang et al., 2013)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr


class RecoveryCurve(NamedTuple):
    """One value for each threshold."""

    recovery: np.ndarray  # the fraction of true communities that match an estimated one
    error: np.ndarray  # nodes in which matched pairs differ, over the numbers of nodes and of true communities
    distance: np.ndarray  # average fraction of nodes in which a recovered community differs from its matches, or NaN


def recovery_curve(
    memberships: np.ndarray, truth: np.ndarray, thresholds: Sequence[float], level: float = 0.01
) -> RecoveryCurve:
    """Return the recovery and the error of communities, (n, k) shares against (n, m) true members.

    A true and an estimated community match if their correlation over the nodes is significantly positive.
    """
    values = [_recovery(memberships >= threshold, truth.astype(float), level) for threshold in thresholds]
    return RecoveryCurve(*np.array(values).T)


def _recovery(estimated: np.ndarray, true: np.ndarray, level: float) -> tuple[float, float, float]:
    n, m = true.shape
    occupied = estimated[:, estimated.any(axis=0)].astype(float)
    first, second, both = true.sum(axis=0), occupied.sum(axis=0), true.T @ occupied
    scale = np.sqrt(first * (n - first))[:, None] * np.sqrt(second * (n - second))
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = (n * both - np.outer(first, second)) / scale
        statistic = correlation * np.sqrt((n - 2) / np.maximum(1 - correlation**2, 0))  # infinite for equal communities
    matched = (correlation > 0) & (2 * stdtr(n - 2, -np.abs(statistic)) < level)
    differ = np.where(matched, first[:, None] + second - 2 * both, 0.0)
    n_matches = matched.sum(axis=1)
    recovered = n_matches > 0
    distance = np.mean(differ.sum(axis=1)[recovered] / n_matches[recovered]) / n if recovered.any() else np.nan
    return float(recovered.mean()), float(differ.sum() / (n * m)), float(distance)
