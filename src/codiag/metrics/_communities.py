"""Agreement of estimated and true overlapping communities."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from codiag._arrays import to_host
from codiag._checks import as_real_array


def overlapping_nmi(estimate: Any, truth: Any) -> float:
    """Return the normalized mutual information of two covers by overlapping communities; 1 if they are the same.

    It is normalized by the larger entropy (McDaid, Greene & Hurley, 2011).

    Parameters
    ----------
    estimate, truth : arrays or sparse matrices of shape (n, k) and (n, m)
        The communities: 1 for members, 0 for other nodes. Empty communities are ignored.

    Returns
    -------
    float
        Between 0 and 1.

    See Also
    --------
    codiag.models.MixedMembershipSBM.overlapping_labels : The cover that memberships imply.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.metrics import overlapping_nmi
    >>> cover = np.repeat(np.eye(3), 4, axis=0)
    >>> overlapping_nmi(cover[:, [1, 2, 0]], cover)
    1.0
    """
    covers = [_as_groups(estimate, "estimate"), _as_groups(truth, "truth")]
    n = covers[0].shape[0]
    if covers[1].shape[0] != n:
        raise ValueError(f"estimate and truth must have one row per node; got {n} and {covers[1].shape[0]} rows")
    covers = [cover[:, cover.any(axis=0) & ~cover.all(axis=0)] for cover in covers]  # others have no information
    if any(cover.shape[1] == 0 for cover in covers):
        return float(all(cover.shape[1] == 0 for cover in covers))
    first, second = (cover.sum(axis=0) for cover in covers)
    both = covers[0].T @ covers[1]
    entropies = [_entropy(size, n) + _entropy(n - size, n) for size in (first, second)]
    only_first, only_second = first[:, None] - both, second - both
    agree = _entropy(both, n) + _entropy(n - both - only_first - only_second, n)
    differ = _entropy(only_first, n) + _entropy(only_second, n)
    joint = np.where(agree >= differ, agree + differ, np.inf)  # complements of each other do not count as similar
    conditional = [
        np.minimum(np.min(joint - entropies[1], axis=1), entropies[0]),
        np.minimum(np.min(joint - entropies[0][:, None], axis=0), entropies[1]),
    ]
    totals = [entropy.sum() for entropy in entropies]
    return float(sum(total - rest.sum() for total, rest in zip(totals, conditional, strict=True)) / (2 * max(totals)))


def _entropy(count: np.ndarray, n: int) -> np.ndarray:
    share = count / n
    return -share * np.log2(np.where(share > 0, share, 1.0))


def _as_groups(groups: Any, name: str) -> np.ndarray:
    dense = groups.toarray() if sparse.issparse(groups) else groups
    array = to_host(as_real_array(dense, name, "memberships are real numbers", cast=False))
    if array.ndim != 2:
        raise ValueError(f"{name} must have one row per node and one column per community; got {array.shape}")
    if not np.all(np.isin(array, (0, 1))):
        raise ValueError(f"{name} must be 1 for members and 0 for others; compare memberships with a threshold first")
    return array.astype(np.float64)
