"""Sums and multiples of tensors, formed only where they are contracted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from codiag._arrays import Array, double
from codiag._checks import as_flag
from codiag.tensors._base import REAL, Tensor, as_scale, check_symmetric_shape
from codiag.tensors._convert import as_tensor
from codiag.tensors._factored import FactoredTensor
from codiag.tensors._sketch import Sketch
from codiag.tensors._sums import Sum


class SumTensor(Tensor):
    """The sum of tensors of one shape, whatever their storage; also written ``first + second``.

    Parameters
    ----------
    terms : sequence of Tensor, or of what `codiag.factorize` takes
        The tensors to add.
    symmetric : bool, optional
        Whether permuting the modes leaves the sum as it is. By default it is symmetric if all terms are.

    See Also
    --------
    ScaledTensor : Multiples of a tensor.
    FactoredTensor : Sums of rank-one tensors.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.tensors import FactoredTensor, SparseTensor, SumTensor
    >>> first = SparseTensor([[0], [0], [0]], [2.0], (3, 3, 3))
    >>> second = FactoredTensor(np.ones(1), [np.ones((3, 1))] * 3)
    >>> SumTensor([first, second]).squared_norm() == (first + second).squared_norm() == 35.0
    True
    """

    def __init__(self, terms: Sequence[Any], *, symmetric: bool | None = None) -> None:
        if isinstance(terms, Tensor) or not isinstance(terms, Iterable):
            raise TypeError(f"terms must be a sequence of tensors; got {type(terms).__name__}")
        self.terms = tuple(as_tensor(term) for term in terms)
        if not self.terms:
            raise ValueError("terms must hold a tensor at least; got none")
        shapes = {term.shape for term in self.terms}
        if len(shapes) != 1:
            raise ValueError(f"terms must be tensors of one shape; got {sorted(shapes)}")
        self.shape = self.terms[0].shape
        if symmetric is None:
            symmetric = all(term.symmetric for term in self.terms)
        as_flag("symmetric", symmetric)
        if symmetric:
            check_symmetric_shape(self.shape)
        self.symmetric = bool(symmetric)
        self.holds_entries = all(term.holds_entries for term in self.terms)
        self.is_validated = all(term.is_validated for term in self.terms)

    def check(self) -> None:
        for term in self.terms:
            term.check()
        self.is_validated = True

    @property
    def reference(self) -> Array:
        return self.terms[0].reference

    def project(self, *directions: Array) -> Array:
        return _total([term.project(*directions) for term in self.terms])

    def permute(self, axes: Sequence[int]) -> SumTensor:
        return SumTensor([term.permute(axes) for term in self.terms], symmetric=self.symmetric)

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
        """Return the distance of the one term that is not given by components, if it is one, from all that are."""
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
    """A multiple of a tensor; also written ``scale * tensor``.

    Parameters
    ----------
    tensor : Tensor, or what `codiag.factorize` takes
        The tensor to multiply.
    scale : float
        The number to multiply it by.

    See Also
    --------
    SumTensor : Sums of tensors.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.tensors import ScaledTensor
    >>> ScaledTensor(np.ones((1, 2, 2)), 3.0).squared_norm()
    36.0
    """

    def __init__(self, tensor: Any, scale: Any) -> None:
        if not isinstance(scale, REAL):
            raise TypeError(f"scale must be a number; got {type(scale).__name__} {scale!r}")
        inner = as_tensor(tensor)
        if isinstance(inner, ScaledTensor):  # one product may be a number where the two in turn are not
            scale, inner = scale * inner.scale, inner.tensor
        self.tensor: Tensor = inner
        self.scale: float = as_scale(scale, inner.reference)
        self.shape, self.symmetric, self.holds_entries = inner.shape, inner.symmetric, inner.holds_entries
        self.is_validated = inner.is_validated

    def sketch(self, width: int = 0) -> Sketch:
        return self.tensor.sketch(width).scaled(self.scale)

    def check(self) -> None:
        self.tensor.check()
        self.is_validated = True

    def read(self, *sums: Sum) -> list[Any]:
        """Ask the tensor itself, and multiply what it gives."""
        if self.scale == 0:
            return super().read(*sums)
        results = self.tensor.read(*(one.of_multiple(1 / self.scale) for one in sums))
        return [one.multiple(result, self.scale) for one, result in zip(sums, results, strict=True)]

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

    def inner(self, weights: Array, factors: Sequence[Array]) -> float:
        return self.scale * self.tensor.inner(weights, factors)

    def squared_distance(self, weights: Array, factors: Sequence[Array]) -> float:
        if self.scale == 0:
            return FactoredTensor(weights, factors, symmetric=False).squared_norm()
        size = self.scale * math.sqrt(self.tensor.squared_distance(double(weights) / self.scale, factors))
        return size * size

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
