"""Sparse counts of words under mixtures of topics: likelihoods and posterior probabilities."""

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
