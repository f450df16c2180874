"""Moments of words in documents, from counts: frequencies, pairs, triples, and the range and noise of the pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator
from sklearn.utils.validation import check_array

from codiag._arrays import Array, blocks, fits_block, squares, to_host
from codiag._checks import UndeterminedError, as_finite, as_real_array
from codiag.models.base import Products, Totals, leading_range, leading_range_in_passes, noise_of, random_signs
from codiag.parts import Parts
from codiag.tensors import CANCELLATION_LIMIT, CrossMomentTensor, FactoredTensor, Tensor, check_shape, weighted_product

MAX_LENGTH = 2.0**53
"""Largest number of words of a document: one more word would not change a larger one."""
INPUT: dict[str, Any] = {"accept_sparse": "csr", "dtype": np.float64, "ensure_non_negative": True}
"""Options of scikit-learn's validation of counts."""

Documents: TypeAlias = sparse.csr_array | Parts
"""Counts (documents, words): a matrix in memory, or parts that are read again in every pass."""


class WordMomentTensor(Tensor):
    r"""The third moment of exchangeable words, unbiased for documents of any length, from a sparse matrix of counts.

    A document with counts c and length n contributes the mean over ordered triples of distinct positions,

    .. math:: \frac{c \otimes c \otimes c - \sum_i c_i (e_i \otimes e_i \otimes c + e_i \otimes c \otimes e_i
        + c \otimes e_i \otimes e_i) + 2 \sum_i c_i\, e_i \otimes e_i \otimes e_i}{n (n - 1) (n - 2)}.

    Nothing of size words x words is formed by `mttkrp` and `compress`. Documents of fewer than three words have no
    triples and are left out.

    Parameters
    ----------
    counts : scipy sparse matrix or array of shape (documents, words)
        How often each word occurs; not negative.
    check : bool
        Whether to check the counts. False assumes that they are a CSR array of doubles, finite and not negative.

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
            raise ValueError("counts must contain at least one document of three words or more; got none")
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
        singles = self.counts.T @ self.shares
        stack = []
        for w in rows:
            scale = self.shares * (self.counts @ w)
            matrix = weighted_product(self.counts, scale, self.counts) - pairs * w[None, :] - pairs * w[:, None]
            stack.append(matrix + np.diag(2 * singles * w - self.counts.T @ scale))
        return np.stack(stack)

    def permute(self, axes: Sequence[int]) -> WordMomentTensor:
        return self

    def compress(self, *bases: Array | None) -> Tensor:
        """Contract all modes in one pass over the counts; all other arrays have the size of the vocabulary."""
        if any(basis is None for basis in bases):
            return super().compress(*bases)
        first, second, third = (np.asarray(basis) for basis in bases)
        inside = [self.counts @ basis for basis in (first, second, third)]
        core = CrossMomentTensor(*inside, weights=self.shares, symmetric=False, check=False).to_dense()
        ends = [self.counts.T @ (self.shares[:, None] * columns) for columns in inside]
        core -= _diagonal_sum(first, second, ends[2])
        core -= _diagonal_sum(first, third, ends[1]).transpose(0, 2, 1)
        core -= _diagonal_sum(second, third, ends[0]).transpose(2, 0, 1)
        singles = self.counts.T @ self.shares
        return self._compressed(core + 2 * _diagonal_sum(first, second, singles[:, None] * third), bases)

    def mttkrp(self, factors: Sequence[Array], mode: int) -> Array:
        first, second = (factor for other, factor in enumerate(factors) if other != mode)
        inside, shares = [self.counts @ first, self.counts @ second], self.shares[:, None]
        whole = self.counts.T @ (shares * (inside[0] * inside[1] - self.counts @ (first * second)))
        ends = [self.counts.T @ (shares * columns) for columns in inside]
        singles = (self.counts.T @ self.shares)[:, None]
        return whole - first * ends[1] - second * ends[0] + 2 * first * second * singles

    def squared_norm(self) -> float:
        """Return the squared norm from pairs of documents or from triples of their words, whichever is less work."""
        return self._squared_norm

    def squared_distance(self, weights: Array, factors: Sequence[Array]) -> float:
        r"""Return :math:`\|T\|^2 - 2 \langle T, M \rangle + \|M\|^2`, or the sum over entries if these cancel."""
        size = FactoredTensor(weights, factors, symmetric=False).squared_norm()
        total = max(self.squared_norm() - 2 * self.inner(weights, factors) + size, 0.0)
        if total < CANCELLATION_LIMIT * size and fits_block(math.prod(self.shape)):
            return super().squared_distance(weights, factors)
        return total

    @cached_property
    def _squared_norm(self) -> float:
        n_words = np.diff(self.counts.indptr).astype(float)  # different words of each document
        n_documents = np.bincount(self.counts.indices, minlength=self.shape[0]).astype(float)  # of each word
        by_pairs = np.sum(n_documents**2) + float(n_words.size) ** 2
        # Per entry, products of dense matrices are about 300 times as fast as those of sparse ones (measured).
        by_words, dense = np.sum(n_words**3), self.counts.nnz * float(self.shape[0]) ** 2 / 300
        if by_pairs < min(by_words, dense) + 1e5 * self.shape[0]:
            return self._norm_by_pairs()
        return self._norm_by_words(dense=bool(dense < by_words))

    def _norm_by_pairs(self) -> float:
        r"""Sum inner products of the shares of two documents.

        With counts a and b these are, with :math:`g = a \cdot b` and powers of a vector taken entry by entry,
        :math:`g^3 + 3 g^2 + 4 g - 3 (g + 2) (a^2 \cdot b + a \cdot b^2) + 2 (a^3 \cdot b + a \cdot b^3) + 6 a^2
        \cdot b^2`. Terms that are linear in the powers are summed over documents first.
        """
        first, second, third = (self.counts.power(power) for power in (1, 2, 3))
        a, b, c = (matrix.T @ self.shares for matrix in (first, second, third))
        total = float(4 * a @ a - 12 * a @ b + 4 * a @ c + 6 * b @ b)
        n, transposed = self.shares.size, first.T.tocsr()
        for part in blocks(n, n):
            inner, other = ((matrix[part] @ transposed).toarray() for matrix in (first, second))
            total += float(self.shares[part] @ (inner * (inner * (inner + 3) - 6 * other)) @ self.shares)
        return total

    def _norm_by_words(self, *, dense: bool) -> float:
        """Sum squares of slices: for every word, the pairs of other words in documents that have it."""
        total, columns = 0.0, self.counts.tocsc()
        for word in range(self.shape[0]):
            entries = slice(columns.indptr[word], columns.indptr[word + 1])
            documents = columns.indices[entries]
            beside, scale = self.counts[documents], self.shares[documents] * columns.data[entries]
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
        Weights of the documents, of any sign; by default the mean over documents is taken.
    check : bool
        Whether to check the counts. False assumes that they are a CSR array of doubles, finite and not negative.

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
        self._transposed = self.counts.T  # made once: eigenvalue solvers take hundreds of products
        self._diagonal = (self._transposed @ self.shares)[:, None]

    def __matmul__(self, columns: Array) -> Array:
        if columns.ndim == 1:
            return (self @ columns[:, None])[:, 0]
        return self._transposed @ (self.shares[:, None] * (self.counts @ columns)) - self._diagonal * columns


def word_frequencies(counts: Any, sample_weight: Array | None = None, *, check: bool = True) -> np.ndarray:
    """Return the mean over documents of the share of each word.

    Parameters
    ----------
    counts : scipy sparse matrix or array of shape (documents, words)
        How often each word occurs; not negative. Empty documents are left out.
    sample_weight : array of shape (documents,), optional
        Weights of the documents, of any sign; by default the mean over documents that have words is taken.
    check : bool
        Whether to check the counts. False assumes that they are a CSR array of doubles, finite and not negative.

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
    """Return the weights of documents, and the divisor of their sum: for a mean, the number of documents used."""
    if sample_weight is None:
        return np.ones(used.size), max(int(used.sum()), 1)
    return as_finite("sample_weight", sample_weight, used.shape), 1


def as_counts(counts: Any, name: str = "counts") -> sparse.csr_array:
    """Return counts as a sparse matrix of doubles."""
    table = counts if sparse.issparse(counts) else to_host(as_real_array(counts, name, "use counts"))
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(f"{name} must have shape (documents, words); got {tuple(table.shape)}")
    if table.dtype.kind not in "biuf":
        raise TypeError(f"{name} must contain real numbers; got dtype {table.dtype}")
    matrix = sparse.csr_array(table).astype(np.float64, copy=False)
    if not np.all(np.isfinite(matrix.data)):
        raise ValueError(f"{name} must be finite; they contain NaN or infinite entries")
    if matrix.nnz and matrix.data.min() < 0:
        raise ValueError(f"{name} must not be negative; the least is {matrix.data.min():g}")
    longest = float(np.max(matrix.sum(axis=1)))
    if longest > MAX_LENGTH:
        raise ValueError(
            f"{name} must contain documents of at most {MAX_LENGTH:g} words; the longest has {longest:.0e}"
        )
    return matrix


def as_matrix(part: Any) -> Any:
    """Return a part as one matrix; the parts of a bag are lists of matrices."""
    if isinstance(part, list | tuple):
        return sparse.vstack([sparse.csr_array(matrix) for matrix in part], format="csr")
    return part


def counts_of(part: Any, n_words: int | None = None) -> sparse.csr_array:
    """Return a part as counts, and check the number of words, if given."""
    counts = as_counts(check_array(as_matrix(part), input_name="X", **INPUT), "X")
    if n_words is not None and counts.shape[1] != n_words:
        raise ValueError(
            f"X must have parts of {n_words} features each, as the first has; one has {counts.shape[1]} features"
        )
    return counts


class WordTotals(NamedTuple):
    """First moments of documents, from one pass."""

    n_documents: int
    n_paired: int  # number of documents of two words or more
    mean: np.ndarray  # (words,): mean share of each word

    @property
    def roots(self) -> np.ndarray:
        """Roots of word frequencies, a scale in which all words have about the same noise; positive for all words."""
        return frequency_roots(self.mean, self.n_documents)


def frequency_roots(mean: np.ndarray, n_documents: float) -> np.ndarray:
    """Return the roots of word frequencies; those of words that do not occur are small and positive."""
    return np.sqrt(np.maximum(mean, 1e-2 / max(n_documents * mean.size, 1)))


def word_totals(documents: Documents) -> WordTotals:
    """Return the number of documents and the frequencies of words."""
    totals = documents.reduce(_frequencies_of_part) if isinstance(documents, Parts) else _frequencies(documents)
    shares, numbers = totals.values
    n_documents, n_used, n_paired = (int(number) for number in numbers)
    return WordTotals(n_documents, n_paired, shares / max(n_used, 1))


def check_pairs(n_paired: int, n_documents: int) -> None:
    """Raise unless some documents have two words or more."""
    if not n_paired:
        raise UndeterminedError(f"X must contain documents of two words or more; all {n_documents} have fewer")


class _Frequencies(Totals):
    """Sums of shares of words (words,), and numbers of documents with any, one or more, and two or more words."""

    def merge(self, other: Totals) -> Totals:
        """Add other sums to these; raise if they are over other words."""
        mine, theirs = self.values[0].size, other.values[0].size
        if mine != theirs:
            raise ValueError(f"X must have parts with the same number of features; got {mine} and {theirs}")
        return super().merge(other)


def _frequencies(counts: sparse.csr_array) -> _Frequencies:
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    numbers = np.array([lengths.size, np.sum(lengths > 0), np.sum(lengths >= 2)])
    return _Frequencies(word_frequencies(counts, np.ones(lengths.size), check=False), numbers)


def _frequencies_of_part(part: Any) -> _Frequencies:
    return _frequencies(counts_of(part))


def _pair_products(part: Any, columns: np.ndarray) -> Totals:
    counts = counts_of(part, columns.shape[0])
    used = np.asarray(counts.sum(axis=1)).ravel() >= 2
    return Totals(WordPairs(counts, np.ones(used.size), check=False) @ columns, int(used.sum()))


def range_of_pairs(
    documents: Documents, totals: WordTotals, k: int, alpha_0: float, seed: int | None, n_spare: int = 0
) -> np.ndarray:
    """Return a basis (words, k + n_spare) of the range of the second moment of topics.

    These are the leading eigenvectors in the scale of `WordTotals.roots`: variances of word moments are proportional to
    their means. Documents in parts are read once for each step of the eigenvalue solver.
    """
    n_words, seed = totals.mean.size, 0 if seed is None else seed
    n_spare = min(n_spare, n_words - k)

    def pairs_of_parts(columns: np.ndarray) -> np.ndarray:
        product, number = documents.reduce(_pair_products, columns).values
        return np.asarray(product / max(int(number), 1))

    if isinstance(documents, Parts):
        multiply = _scaled_pairs(pairs_of_parts, totals, alpha_0)
        vectors = leading_range_in_passes(multiply, n_words, k, seed, n_spare=n_spare)
    else:
        multiply = _scaled_pairs(WordPairs(documents, check=False).__matmul__, totals, alpha_0)
        vectors = leading_range(multiply, n_words, k + n_spare, seed)
    return vectors / totals.roots[:, None]


def _scaled_pairs(pairs: Products, totals: WordTotals, alpha_0: float) -> Products:
    """Return products with the second moment of topics in the scale of the roots, from products with word pairs."""
    mean, roots = totals.mean, totals.roots

    def multiply(columns: np.ndarray) -> np.ndarray:
        inside = (columns.T / roots).T
        image = (alpha_0 + 1) * pairs(inside) - alpha_0 * np.multiply.outer(mean, mean @ inside)
        return (image.T / roots).T

    return multiply


def pair_errors(counts: sparse.csr_array, totals: WordTotals, alpha_0: float) -> list[LinearOperator]:
    """Return draws of the sampling error of the second moment of topics, in the scale of `WordTotals.roots`.

    The influence of a document with pairs P and shares f of words is (alpha_0 + 1) P - alpha_0 (f m^T + m f^T - m m^T);
    documents are multiplied by random signs.
    """
    roots, transposed = totals.roots, counts.T
    inner, lengths, signs = totals.mean / roots, np.asarray(counts.sum(axis=1)).ravel(), random_signs(counts.shape[0])
    all_shares = transposed @ (_balanced(signs, lengths > 0) / np.where(lengths > 0, lengths, 1)).T / roots[:, None]
    all_weights = _balanced(signs, lengths >= 2) * (lengths >= 2) / np.maximum(lengths * (lengths - 1), 2)
    diagonals = transposed @ all_weights.T

    def error(draw: int) -> LinearOperator:
        weights, diagonal, shares = all_weights[draw], diagonals[:, draw], all_shares[:, draw]
        surplus = shares - np.mean(signs[draw]) * inner

        def multiply(vector: np.ndarray) -> np.ndarray:
            inside = vector / roots
            product = (transposed @ (weights * (counts @ inside)) - diagonal * inside) / roots
            ends = surplus * (inner @ vector) + inner * (shares @ vector)
            return (alpha_0 + 1) * product - alpha_0 * ends

        return LinearOperator((roots.size,) * 2, matvec=multiply, rmatvec=multiply, dtype=np.float64)

    return [error(draw) for draw in range(len(signs))]


def noise_of_pairs(errors: list[LinearOperator], totals: WordTotals, basis: np.ndarray) -> float:
    """Return the sampling noise of the second moment at the last of k directions (words, k), from its errors."""
    directions = np.linalg.qr(totals.roots[:, None] * basis)[0]
    return noise_of(errors, directions, directions)


def _balanced(signs: np.ndarray, used: np.ndarray) -> np.ndarray:
    """Return weights (draws, documents): signs, scaled so that used documents carry the weight of all of that sign."""
    weights = np.zeros(signs.shape)
    for sign in (1.0, -1.0):
        chosen = signs == sign
        number = np.maximum(np.sum(chosen & used, axis=1, keepdims=True), 1)
        weights += sign * chosen * np.mean(chosen, axis=1, keepdims=True) / number
    return weights


def _diagonal_sum(first: Array, second: Array, third: Array) -> Array:
    """Return sum_i a_i (x) b_i (x) c_i over rows i, in blocks."""
    ones = np.ones(first.shape[0])
    return CrossMomentTensor(first, second, third, weights=ones, symmetric=False, check=False).to_dense()
