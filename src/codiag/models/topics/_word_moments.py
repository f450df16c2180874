"""Moments of words in documents, from counts: frequencies and pairs, and the range and noise of the pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator
from sklearn.utils.validation import check_array

from codiag._arrays import is_dask, to_host
from codiag._checks import RankDeficientError, as_real_array
from codiag.models.base import (
    RowSums,
    leading_range,
    leading_range_in_passes,
    noise_of,
    random_signs,
    sum_over_rows,
)

MAX_LENGTH = 2.0**53
"""Largest number of words of a document: one more word would not change a larger one."""
INPUT: dict[str, Any] = {"accept_sparse": "csr", "dtype": np.float64, "ensure_non_negative": True}
"""Options of scikit-learn's validation of counts."""


@dataclass(frozen=True, eq=False)
class WordTotals(RowSums):
    """Sums over documents from which word frequencies follow."""

    numbers: np.ndarray  # numbers of documents of any length, of one word or more, and of two or more
    shares: np.ndarray  # (words,): of the share of each word

    @classmethod
    def of(cls, counts: sparse.csr_array) -> WordTotals:
        """Sum over counts (documents, words)."""
        lengths = np.asarray(counts.sum(axis=1)).ravel()
        numbers = np.array([lengths.size, np.sum(lengths > 0), np.sum(lengths >= 2)])
        return cls(numbers, np.asarray(counts.T @ (1 / np.where(lengths > 0, lengths, np.inf))))

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return int(self.numbers[0])

    @property
    def mean(self) -> np.ndarray:
        """Mean share of each word, (words,)."""
        return self.shares / max(self.numbers[1], 1)

    @property
    def roots(self) -> np.ndarray:
        """Roots of word frequencies, a scale in which all words have about the same noise; positive for all words."""
        return np.sqrt(np.maximum(self.mean, 1e-2 / max(self.n_documents * self.mean.size, 1)))

    def check_pairs(self) -> None:
        """Raise unless some documents have two words or more."""
        if not self.numbers[2]:
            raise RankDeficientError(
                f"X must contain documents of two words or more; all {self.n_documents} have fewer"
            )


class WordPairs:
    r"""The second moment of exchangeable words, unbiased, as an operator: sums over documents, not means.

    .. math:: \sum_s \frac{c_s c_s^\top - \mathrm{diag}(c_s)}{l_s (l_s - 1)}

    for counts c of documents of l words, two or more.
    """

    def __init__(self, counts: sparse.csr_array) -> None:
        lengths = np.asarray(counts.sum(axis=1)).ravel()
        self.counts, self._transposed = counts, counts.T  # made once: eigenvalue solvers take hundreds of products
        self.shares = np.where(lengths >= 2, 1 / np.maximum(lengths * (lengths - 1), 2), 0.0)
        self._diagonal = (self._transposed @ self.shares)[:, None]

    def __matmul__(self, columns: np.ndarray) -> np.ndarray:
        if columns.ndim == 1:
            return (self @ columns[:, None])[:, 0]
        return self._transposed @ (self.shares[:, None] * (self.counts @ columns)) - self._diagonal * columns


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


def counts_of_block(block: Any, n_words: int | None = None) -> sparse.csr_array:
    """Return a block of a dask array as counts, and check the number of words, if given."""
    counts = as_counts(check_array(block, input_name="X", **INPUT), "X")
    if n_words is not None and counts.shape[1] != n_words:
        raise ValueError(f"X must have blocks of {n_words} words each, as its shape says; one has {counts.shape[1]}")
    return counts


def totals_of_block(block: Any) -> WordTotals:
    """Return the word totals of a block of a dask array."""
    return WordTotals.of(counts_of_block(block))


def _products_of_block(block: Any, columns: np.ndarray) -> np.ndarray:
    return WordPairs(counts_of_block(block, columns.shape[0])) @ columns


def range_of_pairs(
    documents: Any, totals: WordTotals, k: int, alpha_0: float, rng: int | None, n_extra: int = 0
) -> np.ndarray:
    """Return a basis (words, k + n_extra) of the range of the second moment of topics.

    Documents are counts in memory, or a dask array, which is read once for every product with a block of columns.
    """
    n_words, rng = totals.shares.size, 0 if rng is None else rng
    n_extra = min(n_extra, n_words - k)
    if is_dask(documents):
        multiply = _scaled_pairs(lambda columns: sum_over_rows(_products_of_block, documents, columns), totals, alpha_0)
        vectors = leading_range_in_passes(multiply, n_words, k, rng, n_extra=n_extra)
    else:
        multiply = _scaled_pairs(WordPairs(documents).__matmul__, totals, alpha_0)
        vectors = leading_range(multiply, n_words, k + n_extra, rng)
    return vectors / totals.roots[:, None]


def _scaled_pairs(
    pairs: Callable[[np.ndarray], np.ndarray], totals: WordTotals, alpha_0: float
) -> Callable[[np.ndarray], np.ndarray]:
    """Return products with the second moment of topics in the scale of the roots, from products with sums of pairs."""
    mean, roots, n_paired = totals.mean, totals.roots, max(totals.numbers[2], 1)

    def multiply(columns: np.ndarray) -> np.ndarray:
        inside = (columns.T / roots).T
        image = (alpha_0 + 1) * pairs(inside) / n_paired - alpha_0 * np.multiply.outer(mean, mean @ inside)
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
