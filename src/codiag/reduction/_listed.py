"""From a list of entries that were observed to a small core, without forming the tensor."""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import eigsh

from codiag.reduction._reduction import Reduction, compressed
from codiag.tensors import SparseTensor

PRODUCTS = 2**24
"""Products of entries that a Gram matrix may take: of longer lists a random part is used."""

VISIBLE = 2
"""Times that components must exceed what sampling adds for their ranges to be of use."""

EXPLICIT = 500
"""Rows up to which a Gram matrix is decomposed as a whole."""


def reduce_listed(tensor: SparseTensor, rank: int, rng: np.random.Generator) -> Reduction:
    r"""Compress a list of entries, all others missing, to a core: an estimate of that of the complete tensor.

    Bases are leading eigenvectors of the Gram matrices :math:`S_{(m)} S_{(m)}^\top` without their diagonals. Two
    entries of one column were both observed with the square of the chance of one, so that off the diagonal the
    expectation is a multiple of what all entries would give; on the diagonal it is not, and most of it says only how
    many entries a row has.
    """
    part = _thinned(tensor, rng)
    modes = range(1 if tensor.symmetric else tensor.order)
    bases = [hollow_spectrum(part, mode, rank)[1] if tensor.shape[mode] > rank else None for mode in modes]
    if tensor.symmetric:
        bases *= tensor.order
    share = part.values.size / math.prod(tensor.shape)
    return compressed(part * (1 / share), tuple(bases))


def shows_ranges(tensor: SparseTensor, rank: int) -> bool:
    r"""Tell whether the Gram matrices of so many entries, placed at random, show components of equal size.

    With m products behind each entry of a matrix of d rows, and entries of unit variance, components have eigenvalues
    of about :math:`m d / k`, and what sampling adds reaches :math:`2 \sqrt{m d}`.
    """
    products = tensor.values.size**2 / math.prod(tensor.shape)  # m d, the same for every mode
    return math.sqrt(products) >= VISIBLE * 2 * rank


def hollow_spectrum(tensor: SparseTensor, mode: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the leading eigenvalues and vectors of an unfolding times its transpose, the diagonal set to zero."""
    side = _unfolding(tensor, mode)
    gram = (side @ side.T.tocsr()).tocsr()
    gram.setdiag(0)
    size = tensor.shape[mode]
    if size <= max(EXPLICIT, 2 * count):
        values, vectors = np.linalg.eigh(gram.toarray())
    else:
        start = np.random.default_rng(0).standard_normal(size)
        values, vectors = eigsh(gram, count, which="LA", v0=start, tol=1e-3)
    return values[::-1][:count], vectors[:, ::-1][:, :count]


def _unfolding(tensor: SparseTensor, mode: int) -> sparse.csr_array:
    columns, width = _columns(tensor, mode)
    return sparse.csr_array(
        (tensor.values.astype(np.float64, copy=False), (tensor.coords[mode].astype(columns.dtype), columns)),
        shape=(tensor.shape[mode], width),
    )


def _columns(tensor: SparseTensor, mode: int) -> tuple[np.ndarray, int]:
    """Return the columns of an unfolding that entries stand in, and how many there are; only those in use if many."""
    others = [other for other in range(tensor.order) if other != mode]
    width = math.prod(tensor.shape[other] for other in others)
    places = [tensor.coords[other] for other in others]
    if width >= 2**62:
        columns = np.unique(np.stack(places), axis=1, return_inverse=True)[1].reshape(-1)
        return columns, int(columns.max()) + 1
    columns = np.zeros(tensor.values.size, dtype=np.int32 if width < 2**31 else np.int64)
    for other, row in zip(others, places, strict=True):
        columns *= tensor.shape[other]
        columns += row.astype(columns.dtype, copy=False)
    if width > 8 * tensor.values.size:
        columns = np.unique(columns, return_inverse=True)[1].reshape(-1)
        width = int(columns.max()) + 1
    return columns, width


def _thinned(tensor: SparseTensor, rng: np.random.Generator) -> SparseTensor:
    """Return a random part of the entries, so few that no Gram matrix takes too many products."""
    products = max(
        float(np.sum(np.square(np.bincount(_columns(tensor, mode)[0]), dtype=np.float64)))
        for mode in range(1 if tensor.symmetric else tensor.order)
    )
    if products <= PRODUCTS:
        return tensor
    # Pairs are left with the square of the chance of an entry.
    kept = np.flatnonzero(rng.random(tensor.values.size, dtype=np.float32) < math.sqrt(PRODUCTS / products))
    return SparseTensor(tensor.coords[:, kept], tensor.values[kept], tensor.shape, check=False)
