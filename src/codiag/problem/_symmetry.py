"""Modes that share a factor: all of them, or some."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from array_api_compat import is_dask_array

from codiag._arrays import Array, array_namespace
from codiag.constraints import Constraint, Constraints
from codiag.tensors import mean_over_permutations

Symmetry: TypeAlias = bool | tuple[int, ...]


def as_symmetry(raw: Any, shape: Sequence[int]) -> Symmetry:
    """Return whether all modes share a factor, or which of them do."""
    if isinstance(raw, bool | np.bool_):
        return bool(raw)
    modes = list(raw) if isinstance(raw, Iterable) and not isinstance(raw, str | bytes) else [raw]
    if not isinstance(raw, Iterable) or not all(isinstance(mode, int | np.integer) for mode in modes):
        raise TypeError(
            f"symmetric must be True or False, or the modes that share a factor, such as (0, 1); got {raw!r}"
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
    if weights is None:
        return mean_over_permutations(entries, modes), None
    total = mean_over_permutations(weights, modes)
    mean = mean_over_permutations(weights * entries, modes)
    return mean / xp.where(total > 0, total, xp.ones_like(total)), total


def _with_equal_chunks(array: Array | None, modes: Sequence[int]) -> Array | None:
    """Return a dask array in chunks that permuting these modes leaves as they are; other arrays as they are."""
    if not is_dask_array(array):
        return array
    from codiag.tensors.chunked import cubed

    return cubed(array, modes)


def shared_constraints(constraints: Constraints, groups: Sequence[tuple[int, ...]]) -> Constraints:
    """Return constraints in which the modes of each group have the constraint that is given for any of them."""
    if constraints is None:
        return None
    given = [[constraint for mode in group if (constraint := constraints[mode]) is not None] for group in groups]
    if not all(_same(constraint, of_group[0]) for of_group in given for constraint in of_group):
        raise ValueError(
            f"constraints must be equal for modes that share a factor, or be given for one of them; got {constraints}, "
            f"and the modes {', '.join(map(str, (group for group in groups if len(group) > 1)))} share one each"
        )
    of_mode = {mode: next(iter(known), None) for group, known in zip(groups, given, strict=True) for mode in group}
    return tuple(of_mode[mode] for mode in range(len(constraints)))


def _same(first: Constraint, second: Constraint) -> bool:
    """Return whether two constraints are of one class, with equal options."""
    options, others = vars(first), vars(second)
    are_equal = (np.array_equal(options[name], others[name]) for name in options)
    return first is second or (type(first) is type(second) and all(are_equal))
