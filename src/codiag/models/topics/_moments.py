"""Moments of words in documents about topics: sums over documents, and the topics."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from codiag._arrays import blocks, is_dask
from codiag._checks import RankDeficientError
from codiag.models.base import (
    Components,
    Diagnostics,
    Moments,
    RowSums,
    check_second_moment,
    core_diagnostics,
    core_problem,
    first_block,
    mixture_weights,
    on_simplex,
    sum_over_rows,
)
from codiag.models.topics._word_moments import (
    WordTotals,
    counts_of_block,
    noise_of_pairs,
    pair_errors,
    range_of_pairs,
    totals_of_block,
)
from codiag.result import Factorization
from codiag.tensors import CrossMomentTensor, DenseTensor, symmetrize

N_EXTRA = 2
"""Number of columns of a basis beyond the number of topics, to report the gap behind the last topic."""


@dataclass(frozen=True, eq=False)
class WordStatistics(RowSums):
    r"""Unbiased moments of words in the coordinates of a basis :math:`\Omega`, summed over documents."""

    constant: ClassVar[frozenset[str]] = frozenset({"basis"})

    basis: np.ndarray  # (words, r)
    n_documents: np.ndarray  # numbers of documents of any length, and of at least one, two and three words
    first: np.ndarray  # (words,): sum of word shares
    second: np.ndarray  # (words, r): sum of pairs, times the basis
    cube: np.ndarray  # (r, r, r): sum of triples of positions, also of equal positions, in the basis
    ends: np.ndarray  # (words, r): sum of pairs of positions in triples, times the basis
    singles: np.ndarray  # (words,): sum of positions in triples
    n_fractional: int  # number of chunks of documents with counts that are not integers

    @classmethod
    def of(cls, counts: sparse.csr_array, basis: np.ndarray) -> Self:
        """Return the sums over documents, chunk by chunk."""
        rows = next(blocks(counts.shape[0], 4 * basis.shape[1]), slice(0, 1))
        return sum_over_rows(cls._of_chunk, counts, basis, n_rows=max(rows.stop - rows.start, 1))

    @classmethod
    def _of_chunk(cls, counts: sparse.csr_array, basis: np.ndarray) -> Self:
        n, r = counts.shape[0], basis.shape[1]
        lengths = np.asarray(counts.sum(axis=1)).ravel()
        used = np.stack([lengths > 0, lengths >= 2, lengths >= 3])
        tuples = lengths * np.stack([np.ones(n), lengths - 1, (lengths - 1) * (lengths - 2)])
        shares, pairs, triples = used / np.where(used, tuples, 1)
        inside = counts @ basis
        products = counts.T @ np.hstack([scale[:, None] * inside for scale in (pairs, triples)])
        first, diagonal, singles = (counts.T @ np.stack([shares, pairs, triples], axis=1)).T
        return cls(
            basis=basis,
            n_documents=np.append(n, used.sum(axis=1)),
            first=first,
            second=products[:, :r] - diagonal[:, None] * basis,
            cube=CrossMomentTensor(*[inside] * 3, weights=triples, symmetric=False, check=False).to_dense(),
            ends=products[:, r:],
            singles=singles,
            n_fractional=int(not np.array_equal(counts.data, np.rint(counts.data))),
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
            total / max(n, 1)
            for total, n in zip((self.first, self.second, self.third), self.n_documents[1:], strict=True)
        )
        inner = self.basis.T @ mean
        second = (alpha_0 + 1) * pairs - alpha_0 * np.outer(mean, inner)
        square = self.basis.T @ pairs
        shift = 3 * symmetrize(np.einsum("ab,c->abc", (square + square.T) / 2, inner))
        cube = np.einsum("a,b,c->abc", inner, inner, inner)
        third = (alpha_0 + 1) * (alpha_0 + 2) / 2 * triples - alpha_0 * (alpha_0 + 1) / 2 * shift + alpha_0**2 * cube
        compressed = self.basis.T @ second
        return mean, second, (compressed + compressed.T) / 2, symmetrize(third)

    def warning_messages(self, *, has_steps: bool) -> tuple[str, ...]:
        """Return warnings about counts that moments cannot use; `has_steps` if steps follow that use all words."""
        n_seen, n_short = int(self.n_documents[0]), int(self.n_documents[0] - self.n_documents[3])
        warning_messages: list[str] = []
        if n_short and not has_steps:
            warning_messages.append(
                f"{n_short} of {n_seen} documents have fewer than three words and count for lower moments only"
            )
        if self.n_fractional:
            warning_messages.append(
                "X is not of whole numbers: moments are unbiased for counts of words, not for shares or tf-idf weights"
            )
        return tuple(warning_messages)

    def narrowed(self, width: int) -> Self:
        """Return the sums in the first columns of the basis."""
        if width == self.basis.shape[1]:
            return self
        columns = {name: getattr(self, name)[:, :width] for name in ("basis", "second", "ends")}
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
class TopicMoments(Moments):
    """Moments of topics in the coordinates of a basis, from sums over documents."""

    mean: np.ndarray  # (words,)
    second: np.ndarray  # (words, r): the second moment, times the basis
    alpha_0: float
    values: np.ndarray  # eigenvalues of the second moment in the basis, largest first
    inner: np.ndarray  # (r, k): leading eigenvectors
    noise: float = math.nan  # sampling noise of the last of k eigenvalues, if computed
    documents: Any = None  # counts, or a dask array; None if they cannot be read again

    @classmethod
    def of(cls, sums: WordStatistics, k: int, alpha_0: float, *, orthogonal: bool) -> TopicMoments:
        """Return the moments for k topics, without their sampling noise."""
        width = sums.basis.shape[1]
        if k > width:
            raise ValueError(
                f"n_components must be at most {width}, the width of the basis that the first documents have fixed; "
                f"got {k}. Fit anew"
            )
        if k > 1 and not sums.n_documents[3]:
            raise RankDeficientError(
                "X must contain documents of three words or more, whose triples show the topics; all "
                f"{sums.n_documents[0]} have fewer"
            )
        mean, second, square, third = sums.finish(alpha_0)
        values, vectors = np.linalg.eigh(square)
        values, inner = values[::-1], vectors[:, ::-1][:, :k]
        check_second_moment(values, k, "n_components")
        core = np.asarray(DenseTensor(third, symmetric=True).compress(inner, inner, inner).to_dense())
        problem = core_problem(core, values, orthogonal=orthogonal) if k > 1 else None
        return cls(problem=problem, mean=mean, second=second, alpha_0=alpha_0, values=values, inner=inner)

    def parameters(self, fit: Factorization | None) -> Topics:
        r"""Return the topics that have these moments.

        With :math:`P = \Omega^\top \mu` from the factors and :math:`M_2 \Omega = \mu\, \mathrm{diag}(w) P^\top`, topics
        are :math:`M_2 \Omega\, (P^\top)^+`, up to a scale that their sum fixes.
        """
        if fit is None:  # one topic is the mean of the documents
            columns, clipped = on_simplex(self.mean[:, None])
            values = self.values[:2].tolist()
            diagnostics = Diagnostics(second_moment=values, sampling_noise=self.noise, clipped_mass=clipped)
        else:
            raw = self.second @ np.linalg.pinv((self.inner @ np.asarray(fit.factors[0])).T)
            columns, clipped = on_simplex(raw)
            diagnostics = core_diagnostics(fit, self.values, self.noise, clipped)
        weights = mixture_weights(columns, self.mean)
        # every topic has positive probability in a document
        prior = np.maximum(self.alpha_0 * weights, 1e-2 / weights.size)
        return Topics(weights=weights, components=columns.T, doc_topic_prior=prior, diagnostics=diagnostics)


class DocumentSums:
    """Sums over documents in a basis of the second moment, which is widened when more topics are requested.

    Documents are counts in memory, or a dask array.
    """

    def __init__(self, documents: Any, alpha_0: float, rng: int | None, width: int) -> None:
        self.documents = documents
        totals = sum_over_rows(totals_of_block, documents) if is_dask(documents) else WordTotals.of(documents)
        totals.check_pairs()
        self.totals, self._alpha_0, self._rng, self._width = totals, alpha_0, rng, width
        self._sums: WordStatistics | None = None

    def sums(self, k: int) -> WordStatistics:
        """Return the sums in a basis of `N_EXTRA` more columns than k topics."""
        n_words, width = self.totals.shares.size, 0 if self._sums is None else self._sums.basis.shape[1]
        if k > n_words:
            raise ValueError(f"n_components must be at most {n_words}, the number of words; got {k}")
        needed = min(k + N_EXTRA, n_words)
        if self._sums is None or needed > width:
            k = min(max(k, self._width, 2 * width), n_words)
            basis = range_of_pairs(self.documents, self.totals, k, self._alpha_0, self._rng, N_EXTRA)
            if is_dask(self.documents):
                self._sums = sum_over_rows(_sums_of_block, self.documents, basis)
            else:
                self._sums = WordStatistics.of(self.documents, basis)
        return self._sums.narrowed(needed)

    @cached_property
    def _errors(self) -> list[Any]:
        """Draws of the sampling error of the second moment; of the first block of a dask array, scaled to all."""
        if not is_dask(self.documents):
            return pair_errors(self.documents, self.totals, self._alpha_0)
        first = counts_of_block(first_block(self.documents))
        scale = math.sqrt(first.shape[0] / self.totals.n_documents)
        return [scale * error for error in pair_errors(first, self.totals, self._alpha_0)]

    def noise(self, sums: WordStatistics, k: int) -> float:
        """Return the sampling noise of the second moment at the last of k topics."""
        return noise_of_pairs(self._errors, self.totals, sums.basis[:, :k])


def _sums_of_block(block: Any, basis: np.ndarray) -> WordStatistics:
    return WordStatistics.of(counts_of_block(block, basis.shape[0]), basis)
