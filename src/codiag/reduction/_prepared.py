"""What is done to a problem before a method sees it: no empty indices, entries of a safe size, double precision."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from codiag._arrays import Array, epsilon
from codiag._checks import RankDeficientError
from codiag.problem import Estimate, Problem
from codiag.tensors import is_large, sketch_width

MOST_EMPTY_BYTES = 2**30
"""Memory that rows of zeros may take in the factors of a sparse tensor."""


class Prepared(NamedTuple):
    """A problem that is ready for a method.

    Attributes
    ----------
    stored : Problem
        The problem that was given, without indices that have no entries.
    problem : Problem
        The same with entries divided by `scale`, in double precision.
    scale : float
        One, unless squares of the entries might overflow.
    rows : list of arrays of integers, or None
        By mode, the indices that remain; None if all do.
    """

    stored: Problem
    problem: Problem
    scale: float
    rows: list[np.ndarray] | None

    def unscaled(self, estimate: Estimate) -> Estimate:
        """Return an estimate for `problem` as one for `stored`."""
        if self.scale == 1:
            return estimate
        components, distance = estimate.components, estimate.squared_distance
        return estimate._replace(
            components=components.changed(lambda factor, _: factor, components.weights * self.scale),
            squared_distance=None if distance is None else distance * self.scale**2,
        )

    def whole(self, factors: Sequence[Array], shape: Sequence[int]) -> tuple[Array, ...]:
        """Return factors with rows of zeros for the indices that were left out; equal factors stay one array."""
        if self.rows is None:
            return tuple(factors)
        known: dict[int, np.ndarray] = {}
        for factor, indices, size in zip(factors, self.rows, shape, strict=True):
            if id(factor) not in known:
                known[id(factor)] = np.zeros((size, factor.shape[1]), dtype=factor.dtype)
                known[id(factor)][indices] = factor
        return tuple(known[id(factor)] for factor in factors)


def prepared(problem: Problem, *, as_given: bool) -> Prepared:
    """Prepare a problem for a method; `as_given` if its options are by index, or of the size of the entries."""
    stored, rows = (problem, None) if as_given or problem.required_features else _without_empty_rows(problem)
    tensor = stored.tensor
    if is_large(tensor.shape) and tensor.holds_entries and not problem.required_features:
        tensor.sketch(sketch_width(problem.rank, tensor.shape))
    scale = safe_scale(stored)
    scale = 1.0 if as_given else scale
    return Prepared(stored, stored.scaled(1 / scale).in_double_precision(), scale, rows)


def safe_scale(problem: Problem) -> float:
    """Return the norm of the observed entries if powers of entries would overflow or underflow, else one."""
    tensor, norm = problem.tensor, math.sqrt(problem.data.squared_norm)
    if not 0 < norm < math.inf:
        raise RankDeficientError(f"tensor must be finite, and not all zero; the norm of {tensor!r} is {norm:g}")
    safe = 1e40 if epsilon(tensor.reference) < 1e-10 else 1e6
    return 1.0 if 1 / safe < norm < safe else norm


def _without_empty_rows(problem: Problem) -> tuple[Problem, list[np.ndarray] | None]:
    """Drop the indices of a sparse tensor that have no entries; return the indices that are kept, too."""
    tensor, rank = problem.tensor, problem.rank
    if problem.second_moment is not None:
        return problem, None
    smaller, rows = tensor.without_empty_rows(at_least=rank)
    if smaller.shape == tensor.shape:
        return problem, None
    modes = range(1 if tensor.symmetric else tensor.order)
    n_empty = sum(tensor.shape[mode] - smaller.shape[mode] for mode in modes)
    n_bytes = n_empty * rank * tensor.reference.dtype.itemsize
    if n_bytes > MOST_EMPTY_BYTES:
        raise ValueError(
            f"tensor must not have so many indices without entries: {tensor!r} has {n_empty}, whose rows of zeros "
            f"would take {n_bytes / 1e9:.1f} GB in factors of rank {rank}. Number its indices anew, or factorize the "
            "first of smaller, kept = codiag.tensors.SparseTensor(...).without_empty_rows(), where row i of a factor "
            "belongs to index kept[mode][i]"
        )
    return problem.with_tensor(smaller), rows
