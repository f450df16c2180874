"""Moments of words in documents about topics: sums over documents, in memory, in parts or in a stream, and topics."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from codiag._arrays import blocks
from codiag.models.base import (
    BlockedMoments,
    Blocks,
    Components,
    Diagnostics,
    MomentSums,
    check_second_moment,
    core_diagnostics,
    core_problem,
    mixture_weights,
    noise_of,
    on_simplex,
    random_bits,
)
from codiag.models.topics._word_moments import (
    Documents,
    check_pairs,
    counts_of,
    frequency_roots,
    noise_of_pairs,
    pair_errors,
    range_of_pairs,
    word_totals,
)
from codiag.parts import Parts
from codiag.result import Factorization
from codiag.tensors import CrossMomentTensor, DenseTensor, symmetrize

N_SPARE = 2
"""Number of columns of a basis beyond the number of topics, to report the gap behind the last topic."""
PART_STRIDE = 2**40
"""Difference between the numbers of the first documents of consecutive parts; larger than any part."""
MIN_PRIOR_SUM = 1e-2
"""Least sum of the Dirichlet parameters of mixtures, so that every topic has positive probability in a document."""
CLEAR = 4
"""Ratio of the weakest of k eigenvalues to sampling noise from which on a basis is fixed. The sine of the angle between
the basis and the true range is at most one over it, so that the basis holds 15/16 of the squared length of topics."""
MAX_WAITING_BYTES = 2**27
"""Largest size of the documents of a stream that are kept until they determine the basis."""


def topics_by_anchors(root: np.ndarray, mean: np.ndarray) -> np.ndarray:
    r"""Return topics (words, k), up to scale, from a root F (words, k) of the second moment and frequencies of words.

    From :math:`F F^\top = \mu\, \mathrm{diag}(w) \mu^\top` the root is :math:`\mu\, \mathrm{diag}(w)^{1/2} R` with R
    orthogonal: its rows, divided by the total of a word, are convex combinations of the rows of anchor words, which
    belong to one topic (Arora, Ge & Moitra, 2012). Anchors are found by successive projection: the longest row, then
    the longest of the others' residuals. Rows of words rarer than the average are shortened, as they are mostly noise.
    """
    totals = np.maximum(root @ root.sum(axis=0), 0)
    rows = root / (totals + totals.mean())[:, None]
    rows[mean <= 0] = 0
    residuals, anchors = rows.copy(), []
    for _ in range(root.shape[1]):
        anchors.append(int(np.argmax(np.sum(residuals**2, axis=1))))
        longest = residuals[anchors[-1]]
        direction = longest / max(float(np.linalg.norm(longest)), 1e-300)
        residuals = residuals - np.outer(residuals @ direction, direction)
    topics: np.ndarray = root @ np.linalg.pinv(rows[anchors])
    return topics


@dataclass(eq=False)
class WordStatistics(MomentSums):
    r"""Unbiased moments of words in the coordinates of a basis :math:`\Omega`, summed over documents.

    No array is larger than words x columns of the basis. Terms of the third moment that belong to single words are
    summed in arrays of that size, and contracted once, at the end.
    """

    constant: ClassVar[frozenset[str]] = frozenset({"basis"})
    own: ClassVar[frozenset[str]] = frozenset({"start"})

    basis: np.ndarray  # (words, r)
    n_documents: np.ndarray  # numbers of documents of at least one, two and three words
    first: np.ndarray  # (words,): sum of word shares
    second: np.ndarray  # (words, r): sum of pairs, times the basis
    cube: np.ndarray  # (r, r, r): sum of triples of positions, also of equal positions, in the basis
    ends: np.ndarray  # (words, r): sum of pairs of positions in triples, times the basis
    singles: np.ndarray  # (words,): sum of positions in triples
    half_numbers: np.ndarray  # n_documents, first and second of a random half of the documents
    half_first: np.ndarray
    half_second: np.ndarray
    n_seen: int = 0  # number of documents of any length
    n_fractional: int = 0  # number of blocks of documents with counts that are not integers
    start: int = 0  # the number of the first document, by which the random half is drawn

    @classmethod
    def empty(cls, basis: np.ndarray, start: int = 0) -> Self:
        """Return sums over no documents."""
        words, r = basis.shape
        first, second, cube = np.zeros(words), np.zeros((words, r)), np.zeros((r, r, r))
        return cls(basis, np.zeros(3), first, second, cube, second, first, np.zeros(3), first, second, start=start)

    @property
    def size(self) -> int:
        return self.n_seen

    def of(self, part: sparse.csr_array) -> Self:
        """Return the sums over documents alone, numbered after those summed so far; block by block."""
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
        first, diagonal, half_first, half_diagonal, singles = (
            part.T @ np.stack([shares, pairs, chosen * shares, chosen * pairs, triples], axis=1)
        ).T
        cube = CrossMomentTensor(inside, inside, inside, weights=triples, symmetric=False, check=False).to_dense()
        return type(self)(
            basis=self.basis,
            n_documents=used.sum(axis=1),
            first=first,
            second=products[:, :r] - diagonal[:, None] * self.basis,
            cube=cube,
            ends=products[:, 2 * r :],
            singles=singles,
            half_numbers=np.sum(used & chosen, axis=1),
            half_first=half_first,
            half_second=products[:, r : 2 * r] - half_diagonal[:, None] * self.basis,
            n_seen=n,
            n_fractional=int(not np.array_equal(part.data, np.rint(part.data))),
        )

    @property
    def third(self) -> np.ndarray:
        r"""The sum of triples of distinct positions in the basis, (r, r, r).

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
        r"""Return the sampling noise of the second moment at the last of k leading directions (r, k).

        From one draw of random signs of the documents, words in the scale of `WordTotals.roots`.
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

    def complaints(self, *, has_steps: bool) -> tuple[str, ...]:
        """Return warnings about counts that moments cannot use; `has_steps` if steps follow that use all words."""
        n_short = self.n_seen - int(self.n_documents[2])
        complaints: list[str] = []
        if n_short == self.n_seen:
            complaints.append(
                f"all {n_short} documents have fewer than three words: topics are found from pairs of words, which "
                "determine them only if every topic has words that no other topic has"
            )
        elif n_short and not has_steps:
            complaints.append(
                f"{n_short} of {self.n_seen} documents have fewer than three words and count for lower moments only"
            )
        if self.n_fractional:
            complaints.append(
                "X is not of whole numbers: moments are unbiased for counts of words, not for shares or tf-idf weights"
            )
        return tuple(complaints)

    def narrowed(self, width: int) -> Self:
        """Return the sums in the first columns of the basis."""
        if width == self.basis.shape[1]:
            return self
        columns = {name: getattr(self, name)[:, :width] for name in ("basis", "second", "ends", "half_second")}
        return replace(self, cube=self.cube[:width, :width, :width], **columns)


@dataclass(frozen=True, eq=False, kw_only=True)
class Topics(Components):
    """Topics (k, words), rows of sum one, and their weights (k,)."""

    key: ClassVar[str] = "components"
    shared: ClassVar[frozenset[str]] = frozenset({"topic_word_prior", "n_iter"})

    components: np.ndarray
    doc_topic_prior: np.ndarray  # (k,): Dirichlet parameters of the mixtures of documents
    topic_word_prior: float = 0.0  # Dirichlet parameter of the topics; zero by moments alone
    n_iter: int = 0  # number of variational steps after the moments


@dataclass(frozen=True, eq=False, kw_only=True)
class TopicMoments(BlockedMoments):
    """Moments of topics in the coordinates of a basis, from sums over documents."""

    mean: np.ndarray  # (words,)
    second: np.ndarray  # (words, r): the second moment, times the basis
    alpha_0: float
    values: np.ndarray  # eigenvalues of the second moment in the basis, largest first
    inner: np.ndarray  # (r, k): leading eigenvectors
    noise: float = math.nan  # sampling noise of the last of k eigenvalues, if computed
    documents: Documents | None = None  # if they can be read again
    n_steps: int | None = None  # number of steps after the moments; None for as many as convergence takes

    @classmethod
    def of(cls, sums: WordStatistics, k: int, alpha_0: float, *, orthogonal: bool) -> TopicMoments:
        """Return the moments for k topics, without their sampling noise."""
        width = sums.basis.shape[1]
        if k > width:
            raise ValueError(
                f"n_components must be at most {width}, the width of the basis that the first documents have fixed; "
                f"got {k}. Fit anew"
            )
        mean, second, square, third = sums.finish(alpha_0)
        values, vectors = np.linalg.eigh(square)
        values, inner = values[::-1], vectors[:, ::-1][:, :k]
        check_second_moment(values, k, "n_components")
        problem = None
        if sums.n_documents[2]:
            problem = core_problem(DenseTensor(third, symmetric=True), inner, values, orthogonal=orthogonal)
        return cls(problem=problem, mean=mean, second=second, alpha_0=alpha_0, values=values, inner=inner)

    def parameters(self, fit: Factorization | None) -> Topics:
        r"""Return the topics that have these moments.

        With :math:`P = \Omega^\top \mu` from the factors and :math:`M_2 \Omega = \mu\, \mathrm{diag}(w) P^\top`, topics
        are :math:`M_2 \Omega\, (P^\top)^+`, up to a scale that their sum fixes. Without triples of words there are no
        factors, and topics come from pairs alone.
        """
        k = self.inner.shape[1]
        if k == 1:  # one topic is the mean of the documents
            raw = self.mean[:, None]
        elif fit is None:
            raw = topics_by_anchors(self.second @ self.inner / np.sqrt(self.values[:k]), self.mean)
        else:
            raw = self.second @ np.linalg.pinv((self.inner @ np.asarray(fit.factors[0])).T)
        columns, clipped = on_simplex(raw)
        if fit is not None:
            diagnostics = core_diagnostics(fit, self.values, self.noise, clipped)
        else:
            values = self.values[: k + 1].tolist()
            diagnostics = Diagnostics(second_moment=values, sampling_noise=self.noise, clipped_mass=clipped)
        weights = mixture_weights(columns, self.mean)
        prior = np.maximum(self.alpha_0 * weights, MIN_PRIOR_SUM / weights.size)
        return Topics(weights=weights, components=columns.T, doc_topic_prior=prior, diagnostics=diagnostics)


class DocumentSums:
    """Sums over documents in a basis of the second moment, which is widened when more topics are requested.

    Documents in memory are read for the sampling noise of every number of topics; otherwise all reads are shared.
    """

    def __init__(self, documents: Documents, alpha_0: float, n_blocks: int, seed: int | None, width: int) -> None:
        self.documents, self.totals = documents, word_totals(documents)
        check_pairs(self.totals.n_paired, self.totals.n_documents)
        self._alpha_0, self._n_blocks, self._seed, self._width = alpha_0, n_blocks, seed, width
        self._basis, self._blocks = np.zeros((self.totals.mean.size, 0)), Blocks({})

    def blocks(self, k: int) -> Blocks:
        """Return the sums in a basis of `N_SPARE` more columns than k topics, by block."""
        n_words, width = self._basis.shape
        if k > n_words:
            raise ValueError(f"n_components must be at most {n_words}, the number of words; got {k}")
        needed = min(k + N_SPARE, n_words)
        if needed > width:
            k = min(max(k, self._width, 2 * width), n_words)
            self._basis = range_of_pairs(self.documents, self.totals, k, self._alpha_0, self._seed, N_SPARE)
            if isinstance(self.documents, Parts):
                self._blocks = self.documents.reduce(sums_of_part, self._basis, self._n_blocks, numbered=True)
            else:
                self._blocks = Blocks.of(WordStatistics.empty(self._basis), self.documents, self._n_blocks)
        sums = {block: sums.narrowed(needed) for block, sums in self._blocks.sums.items()}
        return Blocks(sums, self._blocks.n_blocks, self._blocks.n_parts)

    @cached_property
    def _errors(self) -> list[Any]:
        return [] if isinstance(self.documents, Parts) else pair_errors(self.documents, self.totals, self._alpha_0)

    def noise(self, sums: WordStatistics, moments: TopicMoments) -> float:
        """Return the sampling noise of the last eigenvalue; if documents are in memory, from several draws of signs."""
        if isinstance(self.documents, Parts):
            return sums.noise(self._alpha_0, moments.inner)
        return noise_of_pairs(self._errors, self.totals, self._basis[:, : moments.inner.shape[1]])


def sums_of_part(part: Any, basis: np.ndarray, n_blocks: int, place: int) -> Blocks:
    """Return the sums over the documents of a part, by block."""
    sums = WordStatistics.empty(basis, start=place * PART_STRIDE)
    return Blocks.of(sums, counts_of(part, basis.shape[0]), n_blocks, place)


@dataclass(frozen=True, eq=False)
class TopicStream:
    """Documents that are read once: kept in `waiting` until they determine a basis, from then on summed in it."""

    waiting: tuple[sparse.csr_array, ...] = ()
    blocks: Blocks | None = None  # sums in the basis, by block
    n_tested: int = 0  # number of documents when the basis was last tested
    n_basis: int | None = None  # number of documents that fixed the basis without determining it clearly

    @property
    def is_empty(self) -> bool:
        """Whether no document was read."""
        return self.blocks is None and not self.waiting

    def documents(self) -> sparse.csr_array:
        """Return the waiting documents as one matrix."""
        return self.waiting[0] if len(self.waiting) == 1 else sparse.vstack(self.waiting, format="csr")

    def with_part(self, part: sparse.csr_array, k: int, alpha_0: float, seed: int | None, n_blocks: int) -> TopicStream:
        """Return this with documents added; if all of them together determine k directions, these are the basis."""
        if self.blocks is not None:
            return replace(self, blocks=self.blocks.with_part(part, n_blocks))
        stream = replace(self, waiting=(*self.waiting, part))
        n = sum(counts.shape[0] for counts in stream.waiting)
        is_full = sum(counts.data.nbytes + counts.indices.nbytes for counts in stream.waiting) > MAX_WAITING_BYTES
        if n < 2 * self.n_tested and not is_full:  # all tests together cost about twice as much as the last
            return stream
        counts = stream.documents()
        totals = word_totals(counts)
        basis = range_of_pairs(counts, totals, min(3 * k, counts.shape[1]), alpha_0, seed)
        is_clear = totals.n_paired > 0
        if is_clear:
            square = WordStatistics.empty(basis[:, :k]).of(counts).finish(alpha_0)[2]
            noise = noise_of_pairs(pair_errors(counts, totals, alpha_0), totals, basis[:, :k])
            is_clear = bool(np.linalg.eigvalsh(square)[0] > CLEAR * noise)
        if not is_clear and not is_full:
            return replace(stream, n_tested=n)
        blocks = Blocks.of(WordStatistics.empty(basis), counts, n_blocks)
        return TopicStream(blocks=blocks, n_basis=None if is_clear else n)

    def complaints(self, k: int) -> tuple[str, ...]:
        """Return a warning if the first documents did not determine the basis clearly."""
        if self.n_basis is None:
            return ()
        return (
            f"the basis was fixed by the first {self.n_basis} documents, which do not show n_components={k} topics "
            "clearly: topics may be less precise than the data allows. Give parts that can be read again (a list, a "
            "dask collection, a function that returns an iterator) to fit, or use fewer topics",
        )
