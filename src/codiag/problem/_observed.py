"""Observed and missing entries: how they are told apart in the data, and a tensor with the weights of its entries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import device, is_array_api_obj, is_dask_array, is_numpy_array

from codiag._arrays import Array, array_namespace, to_host
from codiag.problem._symmetry import Symmetry, groups_of, n_independent_entries
from codiag.tensors import AbsentTensor, DaskTensor, Tensor, as_tensor, is_large, of_stored, sketch_width
from codiag.tensors.entries import DenseEntries, ObservedEntries


def without_missing(raw: Any, weights: Any) -> tuple[Any, Any]:
    """Return an array with zeros for missing entries, and the weights of its entries, None if none is missing.

    Missing are NaN, masked entries, and entries whose weight in `weights` is zero. Objects that are not arrays are
    returned unchanged. A large array is not searched for NaN: see `after_first_look`.
    """
    raw = of_stored(raw)
    if is_dask_array(raw) and not is_large(raw.shape):
        raw = DaskTensor(raw).gathered()
    if is_dask_array(raw):
        return (raw, None) if weights is None else in_chunks_without_missing(raw, weights)
    if isinstance(raw, np.ma.MaskedArray):
        hidden = np.ma.getmaskarray(raw)
        raw, weights = raw.filled(0), _both(weights, ~hidden) if hidden.any() else weights
    if not is_array_api_obj(raw) or getattr(raw, "ndim", 0) < 3 or not hasattr(raw, "dtype"):
        return raw, weights
    xp = array_namespace(raw)
    if weights is not None and np.shape(weights) == tuple(raw.shape):
        given = to_host(weights)
        if given.dtype.kind in "buif" and not np.all(given > 0):
            raw = _zeroed(raw, given > 0)
    if weights is None and is_large(raw.shape):
        return raw, None
    if not xp.isdtype(raw.dtype, ("real floating", "complex floating")):
        return raw, weights
    with np.errstate(all="ignore"):  # sums of numbers in half precision overflow
        may_have_nan = bool(xp.isnan(xp.sum(raw)))
    return _without_nan(raw, weights) if may_have_nan else (raw, weights)


def combined_weights(mask: Any, weights: Any) -> Any:
    """Return the weights of entries that a mask and weights state together; None if neither is given."""
    if mask is None:
        return weights
    given = mask if hasattr(mask, "dtype") else np.asarray(mask)
    if str(given.dtype).rpartition(".")[2] != "bool":
        values = np.zeros(0) if is_dask_array(given) else np.unique(to_host(given))
        if is_dask_array(given) or not np.all(np.isin(values, [0, 1])):
            raise ValueError("mask must be true where an entry counts, and else false; give weights= for other numbers")
        given = given != 0
    if weights is None:
        return given
    if np.shape(weights) != np.shape(given):
        raise ValueError(f"mask and weights must have one shape; got {np.shape(given)} and {np.shape(weights)}")
    return weights * given if is_dask_array(given) or is_dask_array(weights) else _both(weights, given)


def after_first_look(raw: Any, rank: object) -> tuple[Any, Any]:
    """Read a large tensor once, and return it after a check that all entries are finite.

    If an array has NaN, return it with zeros for these, and which entries are observed. Small tensors, and those that
    were checked before, are returned unchanged.
    """
    is_array = is_array_api_obj(raw) and is_large(getattr(raw, "shape", ()))
    tensor = as_tensor(raw) if is_array else raw
    if getattr(tensor, "is_validated", True):
        return raw, None
    if math.isnan(tensor.sketch(sketch_width(rank, tensor.shape)).squared_norm) and is_array:
        return _without_nan(raw, None)
    tensor.check()
    return tensor, None


def _without_nan(raw: Array, weights: Any) -> tuple[Array, Any]:
    if is_dask_array(raw):
        return in_chunks_without_missing(raw, weights)
    xp = array_namespace(raw)
    known = ~xp.isnan(raw)
    return (raw, weights) if bool(xp.all(known)) else (_zeroed(raw, known), _both(weights, known))


def _zeroed(raw: Array, known: Array) -> Array:
    """Return a copy with zeros for entries that are not known; it takes as much memory as the data."""
    if is_numpy_array(raw):
        copy = np.array(raw)
        copy[~known] = 0
        return copy
    xp = array_namespace(raw)
    return xp.where(xp.asarray(known, device=device(raw)), raw, xp.zeros_like(raw))


def _both(weights: Any, known: Array) -> Array:
    """Return the given weights, with zeros for entries that are not known."""
    if weights is None:
        return known
    given = to_host(weights)
    return np.where(to_host(known), given, 0) if given.shape == known.shape else given


def in_chunks_without_missing(raw: Array, weights: Any) -> tuple[Array, Any]:
    """Do the same for a dask array that does not fit into memory; the weights are in equal chunks."""
    from codiag.tensors.chunked import without_missing_entries

    weights = None if weights is None else DaskTensor(raw, symmetric=False).weights_of(weights)
    return without_missing_entries(raw, weights)


@dataclass(frozen=True, eq=False)
class ObservedTensor:
    """A tensor, the weights of its entries, and which modes share a factor.

    Attributes
    ----------
    tensor : Tensor
    weights : array of the shape of the tensor, or None
        None if all entries count equally.
    symmetric : bool or tuple of int
        Whether all modes share a factor, or which of them do.
    """

    tensor: Tensor
    weights: Array | None
    symmetric: Symmetry

    @classmethod
    def absent(cls, shape: Sequence[int], symmetric: Symmetry, reference: Array, **known: float) -> ObservedTensor:
        """Return data whose entries are left out, with numbers that were computed from them."""
        tensor = AbsentTensor(shape, reference, symmetric=symmetric is True)
        data = cls(tensor, None, symmetric)
        vars(data).update({"entries": None, "n_observed": math.prod(shape)} | known)
        return data

    @cached_property
    def entries(self) -> ObservedEntries | None:
        """The observed entries; None if all are observed and have weight one."""
        return self.tensor.observed_entries(self.weights)

    @cached_property
    def listed_entries(self) -> ObservedEntries:
        """The observed entries one by one, for losses other than least squares."""
        return self.tensor.listed_entries(self.weights)

    @cached_property
    def all_entries(self) -> ObservedEntries:
        """The same, with all zeros that were observed."""
        listed = self.listed_entries
        return DenseEntries(self.tensor.to_dense(), self.weights) if listed.has_zeros else listed

    @cached_property
    def groups(self) -> list[tuple[int, ...]]:
        """The modes that share each factor."""
        return groups_of(self.symmetric, self.tensor.order)

    @cached_property
    def squared_norm(self) -> float:
        """Weighted sum of squares of the observed entries."""
        return self.tensor.squared_norm() if self.entries is None else self.entries.squared_norm()

    @cached_property
    def n_observed(self) -> int:
        """Number of observed entries."""
        return math.prod(self.tensor.shape) if self.entries is None else self.entries.size

    @cached_property
    def n_independent(self) -> int:
        """Number of observed entries that no permutation of shared modes makes equal."""
        if self.entries is not None:
            return self.entries.n_independent(self.groups)
        return n_independent_entries(self.tensor.shape, self.groups)

    @cached_property
    def mean_weight(self) -> float:
        """Mean weight of the observed entries."""
        return 1.0 if self.entries is None else self.entries.mean_weight()

    @cached_property
    def mean_share(self) -> float:
        """Mean weight of all entries, missing ones included."""
        return self.mean_weight * self.n_observed / math.prod(self.tensor.shape)

    @cached_property
    def has_equal_weights(self) -> bool:
        """Whether all observed entries have the same weight."""
        return self.entries is None or self.entries.largest_weight() == self.mean_weight
