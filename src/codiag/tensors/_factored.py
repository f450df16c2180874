"""A tensor that is given by its components and never formed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from codiag._arrays import (
    Array,
    adjoint,
    all_equal,
    array_namespace,
    conjugate,
    fits_block,
    is_complex,
    on_host,
    real_part,
    squares,
    take,
    to_double,
    to_host,
)
from codiag._checks import as_number_array
from codiag.tensors._base import Tensor, as_scale, check_shape, symmetry_of
from codiag.tensors._sums import khatri_rao


class FactoredTensor(Tensor):
    r"""The tensor :math:`\sum_i w_i\, a_i \otimes b_i \otimes c_i \otimes \dots`, given by its components.

    Parameters
    ----------
    weights : array of shape (r,)
        The weights of the components.
    factors : sequence of arrays of shape (d_m, r)
        One per mode.
    symmetric : bool, optional
        Whether no permutation of the modes changes the tensor. By default, it is symmetric if all factors are equal.

    See Also
    --------
    codiag.Factorization : A fit, whose weights and factors this class takes.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.tensors import FactoredTensor
    >>> tensor = FactoredTensor(np.ones(2), [np.eye(1000, 2)] * 3)
    >>> tensor
    FactoredTensor(symmetric 1000 x 1000 x 1000)
    >>> tensor.squared_norm()
    2.0
    """

    holds_entries = True

    def __init__(self, weights: Array, factors: Sequence[Array], *, symmetric: bool | None = None) -> None:
        self.weights = _floating(weights, "weights")
        if self.weights.ndim != 1:
            raise ValueError(f"weights must have one axis, a number per component; got {tuple(self.weights.shape)}")
        if not isinstance(factors, Iterable):
            raise TypeError(f"factors must be a sequence of arrays, one per mode; got {type(factors).__name__}")
        given = list(factors)  # iterating over an array creates new objects each time
        converted = {id(factor): _floating(factor, "factors") for factor in given}
        self.factors: tuple[Array, ...] = tuple(converted[id(factor)] for factor in given)
        for mode, factor in enumerate(self.factors):
            if factor.ndim != 2 or tuple(self.weights.shape) != (factor.shape[1],):
                raise ValueError(
                    f"factors must have shape (d, r) with r = {self.weights.shape[0]}, the number of weights; "
                    f"got {tuple(factor.shape)} in mode {mode}"
                )
        self.shape = check_shape([factor.shape[0] for factor in self.factors])
        self.symmetric = symmetry_of(self.factors, symmetric, "factors")

    @property
    def reference(self) -> Array:
        return self.factors[0][:0, 0] if is_complex(self.factors[0]) else self.weights[:0]

    @property
    def rank(self) -> int:
        """Number of components.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.tensors import FactoredTensor
        >>> FactoredTensor(np.ones(2), [np.eye(3, 2), np.eye(4, 2), np.eye(5, 2)]).rank
        2
        """
        return int(self.weights.shape[0])

    def on_host(self) -> FactoredTensor:
        if on_host(self.weights):
            return self
        return self.changed(lambda factor, _: to_host(factor), to_host(self.weights))

    def changed(self, change: Callable[[Array, int], Array], weights: Array | None = None) -> FactoredTensor:
        """Return the components with a function applied to every factor.

        Parameters
        ----------
        change : callable
            Called as ``change(factor, mode)``; returns an array with r columns. For a symmetric tensor, it is called
            once, with mode 0.
        weights : array of shape (r,), optional
            New weights; by default, those of this tensor.

        Returns
        -------
        FactoredTensor
            The tensor of the new factors.

        See Also
        --------
        FactoredTensor.columns : A selection of the components.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.tensors import FactoredTensor
        >>> tensor = FactoredTensor(np.ones(2), [np.eye(3, 2), np.eye(4, 2), np.eye(5, 2)])
        >>> tensor.changed(lambda factor, mode: factor[:2]).shape
        (2, 2, 2)
        """
        weights = self.weights if weights is None else weights
        return self._with_components(weights, lambda mode: change(self.factors[mode], mode), symmetric=self.symmetric)

    def columns(self, chosen: Sequence[int]) -> FactoredTensor:
        """Return a selection of the components.

        Parameters
        ----------
        chosen : sequence of int
            Indices of the components, in the new order.

        Returns
        -------
        FactoredTensor
            The tensor of these components.

        See Also
        --------
        FactoredTensor.joined : The components of two tensors.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.tensors import FactoredTensor
        >>> tensor = FactoredTensor(np.array([3.0, 2.0, 1.0]), [np.eye(3)] * 3)
        >>> tensor.columns([2, 0]).weights.tolist()
        [1.0, 3.0]
        """
        return self.changed(lambda factor, _: take(factor, chosen, axis=1), take(self.weights, chosen, axis=0))

    def joined(self, other: FactoredTensor) -> FactoredTensor:
        """Return these components followed by those of another tensor: the sum of both.

        Parameters
        ----------
        other : FactoredTensor
            A tensor of the same shape.

        Returns
        -------
        FactoredTensor
            The sum, symmetric if both tensors are.

        See Also
        --------
        FactoredTensor.minus : The difference from other components.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.tensors import FactoredTensor
        >>> first, second = (FactoredTensor(np.ones(k), [np.eye(3, k)] * 3) for k in (1, 2))
        >>> first.joined(second).rank
        3
        """
        xp = array_namespace(self.weights)
        return self._with_components(
            xp.concat([self.weights, other.weights]),
            lambda mode: xp.concat([self.factors[mode], other.factors[mode]], axis=1),
            symmetric=self.symmetric and other.symmetric,
        )

    def minus(self, weights: Array, factors: Sequence[Array]) -> FactoredTensor:
        """Return the difference from other components, as components in double precision.

        Parameters
        ----------
        weights : array of shape (r,)
            The weights of the components to subtract.
        factors : sequence of arrays of shape (d_m, r)
            Their factors, one for each mode.

        Returns
        -------
        FactoredTensor
            The difference, of rank ``self.rank + r``.

        See Also
        --------
        FactoredTensor.joined : The sum with other components.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.tensors import FactoredTensor
        >>> tensor = FactoredTensor(np.ones(2), [np.eye(3, 2)] * 3)
        >>> float(tensor.minus(tensor.weights, tensor.factors).squared_norm())
        0.0
        """
        xp = array_namespace(to_double(self.weights))
        return self._with_components(
            xp.concat([to_double(self.weights), -to_double(weights)]),
            lambda mode: xp.concat([to_double(self.factors[mode]), to_double(factors[mode])], axis=1),
            symmetric=self.symmetric and all_equal(factors),
        )

    def _with_components(self, weights: Array, factor_of: Callable[[int], Array], *, symmetric: bool) -> FactoredTensor:
        """Return components with a new factor for every mode, formed once if symmetric."""
        factors = [factor_of(0)] * self.order if symmetric else [factor_of(mode) for mode in range(self.order)]
        return FactoredTensor(weights, factors, symmetric=symmetric)

    def _times(self, scale: float) -> FactoredTensor:
        return FactoredTensor(self.weights * as_scale(scale, self.reference), self.factors, symmetric=self.symmetric)

    def project(self, *directions: Array) -> Array:
        xp = array_namespace(self.weights)
        diagonals = self.weights
        for direction, factor in zip(directions, self.factors[2:], strict=True):
            diagonals = diagonals * (direction @ factor)
        return (self.factors[0][None, ...] * diagonals[:, None, :]) @ xp.matrix_transpose(self.factors[1])

    def permute(self, axes: Sequence[int]) -> FactoredTensor:
        return FactoredTensor(self.weights, [self.factors[mode] for mode in axes], symmetric=self.symmetric)

    def compress(self, *bases: Array | None) -> FactoredTensor:
        xp = array_namespace(self.weights)

        def compressed(mode: int) -> Array:
            basis, factor = bases[mode], self.factors[mode]
            return factor if basis is None else xp.matrix_transpose(basis) @ factor

        return self._with_components(self.weights, compressed, symmetric=self.symmetric and all_equal(bases))

    def mttkrp(self, factors: Sequence[Array], mode: int) -> Array:
        xp = array_namespace(self.weights)
        products = self.weights[:, None]
        for other, factor in enumerate(factors):
            if other != mode:
                products = products * (xp.matrix_transpose(self.factors[other]) @ factor)
        return self.factors[mode] @ products

    def squared_norm(self) -> float:
        """Return the squared norm from inner products of the components, or from a small core if these cancel."""
        total, magnitude = self._products(self.weights, self.factors)
        if not total < 1e-6 * magnitude:  # else cancellation has lost more than 6 of 16 digits
            return total
        if not fits_block(math.prod(min(size, self.rank) for size in self.shape)):
            return max(total, 0.0)
        core = self.changed(lambda factor, _: _in_own_range(to_double(factor)), to_double(self.weights))
        return squares(core.to_dense())

    def inner(self, weights: Array, factors: Sequence[Array]) -> float:
        return self._products(weights, factors)[0]

    def squared_distance(self, weights: Array, factors: Sequence[Array]) -> float:
        return self.minus(weights, factors).squared_norm()

    def _products(self, weights: Array, factors: Sequence[Array]) -> tuple[float, float]:
        """Return the sum of the inner products of these components with others, and the sum of their magnitudes."""
        products = conjugate(to_double(self.weights))[:, None] * to_double(weights)[None, :]
        xp = array_namespace(products)
        for factor, other in zip(self.factors, factors, strict=True):
            products = products * (adjoint(to_double(factor)) @ to_double(other))
        return float(xp.sum(real_part(products))), float(xp.sum(xp.abs(products)))

    def to_dense(self) -> Array:
        xp = array_namespace(self.weights)
        columns = khatri_rao([self.factors[0] * self.weights, *self.factors[1:-1]])
        return xp.reshape(columns @ xp.matrix_transpose(self.factors[-1]), self.shape)


def scaled_factors(components: FactoredTensor) -> list[Array]:
    """Return the factors of components in double precision, the first one times the weights."""
    first, *others = (to_double(factor) for factor in components.factors)
    return [first * to_double(components.weights), *others]


def _in_own_range(factor: Array) -> Array:
    """Return a factor in orthonormal coordinates of its range, which has the same inner products between columns."""
    if factor.shape[0] <= factor.shape[1]:
        return factor
    return array_namespace(factor).linalg.qr(factor)[1]


def _floating(array: Array, name: str) -> Array:
    """Return an array of floating-point numbers unchanged, and other numbers as floating-point numbers."""
    if type(array) is np.ndarray and array.dtype == np.float64:
        return array
    if hasattr(array, "dtype") and str(array.dtype).endswith(("float64", "float32", "complex128", "complex64")):
        return array
    return as_number_array(array, name)
