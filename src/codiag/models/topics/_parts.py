"""Passes over documents that come in parts: frequencies, pairs and sums.

Documents that are read once: kept until they show the range of the second moment, and summed in it from then on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array

from codiag._checks import UndeterminedError
from codiag.models.frame import Blocks, Totals, leading_range_in_passes
from codiag.models.topics._moments import WordStatistics, frequency_roots, pair_noise, range_of_pairs, scaled_pairs
from codiag.models.topics._word_moments import WordPairs, as_counts, word_frequencies
from codiag.parts import Parts

INPUT: dict[str, Any] = {"accept_sparse": "csr", "dtype": np.float64, "ensure_non_negative": True}
"""What scikit-learn is to make of counts."""
N_SPARE = 2
"""Columns of a basis beyond the number of topics, for the gap behind these."""
PART_STRIDE = 2**40
"""Distance between the numbers that documents of different parts have: more than a part can hold."""


class WordTotals(NamedTuple):
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


def word_totals(parts: Parts) -> WordTotals:
    """Return frequencies of words and numbers of documents, in one pass."""
    shares, numbers = parts.reduce(_frequencies).values
    n_documents, n_used, n_paired = (int(number) for number in numbers)
    check_pairs(n_paired, n_documents)
    return WordTotals(shares.size, n_documents, shares / max(n_used, 1))


def check_pairs(n_paired: int, n_documents: int) -> None:
    """Raise unless some documents have two words or more."""
    if not n_paired:
        raise UndeterminedError(f"X must hold documents of two words or more; all {n_documents} have fewer")


def range_of_parts(parts: Parts, corpus: WordTotals, k: int, alpha_0: float, seed: int | None) -> np.ndarray:
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


SHOWN = 4
"""How far above sampling noise the weakest of k directions must be. The sine of the angle between the basis and the
true range is at most the noise over the eigenvalue: 1/4, so that the basis holds 15/16 of what there is to see."""
MOST_BYTES = 2**27
"""Documents that are kept, at most, until they show the range."""


@dataclass(frozen=True, eq=False)
class TopicStream:
    """What was seen of documents: `waiting`, the documents themselves, or the sums over them in a basis, by block."""

    waiting: tuple[sparse.csr_array, ...] = ()
    blocks: Blocks | None = None
    n_tested: int = 0  # documents when it was last tried whether they show the range
    n_basis: int | None = None  # documents that fixed the basis, where they did not show it

    @property
    def is_empty(self) -> bool:
        """Whether nothing was seen."""
        return self.blocks is None and not self.waiting

    def documents(self) -> sparse.csr_array:
        """Return the documents that are kept, as one matrix."""
        return self.waiting[0] if len(self.waiting) == 1 else sparse.vstack(self.waiting, format="csr")

    def with_part(self, part: sparse.csr_array, k: int, alpha_0: float, seed: int | None, n_blocks: int) -> TopicStream:
        """Return this with documents added; where all of them together show k directions, these are the basis."""
        if self.blocks is not None:
            return replace(self, blocks=self.blocks.with_part(part))
        found = replace(self, waiting=(*self.waiting, part))
        n = sum(kept.shape[0] for kept in found.waiting)
        full = sum(kept.data.nbytes + kept.indices.nbytes for kept in found.waiting) > MOST_BYTES
        if n < 2 * self.n_tested and not full:  # trials cost what documents do: in all, as much as the last
            return found
        counts = found.documents()
        basis = range_of_pairs(counts, min(3 * k, counts.shape[1]), alpha_0, seed)
        shown = _is_shown(counts, basis[:, :k], alpha_0)
        if not shown and not full:
            return replace(found, n_tested=n)
        blocks = Blocks.of(WordStatistics.empty(basis), counts, n_blocks)
        return TopicStream(blocks=blocks, n_basis=None if shown else n)

    def complaints(self, k: int) -> tuple[str, ...]:
        """Return what a user must be told where the basis may be a poor one."""
        if self.n_basis is None:
            return ()
        return (
            f"the basis was fixed by the first {self.n_basis} documents, which do not show n_components={k} topics "
            "clearly: topics may be less precise than the data allows. Give parts that can be read again (a list, a "
            "dask collection, a function that returns an iterator) to fit, or ask for fewer topics",
        )


def _is_shown(counts: sparse.csr_array, basis: np.ndarray, alpha_0: float) -> bool:
    """Tell whether the second moment is well above its sampling noise along all columns of a basis (words, k)."""
    if not np.any(np.asarray(counts.sum(axis=1)) >= 2):
        return False
    square = WordStatistics.empty(basis).of(counts).finish(alpha_0)[2]
    return bool(np.linalg.eigvalsh(square)[0] > SHOWN * pair_noise(counts, alpha_0, basis))
