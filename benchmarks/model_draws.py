"""Data drawn from models, the same true parameters in every draw, for intervals to hold."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from codiag.models import (
    DawidSkene,
    HiddenMarkov,
    LatentDirichlet,
    MixedMembershipSBM,
    MultiviewMixture,
    SingleTopic,
    SphericalGaussianMixture,
)
from codiag.synthetic import crowd_votes, unit_factor, worker_confusions

Drawn = tuple[Any, dict[str, Any]]
"""Data, and the true parameters by name."""


class Case(NamedTuple):
    """How data is drawn, what it is fitted by, and the parameter by which components are told apart."""

    draw: Callable[[int], Drawn]
    model: Any
    key: str | None
    blocks: bool = True


def gaussians(seed: int, n: int = 2000, d: int = 6) -> Drawn:
    """Three spherical Gaussians."""
    means, weights = 3 * unit_factor(d, 3, np.random.default_rng(101)).T, np.array([0.5, 0.3, 0.2])
    variances, rng = np.array([0.5, 1.0, 1.5]), np.random.default_rng(seed)
    h = rng.choice(3, n, p=weights)
    samples = means[h] + np.sqrt(variances[h])[:, None] * rng.standard_normal((n, d))
    return samples, {"means": means, "weights": weights, "covariances": variances}


def diagonal(seed: int, n: int = 2000, d: int = 6) -> Drawn:
    """Three Gaussians whose variances differ between features."""
    means, weights = 3 * unit_factor(d, 3, np.random.default_rng(102)).T, np.array([0.5, 0.3, 0.2])
    variances, rng = np.random.default_rng(103).uniform(0.5, 1.5, (3, d)), np.random.default_rng(seed)
    h = rng.choice(3, n, p=weights)
    samples = means[h] + np.sqrt(variances[h]) * rng.standard_normal((n, d))
    return samples, {"means": means, "weights": weights, "covariances": variances}


def views(seed: int, n: int = 2000) -> Drawn:
    """Three components seen from three sides."""
    rng = np.random.default_rng(104)
    means, weights = [rng.standard_normal((3, d)) for d in (4, 5, 6)], np.array([0.5, 0.3, 0.2])
    variances, rng = np.array([0.25, 0.5, 1.0]), np.random.default_rng(seed)
    h = rng.choice(3, n, p=weights)
    noisy = [m[h] + np.sqrt(v) * rng.standard_normal((n, m.shape[1])) for m, v in zip(means, variances, strict=True)]
    return noisy, {"means": means, "weights": weights, "variances": variances}


def single_topics(seed: int, n: int = 2000, words: int = 20) -> Drawn:
    """Documents of ten words, about one topic each."""
    topics, weights = np.random.default_rng(105).dirichlet(np.full(words, 0.5), 3), np.array([0.5, 0.3, 0.2])
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(10, topics[rng.choice(3, n, p=weights)])
    return counts, {"components": topics, "weights": weights}


def mixed_topics(seed: int, n: int = 2000, words: int = 20, length: int = 40) -> Drawn:
    """Documents that mix topics."""
    topics, prior = np.random.default_rng(106).dirichlet(np.full(words, 0.5), 3), np.array([0.5, 0.3, 0.2])
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(length, rng.dirichlet(prior, n) @ topics)
    return counts, {"components": topics, "weights": prior, "doc_topic_prior": prior}


def _chain(rng: np.random.Generator, n: int, start: np.ndarray, moves: np.ndarray, shown: np.ndarray) -> np.ndarray:
    states, draws, ladder = np.empty(n, dtype=int), rng.random(n), np.cumsum(moves, axis=1)
    states[0] = rng.choice(start.size, p=start)
    for time in range(1, n):
        states[time] = min(np.searchsorted(ladder[states[time - 1]], draws[time]), start.size - 1)
    symbols = np.sum(np.cumsum(shown, axis=1)[states] < rng.random(n)[:, None], axis=1)
    return np.minimum(symbols, shown.shape[1] - 1)


MOVES = np.array([[0.80, 0.15, 0.05], [0.05, 0.80, 0.15], [0.20, 0.05, 0.75]])


def chain(seed: int, n: int = 6000) -> Drawn:
    """One long sequence of three states that stay for five symbols, on average."""
    shown, rng = np.random.default_rng(107).dirichlet(np.full(6, 0.5), 3), np.random.default_rng(seed)
    return _chain(rng, n, np.full(3, 1 / 3), MOVES, shown), {"transmat": MOVES, "emissionprob": shown}


def sequences(seed: int, n: int = 400, length: int = 20) -> Drawn:
    """Many short sequences, which begin in some states more often than in others."""
    shown, rng = np.random.default_rng(107).dirichlet(np.full(6, 0.5), 3), np.random.default_rng(seed)
    start = np.array([0.6, 0.3, 0.1])
    found = [_chain(rng, length, start, MOVES, shown) for _ in range(n)]
    return found, {"transmat": MOVES, "emissionprob": shown, "startprob": start}


def crowd(seed: int, n: int = 600, n_workers: int = 20, density: float = 0.4) -> Drawn:
    """Twenty workers with 240 votes each, about, on tasks of three classes."""
    errors, priors = worker_confusions(n_workers, 3, rng=108), np.array([0.5, 0.3, 0.2])
    votes = crowd_votes(n, errors, density=density, priors=priors, rng=seed).votes
    return votes, {"confusion": errors, "priors": priors}


def graph(seed: int, n: int = 400, alpha_0: float = 1.0) -> Drawn:
    """Three communities of nodes with 55 links, about."""
    memberships = np.random.default_rng(111).dirichlet(np.full(3, alpha_0 / 3), n)
    rates = 0.05 + 0.25 * np.eye(3)
    linked = np.triu(np.random.default_rng(seed).random((n, n)) < memberships @ rates @ memberships.T, 1)
    return sparse.csr_array((linked | linked.T).astype(float)), {"memberships": memberships}


CASES: dict[str, dict[str, Case]] = {
    "gaussians": {
        "SphericalGaussianMixture, moments": Case(
            gaussians, SphericalGaussianMixture(3, max_iter=0, random_state=0), "means"
        ),
        "10 steps of EM": Case(gaussians, SphericalGaussianMixture(3, random_state=0), "means"),
        "diagonal, 30 steps of EM": Case(
            diagonal, SphericalGaussianMixture(3, covariance_type="diag", max_iter=30, random_state=0), "means"
        ),
    },
    "views": {
        "MultiviewMixture, moments": Case(views, MultiviewMixture(3, random_state=0), "means"),
        "10 steps of EM": Case(views, MultiviewMixture(3, max_iter=10, random_state=0), "means"),
    },
    "single topics": {
        "SingleTopic, moments": Case(single_topics, SingleTopic(3, max_iter=0, random_state=0), "components"),
        "10 steps": Case(single_topics, SingleTopic(3, max_iter=10, random_state=0), "components"),
    },
    "mixed topics": {
        "LatentDirichlet, moments": Case(mixed_topics, LatentDirichlet(3, max_iter=0, random_state=0), "components"),
    },
    "chain": {
        "HiddenMarkov, moments": Case(chain, HiddenMarkov(3, max_iter=0, random_state=0), "emissionprob"),
        "10 steps of EM": Case(chain, HiddenMarkov(3, random_state=0), "emissionprob"),
    },
    "sequences": {
        "HiddenMarkov, 400 sequences of 20 symbols, 10 steps": Case(
            sequences, HiddenMarkov(3, random_state=0), "emissionprob"
        ),
    },
    "crowd": {
        "DawidSkene": Case(crowd, DawidSkene(random_state=0), None, blocks=False),
        "smoothing 1": Case(crowd, DawidSkene(smoothing=1.0, random_state=0), None, blocks=False),
    },
    "communities": {
        "MixedMembershipSBM, alpha_0 = 1": Case(
            graph,
            MixedMembershipSBM(3, alpha_0=1.0, degree_corrected=False, random_state=0),
            "memberships",
        ),
        "alpha_0 = 0.1": Case(
            partial(graph, alpha_0=0.1),
            MixedMembershipSBM(3, alpha_0=0.1, degree_corrected=False, random_state=0),
            "memberships",
        ),
    },
}
"""By family of models."""
