"""Sums and multiples of tensors, which are contracted term by term."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import add
from typing import Any

from array_api_compat import device

from codiag._arrays import Array, array_namespace, identity, to_namespace, widest
from codiag.tensors._base import REAL, StoredTensor, Tensor, as_scale, declared_symmetry
from codiag.tensors._convert import as_tensor
from codiag.tensors._factored import FactoredTensor
from codiag.tensors._sketch import Sketch
from codiag.tensors._sums import Sum, scaled_square


class SumTensor(Tensor):
    """The sum of tensors of one shape and any kinds of storage; also written ``first + second``.

    Parameters
    ----------
    terms : sequence of Tensor, or of anything that `codiag.factorize` takes
        The tensors to add.
    symmetric : bool, optional
        Whether no permutation of the modes changes the sum. By default, it is symmetric if all terms are.

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
        given = [as_tensor(term) for term in terms]
        if not given:
            raise ValueError("terms must contain at least one tensor; got none")
        self.terms = tuple(_beside(term, given[0].reference) for term in given)
        shapes = {term.shape for term in self.terms}
        if len(shapes) != 1:
            raise ValueError(f"terms must be tensors of one shape; got {sorted(shapes)}")
        self.shape = self.terms[0].shape
        if symmetric is None:
            symmetric = all(term.symmetric for term in self.terms)
        self.symmetric = bool(declared_symmetry(symmetric, self.shape))
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
        return [_total(shares) for shares in zip(*(term.mttkrps(factors) for term in self.terms), strict=True)]

    def squared_norm(self) -> float:
        first, components = self._split()
        if first is None:
            return super().squared_norm()
        if components is None:
            return first.squared_norm()
        return first.squared_distance(-components.weights, components.factors)

    def inner(self, weights: Array, factors: Sequence[Array]) -> float:
        return sum(term.inner(weights, factors) for term in self.terms)

    def squared_distance(self, weights: Array, factors: Sequence[Array]) -> float:
        """Return the distance of one term from components and minus all other terms, if these are components, too."""
        first, components = self._split()
        if first is None:
            return super().squared_distance(weights, factors)
        if components is None:
            return first.squared_distance(weights, factors)
        difference = components.minus(weights, factors)
        return first.squared_distance(-difference.weights, difference.factors)

    def _split(self) -> tuple[Tensor | None, FactoredTensor | None]:
        """Return one term, and the sum of all others if these are given by components.

        The first is None if more than one term is not given by components. The second is None if there is one term.
        """
        factored = [term for term in self.terms if isinstance(term, FactoredTensor)]
        others = [term for term in self.terms if not isinstance(term, FactoredTensor)]
        if len(others) > 1:
            return None, None
        first, rest = (others[0], factored) if others else (factored[0], factored[1:])
        return first, reduce(lambda total, term: total.minus(-term.weights, term.factors), rest) if rest else None


class ScaledTensor(StoredTensor):
    """A multiple of a tensor; also written ``scale * tensor``.

    Parameters
    ----------
    tensor : Tensor, or anything that `codiag.factorize` takes
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
        if isinstance(inner, ScaledTensor):  # the product of both scales may be in range if one of them is not
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
        """Compute the sums over the tensor itself, and scale the results."""
        if self.scale == 0:
            zeros = [0 * identity(size, self.reference)[:, :1] for size in self.shape]
            return FactoredTensor(zeros[0][0, :], zeros, symmetric=False).read(*sums)
        results = self.tensor.read(*(request.before_scaling(self.scale) for request in sums))
        return [request.after_scaling(result, self.scale) for request, result in zip(sums, results, strict=True)]

    @property
    def reference(self) -> Array:
        return self.tensor.reference

    def project(self, *directions: Array) -> Array:
        return self.scale * self.tensor.project(*directions)

    def permute(self, axes: Sequence[int]) -> ScaledTensor:
        return ScaledTensor(self.tensor.permute(axes), self.scale)

    def squared_norm(self) -> float:
        return scaled_square(self.tensor.squared_norm(), self.scale)

    def to_dense(self) -> Array:
        return self.scale * self.tensor.to_dense()


def _beside(term: Tensor, reference: Array) -> Tensor:
    """Return components in the library of the reference: methods return those of a tensor elsewhere on the host."""
    xp = array_namespace(reference)
    if not isinstance(term, FactoredTensor) or array_namespace(term.reference) is xp:
        return term
    exact = xp.zeros(0, dtype=widest(reference), device=device(reference))
    return term.changed(lambda factor, _: to_namespace(factor, exact), to_namespace(term.weights, exact))


def _total(parts: Iterable[Array]) -> Array:
    return reduce(add, parts)
