"""How components are laid out as one array of unknowns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
from array_api_compat import device

from codiag._arrays import (
    Array,
    array_namespace,
    conjugate,
    is_complex,
    real_part,
    signs_of,
    squared_magnitudes,
    to_namespace,
)
from codiag.least_squares._components import unit_components
from codiag.problem import groups_of
from codiag.tensors import FactoredTensor


@dataclass(frozen=True, eq=False)
class Parametrization:
    """Where the factors of components stand in one array of unknowns (D, k).

    `signs` stand for the weights of a symmetric tensor, whose factors carry only their size. Where only some modes
    share a factor, that of another mode carries the sign. Complex factors carry phases themselves.
    """

    shape: tuple[int, ...]
    signs: Array | None  # None: not all modes share one factor
    shared: tuple[int, ...] = ()  # modes that share a factor where not all do

    @classmethod
    def of(cls, components: FactoredTensor, shared: tuple[int, ...] = ()) -> Parametrization:
        if not components.symmetric:
            return cls(components.shape, None, shared)
        xp = array_namespace(components.weights)
        ones = xp.ones_like(components.weights)
        if is_complex(components.factors[0]):
            return cls(components.shape, xp.ones_like(real_part(components.weights)))
        negative = components.weights < 0 if components.order % 2 == 0 else ones < 0
        return cls(components.shape, xp.where(negative, -ones, ones))

    @cached_property
    def groups(self) -> list[tuple[int, ...]]:
        """The modes that belong to each factor, in the order in which factors stand in the unknowns."""
        return groups_of(self.signs is not None or self.shared, len(self.shape))

    def vectorize(self, components: FactoredTensor, *, balanced: bool = True) -> Array:
        """Return the unknowns, the size of each component spread evenly over the modes, or where it is already."""
        xp = array_namespace(components.weights)
        groups = self.groups
        signed = next((place for place, group in enumerate(groups) if len(group) == 1), 0)
        if not balanced and self.signs is None:
            parts = [components.factors[group[0]] for group in groups]
            parts[signed] = parts[signed] * components.weights
            return xp.concat(parts)
        unit = unit_components(components)
        share = xp.abs(unit.weights) ** (1 / components.order)
        sign = signs_of(unit.weights)
        if self.signs is not None and is_complex(sign):
            return unit.factors[0] * share * sign ** (1 / components.order)
        if self.signs is not None:
            return unit.factors[0] * share * (sign if components.order % 2 else 1)
        parts = [unit.factors[group[0]] * share for group in groups]
        parts[signed] = parts[signed] * sign
        return xp.concat(parts)

    def factors(self, point: Array) -> list[Array]:
        """Return the scaled factors, one for all modes that share it, or stacks of them for a stack of points."""
        if self.signs is not None:
            return [point]
        return [point[..., rows, :] for rows in self._rows]

    @cached_property
    def _rows(self) -> list[slice]:
        """The rows of the unknowns that belong to each factor."""
        sizes = [self.shape[group[0]] for group in self.groups]
        return [slice(end - size, end) for end, size in zip(accumulate(sizes), sizes, strict=True)]

    @cached_property
    def independent_rows(self) -> slice | None:
        """Rows of the factor that has most unknowns of all, if it belongs to one mode and has more than half of them.

        Curvature has no terms that two of them share.
        """
        largest = max(range(len(self.groups)), key=lambda place: self.shape[self.groups[place][0]])
        rows = None if self.signs is not None or len(self.groups[largest]) > 1 else self._rows[largest]
        return rows if rows is not None and 2 * (rows.stop - rows.start) > self._rows[-1].stop else None

    @cached_property
    def factor_of_row(self) -> np.ndarray:
        """The factor to which each row of the unknowns belongs."""
        return np.repeat(np.arange(len(self.groups)), [self.shape[group[0]] for group in self.groups])

    def with_equal_scaling(self, point: Array, gradient: Array) -> Array:
        """Make the derivatives along the columns of a component equal in all modes.

        They are equal but for rounding, because moving size from one mode to another does not change the tensor.
        Rounding errors in these directions would not be corrected by any step.
        """
        both, squares = conjugate(point) * gradient, squared_magnitudes(point)
        members, counts = to_namespace(self._members, both), to_namespace(self._counts, both)
        along = members @ both / counts
        mean, squares = counts.T @ along / len(self.shape), to_namespace(self._members, squares) @ squares
        share = (mean - along) / array_namespace(squares).where(squares > 0, squares, 1 + 0 * squares)
        return gradient + point * (members.T @ (counts * share))

    @cached_property
    def _members(self) -> np.ndarray:
        """Which rows of the unknowns belong to each factor (n, D)."""
        return (np.arange(len(self.groups))[:, None] == self.factor_of_row).astype(np.float64)

    @cached_property
    def _counts(self) -> np.ndarray:
        """The number of modes that share each factor (n, 1)."""
        return np.array([[float(len(group))] for group in self.groups])

    def components(self, point: Array) -> FactoredTensor:
        """Return the components as a tensor."""
        xp = array_namespace(point)
        if self.signs is not None:
            return FactoredTensor(self.signs, [point] * len(self.shape), symmetric=True)
        weights = xp.ones(point.shape[1], dtype=point.dtype, device=device(point))
        return FactoredTensor(weights, self.expand(point), symmetric=False)

    def expand(self, point: Array) -> list[Array]:
        """Return a factor for every mode, of components with weights of one: linear in the point."""
        if self.signs is not None:
            return [point * self.signs] + [point] * (len(self.shape) - 1)
        of_mode = {
            mode: factor for group, factor in zip(self.groups, self.factors(point), strict=True) for mode in group
        }
        return [of_mode[mode] for mode in range(len(self.shape))]

    def accumulate(self, parts: Sequence[Array], *, signed: bool = True) -> Array:
        """Return the transpose of `expand`: what parts for every mode add up to for the unknowns."""
        if self.signs is not None:
            return sum(parts[1:], parts[0] * self.signs if signed else parts[0])
        return self._summed_by_group(parts)

    def accumulate_rows(self, grams: Sequence[Array]) -> Array:
        """Return the diagonal blocks of the rows of all unknowns, (D, k, k)."""
        return sum(grams[1:], grams[0]) if self.signs is not None else self._summed_by_group(grams)

    def _summed_by_group(self, parts: Sequence[Array]) -> Array:
        totals = [sum((parts[mode] for mode in group[1:]), parts[group[0]]) for group in self.groups]
        return array_namespace(parts[0]).concat(totals)

    def accumulate_matrix(self, matrix: Array, rank: int) -> Array:
        """Return a matrix for the rows of all modes as one for the unknowns."""
        if self.signs is None and not self.shared:
            return matrix
        xp = array_namespace(matrix)
        ends = [rank * end for end in np.cumsum(self.shape).tolist()]
        starts = [0, *ends[:-1]]
        if self.signs is not None:  # the first mode of a symmetric tensor carries them
            one = xp.concat([xp.tile(self.signs, (self.shape[0],)), xp.ones_like(matrix[ends[0] :, 0])])
            matrix = one[:, None] * matrix * one[None, :]

        def block(left: tuple[int, ...], right: tuple[int, ...]) -> Array:
            pairs = [(m, n) for m in left for n in right]
            parts = [matrix[starts[m] : ends[m], starts[n] : ends[n]] for m, n in pairs]
            return sum(parts[1:], parts[0])

        groups = self.groups
        return xp.concat([xp.concat([block(left, right) for right in groups], axis=1) for left in groups])
