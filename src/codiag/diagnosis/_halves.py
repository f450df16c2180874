"""Split-half analysis: whether the components of a fit are found in two halves of the data, and predict each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from array_api_compat import array_namespace

from codiag._arrays import conjugate, take, to_double, to_host
from codiag.inference import part_of
from codiag.least_squares import ROUGH, LeastSquares, minimize, unit_components
from codiag.problem import Problem, interior, most_components
from codiag.reduction import is_small, reduce
from codiag.tensors import DenseTensor, FactoredTensor

if TYPE_CHECKING:
    from codiag.result import Factorization

ENOUGH_ROWS = 8
"""Samples from which a mode is split into halves: of fewer, a half may lack a component that the other has."""

REFIT = replace(ROUGH, max_iter=50)
"""Limits for the fit of a half, which begins at the fit of all data."""


@dataclass(frozen=True, eq=False)
class Halves:
    """Two halves of a tensor along a mode.

    Attributes
    ----------
    mode : int
        The mode whose samples they share out at random.
    parts : tuple of two Problems
    rows : tuple of two arrays of int
        The samples of each half.
    """

    mode: int
    parts: tuple[Problem, Problem]
    rows: tuple[np.ndarray, np.ndarray]

    @classmethod
    def of(cls, problem: Problem, correlated: Sequence[int] = ()) -> Halves | None:
        """Return halves along the first mode, or the largest if the first has few samples; None if there are none.

        Modes along which noise is correlated are halved only if there are no others: their halves share noise.
        """
        shape = problem.tensor.shape
        single = [mode for mode in range(len(shape)) if not any(mode in own and len(own) > 1 for own in problem.groups)]
        allowed = [mode for mode in single if shape[mode] >= 4]
        if not allowed:
            return None
        mode = min(allowed, key=lambda mode: (mode in correlated, shape[mode] < ENOUGH_ROWS, mode > 0, -shape[mode]))
        order = np.random.default_rng(0).permutation(shape[mode])
        rows = tuple(np.sort(half) for half in np.array_split(order, 2))
        parts = [part_of(_listed(problem), {mode: half}, symmetric=problem.shared) for half in rows]
        if any(part is None for part in parts):
            return None
        return cls(mode, tuple(parts), rows)  # type: ignore[arg-type]

    def refitted(self, components: FactoredTensor) -> list[FactoredTensor] | None:
        """Return the components of each half, from those of all data; None if a half cannot have so many."""
        found = []
        if components.rank > min(most_components(part.tensor.shape) for part in self.parts):
            return None
        for part, rows in zip(self.parts, self.rows, strict=True):
            kept = [take(one, rows, 0) if mode == self.mode else one for mode, one in enumerate(components.factors)]
            start = FactoredTensor(components.weights, kept, symmetric=False)
            problem = part.with_rank(components.rank)
            if problem.required_features or is_small(problem.tensor.shape):
                start = start if problem.loss is None else interior(start, problem.constraints)
                found.append(minimize(problem, start, REFIT).components)
                continue
            space = reduce(problem, np.random.default_rng(0))
            found.append(space.to_tensor(minimize(space.problem, space.to_core(start), REFIT).components))
        return found

    def congruences(self, fits: Sequence[FactoredTensor]) -> np.ndarray:
        """Return for each component the geometric mean of its cosines in both halves, over the modes they share."""
        one, other = (
            [
                to_double(to_host(factor))
                for mode, factor in enumerate(unit_components(fit).factors)
                if mode != self.mode
            ]
            for fit in fits
        )
        cosines = [np.abs(np.sum(conjugate(a) * b, axis=0)) for a, b in zip(one, other, strict=True)]
        return np.asarray(np.prod(cosines, axis=0) ** (1 / len(cosines)))

    @cached_property
    def _blocks(self) -> list[tuple[int, Problem, Problem, tuple[np.ndarray, np.ndarray]]]:
        """The half, what is seen of it, what is left out, and the columns of both, for every block."""
        sizes = [size if mode != self.mode else 0 for mode, size in enumerate(self.parts[0].tensor.shape)]
        sizes = [
            0 if any(mode in own and len(own) > 1 for own in self.parts[0].groups) else s
            for mode, s in enumerate(sizes)
        ]
        other = int(np.argmax(sizes))
        if sizes[other] < 2:
            return []
        columns, found = np.random.default_rng(0).permutation(sizes[other]), []
        for half, part in enumerate(self.parts):
            for group in np.array_split(columns, min(4, sizes[other])):
                left_out, rest = np.sort(group), np.setdiff1d(columns, group)
                seen, block = part_of(part, {other: rest}), part_of(part, {other: left_out})
                if seen is not None and block is not None:
                    found.append((half, seen, block, (rest, left_out)))
        return found

    def held_out(self, fits: Sequence[FactoredTensor]) -> np.ndarray | None:
        """Return the squared error of every block, as the other half predicts it, relative to the norm of all blocks.

        Factors of all modes but that of the halves are taken from one half. Samples of the other half get their
        coefficients by least squares from some of their columns, and what these predict for the other columns is held
        against the data: nothing of a block that is left out was used, neither for its rows nor for its columns.

        References
        ----------
        A. B. Owen and P. O. Perry, "Bi-cross-validation of the SVD and the nonnegative matrix factorization", Ann.
        Appl. Stat. 3(2), 2009.
        """
        if not self._blocks:
            return None
        total = sum(LeastSquares(block).squared_norm for _, _, block, _ in self._blocks)
        errors = [self._error(fits[1 - half], seen, block, columns) for half, seen, block, columns in self._blocks]
        return np.array(errors) / total if total > 0 else None

    def _error(
        self, fit: FactoredTensor, seen: Problem, block: Problem, columns: tuple[np.ndarray, np.ndarray]
    ) -> float:
        sizes = zip(seen.tensor.shape, self.parts[0].tensor.shape, strict=True)
        other = next(mode for mode, (size, whole) in enumerate(sizes) if mode != self.mode and size != whole)
        factors = list(fit.factors)
        inside, outside = (take(factors[other], chosen, 0) for chosen in columns)
        xp = array_namespace(inside)
        factors[self.mode] = xp.ones((seen.tensor.shape[self.mode], fit.rank), dtype=inside.dtype)
        factors[other] = inside
        factors[self.mode] = LeastSquares(seen).solve_mode(factors, self.mode)
        factors[other] = outside
        return LeastSquares(block).distance(FactoredTensor(xp.ones_like(fit.weights), factors, symmetric=False))


def _listed(problem: Problem) -> Problem:
    """Return a problem whose entries are an array, with weights that are zero for missing ones."""
    weights = problem.weights
    if weights is None and problem.tensor.is_partial:
        weights = problem.observed_mask().astype(np.float64)
    return problem.with_part(
        DenseTensor.of(problem.tensor.to_dense(), symmetric=False), weights, problem.constraints, problem.shared
    )


def replications(fit: Factorization, correlated: Sequence[int]) -> np.ndarray:
    """Return the congruence of each component in two halves of the data; NaN without the data, or halves.

    A component that one sample of the halved mode carries alone is in one half only: NaN, too.
    """
    unknown = np.full(fit.rank, np.nan)
    problem = fit._data
    if problem is None or problem.tensor.shape != fit.shape or fit.problem.symmetric is True:
        return unknown
    stated = fit.problem.with_rank(fit.rank) if fit._deviance is not None else problem
    halves = Halves.of(stated.in_double_precision(), correlated)
    if halves is None:
        return unknown
    components = fit._components
    known = components.changed(lambda factor, _: to_double(factor), to_double(components.weights))
    refits = halves.refitted(known)
    if refits is None:
        return unknown
    found = halves.congruences(refits)
    largest = np.max(np.abs(to_host(components.factors[halves.mode])) ** 2, axis=0)
    return np.where(largest > 0.9, np.nan, found)
