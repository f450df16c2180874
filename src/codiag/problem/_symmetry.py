"""Modes that share a factor: all of them, or some."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import permutations
from typing import Any, TypeAlias

import numpy as np
from array_api_compat import array_namespace, is_dask_array

from codiag._arrays import Array
from codiag.constraints import Constraint
from codiag.tensors import MOST_ASYMMETRY, Tensor, array_of, tensor_of_array

Symmetry: TypeAlias = bool | tuple[int, ...]


def as_symmetry(raw: Any, shape: Sequence[int]) -> Symmetry | None:
    """Return whether all modes share a factor, or which of them do; None where that is to be detected."""
    if raw is None or isinstance(raw, bool | np.bool_):
        return None if raw is None else bool(raw)
    modes = list(raw) if isinstance(raw, Iterable) and not isinstance(raw, str | bytes) else [raw]
    if not isinstance(raw, Iterable) or not all(isinstance(mode, int | np.integer) for mode in modes):
        raise TypeError(
            f"symmetric must be True, False or None, or the modes that share a factor, such as (0, 1); got {raw!r}"
        )
    shared = tuple(sorted({int(mode) for mode in modes}))
    if len(shared) < 2 or len(shared) < len(modes):
        raise ValueError(f"symmetric must name two modes or more, each once, such as (0, 1); got {raw!r}")
    if shared[0] < 0 or shared[-1] >= len(shape):
        raise ValueError(
            f"symmetric must name modes from 0 to {len(shape) - 1}, as the tensor has {len(shape)}; got {raw!r}"
        )
    sizes = [shape[mode] for mode in shared]
    if len(set(sizes)) > 1:
        raise ValueError(
            f"symmetric must name modes of one size, since they share a factor; got {raw!r}, of sizes {sizes} in a "
            f"tensor of shape {tuple(shape)}"
        )
    return True if len(shared) == len(shape) else shared


def groups_of(symmetric: Symmetry, order: int) -> list[tuple[int, ...]]:
    """Return modes that share a factor together, and each of the others by itself, by their first mode."""
    shared = symmetric if isinstance(symmetric, tuple) else tuple(range(order)) if symmetric else ()
    alone: list[tuple[int, ...]] = [(mode,) for mode in range(order) if mode not in shared]
    return sorted([shared, *alone]) if shared else alone


def n_independent_entries(shape: Sequence[int], groups: Sequence[Sequence[int]]) -> int:
    """Return the number of entries of a tensor that no permutation of shared modes makes equal."""
    return math.prod(math.comb(shape[group[0]] + len(group) - 1, len(group)) for group in groups)


def n_parameters(shape: Sequence[int], groups: Sequence[Sequence[int]], rank: int) -> int:
    """Return the number of independent parameters: the entries of the factors, and one scale for each component."""
    sizes = [shape[group[0]] for group in groups]
    return rank * (sum(sizes) - len(sizes) + 1)


def mean_over(entries: Array, weights: Array | None, modes: Sequence[int]) -> tuple[Array, Array | None]:
    """Return the weighted mean of entries over permutations of some modes, and the mean of their weights.

    The distance of what these permutations leave as it is changes by a constant only.
    """
    entries, weights = (_with_equal_chunks(array, modes) for array in (entries, weights))
    xp = array_namespace(entries)
    order, n_turns = entries.ndim, math.factorial(len(modes))
    turns = []
    for turn in permutations(modes):
        source = dict(zip(modes, turn, strict=True))
        turns.append(tuple(source.get(mode, mode) for mode in range(order)))

    def mean(array: Array) -> Array:
        return sum((xp.permute_dims(array, turn) / n_turns for turn in turns[1:]), array / n_turns)

    if weights is None:
        return mean(entries), None
    total = mean(weights)
    return mean(weights * entries) / xp.where(total > 0, total, xp.ones_like(total)), total


def _with_equal_chunks(array: Array | None, modes: Sequence[int]) -> Array | None:
    """Return a dask array in chunks that permuting these modes leaves as they are; other arrays as they are."""
    if not is_dask_array(array):
        return array
    from codiag.tensors.chunked import cubed

    return cubed(array, modes)


def with_shared_modes(tensor: Tensor, shared: tuple[int, ...]) -> Tensor:
    """Return an array's mean over permutations of the modes that share a factor; other tensors as they are.

    Least squares asks for no more than that mean, whatever the tensor.
    """
    entries = array_of(tensor)
    if entries is None:
        return tensor
    mean, _ = mean_over(entries, None, shared)
    n_turns = math.factorial(len(shared))
    left = tensor_of_array(entries - mean, symmetric=False).squared_norm()
    share = math.sqrt(2 * n_turns / (n_turns - 1) * left / max(tensor.squared_norm(), 1e-300))
    if share > MOST_ASYMMETRY:
        raise ValueError(
            f"symmetric={shared} needs a tensor that permuting these modes leaves as it is, up to noise; that changes "
            f"{share:.0%} of this one. Leave symmetric out to let the modes have factors of their own"
        )
    return tensor_of_array(mean, symmetric=False)


Constraints: TypeAlias = tuple[Constraint | None, ...] | None


def is_same_within(constraints: Constraints, groups: Sequence[tuple[int, ...]]) -> bool:
    """Tell whether no two modes of a group have different constraints."""
    if constraints is None:
        return True
    given = [[one for mode in group if (one := constraints[mode]) is not None] for group in groups]
    return all(_same(one, of_group[0]) for of_group in given for one in of_group)


def shared_constraints(constraints: Constraints, groups: Sequence[tuple[int, ...]]) -> Constraints:
    """Return constraints with what is given for one mode of a group holding for all of it, whose factor is one."""
    if constraints is None:
        return None
    if not is_same_within(constraints, groups):
        raise ValueError(
            f"constraints must be equal for modes that share a factor, or be given for one of them; got {constraints}, "
            f"and the modes {', '.join(map(str, (group for group in groups if len(group) > 1)))} share one each"
        )
    found = list(constraints)
    for group in groups:
        known = next((constraints[mode] for mode in group if constraints[mode] is not None), None)
        for mode in group:
            found[mode] = known
    return tuple(found)


def _same(one: Constraint, other: Constraint) -> bool:
    mine, theirs = vars(one), vars(other)
    return type(one) is type(other) and all(np.array_equal(mine[name], theirs[name]) for name in mine)
