"""Passes over documents that come in parts: frequencies, pairs and sums."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array

from codiag._parts import Parts
from codiag._validation import UndeterminedError
from codiag.models._second_moment import leading_range_in_passes
from codiag.models._sums import Blocks, Totals
from codiag.models._topic_moments import scaled_pairs
from codiag.models._word_statistics import WordStatistics, frequency_roots
from codiag.tensors import WordPairs, word_frequencies
from codiag.tensors._words import as_counts

INPUT: dict[str, Any] = {"accept_sparse": "csr", "dtype": np.float64, "ensure_non_negative": True}
"""What scikit-learn is to make of counts."""
N_SPARE = 2
"""Columns of a basis beyond the number of topics, for the gap behind these."""
PART_STRIDE = 2**40
"""Distance between the numbers that documents of different parts have: more than a part can hold."""


class Corpus(NamedTuple):
    """What one pass over documents tells of them."""

    n_words: int
    n_documents: int
    mean: np.ndarray  # (words,)


def counts_of(part: Any, n_words: int | None = None) -> sparse.csr_array:
    """Return a part as counts of so many words."""
    counts = as_counts(check_array(as_matrix(part), input_name="X", **INPUT), "X")
    if n_words is not None and counts.shape[1] != n_words:
        raise ValueError(
            f"X must have parts of {n_words} features each, as the first has; one has {counts.shape[1]} features"
        )
    return counts


def as_matrix(part: Any) -> Any:
    """Return a part as one matrix; the parts of a bag are lists of matrices."""
    if isinstance(part, list | tuple):
        return sparse.vstack([sparse.csr_array(one) for one in part], format="csr")
    return part


def read_corpus(parts: Parts) -> Corpus:
    """Return frequencies of words and numbers of documents, in one pass."""
    shares, numbers = parts.reduce(_frequencies).values
    n_documents, n_used, n_paired = (int(number) for number in numbers)
    check_pairs(n_paired, n_documents)
    return Corpus(shares.size, n_documents, shares / max(n_used, 1))


def check_pairs(n_paired: int, n_documents: int) -> None:
    """Raise unless some documents have two words or more."""
    if not n_paired:
        raise UndeterminedError(f"X must hold documents of two words or more; all {n_documents} have fewer")


def range_of_parts(parts: Parts, corpus: Corpus, k: int, alpha_0: float, seed: int | None) -> np.ndarray:
    """Return a basis of the range of the second moment of topics, a pass for each step of the eigenvalue problem."""
    roots = frequency_roots(corpus.mean, corpus.n_documents)

    def pairs(columns: np.ndarray) -> np.ndarray:
        product, number = parts.reduce(_pair_products, columns).values
        return product / max(int(number), 1)

    multiply = scaled_pairs(pairs, corpus.mean, roots, alpha_0)
    n_spare = min(N_SPARE, corpus.n_words - k)
    found = leading_range_in_passes(multiply, corpus.n_words, k, 0 if seed is None else seed, n_spare=n_spare)
    return found / roots[:, None]


def sums_of_parts(parts: Parts, basis: np.ndarray, n_blocks: int) -> Blocks:
    """Return the sums over documents, by block, in one pass."""
    return parts.reduce(sums_of_part, basis, n_blocks, numbered=True)


class _Frequencies(Totals):
    """Sums of shares of words, and numbers of documents."""

    def merge(self, other: Totals) -> Totals:
        """Add other sums to these; refuse those over other words."""
        mine, theirs = self.values[0].size, other.values[0].size
        if mine != theirs:
            raise ValueError(f"X must have parts with the same number of features; got {mine} and {theirs}")
        return super().merge(other)


def _frequencies(part: Any) -> _Frequencies:
    counts = counts_of(part)
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    numbers = np.array([lengths.size, np.sum(lengths > 0), np.sum(lengths >= 2)])
    return _Frequencies(word_frequencies(counts, np.ones(lengths.size), check=False), numbers)


def _pair_products(part: Any, columns: np.ndarray) -> Totals:
    counts = counts_of(part, columns.shape[0])
    used = np.asarray(counts.sum(axis=1)).ravel() >= 2
    return Totals(WordPairs(counts, np.ones(used.size), check=False) @ columns, int(used.sum()))


def sums_of_part(part: Any, basis: np.ndarray, n_blocks: int, place: int) -> Blocks:
    """Return the sums over the documents of a part, dealt to blocks."""
    sums = WordStatistics.empty(basis, start=place * PART_STRIDE)
    return Blocks.of(sums, counts_of(part, basis.shape[0]), n_blocks, place)
