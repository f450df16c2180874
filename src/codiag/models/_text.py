"""Sparse counts of words under mixtures of topics: likelihoods, and steps of expectation maximization."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.special import logsumexp


def at_entries(left: np.ndarray, right: np.ndarray, counts: sparse.csr_array, block: int = 2**20) -> np.ndarray:
    """Return (left @ right) at the stored entries of the counts, never as a whole matrix."""
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    columns = np.ascontiguousarray(right.T)
    values = np.empty(counts.nnz)
    size = max(1, block // left.shape[1])
    for start in range(0, counts.nnz, size):
        part = slice(start, start + size)
        values[part] = np.einsum("ek,ek->e", left[rows[part]], columns[counts.indices[part]])
    return values


def shared_out(counts: sparse.csr_array, documents: np.ndarray, topics: np.ndarray) -> sparse.csr_array:
    """Return counts divided by what topics predict of them."""
    predicted = at_entries(documents, topics, counts)
    return sparse.csr_array(
        (counts.data / np.maximum(predicted, 1e-300), counts.indices, counts.indptr), shape=counts.shape
    )


def topic_mixtures(counts: sparse.csr_array, topics: np.ndarray, prior: np.ndarray, n_steps: int) -> np.ndarray:
    """Return the expected mixture of topics (documents, k) of each document, rows of sum one.

    Fixed-point steps in which a word counts for topics in proportion to the mixture so far: collapsed variational
    inference to zeroth order (Asuncion et al., 2009), which is less biased than mean field on short documents.
    """
    mixtures = np.full((counts.shape[0], prior.size), 1 / prior.size)
    for _ in range(n_steps):
        mixtures = _mixed(mixtures, shared_out(counts, mixtures, topics), topics, prior)
    return mixtures


def em_step(
    counts: sparse.csr_array, topics: np.ndarray, mixtures: np.ndarray, prior: np.ndarray, smoothing: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return topics (k, words) and mixtures (documents, k) after one step of expectation maximization, in one pass."""
    raw, mixtures = em_sums(counts, topics, mixtures, prior)
    return smoothed(raw, smoothing), mixtures


def em_sums(
    counts: sparse.csr_array, topics: np.ndarray, mixtures: np.ndarray, prior: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return how many words belong to topics (k, words), a sum over documents, and the next mixtures."""
    shares = shared_out(counts, mixtures, topics)
    return topics * (shares.T @ mixtures).T, _mixed(mixtures, shares, topics, prior)


def smoothed(raw: np.ndarray, smoothing: float) -> np.ndarray:
    """Return topics, rows of sum one, from numbers of words (k, words), to each of which a little is added."""
    raw = raw + smoothing
    return raw / raw.sum(axis=1, keepdims=True)


def _mixed(mixtures: np.ndarray, shares: sparse.csr_array, topics: np.ndarray, prior: np.ndarray) -> np.ndarray:
    expected = prior + mixtures * (shares @ topics.T)
    return expected / expected.sum(axis=1, keepdims=True)


def log_likelihood(counts: sparse.csr_array, documents: np.ndarray, topics: np.ndarray) -> float:
    """Return the log-likelihood of all words, given mixtures (documents, k) of sum one."""
    return float(np.sum(counts.data * np.log(np.maximum(at_entries(documents, topics, counts), 1e-300))))


def topic_posteriors(counts: sparse.csr_array, topics: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the probability (documents, k) of each topic for documents that are about one alone."""
    joint = _joint(counts, topics, weights)
    return np.exp(joint - logsumexp(joint, axis=1, keepdims=True))


def topic_log_likelihood(counts: sparse.csr_array, topics: np.ndarray, weights: np.ndarray) -> float:
    """Return the log-likelihood of documents that are about one topic each."""
    return float(np.sum(logsumexp(_joint(counts, topics, weights), axis=1)))


def _joint(counts: sparse.csr_array, topics: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return counts @ np.log(np.maximum(topics, 1e-300)).T + np.log(np.maximum(weights, 1e-300))
