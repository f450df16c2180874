"""Topics from pairs of words alone, by words that belong to one topic each.

Sums over documents from which topics are estimated.

Moments of words in documents about topics, and the topics that have them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from codiag._arrays import blocks
from codiag.models.frame import (
    BlockedMoments,
    Components,
    Diagnostics,
    MomentSums,
    check_second_moment,
    core_diagnostics,
    core_problem,
    leading_range,
    mixture_weights,
    noise_of,
    on_simplex,
    random_bits,
    random_signs,
)
from codiag.models.topics._word_moments import WordPairs, word_frequencies
from codiag.parts import Parts
from codiag.result import Factorization
from codiag.tensors import CrossMomentTensor, DenseTensor, symmetrize


def topics_by_anchors(root: np.ndarray, mean: np.ndarray) -> np.ndarray:
    r"""Return topics (words, k), up to scale, from a root F (words, k) of the second moment and frequencies of words.

    From :math:`F F^\top = \mu\, \mathrm{diag}(w) \mu^\top` the root is :math:`\mu\, \mathrm{diag}(w)^{1/2} R` with R
    orthogonal: its rows, divided by what a word has in all, lie between those of words that one topic alone has
    (Arora, Ge & Moitra, 2012). They are found by successive projection: the longest row, then the longest of what is
    left of the others. Words rarer than the average one are shortened, as their rows are mostly noise.
    """
    totals = np.maximum(root @ root.sum(axis=0), 0)
    rows = root / (totals + totals.mean())[:, None]
    rows[mean <= 0] = 0
    left, chosen = rows.copy(), []
    for _ in range(root.shape[1]):
        chosen.append(int(np.argmax(np.sum(left**2, axis=1))))
        direction = left[chosen[-1]] / max(float(np.linalg.norm(left[chosen[-1]])), 1e-300)
        left = left - np.outer(left @ direction, direction)
    found: np.ndarray = root @ np.linalg.pinv(rows[chosen])
    return found


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


Products = Callable[[np.ndarray], np.ndarray]
"""Products of a symmetric matrix with columns."""

LEAST_PRIOR = 1e-2
"""The least sum of the parameters of mixtures: no topic is impossible in a document."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Topics(Components):
    """Topics (k, words), rows of sum one, and their weights (k,)."""

    key: ClassVar[str] = "components"
    shared: ClassVar[frozenset[str]] = frozenset({"topic_word_prior", "n_iter"})

    components: np.ndarray
    doc_topic_prior: np.ndarray  # (k,): parameters of the mixtures of documents
    topic_word_prior: float = 0.0  # what steps add to the number of every word of a topic; by moments nothing
    n_iter: int = 0  # steps after the moments


@dataclass(frozen=True, eq=False, kw_only=True)
class TopicMoments(BlockedMoments):
    """Moments of topics in the coordinates of a basis, from sums over documents alone."""

    statistics: WordStatistics
    mean: np.ndarray  # (words,)
    second: np.ndarray  # (words, r): the second moment, times the basis
    alpha_0: float
    values: np.ndarray  # eigenvalues of the second moment in the basis, largest first
    inner: np.ndarray  # (r, k): leading eigenvectors
    noise: float = math.nan  # what sampling alone would show of the last of k eigenvalues, once that is known
    counts: sparse.csr_array | None = None  # the documents, where all of them are at hand
    parts: Parts | None = None  # or where they can be read again
    n_steps: int | None = None  # steps after the moments, where they are not to end by themselves

    @classmethod
    def of(cls, statistics: WordStatistics, k: int, alpha_0: float, *, orthogonal: bool) -> TopicMoments:
        """Ask for k topics."""
        mean, second, square, third = statistics.finish(alpha_0)
        values, vectors = np.linalg.eigh(square)
        values, inner = values[::-1], vectors[:, ::-1][:, :k]
        check_second_moment(values, k, "n_components")
        problem = None
        if statistics.n_documents[2]:
            problem = core_problem(DenseTensor(third, symmetric=True), inner, values, orthogonal=orthogonal)
        return cls(
            problem=problem,
            statistics=statistics,
            mean=mean,
            second=second,
            alpha_0=alpha_0,
            values=values,
            inner=inner,
        )

    def parameters(self, fit: Factorization | None) -> Topics:
        r"""Return the topics that have these moments.

        With :math:`P = \Omega^\top \mu` from the factors and :math:`M_2 \Omega = \mu\, \mathrm{diag}(w) P^\top`, topics
        are :math:`M_2 \Omega\, (P^\top)^+`, up to a scale that their sum fixes. Without triples of words, and so
        without factors, they come from pairs alone.
        """
        k = self.inner.shape[1]
        if k == 1:  # what words are like on average; of several topics, none need be
            raw = self.mean[:, None]
        elif fit is None:
            raw = topics_by_anchors(self.second @ self.inner / np.sqrt(self.values[:k]), self.mean)
        else:
            raw = self.second @ np.linalg.pinv((self.inner @ np.asarray(fit.factors[0])).T)
        columns, clipped = on_simplex(raw)
        diagnostics = moment_diagnostics(fit, k, self.values, self.noise, clipped)
        weights = mixture_weights(columns, self.mean)
        prior = np.maximum(self.alpha_0 * weights, LEAST_PRIOR / weights.size)
        return Topics(weights=weights, components=columns.T, doc_topic_prior=prior, diagnostics=diagnostics)


def moment_diagnostics(
    fit: Factorization | None, k: int, values: np.ndarray, noise: float, clipped: float
) -> Diagnostics:
    """Return what a fit and the eigenvalues of the second moment tell; the latter alone where there is no fit."""
    if fit is not None:
        return core_diagnostics(fit, values, noise, clipped)
    return Diagnostics(second_moment=values[: k + 1].tolist(), sampling_noise=noise, clipped_mass=clipped)


def range_of_pairs(counts: sparse.csr_array, k: int, alpha_0: float, seed: int | None) -> np.ndarray:
    """Return a basis (words, k) of the range of the second moment of topics.

    The leading eigenvectors, with words divided by the roots of their frequencies: moments of words have variances in
    proportion to their means, and so nearly equal ones.
    """
    mean = word_frequencies(counts, check=False)
    roots = frequency_roots(mean, counts.shape[0])
    multiply = scaled_pairs(WordPairs(counts, check=False).__matmul__, mean, roots, alpha_0)
    return leading_range(multiply, counts.shape[1], k, 0 if seed is None else seed) / roots[:, None]


def scaled_pairs(pairs: Products, mean: np.ndarray, roots: np.ndarray, alpha_0: float) -> Products:
    """Return products with the second moment of topics, words divided by roots, from those with pairs of words."""

    def multiply(columns: np.ndarray) -> np.ndarray:
        inside = (columns.T / roots).T
        image = (alpha_0 + 1) * pairs(inside) - alpha_0 * np.multiply.outer(mean, mean @ inside)
        return (image.T / roots).T

    return multiply


def pair_noise(counts: sparse.csr_array, alpha_0: float, basis: np.ndarray) -> float:
    """Return what sampling alone would show of the last of k leading directions (words, k) of the second moment."""
    mean = word_frequencies(counts, check=False)
    roots = frequency_roots(mean, counts.shape[0])
    directions = np.linalg.qr(roots[:, None] * basis)[0]
    errors = []
    for signs in random_signs(counts.shape[0]):
        multiply = _pair_errors(counts, alpha_0, signs, mean, roots)
        errors.append(LinearOperator((roots.size,) * 2, matvec=multiply, rmatvec=multiply, dtype=np.float64))
    return noise_of(errors, directions, directions)


def _pair_errors(
    counts: sparse.csr_array, alpha_0: float, signs: np.ndarray, mean: np.ndarray, roots: np.ndarray
) -> Products:
    """Return products with the second moment that documents of random signs have, words divided by roots.

    The influence of a document with pairs P and shares f of words is (alpha_0 + 1) P - alpha_0 (f m^T + m f^T - m m^T).
    """
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    shares = word_frequencies(counts, _spread(signs, lengths > 0), check=False) / roots
    pairs, inner = WordPairs(counts, _spread(signs, lengths >= 2), check=False), mean / roots

    def multiply(columns: np.ndarray) -> np.ndarray:
        product = ((pairs @ (columns.T / roots).T).T / roots).T
        ends = np.multiply.outer(shares - np.mean(signs) * inner, inner @ columns)
        return (alpha_0 + 1) * product - alpha_0 * (ends + np.multiply.outer(inner, shares @ columns))

    return multiply


def _spread(signs: np.ndarray, used: np.ndarray) -> np.ndarray:
    """Return weights of documents: the documents of each sign, all together, are spread over those that count."""
    weights = np.zeros(signs.size)
    for sign in (1.0, -1.0):
        own = signs == sign
        weights[own] = sign * np.mean(own) / max(int(np.sum(used & own)), 1)
    return weights
