"""Sums over documents from which topics are estimated: they add up over chunks, machines and days."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

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

    @classmethod
    def empty(cls, basis: np.ndarray) -> WordStatistics:
        """Return sums over nothing."""
        words, r = basis.shape
        return cls(basis, np.zeros(3), np.zeros(words), np.zeros((words, r)), np.zeros((r, r, r)))

    def plus(self, counts: sparse.csr_array) -> WordStatistics:
        """Return the sums with documents added."""
        total = replace(self)
        total._add(counts)
        return total

    def _add(self, counts: sparse.csr_array) -> None:
        lengths = np.asarray(counts.sum(axis=1)).ravel()
        numbers = np.array([np.sum(lengths >= least) for least in (1, 2, 3)])
        self.n_documents = self.n_documents + numbers
        if numbers[0]:
            self.first = self.first + numbers[0] * word_frequencies(counts)
        if numbers[1]:
            self.second = self.second + numbers[1] * (WordPairs(counts) @ self.basis)
        if numbers[2]:
            core = WordMomentTensor(counts).compress(*[self.basis] * 3).to_dense()
            self.third = self.third + numbers[2] * core

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
