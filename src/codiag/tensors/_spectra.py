r"""Leading eigenpairs of unfoldings, and random signs, which tell components from noise.

The ranges of a tensor with few observed entries come from Gram matrices of the list of entries. Let entries be observed
independently with probability p. Off the diagonal, the expectation of :math:`S_{(m)} S_{(m)}^\top` over the observed
entries S is :math:`p^2` times that of the complete tensor, because two entries of a column are both observed with
probability :math:`p^2`. On the diagonal the factor is p instead of :math:`p^2`: it depends mostly on the number of
entries in each row, and is set to zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import eigsh

from codiag._arrays import Array, adjoint, array_namespace, asarray_like, eigenpairs
from codiag.tensors._base import Tensor
from codiag.tensors._dense import DenseTensor
from codiag.tensors._sparse import SparseTensor

MOST_PRODUCTS = 2**24
"""Largest number of products of two entries in a Gram matrix, about a second; of longer lists a random part is used."""


def leading_eigenpairs(tensor: Tensor, mode: int, count: int) -> tuple[Array, Array]:
    r"""Return the leading eigenpairs of :math:`T_{(m)} T_{(m)}^H`, largest first: (count,) and (d_m, count).

    For a list of entries, the diagonal is set to zero first: it depends mostly on the number of entries in each row.
    """
    if isinstance(tensor, SparseTensor):
        return _zero_diagonal_eigenpairs(tensor, mode, min(count, tensor.shape[mode]))
    return _gram_eigenpairs(tensor.to_dense(), mode, count)


def with_random_signs(tensor: Tensor, rng: np.random.Generator, shared: Sequence[int] = ()) -> Tensor:
    """Return the tensor with each stored entry negated with probability one half, alike across shared modes."""
    if isinstance(tensor, SparseTensor):
        signs = rng.choice([-1.0, 1.0], tensor.values.size)
        if shared:
            orbits = tensor.coords.copy()
            orbits[list(shared)] = np.sort(orbits[list(shared)], axis=0)
            signs = signs[np.unique(orbits, axis=1, return_inverse=True)[1].reshape(-1)]
        return SparseTensor(tensor.coords, signs * tensor.values, tensor.shape, absent=tensor.absent, check=False)
    entries, signs = tensor.as_double().to_dense(), rng.choice([-1.0, 1.0], tensor.shape)
    if shared:
        indices = np.indices(tensor.shape)
        indices[list(shared)] = np.sort(indices[list(shared)], axis=0)
        signs = signs[tuple(indices)]
    return DenseTensor.of(entries * asarray_like(signs, entries), symmetric=False)


def _gram_eigenpairs(entries: Array, mode: int, count: int) -> tuple[Array, Array]:
    """Return the leading eigenpairs of an unfolding times its transpose, from the smaller of the two Gram matrices."""
    xp = array_namespace(entries)
    side = xp.reshape(xp.moveaxis(entries, mode, 0), (entries.shape[mode], -1))
    is_tall = side.shape[0] > side.shape[1]
    gram = adjoint(side) @ side if is_tall else side @ adjoint(side)
    values, vectors = eigenpairs(gram)
    count = min(count, gram.shape[0])
    values, vectors = xp.flip(values[-count:]), xp.flip(vectors[:, -count:], axis=1)
    if is_tall:
        vectors = side @ vectors
        lengths = xp.linalg.vector_norm(vectors, axis=0)
        vectors = vectors / xp.where(lengths > 0, lengths, xp.ones_like(lengths))
    return values, vectors


def _zero_diagonal_eigenpairs(tensor: SparseTensor, mode: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the leading eigenpairs of an unfolding times its transpose, with the diagonal set to zero."""
    columns, width = _column_indices(tensor, mode)
    unfolding = sparse.csr_array(
        (tensor.values.astype(np.float64, copy=False), (tensor.coords[mode].astype(columns.dtype), columns)),
        shape=(tensor.shape[mode], width),
    )
    gram = (unfolding @ unfolding.T.tocsr()).tocsr()
    gram.setdiag(0)
    size = tensor.shape[mode]
    if size <= max(500, 2 * count):  # for more rows, Lanczos is faster
        values, vectors = np.linalg.eigh(gram.toarray())
    else:
        start = np.random.default_rng(0).standard_normal(size)
        values, vectors = eigsh(gram, count, which="LA", v0=start, tol=1e-3)
    return values[::-1][:count], vectors[:, ::-1][:, :count]


def shows_ranges(tensor: Any, rank: int) -> bool:
    r"""Return whether components of equal size exceed the sampling noise of the Gram matrices.

    With m products behind each entry of a matrix of d rows, and entries of unit variance, components have eigenvalues
    of about :math:`m d / k`; the sampling noise reaches :math:`2 \sqrt{m d}` (the semicircle law). Components must
    exceed twice this bound.
    """
    products = tensor.values.size**2 / math.prod(tensor.shape)  # m d, the same for every mode
    return math.sqrt(products) >= 4 * rank


def thinned(tensor: Any, rng: np.random.Generator) -> SparseTensor:
    """Return a random part of the entries, whose Gram matrices take at most about `MOST_PRODUCTS` products."""
    n_products = max(
        float(np.sum(np.square(np.bincount(_column_indices(tensor, mode)[0]), dtype=np.float64)))
        for mode in range(1 if tensor.symmetric else tensor.order)
    )
    if n_products <= MOST_PRODUCTS:
        return tensor
    # A pair of entries is kept with the square of the probability of an entry.
    probability = math.sqrt(MOST_PRODUCTS / n_products)
    return tensor.part(np.flatnonzero(rng.random(tensor.values.size, dtype=np.float32) < probability))


def _column_indices(tensor: SparseTensor, mode: int) -> tuple[np.ndarray, int]:
    """Return the column of each entry in an unfolding, and the number of columns, numbered anew if most are empty."""
    others = [other for other in range(tensor.order) if other != mode]
    width = math.prod(tensor.shape[other] for other in others)
    rows = [tensor.coords[other] for other in others]
    if width >= 2**62:
        columns = np.unique(np.stack(rows), axis=1, return_inverse=True)[1].reshape(-1)
        return columns, int(columns.max()) + 1
    columns = np.zeros(tensor.values.size, dtype=np.int32 if width < 2**31 else np.int64)
    for other, row in zip(others, rows, strict=True):
        columns *= tensor.shape[other]
        columns += row.astype(columns.dtype, copy=False)
    if width > 8 * tensor.values.size:
        columns = np.unique(columns, return_inverse=True)[1].reshape(-1)
        width = int(columns.max()) + 1
    return columns, width
