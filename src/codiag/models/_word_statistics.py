"""Sums over documents from which topics are estimated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy import sparse

from codiag._array import blocks
from codiag.models._sampling_noise import noise_of, random_bits
from codiag.models._sums import MomentSums
from codiag.tensors import CrossMomentTensor, symmetrize


@dataclass(eq=False)
class WordStatistics(MomentSums):
    r"""Unbiased moments of words in the coordinates of a basis :math:`\Omega`, summed over documents.

    Nothing is larger than words x columns of the basis. Terms of the third moment that belong to single words are kept
    as sums of that size, and contracted once, at the end.
    """

    constant: ClassVar[frozenset[str]] = frozenset({"basis"})
    own: ClassVar[frozenset[str]] = frozenset({"start"})

    basis: np.ndarray  # (words, r)
    n_documents: np.ndarray  # how many of at least one, two and three words
    first: np.ndarray  # (words,): sum of word shares
    second: np.ndarray  # (words, r): sum of pairs, times the basis
    cube: np.ndarray  # (r, r, r): sum of triples of positions, equal ones among them, compressed
    ends: np.ndarray  # (words, r): of pairs of positions in triples, times the basis
    singles: np.ndarray  # (words,): of positions in triples
    half_numbers: np.ndarray  # the first three sums over a random half of the documents
    half_first: np.ndarray
    half_second: np.ndarray
    n_seen: int = 0  # how many documents, of any length
    n_broken: int = 0  # how many blocks of them with counts that are not whole numbers
    start: int = 0  # the number of the first document, by which the random half is drawn

    @classmethod
    def empty(cls, basis: np.ndarray, start: int = 0) -> Self:
        """Return sums over nothing."""
        words, r = basis.shape
        first, second, cube = np.zeros(words), np.zeros((words, r)), np.zeros((r, r, r))
        return cls(basis, np.zeros(3), first, second, cube, second, first, np.zeros(3), first, second, start=start)

    @property
    def size(self) -> int:
        return self.n_seen

    def of(self, part: sparse.csr_array) -> Self:
        """Return the sums over documents alone, which come after those seen so far; some documents at a time."""
        total = self.empty(self.basis, self.start + self.n_seen)
        for rows in blocks(part.shape[0], 4 * self.basis.shape[1]):
            if rows.stop > rows.start:
                total.merge(total._of_block(part if rows.stop - rows.start == part.shape[0] else part[rows]))
        return total

    def _of_block(self, part: sparse.csr_array) -> Self:
        n, r = part.shape[0], self.basis.shape[1]
        lengths = np.asarray(part.sum(axis=1)).ravel()
        used = np.stack([lengths > 0, lengths >= 2, lengths >= 3])
        tuples = lengths * np.stack([np.ones(n), lengths - 1, (lengths - 1) * (lengths - 2)])
        shares, pairs, triples = used / np.where(used, tuples, 1)
        chosen = random_bits(self.start + self.n_seen, n)
        inside = part @ self.basis
        columns = np.hstack([scale[:, None] * inside for scale in (pairs, chosen * pairs, triples)])
        products = part.T @ columns
        first, own, half_first, half_own, singles = (
            part.T @ np.stack([shares, pairs, chosen * shares, chosen * pairs, triples], axis=1)
        ).T
        cube = CrossMomentTensor(inside, inside, inside, weights=triples, symmetric=False, check=False).to_dense()
        return type(self)(
            basis=self.basis,
            n_documents=used.sum(axis=1),
            first=first,
            second=products[:, :r] - own[:, None] * self.basis,
            cube=cube,
            ends=products[:, 2 * r :],
            singles=singles,
            half_numbers=np.sum(used & chosen, axis=1),
            half_first=half_first,
            half_second=products[:, r : 2 * r] - half_own[:, None] * self.basis,
            n_seen=n,
            n_broken=int(not np.array_equal(part.data, np.rint(part.data))),
        )

    @property
    def third(self) -> np.ndarray:
        r"""The sum of triples of distinct positions, compressed, (r, r, r).

        With e the ends and s the singles, :math:`C - \sum_i \Omega_i \otimes \Omega_i \otimes e_i` (its three
        placements) :math:`+ 2 \sum_i s_i \Omega_i^{\otimes 3}`.
        """
        ones = np.ones(self.basis.shape[0])
        corrections = self.ends - 2 / 3 * self.singles[:, None] * self.basis
        views = self.basis, self.basis, corrections
        placed = CrossMomentTensor(*views, weights=ones, symmetric=False, check=False).to_dense()
        return self.cube - placed - placed.transpose(0, 2, 1) - placed.transpose(2, 0, 1)

    def finish(self, alpha_0: float = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
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
        half = self.half_numbers, self.half_first, self.half_second
        signed, first, second = (2 * part - total for part, total in zip(half, whole, strict=True))
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
