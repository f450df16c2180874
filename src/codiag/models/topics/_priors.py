"""Parameters of Dirichlet priors, estimated from expected counts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import psi

N_WHOLE = 32


KNOTS = np.concatenate([np.arange(float(N_WHOLE)), np.geomspace(N_WHOLE, 1e9, 100)])
"""Numbers between which others are interpolated, so that sums over documents have a fixed size."""


N_ITERATIONS = 10


LEAST_PRIOR_TOTAL, LARGEST = 1e-4, 1e4
"""Bounds of parameters: below, one word decides everything; above, all shares are alike."""


class Presence(NamedTuple):
    """Sums over documents from which the parameters of both Dirichlet distributions are estimated."""

    topics: np.ndarray  # (k, knots): how often topics have as many words in a document
    lengths: np.ndarray  # (1, knots): how many documents have as many words
    absent: np.ndarray  # (k, words): log-probabilities that a word never belongs to a topic


def numbers_of(values: np.ndarray, weights: np.ndarray | float = 1.0) -> np.ndarray:
    """Return how often numbers (rows, n) occur, (rows, knots), each shared between the two knots about it."""
    inside = np.minimum(values, KNOTS[-1])
    low = inside.astype(np.intp)  # as the first knots are the whole numbers
    large = inside >= N_WHOLE
    low[large] = np.minimum(np.searchsorted(KNOTS, inside[large], side="right") - 1, KNOTS.size - 2)
    above = (inside - KNOTS[low]) / (KNOTS[low + 1] - KNOTS[low])
    places = low + KNOTS.size * np.arange(len(values))[:, None]
    size = KNOTS.size * len(values)
    lower = np.bincount(places.ravel(), (weights * (1 - above)).ravel(), minlength=size)
    upper = np.bincount(places.ravel() + 1, (weights * above).ravel(), minlength=size)
    return (lower + upper).reshape(len(values), -1)


def random_numbers_of(absent: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Return how often random numbers (rows, n) occur, of means and log-probabilities to be zero.

    Those that are not zero are taken to be as large as they are on average. Means alone would not do: a topic with half
    a word in every document has no word in half of them, and looks much less variable than it is.
    """
    present = np.maximum(-np.expm1(absent), 1e-12)
    return numbers_of(np.maximum(means / present, 1), present)


def estimated_prior(known: Presence, prior: np.ndarray) -> np.ndarray:
    """Return the parameters (k,) of mixtures, after fixed-point steps (Minka, 2000) from those given."""
    for _ in range(N_ITERATIONS):
        total = _digamma_sums(known.lengths, np.array([prior.sum()]))[0]
        prior = np.clip(prior * _digamma_sums(known.topics, prior) / max(total, 1e-300), LEAST_PRIOR_TOTAL, LARGEST)
    return prior


def estimated_word_prior(absent: np.ndarray, words: np.ndarray, parameter: float) -> float:
    """Return the one parameter of topics, from numbers of words and log-probabilities to be zero, (k, words)."""
    numbers = random_numbers_of(absent, words).sum(axis=0, keepdims=True)
    totals, n_words = numbers_of(words.sum(axis=1)[None]), words.shape[1]
    for _ in range(N_ITERATIONS):
        total = n_words * _digamma_sums(totals, np.array([n_words * parameter]))[0]
        inside = _digamma_sums(numbers, np.array([parameter]))[0]
        parameter = float(np.clip(parameter * inside / max(total, 1e-300), LEAST_PRIOR_TOTAL, LARGEST))
    return parameter


def _digamma_sums(numbers: np.ndarray, parameters: np.ndarray) -> np.ndarray:
    """Return the sums over numbers n, row by row, of digamma(n + a) - digamma(a), for a parameter a of each row."""
    terms = psi(KNOTS[1:] + parameters[:, None]) - psi(parameters)[:, None]
    found: np.ndarray = np.sum(numbers[:, 1:] * terms, axis=1)
    return found
