"""A start that the user gives: checked, brought to the size of the compressed matrices, and away from saddles."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from codiag._arrays import Array, array_namespace, epsilon, identity, like, to_host
from codiag._checks import as_finite
from codiag.diagonalize.steps import Outcome, rotate

Sides = tuple[np.ndarray, np.ndarray]


def as_start(init: Array | Sequence[Array], stack: Array, *, symmetric: bool, orthogonal: bool) -> Sides:
    """Return inverse factors of both sides on the host, as rows; those of symmetric matrices are one array."""
    if symmetric:
        left = right = as_finite("init", init, (None, stack.shape[1]))
    else:
        if not isinstance(init, list | tuple) or len(init) != 2:
            raise TypeError(
                "init must be a pair (left, right) of inverse factors, of shapes (k, d) and (k, d'), for matrices with "
                f"different factors on the two sides; got {type(init).__name__}"
            )
        left = as_finite("init[0]", init[0], (None, stack.shape[1]))
        right = as_finite("init[1]", init[1], (left.shape[0], stack.shape[2]))
    limit = min(stack.shape[1:])
    if left.shape[0] > limit:
        raise ValueError(f"init must have at most {limit} rows, the size of the matrices; got {left.shape[0]}")
    if orthogonal:
        for side in (left, right):
            away = float(np.max(np.abs(side @ side.T - np.eye(side.shape[0]))))
            if away > 1e-3:
                raise ValueError(
                    "init must have orthonormal rows for a method with orthonormal factors; init @ init.T differs from "
                    f"the identity by {away:.3g}. scipy.linalg.polar(init)[0] is the nearest that has"
                )
    return left, right


def start_rank(start: Sides, rank: int | None, limit: int) -> int | None:
    """Return the rank that a start implies: its rows, unless there are so many that only the matrices can tell."""
    rows = start[0].shape[0]
    if rank is not None and rows != rank:
        raise ValueError(f"init must have {rank} rows, one a component (rank={rank}); got {rows}")
    return rank if rank is not None or rows == limit else rows


def compressed_start(
    start: Sides, bases: tuple[Array | None, Array | None], core: Array, *, orthogonal: bool
) -> tuple[Array, Array]:
    """Return a start in the coordinates of the compressed matrices, orthonormal where it must be."""
    sides = []
    for side, basis in zip(start, bases, strict=True):
        rows = side if basis is None else side @ to_host(basis).astype(np.float64)
        if rows.shape[0] != rows.shape[1]:
            raise ValueError(
                f"init must have {rows.shape[1]} rows, one a component: the matrices are singular, and so large is "
                f"their rank; got {rows.shape[0]}"
            )
        left, sizes, right = np.linalg.svd(rows)
        if sizes[-1] <= rows.shape[0] * np.finfo(float).eps * sizes[0]:
            raise ValueError(
                "init must have rows that are linearly independent on the range of the matrices; their smallest "
                f"singular value is {sizes[-1] / max(sizes[0], 1e-300):.1g} of the largest"
            )
        sides.append(like(left @ right if orthogonal else rows, core))
        if start[0] is start[1]:
            return sides[0], sides[0]
    return sides[0], sides[1]


def at_saddle(stack: Array, left: Array, right: Array) -> bool:
    r"""Tell whether turning some pair of orthonormal factors either way leaves less off the diagonals.

    Both sides turned together by a small angle gain where :math:`\sum_l (D_{ij} + D_{ji})^2 > \sum_l (d_i - d_j)^2`;
    turned against each other, where :math:`\sum_l (D_{ij} - D_{ji})^2 > \sum_l (d_i + d_j)^2`. Steps do not see that
    where the right-hand sides vanish, and a start may be such a point: the identity, for matrices without diagonals.
    """
    xp = array_namespace(stack)
    entries = left @ stack @ xp.matrix_transpose(right)
    turned = xp.matrix_transpose(entries)
    diagonals = xp.linalg.diagonal(entries)
    first, second = diagonals[:, :, None], diagonals[:, None, :]
    rounding = 1e3 * epsilon(stack) * xp.sum(entries**2) / stack.shape[1]
    together = xp.sum((entries + turned) ** 2 - (first - second) ** 2, axis=0)
    against = xp.sum((entries - turned) ** 2 - (first + second) ** 2, axis=0)
    pairs = 1 - identity(stack.shape[1], stack)
    return bool(xp.any(together * pairs > rounding)) or bool(xp.any(against > rounding))


def follow_past_saddles(
    follow: Callable[[Array], Outcome], stack: Array, point: Array, rng: np.random.Generator
) -> Outcome:
    """Follow steps of orthonormal rows, of one side or of two, and turn them by small random angles at a saddle."""
    outcome, n_sweeps = follow(point), 0
    for trial in range(3):
        left, right = (outcome.point, outcome.point) if point.ndim == 2 else outcome.point
        if not at_saddle(stack, left, right):
            break
        n_sweeps += outcome.n_sweeps
        if trial == 2:
            return outcome._replace(n_sweeps=n_sweeps, converged=False)
        draws = rng.standard_normal(tuple(point.shape)) / np.sqrt(point.shape[-1])
        turn = like(0.1 * (draws - np.swapaxes(draws, -1, -2)), point)
        outcome = follow(rotate(turn, outcome.point))
    return outcome._replace(n_sweeps=n_sweeps + outcome.n_sweeps)
