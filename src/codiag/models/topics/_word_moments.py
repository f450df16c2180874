"""Moments of words in documents, from counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from codiag._arrays import Array, blocks, fits_block, squares, to_host
from codiag._checks import as_finite, as_real_array
from codiag.tensors import CLOSE, CrossMomentTensor, FactoredTensor, Tensor, check_shape, weighted_product

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
    check : bool
        Whether to check the counts. False takes on trust that they are a CSR array of doubles, finite and not negative.

    See Also
    --------
    WordPairs : The second moment.
    word_frequencies : The first moment.
    codiag.models.SingleTopic : The model that factorizes it.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.models.topics import WordMomentTensor
    >>> tensor = WordMomentTensor(np.array([[2, 1, 1], [0, 3, 0], [1, 0, 1]]))
    >>> tensor
    WordMomentTensor(symmetric 3 x 3 x 3, 2 documents)
    >>> round(float(tensor.to_dense().sum()), 12)
    1.0
    """

    symmetric = True

    def __init__(self, counts: Any, *, check: bool = True) -> None:
        matrix = as_counts(counts) if check else counts
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
        core = CrossMomentTensor(*seen, weights=self.shares, symmetric=False, check=False).to_dense()
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

    def squared_norm(self) -> float:
        """Return the squared norm from pairs of documents or from triples of their words, whichever is less work."""
        return self._squared_norm

    def squared_distance(self, weights: Array, factors: Sequence[Array]) -> float:
        r"""Return :math:`\|T\|^2 - 2 \langle T, M \rangle + \|M\|^2`, or sum over entries where these cancel."""
        size = FactoredTensor(weights, factors, symmetric=False).squared_norm()
        total = max(self.squared_norm() - 2 * self.inner(weights, factors) + size, 0.0)
        if total < CLOSE * size and fits_block(math.prod(self.shape)):
            return super().squared_distance(weights, factors)
        return total

    @cached_property
    def _squared_norm(self) -> float:
        in_documents = np.diff(self.counts.indptr).astype(float)  # how many words
        of_words = np.bincount(self.counts.indices, minlength=self.shape[0]).astype(float)  # in how many documents
        by_pairs = np.sum(of_words**2) + float(in_documents.size) ** 2
        # Products of dense matrices are hundreds of times as fast as those of sparse ones, and every word costs a call.
        by_words, dense = np.sum(in_documents**3), self.counts.nnz * float(self.shape[0]) ** 2 / 300
        if by_pairs < min(by_words, dense) + 1e5 * self.shape[0]:
            return self._norm_by_pairs()
        return self._norm_by_words(dense=bool(dense < by_words))

    def _norm_by_pairs(self) -> float:
        r"""Sum inner products of the shares of two documents.

        With counts a and b these are, with :math:`g = a \cdot b` and powers of a vector taken entry by entry,
        :math:`g^3 + 3 g^2 + 4 g - 3 (g + 2) (a^2 \cdot b + a \cdot b^2) + 2 (a^3 \cdot b + a \cdot b^3) + 6 a^2
        \cdot b^2`. What is linear in the powers is summed over documents first.
        """
        first, second, third = (self.counts.power(power) for power in (1, 2, 3))
        one, two, three = (matrix.T @ self.shares for matrix in (first, second, third))
        total = float(4 * one @ one - 12 * one @ two + 4 * one @ three + 6 * two @ two)
        n, transposed = self.shares.size, first.T.tocsr()
        for part in blocks(n, n):
            inner, other = ((matrix[part] @ transposed).toarray() for matrix in (first, second))
            total += float(self.shares[part] @ (inner * (inner * (inner + 3) - 6 * other)) @ self.shares)
        return total

    def _norm_by_words(self, *, dense: bool) -> float:
        """Sum squares of slices: of the pairs of words beside one occurrence of a word, over documents that have it."""
        total, columns = 0.0, self.counts.tocsc()
        for word in range(self.shape[0]):
            here = slice(columns.indptr[word], columns.indptr[word + 1])
            beside, scale = self.counts[columns.indices[here]], self.shares[columns.indices[here]] * columns.data[here]
            beside.data = beside.data - (beside.indices == word)
            rows = beside.toarray() if dense else beside
            pairs = rows.T @ (sparse.diags_array(scale) @ rows)
            # An occurrence makes no pair with itself: the slice is pairs less the diagonal matrix of singles.
            squared, singles = beside.power(2).T @ scale, beside.T @ scale
            total += squares(pairs if dense else pairs.data) + float(singles @ (singles - 2 * squared))
        return total

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, {self.counts.shape[0]} documents)"


class WordPairs:
    r"""The second moment of exchangeable words, unbiased, as an operator.

    A document contributes :math:`[c c^\top - diag(c)] / (n (n - 1))`; documents of one word are left out. The operator
    has a shape, (words, words), and multiplies arrays of shape (words,) and (words, n) by ``@``.

    Parameters
    ----------
    counts : scipy sparse matrix or array of shape (documents, words)
        How often each word occurs; not negative.
    sample_weight : array of shape (documents,), optional
        What the pairs of each document are multiplied by, of any sign; by default their mean is taken.
    check : bool
        Whether to check the counts. False takes on trust that they are a CSR array of doubles, finite and not negative.

    See Also
    --------
    WordMomentTensor : The third moment.
    word_frequencies : The first moment.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.models.topics import WordPairs
    >>> (WordPairs(np.array([[2, 1], [0, 2]])) @ np.eye(2)).round(3).tolist()
    [[0.167, 0.167], [0.167, 0.5]]
    """

    def __init__(self, counts: Any, sample_weight: Array | None = None, *, check: bool = True) -> None:
        self.counts = as_counts(counts) if check else counts
        lengths = np.asarray(self.counts.sum(axis=1)).ravel()
        used = lengths >= 2
        weights, total = _weights(used, sample_weight)
        self.shares = np.where(used, 1 / np.maximum(lengths * (lengths - 1), 2), 0.0) * weights / total
        self.shape = (self.counts.shape[1],) * 2
        self._transposed = self.counts.T  # made once: a solver of eigenvalues asks for hundreds of products
        self._own = (self._transposed @ self.shares)[:, None]

    def __matmul__(self, columns: Array) -> Array:
        if columns.ndim == 1:
            return (self @ columns[:, None])[:, 0]
        return self._transposed @ (self.shares[:, None] * (self.counts @ columns)) - self._own * columns


def word_frequencies(counts: Any, sample_weight: Array | None = None, *, check: bool = True) -> np.ndarray:
    """Return the mean over documents of the share of each word.

    Parameters
    ----------
    counts : scipy sparse matrix or array of shape (documents, words)
        How often each word occurs; not negative. Empty documents are left out.
    sample_weight : array of shape (documents,), optional
        What each document is multiplied by, of any sign; by default the mean of those that have words is taken.
    check : bool
        Whether to check the counts. False takes on trust that they are a CSR array of doubles, finite and not negative.

    Returns
    -------
    array of shape (words,)
        Shares whose sum is one.

    See Also
    --------
    WordPairs : The second moment.
    WordMomentTensor : The third moment.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.models.topics import word_frequencies
    >>> word_frequencies(np.array([[2, 2], [0, 5]])).tolist()
    [0.25, 0.75]
    """
    matrix = as_counts(counts) if check else counts
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
    ones = np.ones(first.shape[0])
    return CrossMomentTensor(first, second, third, weights=ones, symmetric=False, check=False).to_dense()
