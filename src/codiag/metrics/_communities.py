"""Measures of how well overlapping communities were recovered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import stdtr

from codiag._arrays import to_host
from codiag._checks import as_finite, as_real_array, as_share


@dataclass(frozen=True, eq=False)
class RecoveryCurve:
    """Recovery and error of overlapping communities, for several thresholds of membership.

    Attributes
    ----------
    thresholds : array of shape (n,)
        Thresholds of membership.
    recovery : array of shape (n,)
        The share of true communities that match an estimated one.
    error : array of shape (n,)
        The number of nodes on which matched pairs differ, summed over pairs, over nodes and true communities: the
        measure of Huang et al. It grows with the number of pairs.
    distance : array of shape (n,)
        The share of nodes on which a recovered community and those matched to it differ, on average: the measure of
        Kuleshov et al. NaN where nothing matches.

    See Also
    --------
    recovery_curve : Returns one.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.metrics import recovery_curve
    >>> truth = np.repeat(np.eye(2), 10, axis=0)
    >>> recovery_curve(0.3 * truth, truth, [0.2, 0.4]).recovery.tolist()
    [1.0, 0.0]
    """

    thresholds: np.ndarray
    recovery: np.ndarray
    error: np.ndarray
    distance: np.ndarray


def recovery_curve(
    memberships: Any, truth: Any, thresholds: Sequence[float] = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5), *, level: float = 0.01
) -> RecoveryCurve:
    """Return the recovery and the error of communities for several thresholds, as Huang et al. (2013) define them.

    Parameters
    ----------
    memberships : array of shape (n, k)
        How much each node belongs to each estimated community.
    truth : array or sparse matrix of shape (n, m)
        Which nodes belong to which true communities.
    thresholds : sequence of float
        From where on a node counts as a member.
    level : float
        A true and an estimated community match when their correlation over nodes is positive with a p-value of a
        t-test below this.

    Returns
    -------
    RecoveryCurve
        With ``recovery``, ``error`` and ``distance`` at each of the `thresholds`.

    See Also
    --------
    overlapping_nmi : One number for two covers.
    codiag.models.MixedMembershipCommunities : Estimates memberships.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.metrics import recovery_curve
    >>> truth = np.repeat(np.eye(3), 20, axis=0)
    >>> curve = recovery_curve(truth[:, [2, 0, 1]], truth, [0.5])
    >>> curve.recovery.tolist(), curve.error.tolist()
    ([1.0], [0.0])
    """
    found = _as_dense(memberships, "memberships").astype(np.float64)
    if found.ndim != 2 or not np.all(np.isfinite(found)):
        raise ValueError(f"memberships must be finite, a column for every community; got an array of {found.shape}")
    true = _as_groups(truth, "truth")
    _check_nodes("memberships", found, true)
    if 0 in true.shape:
        raise ValueError(f"truth must hold a node and a community at least; got {true.shape}")
    places = np.atleast_1d(to_host(as_real_array(thresholds, "thresholds", "memberships are real numbers")))
    places = as_finite("thresholds", places, (None,))
    as_share("level", level)
    recovery, error, distance = np.array([_recovery(found >= place, true, level) for place in places]).T
    return RecoveryCurve(places, recovery, error, distance)


def _recovery(found: np.ndarray, true: np.ndarray, level: float) -> tuple[float, float, float]:
    n, m = true.shape
    table = _tables(true, found[:, found.any(axis=0)].astype(np.float64))
    spread = np.sqrt(table.left * (n - table.left))[:, None] * np.sqrt(table.right * (n - table.right))
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = (n * table.both - np.outer(table.left, table.right)) / spread
        statistic = correlation * np.sqrt((n - 2) / np.maximum(1 - correlation**2, 0))  # infinite for a perfect pair
    matched = (correlation > 0) & (2 * stdtr(n - 2, -np.abs(statistic)) < level)
    differ = np.where(matched, table.left[:, None] + table.right - 2 * table.both, 0.0)
    partners = matched.sum(axis=1)
    recovered = partners > 0
    distance = np.mean(differ.sum(axis=1)[recovered] / partners[recovered]) / n if recovered.any() else np.nan
    return float(recovered.mean()), float(differ.sum() / (n * m)), float(distance)


def overlapping_nmi(estimate: Any, truth: Any, *, variant: str = "mgh") -> float:
    """Return the normalized mutual information of two covers by overlapping communities, 1 where they are the same.

    Parameters
    ----------
    estimate, truth : arrays or sparse matrices of shape (n, k) and (n, m)
        Which nodes belong to which communities; empty communities are ignored.
    variant : "mgh" or "lfk"
        As McDaid, Greene & Hurley (2011) normalize it, by the larger entropy, or as Lancichinetti, Fortunato &
        Kertesz (2009), community by community, which flatters covers that have little in common.

    Returns
    -------
    float
        From 0 to 1.

    See Also
    --------
    recovery_curve : Recovery and error at several thresholds.
    codiag.models.MixedMembershipCommunities.overlapping_labels : Turns memberships into a cover.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.metrics import overlapping_nmi
    >>> cover = np.repeat(np.eye(3), 4, axis=0)
    >>> overlapping_nmi(cover[:, [1, 2, 0]], cover)
    1.0
    """
    if variant not in ("mgh", "lfk"):
        raise ValueError(f"variant must be 'mgh' or 'lfk'; got {variant!r}")
    covers = [_as_groups(estimate, "estimate"), _as_groups(truth, "truth")]
    _check_nodes("estimate", *covers)
    covers = [cover[:, cover.any(axis=0) & ~cover.all(axis=0)] for cover in covers]  # others say nothing
    if any(cover.shape[1] == 0 for cover in covers):
        return float(all(cover.shape[1] == 0 for cover in covers))
    n = covers[0].shape[0]
    table = _tables(*covers)
    own = [_entropy(size, n) + _entropy(n - size, n) for size in (table.left, table.right)]
    only_left, only_right = table.left[:, None] - table.both, table.right - table.both
    neither = n - table.both - only_left - only_right
    agree = _entropy(table.both, n) + _entropy(neither, n)
    differ = _entropy(only_left, n) + _entropy(only_right, n)
    joint = np.where(agree >= differ, agree + differ, np.inf)  # else they go together by being opposites
    given = [
        np.minimum(np.min(joint - own[1], axis=1), own[0]),
        np.minimum(np.min(joint - own[0][:, None], axis=0), own[1]),
    ]
    if variant == "lfk":
        return float(1 - np.mean([np.mean(rest / whole) for rest, whole in zip(given, own, strict=True)]))
    totals = [whole.sum() for whole in own]
    return float(sum(total - rest.sum() for total, rest in zip(totals, given, strict=True)) / (2 * max(totals)))


@dataclass(frozen=True, eq=False)
class _Tables:
    """Sizes of communities on both sides, and how many nodes they share."""

    left: np.ndarray
    right: np.ndarray
    both: np.ndarray


def _tables(left: np.ndarray, right: np.ndarray) -> _Tables:
    return _Tables(left.sum(axis=0), right.sum(axis=0), left.T @ right)


def _entropy(count: np.ndarray, n: int) -> np.ndarray:
    share = count / n
    return -share * np.log2(np.where(share > 0, share, 1.0))


def _as_dense(groups: Any, name: str) -> np.ndarray:
    whole = groups.toarray() if sparse.issparse(groups) else groups
    return to_host(as_real_array(whole, name, "memberships are real numbers", cast=False))


def _as_groups(groups: Any, name: str) -> np.ndarray:
    array = _as_dense(groups, name)
    if array.ndim != 2:
        raise ValueError(f"{name} must have a row for every node and a column for every community; got {array.shape}")
    if not np.all(np.isin(array, (0, 1))):
        raise ValueError(f"{name} must say yes or no, 1 or 0; compare memberships with a threshold first")
    return array.astype(np.float64)


def _check_nodes(name: str, estimate: np.ndarray, truth: np.ndarray) -> None:
    if estimate.shape[0] != truth.shape[0]:
        found = f"{estimate.shape[0]} and {truth.shape[0]}"
        raise ValueError(f"{name} and truth must have a row for every node; got {found}")
