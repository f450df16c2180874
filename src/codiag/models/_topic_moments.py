"""Moments of words in documents about topics, and the topics that have them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from codiag._factorization import Factorization
from codiag._parts import Parts
from codiag.models._blocked import BlockedMoments
from codiag.models._components import Components
from codiag.models._diagnostics import Diagnostics
from codiag.models._sampling_noise import noise_of, random_signs
from codiag.models._second_moment import check_second_moment, core_diagnostics, core_problem, leading_range
from codiag.models._simplex import mixture_weights, on_simplex
from codiag.models._topic_anchors import topics_by_anchors
from codiag.models._word_statistics import WordStatistics, frequency_roots
from codiag.tensors import DenseTensor, WordPairs, word_frequencies

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
