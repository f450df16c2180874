"""Sums and multiples of tensors, formed only where they are contracted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from codiag._array import Array
from codiag.tensors.base import REAL, Tensor, as_scale
from codiag.tensors.convert import as_tensor
from codiag.tensors.factored import FactoredTensor


class SumTensor(Tensor):
    """The sum of tensors of one shape, whatever their storage; also written ``first + second``.

    Parameters
    ----------
    terms : sequence of Tensor, or of what `codiag.factorize` takes
    """

    def __init__(self, terms: Sequence[Any]) -> None:
        if isinstance(terms, Tensor) or not isinstance(terms, Iterable):
            raise TypeError(f"terms must be a sequence of tensors; got {type(terms).__name__}")
        self.terms = tuple(as_tensor(term) for term in terms)
        if not self.terms:
            raise ValueError("terms must hold a tensor at least; got none")
        shapes = {term.shape for term in self.terms}
        if len(shapes) != 1:
            raise ValueError(f"terms must be tensors of one shape; got {sorted(shapes)}")
        self.shape = self.terms[0].shape
        self.symmetric = all(term.symmetric for term in self.terms)

    @property
    def reference(self) -> Array:
        return self.terms[0].reference

    def project(self, *directions: Array) -> Array:
        return _total([term.project(*directions) for term in self.terms])

    def permute(self, axes: Sequence[int]) -> SumTensor:
        return SumTensor([term.permute(axes) for term in self.terms])

    def compress(self, *bases: Array | None) -> Tensor:
        return self._compressed(_total([term.compress(*bases).to_dense() for term in self.terms]), bases)

    def mttkrp(self, factors: Sequence[Array], mode: int) -> Array:
        return _total([term.mttkrp(factors, mode) for term in self.terms])

    def mttkrps(self, factors: Sequence[Array]) -> list[Array]:
        return [_total(list(shares)) for shares in zip(*(term.mttkrps(factors) for term in self.terms), strict=True)]

    def squared_norm(self) -> float:
        """Return the squared norm, through inner products where all terms but one are given by components."""
        factored = [term for term in self.terms if isinstance(term, FactoredTensor)]
        if len(factored) < len(self.terms) - 1:
            return super().squared_norm()
        others = [term for term in self.terms if not isinstance(term, FactoredTensor)]
        total = sum(term.squared_norm() for term in others)
        for index, term in enumerate(factored):
            total += term.squared_norm()
            total += 2 * sum(other.inner(term.weights, term.factors) for other in [*others, *factored[:index]])
        return max(total, 0.0)


class ScaledTensor(Tensor):
    """A multiple of a tensor; also written ``scale * tensor``."""

    def __init__(self, tensor: Any, scale: Any) -> None:
        if not isinstance(scale, REAL):
            raise TypeError(f"scale must be a number; got {type(scale).__name__} {scale!r}")
        inner = as_tensor(tensor)
        if isinstance(inner, ScaledTensor):  # one product may be a number where the two in turn are not
            scale, inner = scale * inner.scale, inner.tensor
        self.tensor: Tensor = inner
        self.scale: float = as_scale(scale, inner.reference)
        self.shape, self.symmetric = inner.shape, inner.symmetric

    @property
    def reference(self) -> Array:
        return self.tensor.reference

    def project(self, *directions: Array) -> Array:
        return self.scale * self.tensor.project(*directions)

    def permute(self, axes: Sequence[int]) -> ScaledTensor:
        return ScaledTensor(self.tensor.permute(axes), self.scale)

    def compress(self, *bases: Array | None) -> ScaledTensor:
        return ScaledTensor(self.tensor.compress(*bases), self.scale)

    def mttkrp(self, factors: Sequence[Array], mode: int) -> Array:
        return self.scale * self.tensor.mttkrp(factors, mode)

    def mttkrps(self, factors: Sequence[Array]) -> list[Array]:
        return [self.scale * product for product in self.tensor.mttkrps(factors)]

    def squared_norm(self) -> float:
        size = self.scale * math.sqrt(self.tensor.squared_norm())
        return size * size  # infinite where it is out of range; a power would raise

    def squared_distance(self, weights: Array, factors: Sequence[Array]) -> float:
        if self.scale == 0:
            return FactoredTensor(weights, factors).squared_norm()
        size = self.scale * math.sqrt(self.tensor.squared_distance(weights / self.scale, factors))
        return size * size

    def to_dense(self) -> Array:
        return self.scale * self.tensor.to_dense()


def _total(parts: Sequence[Array]) -> Array:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
