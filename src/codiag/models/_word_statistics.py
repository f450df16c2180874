"""Sums over documents from which topics are estimated: they add up over chunks, machines and days."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from codiag.models._sampling_noise import noise_of
from codiag.tensors import WordMomentTensor, WordPairs, symmetrize, word_frequencies


@dataclass
class WordStatistics:
    r"""Unbiased moments of words in the coordinates of a basis :math:`\Omega`, summed over documents.

    Nothing is larger than words x columns of the basis.
    """

    basis: np.ndarray  # (words, r)
    n_documents: np.ndarray  # how many of at least one, two and three words
    first: np.ndarray  # (words,): sum of word shares
    second: np.ndarray  # (words, r): sum of pairs, times the basis
    third: np.ndarray  # (r, r, r): sum of triples, compressed
    n_seen: int  # how many documents, of any length
    half: tuple[np.ndarray, np.ndarray, np.ndarray]  # the first three sums over a random half of the documents

    @classmethod
    def empty(cls, basis: np.ndarray) -> WordStatistics:
        """Return sums over nothing."""
        words, r = basis.shape
        half = np.zeros(3), np.zeros(words), np.zeros((words, r))
        return cls(basis, np.zeros(3), np.zeros(words), np.zeros((words, r)), np.zeros((r, r, r)), 0, half)

    def plus(self, counts: sparse.csr_array) -> WordStatistics:
        """Return the sums with documents added."""
        total = replace(self)
        total._add(counts)
        return total

    def _add(self, counts: sparse.csr_array) -> None:
        sums = self._lower_sums(counts)
        self.n_documents, self.first, self.second = (
            total + part for total, part in zip((self.n_documents, self.first, self.second), sums, strict=True)
        )
        if sums[0][2]:
            core = WordMomentTensor(counts, check=False).compress(*[self.basis] * 3).to_dense()
            self.third = self.third + sums[0][2] * core
        some = self._lower_sums(counts, _chosen(self.n_seen, counts.shape[0]))
        self.half = tuple(total + part for total, part in zip(self.half, some, strict=True))
        self.n_seen = self.n_seen + counts.shape[0]

    def _lower_sums(
        self, counts: sparse.csr_array, chosen: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the numbers of documents, and sums of word shares and of pairs, over all documents or those chosen."""
        lengths = np.asarray(counts.sum(axis=1)).ravel()
        used = np.stack([lengths > 0, lengths >= 2, lengths >= 3])
        weights = None if chosen is None else chosen.astype(np.float64)
        numbers = np.sum(used if chosen is None else used & chosen, axis=1)
        shares = word_frequencies(counts, weights, check=False)
        pairs = WordPairs(counts, weights, check=False) @ self.basis
        return (numbers, numbers[0] * shares, numbers[1] * pairs) if chosen is None else (numbers, shares, pairs)

    def moments(self, alpha_0: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        r"""Return :math:`E_1`, :math:`M_2 \Omega`, :math:`\Omega^\top M_2 \Omega` and the compressed :math:`M_3`."""
        mean, pairs, triples = (
            total / max(n, 1) for total, n in zip((self.first, self.second, self.third), self.n_documents, strict=True)
        )
        inner = self.basis.T @ mean
        second = (alpha_0 + 1) * pairs - alpha_0 * np.outer(mean, inner)
        square = self.basis.T @ pairs
        shift = 3 * symmetrize(np.einsum("ab,c->abc", (square + square.T) / 2, inner))
        cube = np.einsum("a,b,c->abc", inner, inner, inner)
        third = (alpha_0 + 1) * (alpha_0 + 2) / 2 * triples - alpha_0 * (alpha_0 + 1) / 2 * shift + alpha_0**2 * cube
        compressed = self.basis.T @ second
        return mean, second, (compressed + compressed.T) / 2, symmetrize(third)

    def noise(self, alpha_0: float, leading: np.ndarray) -> float:
        r"""Return what sampling alone would show of the last of k leading directions (r, k) of the second moment.

        From a random sign for each document, words divided by the roots of their frequencies as in the basis.
        """
        whole = self.n_documents, self.first, self.second
        signed, first, second = (2 * part - total for part, total in zip(self.half, whole, strict=True))
        numbers = np.maximum(self.n_documents, 1)
        mean, shares = self.first / numbers[0], first / numbers[0]
        inner = self.basis.T @ mean
        ends = np.outer(shares - signed[0] / numbers[0] * mean, inner) + np.outer(mean, self.basis.T @ shares)
        error = (alpha_0 + 1) * second / numbers[1] - alpha_0 * ends
        roots = frequency_roots(mean, numbers[0])[:, None]
        return noise_of([error / roots], np.linalg.qr(roots * self.basis @ leading)[0], leading)


def frequency_roots(mean: np.ndarray, n_documents: float) -> np.ndarray:
    """Return the roots of word frequencies, with which noise is alike for all words; not zero for unseen ones."""
    return np.sqrt(np.maximum(mean, 1e-2 / max(n_documents * mean.size, 1)))


def _chosen(start: int, n: int) -> np.ndarray:
    """Return a coin for each of n documents after the first so many: the same whatever chunks they come in."""
    mixed = (np.arange(start, start + n, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return (mixed >> np.uint64(63)).astype(bool)
