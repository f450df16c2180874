"""Sums and multiples of tensors, formed only where they are contracted."""

from __future__ import annotations

from collections.abc import Sequence

from codiag._array import Array, double
from codiag.tensors.base import Tensor
from codiag.tensors.factored import FactoredTensor


class SumTensor(Tensor):
    """The sum of tensors of one shape, whatever their storage; also written ``first + second``."""

    def __init__(self, terms: Sequence[Tensor]) -> None:
        self.terms = tuple(terms)
        shapes = {term.shape for term in self.terms}
        if len(shapes) != 1:
            raise ValueError(f"terms must be tensors of one shape; got {sorted(shapes)}")
        self.shape = self.terms[0].shape
        self.symmetric = all(term.symmetric for term in self.terms)
        self.holds_entries = all(term.holds_entries for term in self.terms)

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
        first, rest = self._parted()
        if first is None:
            return super().squared_norm()
        if not rest:
            return first.squared_norm()
        other = _joined(rest)
        return first.squared_distance(-other.weights, other.factors)

    def inner(self, weights: Array, factors: Sequence[Array]) -> float:
        return sum(term.inner(weights, factors) for term in self.terms)

    def squared_distance(self, weights: Array, factors: Sequence[Array]) -> float:
        """Return the distance of the one term that is not given by components from all that is, if it is the one."""
        first, rest = self._parted()
        if first is None:
            return super().squared_distance(weights, factors)
        if not rest:
            return first.squared_distance(weights, factors)
        other = _joined(rest).minus(weights, factors)
        return first.squared_distance(-other.weights, other.factors)

    def _parted(self) -> tuple[Tensor | None, list[FactoredTensor]]:
        """Return one term and others that are given by components; no term where more than one is not."""
        factored = [term for term in self.terms if isinstance(term, FactoredTensor)]
        others = [term for term in self.terms if not isinstance(term, FactoredTensor)]
        if len(others) > 1:
            return None, factored
        return (others[0], factored) if others else (factored[0], factored[1:])


class ScaledTensor(Tensor):
    """A multiple of a tensor; also written ``scale * tensor``."""

    def __init__(self, tensor: Tensor, scale: float) -> None:
        self.tensor, self.scale = tensor, scale
        self.shape, self.symmetric, self.holds_entries = tensor.shape, tensor.symmetric, tensor.holds_entries

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
        return self.scale**2 * self.tensor.squared_norm()

    def inner(self, weights: Array, factors: Sequence[Array]) -> float:
        return self.scale * self.tensor.inner(weights, factors)

    def squared_distance(self, weights: Array, factors: Sequence[Array]) -> float:
        if self.scale == 0:
            return FactoredTensor(weights, factors).squared_norm()
        return self.scale**2 * self.tensor.squared_distance(double(weights) / self.scale, factors)

    def to_dense(self) -> Array:
        return self.scale * self.tensor.to_dense()


def _joined(terms: Sequence[FactoredTensor]) -> FactoredTensor:
    """Return the sum of tensors given by components, by theirs."""
    total = terms[0]
    for term in terms[1:]:
        total = total.minus(-term.weights, term.factors)
    return total


def _total(parts: Sequence[Array]) -> Array:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
