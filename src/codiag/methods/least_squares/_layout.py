"""How components are laid out as one array of unknowns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from array_api_compat import array_namespace, device

from codiag._array import Array
from codiag.methods.least_squares._components import unit_components
from codiag.tensors import FactoredTensor


@dataclass(frozen=True, eq=False)
class Layout:
    """Where the factors of components stand in one array of unknowns (D, k).

    `signs` stand for the weights of a symmetric tensor, whose factors carry only their size.
    """

    shape: tuple[int, ...]
    signs: Array | None  # None: every mode has a factor of its own

    @classmethod
    def of(cls, components: FactoredTensor) -> Layout:
        if not components.symmetric:
            return cls(components.shape, None)
        xp = array_namespace(components.weights)
        ones = xp.ones_like(components.weights)
        negative = components.weights < 0 if components.order % 2 == 0 else ones < 0
        return cls(components.shape, xp.where(negative, -ones, ones))

    def pack(self, components: FactoredTensor, *, balanced: bool = True) -> Array:
        """Return the unknowns, the size of each component spread evenly over the modes, or where it is already."""
        xp = array_namespace(components.weights)
        if not balanced and self.signs is None:
            return xp.concat([components.factors[0] * components.weights, *components.factors[1:]])
        unit = unit_components(components)
        share = xp.abs(unit.weights) ** (1 / components.order)
        sign = xp.where(unit.weights < 0, -xp.ones_like(share), xp.ones_like(share))
        if self.signs is not None:
            return unit.factors[0] * share * (sign if components.order % 2 else 1)
        return xp.concat([unit.factors[0] * share * sign, *(factor * share for factor in unit.factors[1:])])

    def factors(self, point: Array) -> list[Array]:
        """Return the scaled factors, one for all modes if symmetric."""
        if self.signs is not None:
            return [point]
        ends = np.cumsum(self.shape).tolist()
        return [point[end - size : end, :] for end, size in zip(ends, self.shape, strict=True)]

    def components(self, point: Array) -> FactoredTensor:
        """Return the components as a tensor."""
        xp = array_namespace(point)
        if self.signs is not None:
            return FactoredTensor(self.signs, [point] * len(self.shape), symmetric=True)
        weights = xp.ones(point.shape[1], dtype=point.dtype, device=device(point))
        return FactoredTensor(weights, self.factors(point), symmetric=False)

    def expanded(self, point: Array) -> list[Array]:
        """Return a factor for every mode, of components with weights of one: linear in the point."""
        if self.signs is None:
            return self.factors(point)
        return [point * self.signs] + [point] * (len(self.shape) - 1)

    def folded(self, parts: Sequence[Array], *, signed: bool = True) -> Array:
        """Return the transpose of `expanded`: what parts for every mode add up to for the unknowns."""
        if self.signs is None:
            return array_namespace(parts[0]).concat(list(parts))
        return sum(parts[1:], parts[0] * self.signs if signed else parts[0])

    def folded_rows(self, grams: Sequence[Array]) -> Array:
        """Return the diagonal blocks of the rows of all unknowns, (D, k, k)."""
        if self.signs is None:
            return array_namespace(grams[0]).concat(list(grams))
        return sum(grams[1:], grams[0])

    def folded_matrix(self, matrix: Array, rank: int) -> Array:
        """Return a matrix for the rows of all modes as one for the unknowns."""
        if self.signs is None:
            return matrix
        xp = array_namespace(matrix)
        order, size = len(self.shape), self.shape[0]
        blocks = xp.reshape(matrix, (order, size, rank, order, size, rank))
        weights = [self.signs] + [xp.ones_like(self.signs)] * (order - 1)
        total = 0.0 * blocks[0, :, :, 0, :, :]
        for m, left in enumerate(weights):
            for n, right in enumerate(weights):
                total = total + left[None, :, None, None] * blocks[m, :, :, n, :, :] * right
        return xp.reshape(total, (size * rank, size * rank))
