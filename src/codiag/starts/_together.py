"""Starts of many tensors of one shape together: pencils of two combinations of their slices, and a few sweeps."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from codiag._arrays import (
    Array,
    adjoint,
    array_namespace,
    asarray_like,
    matrix_transpose,
    normal_draws,
    to_host,
)
from codiag.least_squares import BRIEF_SWEEPS, NormalEquations, sweep
from codiag.starts._slices import Roles


def diagonal_starts(
    entries: Array, roles: Roles, rank: int, rngs: Sequence[np.random.Generator], n_pencils: int = 3
) -> list[Array]:
    """Return factors (n, d_m, k) of tensors (n, d_0, d_1, ...) from pencils of their compressed slices.

    The slices are compressed to as many rows and columns as components, and as many dominant combinations; some pencils
    of random combinations of these are diagonalized, and swept on the core; the lowest is kept. With noise, eigenvalues
    of one pencil may be close to each other, but hardly the same ones of another.
    """
    xp, n = array_namespace(entries), entries.shape[0]
    sizes = [math.prod(entries.shape[mode + 1] for mode in role) for role in roles]
    ordered = xp.permute_dims(entries, (0, *(mode + 1 for role in roles for mode in role)))
    core, bases = compressed(xp.reshape(ordered, (n, *sizes)), rank)
    first = _pencils(core, rngs, n_pencils)
    equations = NormalEquations(core)
    for _ in range(BRIEF_SWEEPS // 3):
        first, values = sweep(equations, first)
    lowest = np.argmin(np.reshape(to_host(values), (n, -1)), axis=1) + np.arange(n) * n_pencils
    found: dict[int, Array] = {}
    for role, basis, factor in zip(roles, bases, first, strict=True):
        own = xp.take(factor, xp.asarray(lowest), axis=0)
        own = own if basis is None else basis @ own
        found |= dict(zip(role, _split_columns(own, [entries.shape[mode + 1] for mode in role]), strict=True))
    return [found[mode] for mode in range(entries.ndim - 1)]


def compressed(entries: Array, width: int) -> tuple[Array, list[Array | None]]:
    """Return tensors compressed mode by mode to their dominant singular vectors, and these (n, d_m, width)."""
    xp, core, bases = array_namespace(entries), entries, list[Array | None]()
    n, order = entries.shape[0], entries.ndim - 1
    for mode in range(order):
        rest = tuple(axis for axis in range(1, order + 1) if axis != mode + 1)
        side = xp.permute_dims(core, (0, mode + 1, *rest))
        flat = xp.reshape(side, (n, side.shape[1], -1))
        if flat.shape[1] <= width:
            bases.append(None)
            continue
        if flat.shape[1] <= flat.shape[2]:
            basis = xp.linalg.eigh(flat @ adjoint(flat))[1][:, :, -width:]
        else:
            basis = xp.linalg.svd(flat, full_matrices=False)[0][:, :, :width]
        smaller = xp.reshape(adjoint(basis) @ flat, (n, basis.shape[2], *side.shape[2:]))
        core = xp.moveaxis(smaller, 1, mode + 1)
        bases.append(basis)
    return core, bases


def _pencils(core: Array, rngs: Sequence[np.random.Generator], n_pencils: int) -> list[Array]:
    """Return factors of the rows and columns of slices (n, k, k, l) that random pencils diagonalize, and ones.

    Only NumPy solves nonsymmetric eigenproblems for arrays of every device.
    """
    slices = np.ascontiguousarray(np.moveaxis(to_host(core), 3, 1))
    n, n_slices, size, _ = slices.shape
    draws = np.stack([normal_draws(rng, (n_pencils, 2, n_slices), slices) for rng in rngs])
    pairs = np.reshape(draws, (n, -1, n_slices)) @ np.reshape(slices, (n, n_slices, -1))
    one, two = np.moveaxis(np.reshape(pairs, (n * n_pencils, 2, size, size)), 1, 0)
    # A combination that is singular has no pencil; rounding makes it regular.
    two = two + np.linalg.norm(two, axis=(1, 2))[:, None, None] * np.finfo(float).eps * np.eye(size)
    quotient = np.swapaxes(np.linalg.solve(np.swapaxes(two, 1, 2), np.swapaxes(one, 1, 2)), 1, 2)
    values, rows = np.linalg.eig(quotient)
    if not np.iscomplexobj(slices):  # a complex pair gives a real basis of its invariant plane
        rows = np.where((values.imag < 0)[:, None, :], -rows.imag, rows.real)
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    columns = np.swapaxes(np.linalg.pinv(rows) @ two, 1, 2)
    columns = columns / np.maximum(np.linalg.norm(columns, axis=1, keepdims=True), np.finfo(float).tiny)
    others = np.ones((n * n_pencils, n_slices, size))
    return [asarray_like(factor, core) for factor in (rows, columns, others)]


def _split_columns(columns: Array, sizes: Sequence[int]) -> list[Array]:
    """Return factors whose columnwise Kronecker products are nearest to columns (n, d_0 d_1 ..., k)."""
    if len(sizes) == 1:
        return [columns]
    xp, (n, _, rank) = array_namespace(columns), columns.shape
    matrices = xp.reshape(matrix_transpose(columns), (n * rank, sizes[0], -1))
    left, values, right = xp.linalg.svd(matrices, full_matrices=False)
    first = matrix_transpose(xp.reshape(left[:, :, 0], (n, rank, -1)))
    rest = matrix_transpose(xp.reshape(values[:, :1] * right[:, 0, :], (n, rank, -1)))
    return [first, *_split_columns(rest, sizes[1:])]
