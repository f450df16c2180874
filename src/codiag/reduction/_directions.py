"""Where to look at a tensor from: the vectors it is projected along."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def random_directions(rng: np.random.Generator, n: int, sizes: Sequence[int]) -> list[np.ndarray]:
    """Return n unit vectors for each mode, independent and uniform on the sphere, as rows."""
    drawn = [rng.standard_normal((n, size)) for size in sizes]
    return [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in drawn]


def orthonormal_directions(rng: np.random.Generator, n: int, sizes: Sequence[int]) -> list[np.ndarray]:
    """Return n combinations, one unit vector per mode, taken from a random orthonormal basis of each.

    All of them together see everything the tensor holds; projections along fewer see as much as n can.
    """
    bases = [np.linalg.qr(rng.standard_normal((size, size)))[0] for size in sizes]
    total = int(np.prod(sizes))
    chosen = np.sort(rng.choice(total, size=min(n, total), replace=False))
    return [basis[places] for basis, places in zip(bases, np.unravel_index(chosen, sizes), strict=True)]
