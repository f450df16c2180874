"""Moments of words in documents, from counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from codiag._array import Array, to_host
from codiag._validation import as_finite, as_real_array
from codiag.tensors._base import Tensor, check_shape
from codiag.tensors._moments import CrossMomentTensor, weighted_product

LONGEST = 1e100
"""Words in a document up to which cubes of their number are numbers."""


class WordMomentTensor(Tensor):
    r"""The third moment of exchangeable words, unbiased for documents of any length, from a sparse matrix of counts.

    A document with counts c and length n contributes the mean over ordered triples of distinct positions,

    .. math:: \frac{c \otimes c \otimes c - \sum_i c_i (e_i \otimes e_i \otimes c + e_i \otimes c \otimes e_i
        + c \otimes e_i \otimes e_i) + 2 \sum_i c_i\, e_i \otimes e_i \otimes e_i}{n (n - 1) (n - 2)}.

    Nothing of size words x words is formed by `mttkrp` and `compress`. Documents of fewer than three words say nothing
    about triples and are left out.

    Parameters
    ----------
    counts : scipy sparse matrix or array of shape (documents, words)
        How often each word occurs; not negative.
    """

    symmetric = True

    def __init__(self, counts: Any) -> None:
        matrix = as_counts(counts)
        lengths = np.asarray(matrix.sum(axis=1)).ravel()
        used = lengths >= 3
        if not used.any():
            raise ValueError("counts must hold at least one document of three words or more; got none")
        self.counts = matrix if used.all() else matrix[used]
        lengths = lengths[used]
        self.shares = 1 / (lengths * (lengths - 1) * (lengths - 2)) / lengths.size  # rho / N of each document
        self.shape = check_shape((matrix.shape[1],) * 3)

    @property
    def reference(self) -> Array:
        return self.shares[:0]

    def project(self, *directions: Array) -> Array:
        (rows,) = directions
        pairs = weighted_product(self.counts, self.shares, self.counts)
        own = self.counts.T @ self.shares
        stack = []
        for w in rows:
            scale = self.shares * (self.counts @ w)
            matrix = weighted_product(self.counts, scale, self.counts) - pairs * w[None, :] - pairs * w[:, None]
            stack.append(matrix + np.diag(2 * own * w - self.counts.T @ scale))
        return np.stack(stack)

    def permute(self, axes: Sequence[int]) -> WordMomentTensor:
        return self

    def compress(self, *bases: Array | None) -> Tensor:
        """Contract all modes in one pass over the counts; everything else has the size of the vocabulary."""
        if any(basis is None for basis in bases):
            return super().compress(*bases)
        first, second, third = (np.asarray(basis) for basis in bases)
        seen = [self.counts @ basis for basis in (first, second, third)]
        core = CrossMomentTensor(*seen, weights=self.shares).to_dense()
        ends = [self.counts.T @ (self.shares[:, None] * columns) for columns in seen]
        core -= _diagonal_sum(first, second, ends[2])
        core -= _diagonal_sum(first, third, ends[1]).transpose(0, 2, 1)
        core -= _diagonal_sum(second, third, ends[0]).transpose(2, 0, 1)
        own = self.counts.T @ self.shares
        return self._compressed(core + 2 * _diagonal_sum(first, second, own[:, None] * third), bases)

    def mttkrp(self, factors: Sequence[Array], mode: int) -> Array:
        first, second = (factor for other, factor in enumerate(factors) if other != mode)
        seen, shares = [self.counts @ first, self.counts @ second], self.shares[:, None]
        whole = self.counts.T @ (shares * (seen[0] * seen[1] - self.counts @ (first * second)))
        ends = [self.counts.T @ (shares * columns) for columns in seen]
        own = (self.counts.T @ self.shares)[:, None]
        return whole - first * ends[1] - second * ends[0] + 2 * first * second * own

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, {self.counts.shape[0]} documents)"


class WordPairs:
    r"""The second moment of exchangeable words, unbiased, as an operator.

    A document contributes :math:`[c c^\top - diag(c)] / (n (n - 1))`; documents of one word are left out.

    Parameters
    ----------
    counts : scipy sparse matrix or array of shape (documents, words)
        How often each word occurs; not negative.
    sample_weight : array of shape (documents,), optional
        What the pairs of each document are multiplied by, of any sign; by default their mean is taken.
    """

    def __init__(self, counts: Any, sample_weight: Array | None = None) -> None:
        self.counts = as_counts(counts)
        lengths = np.asarray(self.counts.sum(axis=1)).ravel()
        used = lengths >= 2
        weights, total = _weights(used, sample_weight)
        self.shares = np.where(used, 1 / np.maximum(lengths * (lengths - 1), 2), 0.0) * weights / total
        self.shape = (self.counts.shape[1],) * 2
        self._own = (self.counts.T @ self.shares)[:, None]

    def __matmul__(self, columns: Array) -> Array:
        if columns.ndim == 1:
            return (self @ columns[:, None])[:, 0]
        return self.counts.T @ (self.shares[:, None] * (self.counts @ columns)) - self._own * columns


def word_frequencies(counts: Any, sample_weight: Array | None = None) -> np.ndarray:
    """Return the mean over documents of the share of each word.

    Parameters
    ----------
    counts : scipy sparse matrix or array of shape (documents, words)
        How often each word occurs; not negative.
    sample_weight : array of shape (documents,), optional
        What each document is multiplied by, of any sign; by default the mean of those that have words is taken.

    Returns
    -------
    array of shape (words,)
    """
    matrix = as_counts(counts)
    lengths = np.asarray(matrix.sum(axis=1)).ravel()
    used = lengths > 0
    weights, total = _weights(used, sample_weight)
    return np.asarray(matrix.T @ (weights * used / np.where(used, lengths, 1))) / total


def _weights(used: np.ndarray, sample_weight: Array | None) -> tuple[np.ndarray, int]:
    """Return what documents are multiplied by, and what their sum is divided by: for a mean, how many are used."""
    if sample_weight is None:
        return np.ones(used.size), max(int(used.sum()), 1)
    return as_finite("sample_weight", sample_weight, used.shape), 1


def as_counts(counts: Any, name: str = "counts") -> sparse.csr_array:
    """Return counts as a sparse matrix of doubles, or say what is wrong with them."""
    table = counts if sparse.issparse(counts) else to_host(as_real_array(counts, name, "use counts"))
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(f"{name} must have shape (documents, words); got {tuple(table.shape)}")
    if table.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers; got dtype {table.dtype}")
    matrix = sparse.csr_array(table).astype(np.float64, copy=False)
    if not np.all(np.isfinite(matrix.data)):
        raise ValueError(f"{name} must be finite; they hold NaN or infinite entries")
    if matrix.nnz and matrix.data.min() < 0:
        raise ValueError(f"{name} must not be negative; the least is {matrix.data.min():g}")
    longest = float(np.max(matrix.sum(axis=1)))
    if longest > LONGEST:
        raise ValueError(f"{name} must hold documents of at most {LONGEST:g} words; the longest has {longest:.0e}")
    return matrix


def _diagonal_sum(first: Array, second: Array, third: Array) -> Array:
    """Return sum_i a_i (x) b_i (x) c_i over rows i, in blocks."""
    return CrossMomentTensor(first, second, third, weights=np.ones(first.shape[0])).to_dense()
