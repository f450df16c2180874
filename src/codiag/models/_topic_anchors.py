"""Topics from pairs of words alone, by words that belong to one topic each."""

from __future__ import annotations

import numpy as np


def topics_by_anchors(root: np.ndarray, mean: np.ndarray) -> np.ndarray:
    r"""Return topics (words, k), up to scale, from a root F (words, k) of the second moment and frequencies of words.

    From :math:`F F^\top = \mu\, \mathrm{diag}(w) \mu^\top` the root is :math:`\mu\, \mathrm{diag}(w)^{1/2} R` with R
    orthogonal: its rows, divided by what a word has in all, lie between those of words that one topic alone has
    (Arora, Ge & Moitra, 2012). They are found by successive projection: the longest row, then the longest of what is
    left of the others. Words rarer than the average one are shortened, as their rows are mostly noise.
    """
    totals = np.maximum(root @ root.sum(axis=0), 0)
    rows = root / (totals + totals.mean())[:, None]
    rows[mean <= 0] = 0
    left, chosen = rows.copy(), []
    for _ in range(root.shape[1]):
        chosen.append(int(np.argmax(np.sum(left**2, axis=1))))
        direction = left[chosen[-1]] / max(float(np.linalg.norm(left[chosen[-1]])), 1e-300)
        left = left - np.outer(left @ direction, direction)
    found: np.ndarray = root @ np.linalg.pinv(rows[chosen])
    return found
