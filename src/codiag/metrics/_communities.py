"""Agreement of estimated and true overlapping communities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import stdtr

from codiag._arrays import to_host
from codiag._checks import as_finite, as_real_array, as_share
from codiag._text import Described


@dataclass(frozen=True, eq=False, repr=False)
class RecoveryCurve(Described):
    """Recovery and error of overlapping communities at several thresholds of membership.

    Attributes
    ----------
    thresholds : array of shape (n,)
        Thresholds of membership.
    recovery : array of shape (n,)
        The fraction of true communities that match an estimated one.
    error : array of shape (n,)
        The number of nodes in which the two communities of a matched pair differ, summed over pairs and divided by the
        numbers of nodes and of true communities (Huang et al.). It grows with the number of pairs.
    distance : array of shape (n,)
        The fraction of nodes in which a recovered community differs from those matched to it, on average (Kuleshov et
        al.). NaN if nothing matches.

    See Also
    --------
    recovery_curve : The function that returns it.

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
    """Return the recovery and the error of communities at several thresholds (Huang et al., 2013).

    A true and an estimated community match if their correlation over the nodes is significantly positive.

    Parameters
    ----------
    memberships : array of shape (n, k)
        The membership of each node in each estimated community.
    truth : array or sparse matrix of shape (n, m)
        The true communities: 1 for members, 0 for other nodes.
    thresholds : sequence of float
        Nodes with at least this membership count as members.
    level : float
        Largest p-value of a t-test at which a positive correlation is significant.

    Returns
    -------
    RecoveryCurve
        With arrays of one value for each of ``thresholds``: ``recovery``, the fraction of true communities that match
        an estimated one; ``error``, the number of nodes in which matched pairs differ, divided by the numbers of nodes
        and of true communities (Huang et al.); ``distance``, the average fraction of nodes in which a recovered
        community differs from its matches (Kuleshov et al.), NaN if nothing matches.

    See Also
    --------
    overlapping_nmi : One number for two covers.
    codiag.models.MixedMembershipCommunities : A model that estimates memberships.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.metrics import recovery_curve
    >>> truth = np.repeat(np.eye(3), 20, axis=0)
    >>> curve = recovery_curve(truth[:, [2, 0, 1]], truth, [0.5])
    >>> curve.recovery.tolist(), curve.error.tolist()
    ([1.0], [0.0])
    """
    estimated = _as_dense(memberships, "memberships").astype(np.float64)
    if estimated.ndim != 2 or not np.all(np.isfinite(estimated)):
        raise ValueError(f"memberships must be finite, one column per community; got an array of {estimated.shape}")
    true = _as_groups(truth, "truth")
    _check_nodes("memberships", estimated, true)
    if 0 in true.shape:
        raise ValueError(f"truth must have at least one node and one community; got {true.shape}")
    values = np.atleast_1d(to_host(as_real_array(thresholds, "thresholds", "memberships are real numbers")))
    values = as_finite("thresholds", values, (None,))
    as_share("level", level)
    recovery, error, distance = np.array([_recovery(estimated >= value, true, level) for value in values]).T
    return RecoveryCurve(values, recovery, error, distance)


def _recovery(estimated: np.ndarray, true: np.ndarray, level: float) -> tuple[float, float, float]:
    n, m = true.shape
    occupied = estimated[:, estimated.any(axis=0)].astype(np.float64)
    first, second, both = _sizes_and_overlaps(true, occupied)
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


def overlapping_nmi(estimate: Any, truth: Any, *, variant: str = "mgh") -> float:
    """Return the normalized mutual information of two covers by overlapping communities; 1 if they are the same.

    Parameters
    ----------
    estimate, truth : arrays or sparse matrices of shape (n, k) and (n, m)
        The communities: 1 for members, 0 for other nodes. Empty communities are ignored.
    variant : "mgh" or "lfk"
        The normalization: by the larger entropy (McDaid, Greene & Hurley, 2011), or by community (Lancichinetti,
        Fortunato & Kertesz, 2009), which is too large for covers that have little in common.

    Returns
    -------
    float
        Between 0 and 1.

    See Also
    --------
    recovery_curve : Recovery and error at several thresholds.
    codiag.models.MixedMembershipCommunities.overlapping_labels : The cover that memberships imply.

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
    covers = [cover[:, cover.any(axis=0) & ~cover.all(axis=0)] for cover in covers]  # others have no information
    if any(cover.shape[1] == 0 for cover in covers):
        return float(all(cover.shape[1] == 0 for cover in covers))
    n = covers[0].shape[0]
    first, second, both = _sizes_and_overlaps(*covers)
    entropies = [_entropy(size, n) + _entropy(n - size, n) for size in (first, second)]
    only_first, only_second = first[:, None] - both, second - both
    neither = n - both - only_first - only_second
    agree = _entropy(both, n) + _entropy(neither, n)
    differ = _entropy(only_first, n) + _entropy(only_second, n)
    joint = np.where(agree >= differ, agree + differ, np.inf)  # complements of each other do not count as similar
    conditional = [
        np.minimum(np.min(joint - entropies[1], axis=1), entropies[0]),
        np.minimum(np.min(joint - entropies[0][:, None], axis=0), entropies[1]),
    ]
    if variant == "lfk":
        return float(1 - np.mean([np.mean(rest / total) for rest, total in zip(conditional, entropies, strict=True)]))
    totals = [entropy.sum() for entropy in entropies]
    return float(sum(total - rest.sum() for total, rest in zip(totals, conditional, strict=True)) / (2 * max(totals)))


def _sizes_and_overlaps(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the sizes of the communities of two covers, and the numbers of nodes that they have in common."""
    return first.sum(axis=0), second.sum(axis=0), first.T @ second


def _entropy(count: np.ndarray, n: int) -> np.ndarray:
    share = count / n
    return -share * np.log2(np.where(share > 0, share, 1.0))


def _as_dense(groups: Any, name: str) -> np.ndarray:
    dense = groups.toarray() if sparse.issparse(groups) else groups
    return to_host(as_real_array(dense, name, "memberships are real numbers", cast=False))


def _as_groups(groups: Any, name: str) -> np.ndarray:
    array = _as_dense(groups, name)
    if array.ndim != 2:
        raise ValueError(f"{name} must have one row per node and one column per community; got {array.shape}")
    if not np.all(np.isin(array, (0, 1))):
        raise ValueError(f"{name} must be 1 for members and 0 for others; compare memberships with a threshold first")
    return array.astype(np.float64)


def _check_nodes(name: str, estimate: np.ndarray, truth: np.ndarray) -> None:
    if estimate.shape[0] != truth.shape[0]:
        numbers = f"{estimate.shape[0]} and {truth.shape[0]}"
        raise ValueError(f"{name} and truth must have one row per node; got {numbers} rows")
