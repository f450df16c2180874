"""The interface of tensors: two contractions that each kind implements, and all others by fallback."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from array_api_compat import device, is_array_api_obj

from codiag._arrays import (
    Array,
    all_equal,
    array_namespace,
    blocks,
    conjugate,
    fits_block,
    identity,
    real_part,
    squares,
    take,
    to_double,
    to_host,
    to_namespace,
    widest,
)
from codiag._checks import as_flag
from codiag.tensors._sketch import Sketch, make_sketch
from codiag.tensors._sums import Core, Products, SquaredDistance, Sum

if TYPE_CHECKING:
    from codiag.tensors._dense import DenseTensor
    from codiag.tensors.entries import ObservedEntries

REAL = int | float | np.integer | np.floating
"""Numbers that may multiply a tensor."""

MOST_WEIGHT = 1e100
"""Weights of entries between this and its inverse are used as they are given; others relative to the largest."""

CANCELLATION_LIMIT = 1e-8
"""Squared distance, relative to the squared norm, below which norms and inner products do not give it: their rounding
errors are about 1e-16, so that half of the digits are lost."""


class Tensor(ABC):
    r"""A tensor of order three or more, known only through its contractions.

    A subclass sets `shape` and `symmetric`, and implements `project` and `permute`. All other methods are computed from
    these, and overridden if the storage allows a faster way. Tensors are added, subtracted and multiplied by numbers
    like arrays, without being formed.

    Laws, tested for every tensor: `project` is linear in each direction; ``project(e_j)`` is slice j;
    ``compress(Q, Q, Q).project(w) == Q.T @ project(w @ Q.T) @ Q``; all agree with `to_dense`; `permute`, `compress` by
    equal bases, multiples and sums keep `symmetric`.

    Attributes
    ----------
    shape : tuple of ints
        Sizes of the modes, three or more.
    symmetric : bool
        Whether no permutation of the modes changes the tensor, so that all modes share one factor.
    holds_entries : bool
        Whether `to_dense` costs no more than one pass over the entries.
    is_partial : bool
        Whether entries that are not stored are missing; otherwise they are zero.
    is_validated : bool
        Whether all entries are known to be finite. Large data is checked in the first pass over it, not before.
    is_on_accelerator : bool
        Whether the entries are an array on an accelerator, where there is room beside them.
    is_absent : bool
        Whether entries were left out of a result, so that only the shape is known.

    See Also
    --------
    as_tensor : Makes one from an array.
    DenseTensor : Arrays of any library.
    SparseTensor : Few entries.
    DaskTensor : Arrays in chunks.
    FactoredTensor : Components alone.
    codiag.factorize : Takes any of them.

    Examples
    --------
    A tensor whose slices are the powers of a matrix:

    >>> import numpy as np
    >>> from codiag.tensors import Tensor
    >>> class SymmetricBasis(Tensor):
    ...     def __init__(self, matrix, count, order=(0, 1, 2)):
    ...         self.matrix, self.count, self.axes = matrix, count, tuple(order)
    ...         shape = (*matrix.shape, count)
    ...         self.shape = tuple(shape[mode] for mode in order)
    ...
    ...     def project(self, *directions):
    ...         powers = [np.linalg.matrix_power(self.matrix, power) for power in range(self.count)]
    ...         return np.einsum("abc,nc->nab", np.stack(powers, axis=2).transpose(self.axes), directions[0])
    ...
    ...     def permute(self, axes):
    ...         return SymmetricBasis(self.matrix, self.count, [self.axes[mode] for mode in axes])
    >>> tensor = SymmetricBasis(np.diag([1.0, 2.0]), 3)
    >>> tensor.project(np.ones((1, 3))).tolist()
    [[[3.0, 0.0], [0.0, 7.0]]]
    >>> tensor.squared_norm()
    24.0
    """

    shape: tuple[int, ...]
    symmetric: bool = False
    holds_entries: bool = False
    is_partial: bool = False
    is_validated: bool = True
    is_on_accelerator: bool = False
    is_absent: bool = False
    _sketch: Sketch | None = None

    @abstractmethod
    def project(self, *directions: Array) -> Array:
        """Contract every mode after the second with vectors.

        Parameters
        ----------
        *directions : arrays of shape (n, d_m)
            One array for every mode after the second, in the library and on the device of `reference`.

        Returns
        -------
        array of shape (n, d_0, d_1)
            Matrix l is the tensor contracted with row l of each array.

        See Also
        --------
        Tensor.compress : Multiply modes by bases.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.tensors import as_tensor
        >>> as_tensor(np.ones((3, 4, 5))).project(np.ones((2, 5))).shape
        (2, 3, 4)
        """

    @abstractmethod
    def permute(self, axes: Sequence[int]) -> Tensor:
        """Return the tensor with its modes in this order.

        Parameters
        ----------
        axes : sequence of ints
            Mode m of the result is mode ``axes[m]`` of this tensor.

        Returns
        -------
        Tensor
            The same entries, with the modes in the new order.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.tensors import as_tensor
        >>> as_tensor(np.ones((3, 4, 5))).permute((2, 0, 1)).shape
        (5, 3, 4)
        """

    @property
    def order(self) -> int:
        """Number of modes.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.tensors import as_tensor
        >>> as_tensor(np.ones((3, 4, 5))).order
        3
        """
        return len(self.shape)

    @property
    def n_stored(self) -> int:
        """Number of stored entries; for a dense tensor, all entries.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.tensors import SparseTensor, as_tensor
        >>> sparse = SparseTensor(np.array([[0, 1], [2, 3], [4, 4]]), np.ones(2), (3, 4, 5))
        >>> sparse.n_stored, as_tensor(np.ones((3, 4, 5))).n_stored
        (2, 60)
        """
        return math.prod(self.shape)

    @property
    def reference(self) -> Array:
        """An empty array with the library, the device and the precision of results.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.tensors import as_tensor
        >>> as_tensor(np.ones((3, 4, 5), dtype=np.float32)).reference.dtype
        dtype('float32')
        """
        return np.zeros(0)

    def read(self, *sums: Sum) -> list[Any]:
        """Compute several sums over the entries, in one pass over the data if the storage allows it.

        Parameters
        ----------
        *sums : Sum
            Requests for sums. They are internal and may change; outside of codiag, call the corresponding methods, such
            as `squared_norm` or `mttkrps`.

        Returns
        -------
        list
            The result of each request, equal to that of the corresponding method.

        See Also
        --------
        Tensor.sketch : The first pass over the data.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.tensors import as_tensor
        >>> as_tensor(np.ones((3, 4, 5))).read()
        []
        """
        return [request.of(self) for request in sums]

    def sketch(self, width: int = 0) -> Sketch:
        """Return the squared norm and products with random vectors, from the first pass over the data.

        The sketch is stored, so that later calls with the same width read nothing.

        Parameters
        ----------
        width : int
            Smallest number of random directions by which the tensor is multiplied.

        Returns
        -------
        Sketch
            With ``squared_norm``, ``directions`` and ``products``.

        See Also
        --------
        Tensor.squared_norm : The norm alone.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.tensors import as_tensor
        >>> as_tensor(np.ones((3, 4, 5))).sketch().squared_norm
        60.0
        """
        if self._sketch is None or self._sketch.width < width:
            self._sketch = make_sketch(self, width)
        return self._sketch

    def check(self) -> None:
        """Raise a ``ValueError`` unless all entries are finite; reads the data if it has not been checked yet.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.tensors import as_tensor
        >>> as_tensor(np.ones((3, 4, 5))).check()
        """
        if not self.is_validated and not math.isfinite(self.sketch().squared_norm):
            raise ValueError(f"tensor must be finite; some entries of {self!r}, or their squares, are NaN or infinite")
        self.is_validated = True

    def compress(self, *bases: Array | None) -> Tensor:
        """Multiply every mode by the transpose of a basis.

        Parameters
        ----------
        *bases : arrays of shape (d_m, k_m), or None
            One for every mode; None leaves a mode unchanged.

        Returns
        -------
        Tensor
            A tensor of shape (k_0, k_1, ...), symmetric if this tensor is symmetric and all bases are equal.

        See Also
        --------
        Tensor.project : Contract modes with vectors.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.tensors import as_tensor
        >>> as_tensor(np.ones((3, 4, 5))).compress(np.eye(3, 2), None, np.eye(5, 2)).shape
        (2, 4, 2)
        """
        open_modes = [mode for mode, basis in enumerate(bases) if basis is None]
        order = open_modes + [mode for mode in range(self.order) if mode not in open_modes]
        source, ordered = self.permute(order), [bases[mode] for mode in order]
        full = [identity(self.shape[mode], self.reference) if basis is None else basis
                for mode, basis in zip(order, ordered, strict=True)]  # fmt: skip
        sizes = [basis.shape[1] for basis in full]
        xp = array_namespace(self.reference)
        grid = np.indices(sizes[2:]).reshape(self.order - 2, -1)
        stacks = []
        for part in blocks(grid.shape[1], source.shape[0] * source.shape[1]):
            columns = [take(xp.matrix_transpose(basis), grid[m, part], axis=0) for m, basis in enumerate(full[2:])]
            stack = source.project(*columns)
            stack = stack if ordered[1] is None else stack @ full[1]
            stacks.append(stack if ordered[0] is None else xp.matrix_transpose(full[0]) @ stack)
        core = xp.reshape(xp.concat(stacks), (*sizes[2:], sizes[0], sizes[1]))
        back = (self.order - 2, self.order - 1, *range(self.order - 2))
        return self._compressed(xp.permute_dims(xp.permute_dims(core, back), tuple(np.argsort(order).tolist())), bases)

    def mttkrp(self, factors: Sequence[Array], mode: int) -> Array:
        r"""Return :math:`T_{(m)} (\bigodot_{n \ne m} A_n)`: the matricized tensor times a Khatri-Rao product.

        Parameters
        ----------
        factors : sequence of arrays of shape (d_n, r)
            One for every mode; the factor of `mode` is not used.
        mode : int
            The mode that is not contracted.

        Returns
        -------
        array of shape (d_m, r)
            The product.

        See Also
        --------
        Tensor.mttkrps : For all modes at once.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.tensors import as_tensor
        >>> factors = [np.ones((size, 2)) for size in (3, 4, 5)]
        >>> as_tensor(np.ones((3, 4, 5))).mttkrp(factors, mode=0).tolist()
        [[20.0, 20.0], [20.0, 20.0], [20.0, 20.0]]
        """
        xp = array_namespace(self.reference)
        order = [mode, *(other for other in range(self.order) if other != mode)]
        source = self.permute(order)
        columns = [xp.matrix_transpose(factors[other]) for other in order[1:]]
        products = []
        for part in blocks(columns[0].shape[0], source.shape[0] * source.shape[1]):
            stack = source.project(*(column[part, :] for column in columns[1:]))
            products.append((stack @ columns[0][part, :, None])[:, :, 0])
        return xp.matrix_transpose(xp.concat(products))

    def mttkrps(self, factors: Sequence[Array]) -> list[Array]:
        """Return `mttkrp` for every mode, in one pass over the data if the storage allows it.

        Parameters
        ----------
        factors : sequence of arrays of shape (d_m, r)
            One for every mode.

        Returns
        -------
        list of arrays of shape (d_m, r)
            The product for each mode.

        See Also
        --------
        Tensor.mttkrp : For one mode.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.tensors import as_tensor
        >>> factors = [np.ones((size, 2)) for size in (3, 4, 5)]
        >>> [product.shape for product in as_tensor(np.ones((3, 4, 5))).mttkrps(factors)]
        [(3, 2), (4, 2), (5, 2)]
        """
        return [self.mttkrp(factors, mode) for mode in range(self.order)]

    def squared_norm(self) -> float:
        """Return the sum of the squares of all entries.

        Returns
        -------
        float
            The square of the Frobenius norm.

        See Also
        --------
        Tensor.squared_distance : The distance from components.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.tensors import as_tensor
        >>> as_tensor(np.ones((3, 4, 5))).squared_norm()
        60.0
        """
        return sum(squares(self.project(*directions)) for directions in self._unit_directions())

    def inner(self, weights: Array, factors: Sequence[Array]) -> float:
        r"""Return the inner product with :math:`\sum_i w_i a_i \otimes b_i \otimes \dots`.

        Parameters
        ----------
        weights : array of shape (r,)
            The weights of the components.
        factors : sequence of arrays of shape (d_m, r)
            Their factors, one for each mode.

        Returns
        -------
        float
            The inner product.

        See Also
        --------
        Tensor.squared_distance : The distance from the same components.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.tensors import as_tensor
        >>> factors = [np.ones((size, 1)) for size in (3, 4, 5)]
        >>> as_tensor(np.ones((3, 4, 5))).inner(np.array([2.0]), factors)
        120.0
        """
        factors = [conjugate(factor) for factor in factors]
        terms = to_double(self.mttkrp(factors, 0)) * to_double(factors[0]) * to_double(conjugate(weights))
        return float(array_namespace(terms).sum(real_part(terms)))

    def squared_distance(self, weights: Array, factors: Sequence[Array]) -> float:
        r"""Return :math:`\|T - \sum_i w_i a_i \otimes b_i \otimes \dots\|^2`, to rounding.

        If the tensor has more than a few million entries, and the storage does not allow subtracting entry by entry,
        this is computed as :math:`\|T\|^2 - 2 \langle T, M \rangle + \|M\|^2`, whose rounding errors are about 1e-16 of
        the squared norm.

        Parameters
        ----------
        weights : array of shape (r,)
            The weights of the components.
        factors : sequence of arrays of shape (d_m, r)
            Their factors, one for each mode.

        Returns
        -------
        float
            The squared distance.

        See Also
        --------
        Tensor.inner : The inner product with the same components.
        Tensor.squared_norm : The distance from zero.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.tensors import as_tensor
        >>> factors = [np.ones((size, 1)) for size in (3, 4, 5)]
        >>> as_tensor(np.ones((3, 4, 5))).squared_distance(np.array([2.0]), factors)
        60.0
        """
        from codiag.tensors._factored import FactoredTensor

        model = FactoredTensor(weights, factors, symmetric=False)
        if not fits_block(math.prod(self.shape)):
            return max(self.squared_norm() - 2 * self.inner(weights, factors) + model.squared_norm(), 0.0)
        model = model.changed(lambda factor, _: to_double(factor), to_double(weights))
        total = 0.0
        for directions in self._unit_directions():
            entries = to_double(self.project(*directions))
            total += squares(entries - model.project(*(to_double(direction) for direction in directions)))
        return total

    def _unit_directions(self) -> Iterator[list[Array]]:
        """Yield blocks of unit directions, whose projections are the slices of the tensor."""
        units = [identity(size, self.reference) for size in self.shape[2:]]
        grid = np.indices(self.shape[2:]).reshape(self.order - 2, -1)
        for part in blocks(grid.shape[1], self.shape[0] * self.shape[1]):
            yield [take(unit, grid[m, part], axis=0) for m, unit in enumerate(units)]

    def without_empty_rows(self, at_least: int = 1) -> tuple[Tensor, list[np.ndarray]]:
        """Return the tensor without indices that have no entries; by default, all indices are kept.

        Parameters
        ----------
        at_least : int
            Smallest number of indices to keep in every mode, if it has as many.

        Returns
        -------
        tensor : Tensor
            The tensor of the remaining indices.
        kept : list of arrays of int
            The remaining indices of each mode; an empty list if all are kept.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.tensors import SparseTensor
        >>> sparse = SparseTensor(np.array([[0, 2], [2, 3], [4, 4]]), np.ones(2), (3, 4, 5))
        >>> tensor, kept = sparse.without_empty_rows()
        >>> tensor.shape, [indices.tolist() for indices in kept]
        ((2, 2, 1), [[0, 2], [2, 3], [4]])
        """
        return self, []

    def weights_like(self, weights: Any) -> Array | None:
        """Check weights of the entries, and convert them to the library and the precision of the tensor.

        Parameters
        ----------
        weights : array of the shape of the tensor
            Boolean, or non-negative weights; zero if an entry was not observed.

        Returns
        -------
        array of the shape of the tensor, or None
            The weights; None if all are one.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.tensors import as_tensor
        >>> as_tensor(np.ones((3, 4, 5))).weights_like(np.ones((3, 4, 5), dtype=bool)) is None
        True
        """
        return checked_weights(weights, self)

    def observed_entries(self, weights: Array | None) -> ObservedEntries | None:
        """Return the observed entries, for least squares.

        Parameters
        ----------
        weights : array of the shape of the tensor, or None
            As `weights_like` returns them.

        Returns
        -------
        ObservedEntries or None
            None if all entries were observed and have weight one.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.tensors import as_tensor
        >>> as_tensor(np.ones((3, 4, 5))).observed_entries(None) is None
        True
        """
        from codiag.tensors.entries import entries_of_array

        return None if weights is None else entries_of_array(self.to_dense(), weights)

    def listed_entries(self, weights: Array | None) -> ObservedEntries:
        """Return the observed entries one by one, for losses other than least squares.

        Parameters
        ----------
        weights : array of the shape of the tensor, or None
            As `weights_like` returns them.

        Returns
        -------
        ObservedEntries
            The entries, zeros that are not stored left out.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.tensors import as_tensor
        >>> as_tensor(np.ones((3, 4, 5))).listed_entries(None).size
        60
        """
        from codiag.tensors.entries import DenseEntries

        return DenseEntries(self.to_dense(), weights, symmetric=self.symmetric)

    def filled(self, weights: Array | None) -> Tensor:
        """Replace missing entries by the weighted mean of the observed ones.

        Parameters
        ----------
        weights : array of the shape of the tensor, or None
            As `weights_like` returns them.

        Returns
        -------
        Tensor
            A complete tensor; this one if no weight is zero.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.tensors import as_tensor
        >>> weights = np.ones((2, 2, 2))
        >>> weights[0, 0, 0] = 0
        >>> float(as_tensor(np.arange(8.0).reshape(2, 2, 2)).filled(weights).to_dense()[0, 0, 0])
        4.0
        """
        if weights is None:
            return self
        xp, entries, known = array_namespace(weights), self.to_dense(), weights > 0
        mean = xp.sum(xp.where(known, entries * weights, xp.zeros_like(entries))) / xp.sum(weights)
        return self._compressed(xp.where(known, entries, mean), [None] * self.order)

    def on_host(self) -> Tensor:
        """Return the tensor in the memory of the CPU; itself if it is there, or not stored as one array.

        Returns
        -------
        Tensor
            With the same entries.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.tensors import as_tensor
        >>> tensor = as_tensor(np.ones((3, 4, 5)))
        >>> tensor.on_host() is tensor
        True
        """
        return self

    def in_double_precision(self) -> Tensor:
        """Return the tensor in double precision if it is an array in memory, and other tensors unchanged.

        Returns
        -------
        Tensor
            The same entries.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.tensors import as_tensor
        >>> as_tensor(np.ones((3, 4, 5), dtype=np.float32)).in_double_precision().reference.dtype
        dtype('float64')
        """
        return self

    def as_double(self) -> DenseTensor:
        """Return all entries as a dense tensor in double precision.

        Returns
        -------
        DenseTensor
            This tensor itself if it is an array in double precision.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.tensors import FactoredTensor
        >>> FactoredTensor(np.ones(1), [np.ones((2, 1))] * 3).as_double()
        DenseTensor(symmetric 2 x 2 x 2)
        """
        return self._compressed(to_double(self.to_dense()), [None] * self.order)

    def stored_mask(self) -> np.ndarray:
        """Return which entries are stored.

        Returns
        -------
        numpy.ndarray of bool, of the shape of the tensor
            True for stored entries.

        Examples
        --------
        >>> from codiag.tensors import SparseTensor
        >>> int(SparseTensor([[0, 1], [0, 1], [0, 1]], [1.0, 2.0], (2, 2, 2)).stored_mask().sum())
        2
        """
        return np.ones(self.shape, dtype=bool)

    def to_dense(self) -> Array:
        """Return all entries as an array.

        Returns
        -------
        array of the shape of the tensor
            All entries.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.tensors import FactoredTensor
        >>> FactoredTensor(np.ones(1), [np.ones((2, 1))] * 3).to_dense().tolist()
        [[[1.0, 1.0], [1.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]]]
        """
        return self.compress(*[None] * self.order).to_dense()

    def __add__(self, other: object) -> Tensor:
        from codiag.tensors._combine import SumTensor

        return SumTensor([self, other]) if isinstance(other, Tensor) else NotImplemented

    def __sub__(self, other: object) -> Tensor:
        return self + (-other) if isinstance(other, Tensor) else NotImplemented

    def __mul__(self, scale: object) -> Tensor:
        return self._times(scale) if isinstance(scale, REAL) else NotImplemented  # type: ignore[arg-type]

    __rmul__ = __mul__

    def _times(self, scale: float) -> Tensor:
        from codiag.tensors._combine import ScaledTensor

        return ScaledTensor(self, scale)

    def __neg__(self) -> Tensor:
        return self * -1.0

    def __repr__(self) -> str:
        kind = "symmetric " if self.symmetric else ""
        return f"{type(self).__name__}({kind}{' x '.join(str(size) for size in self.shape)})"

    def _compressed(self, core: Array, bases: Sequence[Array | None]) -> DenseTensor:
        from codiag.tensors._dense import DenseTensor

        return DenseTensor.of(core, symmetric=all_equal(bases) and self.symmetric)


class StoredTensor(Tensor):
    """A tensor that stores its entries and implements `read`, by which it computes all other sums."""

    holds_entries = True

    def compress(self, *bases: Array | None) -> DenseTensor:
        core: DenseTensor = self.read(Core(bases))[0]
        return core

    def mttkrp(self, factors: Sequence[Array], mode: int) -> Array:
        return self.read(Products(factors, [mode]))[0][0]

    def mttkrps(self, factors: Sequence[Array]) -> list[Array]:
        products: list[Array] = self.read(Products(factors))[0]
        return products

    def inner(self, weights: Array, factors: Sequence[Array]) -> float:
        from codiag.tensors._factored import FactoredTensor

        model = FactoredTensor(weights, factors, symmetric=False).squared_norm()
        return (self.squared_norm() + model - self.squared_distance(weights, factors)) / 2

    def squared_distance(self, weights: Array, factors: Sequence[Array]) -> float:
        return float(self.read(SquaredDistance(weights, factors))[0])


def symmetry_of(arrays: Sequence[Array], symmetric: bool | None, name: str) -> bool:
    """Return whether a tensor given by one array per mode is symmetric: as declared, or if all arrays are equal."""
    if symmetric is not None:
        as_flag("symmetric", symmetric)
    equal = (symmetric is None or bool(symmetric)) and all_equal(arrays)
    if symmetric and not equal:
        raise ValueError(f"symmetric=True needs equal {name} for all modes; these differ. Leave symmetric out")
    return equal


def check_shape(shape: Sequence[int], name: str = "tensor") -> tuple[int, ...]:
    """Return the shape as a tuple of ints, or raise if it is not that of a tensor."""
    if not hasattr(shape, "__iter__"):
        raise TypeError(f"shape must be a sequence of integers, one for every mode; got {shape!r}")
    shape = tuple(shape)
    if any(isinstance(size, bool) or not isinstance(size, int | np.integer) for size in shape):
        raise TypeError(f"shape must contain integers, one for every mode; got {shape}")
    shape = tuple(int(size) for size in shape)  # products of NumPy integers may overflow
    if any(size < 0 for size in shape):
        raise ValueError(f"shape must not contain negative numbers; got {shape}")
    if len(shape) < 3:
        hint = {2: "; for one matrix use numpy.linalg.svd", 1: "", 0: ""}[len(shape)]
        raise ValueError(f"{name} must have at least three modes; got {len(shape)}, shape {shape}{hint}")
    if math.prod(shape) == 0:
        raise ValueError(f"{name} must not be empty; got shape {shape}, mode {shape.index(0)} is")
    return shape


def as_scale(scale: Any, reference: Array) -> float:
    """Return the factor of a multiple of a tensor, or raise if it overflows in the precision of the tensor."""
    largest = float(array_namespace(reference).finfo(reference.dtype).max)
    if not abs(scale) <= largest:
        raise ValueError(f"scale must be a finite number of {reference.dtype}, at most {largest:.3g}; got {scale}")
    return float(scale)


def declared_symmetry(symmetric: bool, shape: Sequence[int]) -> bool:
    """Return the argument `symmetric` of a tensor as a bool, or raise if the shape contradicts it."""
    as_flag("symmetric", symmetric)
    if symmetric:
        check_symmetric_shape(shape)
    return bool(symmetric)


def check_symmetric_shape(shape: Sequence[int], name: str = "") -> None:
    """Raise unless all modes have the same size."""
    if len(set(shape)) > 1 and name:
        raise ValueError(f"{name} must have modes of one size to be symmetric; got shape {tuple(shape)}")
    if len(set(shape)) > 1:
        raise ValueError(
            f"symmetric=True needs modes of one size; got shape {tuple(shape)}. Leave symmetric out to give every mode "
            "its own factor"
        )


def checked_weights(weights: Any, tensor: Tensor) -> Array | None:
    """Return weights of the entries of a tensor in its library and precision; None if all are one."""
    given = weights if hasattr(weights, "dtype") else np.asarray(weights)
    if not _is_beside(given, tensor.reference):
        given = to_host(given)
    xp = array_namespace(given)
    if not xp.isdtype(given.dtype, ("bool", "integral", "real floating")):
        raise TypeError(f"mask and weights must be boolean or real numbers; got an array of {given.dtype}")
    if tuple(given.shape) != tensor.shape:
        raise ValueError(
            f"mask and weights must have the shape of the tensor, {tensor.shape}; got {tuple(given.shape)}"
        )
    weights = xp.astype(given, widest(given))
    if not bool(xp.all(xp.isfinite(weights))) or bool(xp.any(weights < 0)):
        raise ValueError("mask and weights must be finite and not negative; zero leaves an entry out")
    largest = float(xp.max(weights)) if math.prod(weights.shape) > 0 else 1.0
    if largest > 0 and not 1 / MOST_WEIGHT < largest < MOST_WEIGHT:
        weights = weights / largest  # their squares are numbers
    return None if bool(xp.all(weights == 1)) else to_namespace(weights, real_part(tensor.reference))


def _is_beside(array: Any, reference: Array) -> bool:
    """Return whether an array is in the library and on the device of the reference."""
    if not is_array_api_obj(array) or array_namespace(array) is not array_namespace(reference):
        return False
    return bool(device(array) == device(reference))
