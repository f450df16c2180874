"""Random directions along which tensors are projected."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def random_directions(rng: np.random.Generator, n: int, sizes: Sequence[int]) -> list[np.ndarray]:
    """Return n unit vectors for each mode, independent and uniform on the sphere, as rows."""
    drawn = [rng.standard_normal((n, size)) for size in sizes]
    return [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in drawn]


def orthonormal_directions(rng: np.random.Generator, n: int, sizes: Sequence[int]) -> list[np.ndarray]:
    """Return n different combinations of unit vectors from a random orthonormal basis of each mode, as rows.

    Projections along all combinations determine the tensor; there are at most as many as the product of the sizes.
    """
    bases = [np.linalg.qr(rng.standard_normal((size, size)))[0] for size in sizes]
    total = int(np.prod(sizes))
    combinations = np.unravel_index(np.sort(rng.choice(total, size=min(n, total), replace=False)), sizes)
    return [basis[indices] for basis, indices in zip(bases, combinations, strict=True)]
