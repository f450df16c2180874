"""How components are laid out as one array of unknowns."""

from __future__ import annotations

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

    def pack(self, components: FactoredTensor) -> Array:
        """Return the unknowns, the size of each component spread evenly over the modes."""
        xp = array_namespace(components.weights)
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
