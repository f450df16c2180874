"""Moments of samples as tensors that are never formed, and a symmetrized outer product by which models correct them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import device
from scipy import sparse

from codiag._arrays import Array, all_equal, array_namespace, blocks, to_double, to_namespace
from codiag._checks import as_number, as_real_array
from codiag.tensors._base import CANCELLATION_LIMIT, Tensor, check_shape, symmetry_of
from codiag.tensors._dense import DenseTensor
from codiag.tensors._factored import FactoredTensor


class CrossMomentTensor(Tensor):
    r"""The mean over samples of :math:`a_s \otimes b_s \otimes c_s \otimes \dots`, for views of the same samples.

    Parameters
    ----------
    *views : arrays or scipy sparse matrices of shape (n, d_m)
        One per mode, with the samples in the same order. Sparse views remain sparse.
    weights : array of shape (n,), optional
        The weight of each sample; by default 1 / n, so that the sum is a mean.
    symmetric : bool, optional
        Whether no permutation of the modes changes the tensor. By default, it is symmetric if all views are equal.
    check : bool
        Whether to check that views and weights are finite real numbers. With False, views must be arrays of
        floating-point numbers or CSR arrays, and weights must be an array of floating-point numbers.

    See Also
    --------
    MomentTensor : The moment of one view.
    codiag.models.MultiviewMixture : The model that factorizes it.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.tensors import CrossMomentTensor
    >>> moment = CrossMomentTensor(np.ones((10, 2)), np.ones((10, 3)), np.ones((10, 4)))
    >>> moment
    CrossMomentTensor(2 x 3 x 4, 10 samples)
    >>> moment.project(np.ones((1, 4))).shape
    (1, 2, 3)
    """

    def __init__(
        self, *views: Any, weights: Array | None = None, symmetric: bool | None = None, check: bool = True
    ) -> None:
        converted: dict[int, Any] = {}
        self.views = tuple(converted.setdefault(id(view), _as_view(view) if check else view) for view in views)
        lengths = [view.shape[0] for view in self.views]
        if len(set(lengths)) > 1:
            raise ValueError(f"views must have one row per sample, the same number each; got {lengths}")
        self.shape = check_shape([view.shape[1] for view in self.views])
        xp = array_namespace(self.reference)
        n = lengths[0]
        if n == 0:
            raise ValueError("views must contain at least one sample; got none")
        if weights is None:
            self.weights = xp.ones(n, dtype=self.reference.dtype, device=device(self.reference)) / n
        else:
            self.weights = as_real_array(weights, "weights", "use real weights") if check else weights
            if tuple(self.weights.shape) != (n,):
                raise ValueError(f"weights must have shape ({n},), one per sample; got {tuple(self.weights.shape)}")
        self.symmetric = symmetry_of(self.views, symmetric, "views")

    @property
    def reference(self) -> Array:
        dense = next((view for view in self.views if not sparse.issparse(view)), None)
        return np.zeros(0) if dense is None else dense[:0, 0]

    def project(self, *directions: Array) -> Array:
        xp = array_namespace(self.reference)
        stack = []
        for l in range(directions[0].shape[0]):
            scale = self.weights
            for view, direction in zip(self.views[2:], directions, strict=True):
                scale = scale * (view @ direction[l, :])
            stack.append(weighted_product(self.views[0], scale, self.views[1]))
        return xp.stack(stack)

    def permute(self, axes: Sequence[int]) -> CrossMomentTensor:
        return self._with_views([self.views[mode] for mode in axes], symmetric=self.symmetric)

    def compress(self, *bases: Array | None) -> CrossMomentTensor:
        pairs = list(zip(self.views, bases, strict=True))
        symmetric = self.symmetric and all_equal(bases)
        views = [view if basis is None else view @ basis for view, basis in (pairs[:1] if symmetric else pairs)]
        return self._with_views(views * self.order if symmetric else views, symmetric=symmetric)

    def mttkrp(self, factors: Sequence[Array], mode: int) -> Array:
        return self._mttkrps(factors, [mode])[0]

    def mttkrps(self, factors: Sequence[Array]) -> list[Array]:
        return self._mttkrps(factors, range(self.order))

    def squared_norm(self) -> float:
        return self._squared_norm

    def inner(self, weights: Array, factors: Sequence[Array]) -> float:
        exact, total = [to_double(factor) for factor in factors], 0.0
        for part in blocks(self.weights.shape[0], weights.shape[0] * self.order):
            terms = to_double(self.weights[part])[:, None] * to_double(weights)[None, :]
            for view, factor in zip(self.views, exact, strict=True):
                terms = terms * (_rows(view, part) @ factor)
            total += float(array_namespace(terms).sum(terms))
        return total

    def squared_distance(self, weights: Array, factors: Sequence[Array]) -> float:
        if self._entries is not None:
            return self._entries.squared_distance(weights, factors)
        model = FactoredTensor(weights, factors, symmetric=False).squared_norm()
        total = max(self.squared_norm() - 2 * self.inner(weights, factors) + model, 0.0)
        if total < CANCELLATION_LIMIT * model and not any(sparse.issparse(view) for view in self.views):
            samples = FactoredTensor(
                self.weights, [array_namespace(view).matrix_transpose(view) for view in self.views], symmetric=False
            )
            return samples.squared_distance(weights, factors)
        return total

    def to_dense(self) -> Array:
        return to_namespace(self._summed(), self.reference)

    def _summed(self) -> Array:
        """Return all entries, in double precision."""
        total = sum(self._unfolded(part) for part in blocks(self.weights.shape[0], math.prod(self.shape[1:])))
        return array_namespace(total).reshape(total, self.shape)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, {self.weights.shape[0]} samples)"

    @cached_property
    def _squared_norm(self) -> float:
        """The squared norm, from inner products of pairs of samples or from the entries, whichever is less work."""
        if self._entries is not None:
            return self._entries.squared_norm()
        n, total = self.weights.shape[0], 0.0
        weights = to_double(self.weights)
        for part in blocks(n, n):
            products = weights[part][:, None] * weights[None, :]
            for view in self.views:
                inner = _rows(view, part) @ _rows(view, slice(0, n)).T
                products = products * (inner.toarray() if sparse.issparse(inner) else inner)
            total += float(array_namespace(products).sum(products))
        return max(total, 0.0)

    @cached_property
    def _entries(self) -> DenseTensor | None:
        """The tensor as an array if that takes less memory than the samples, else None."""
        if self.weights.shape[0] * sum(self.shape) <= math.prod(self.shape):
            return None
        return DenseTensor.of(self._summed(), symmetric=self.symmetric)

    def _mttkrps(self, factors: Sequence[Array], modes: Sequence[int]) -> list[Array]:
        totals: list[Array] = []
        for part in blocks(self.weights.shape[0], factors[0].shape[1] * self.order):
            projected = [view[part, :] @ factor for view, factor in zip(self.views, factors, strict=True)]
            shares = []
            for mode in modes:
                scale = self.weights[part, None]
                for other, columns in enumerate(projected):
                    scale = scale if other == mode else scale * columns
                shares.append(self.views[mode][part, :].T @ scale)
            totals = [total + share for total, share in zip(totals, shares, strict=True)] if totals else shares
        return totals

    def _unfolded(self, part: slice) -> Array:
        """Return the contribution of some samples, unfolded to (d_0, d_1 d_2 ...), in double precision."""
        rows = to_double(self.weights[part])[:, None]
        xp = array_namespace(rows)
        for view in self.views[1:]:
            columns = _rows(view, part)
            columns = columns.toarray() if sparse.issparse(columns) else columns
            rows = xp.reshape(rows[:, :, None] * columns[:, None, :], (rows.shape[0], -1))
        return _rows(self.views[0], part).T @ rows

    def _with_views(self, views: Sequence[Any], *, symmetric: bool) -> CrossMomentTensor:
        return CrossMomentTensor(*views, weights=self.weights, symmetric=symmetric, check=False)


class MomentTensor(CrossMomentTensor):
    r"""The third moment of samples: the mean of :math:`x_s \otimes x_s \otimes x_s`.

    Parameters
    ----------
    samples : array or scipy sparse matrix of shape (n, d)
        One sample in each row.
    weights : array of shape (n,), optional
        The weight of each sample; by default 1 / n.
    order : int
        Order of the moment, three or more.

    See Also
    --------
    CrossMomentTensor : Moments of several views.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.tensors import MomentTensor
    >>> MomentTensor(np.ones((10, 2)), order=4)
    MomentTensor(symmetric 2 x 2 x 2 x 2, 10 samples)
    """

    def __init__(self, samples: Any, *, weights: Array | None = None, order: int = 3) -> None:
        as_number("order", order, integer=True)
        super().__init__(*[samples] * order, weights=weights)


def _as_view(view: Any) -> Any:
    if sparse.issparse(view) and view.ndim == 2 and view.dtype.kind in "biuf":
        return sparse.csr_array(view, dtype=np.float64) if view.dtype != np.float64 else sparse.csr_array(view)
    if sparse.issparse(view):
        raise ValueError(f"views must be matrices of real numbers; got a sparse array {view.shape} of {view.dtype}")
    array = as_real_array(view, "views", "use real and imaginary parts as separate columns")
    if array.ndim != 2:
        raise ValueError(f"views must have shape (n, d), one row per sample; got {tuple(array.shape)}")
    xp = array_namespace(array)
    if not bool(xp.all(xp.isfinite(array))):
        raise ValueError("views must be finite; they contain NaN or infinite entries")
    return array


def _rows(view: Any, part: slice) -> Any:
    """Return some rows of a view, in double precision."""
    return view[part, :] if sparse.issparse(view) else to_double(view[part, :])


def weighted_product(left: Any, scale: Array, right: Any) -> Array:
    """Return A^T diag(s) B as a dense array, computed in blocks of samples."""
    total = 0
    for part in blocks(scale.shape[0], right.shape[1]):
        rows = right[part, :]
        scaled = rows.multiply(scale[part, None]).tocsr() if sparse.issparse(rows) else rows * scale[part, None]
        product = left[part, :].T @ scaled
        total = total + (product.toarray() if sparse.issparse(product) else product)
    return total
