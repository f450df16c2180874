"""Data drawn from latent-variable models whose parameters are known."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from codiag.synthetic import Stack, crowd_votes, unit_factor, worker_confusions
from codiag.tensors import symmetrize


def matched(estimate, truth):
    """Return the mean distance of rows after matching, relative to their length."""
    distances = np.linalg.norm(estimate[:, None] - truth[None], axis=2)
    rows, columns = linear_sum_assignment(distances)
    return distances[rows, columns].mean() / np.linalg.norm(truth, axis=1).mean()


def single_topic_corpus(n, seed, *, words=20, k=4, length=10):
    rng = np.random.default_rng(5)
    topics, weights = rng.dirichlet(np.full(words, 0.4), k), np.array([0.4, 0.3, 0.2, 0.1])
    rng = np.random.default_rng(seed)
    return rng.multinomial(length, topics[rng.choice(k, n, p=weights)]), topics, weights


def mixed_corpus(n, seed, *, words=20, k=3, length=40):
    rng = np.random.default_rng(6)
    topics, prior = rng.dirichlet(np.full(words, 0.4), k), np.array([0.5, 0.3, 0.2])
    rng = np.random.default_rng(seed)
    return rng.multinomial(length, rng.dirichlet(prior, n) @ topics), topics, prior


def gaussians(n, seed, *, d=6, k=3):
    rng = np.random.default_rng(7)
    means, weights, variances = 3 * unit_factor(d, k, rng).T, np.array([0.5, 0.3, 0.2]), np.array([0.5, 1.0, 1.5])
    rng = np.random.default_rng(seed)
    h = rng.choice(k, n, p=weights)
    return means[h] + np.sqrt(variances[h])[:, None] * rng.standard_normal((n, d)), means, weights, variances


def views(n, seed, *, k=3):
    rng = np.random.default_rng(8)
    means, weights = [rng.standard_normal((k, d)) for d in (4, 5, 6)], np.array([0.5, 0.3, 0.2])
    rng = np.random.default_rng(seed)
    h = rng.choice(k, n, p=weights)
    return [mean[h] + 0.5 * rng.standard_normal((n, mean.shape[1])) for mean in means], means, weights


def chain(n, seed, *, k=3, symbols=8):
    rng = np.random.default_rng(9)
    transitions = 0.75 * np.eye(k) + 0.25 * np.array([[0.0, 0.9, 0.1], [0.1, 0.0, 0.9], [0.9, 0.1, 0.0]])
    emissions = rng.dirichlet(np.full(symbols, 0.3), k)
    rng = np.random.default_rng(seed)
    states, draws = np.zeros(n, dtype=int), rng.random(n)
    ladder = np.cumsum(transitions, axis=1)
    for step in range(1, n):
        states[step] = min(np.searchsorted(ladder[states[step - 1]], draws[step]), k - 1)
    shown = (np.cumsum(emissions, axis=1)[states] < rng.random(n)[:, None]).sum(axis=1)
    return np.minimum(shown, symbols - 1), transitions, emissions, states


def alike_views(seed):
    """Return samples of components with about the same weight, as the other `alike_` functions do."""
    rng = np.random.default_rng(seed)
    h = rng.integers(0, 3, 400)
    return [3 * unit_factor(d, 3, rng).T[h] + rng.standard_normal((400, d)) for d in (4, 5, 6)]


def alike_gaussians(seed):
    rng = np.random.default_rng(seed)
    return 3 * unit_factor(5, 3, rng).T[rng.integers(0, 3, 400)] + rng.standard_normal((400, 5))


def alike_topics(seed):
    rng = np.random.default_rng(seed)
    return rng.multinomial(15, rng.dirichlet(np.full(12, 0.5), 3)[rng.integers(0, 3, 300)])


def alike_states(seed):
    rng = np.random.default_rng(seed)
    emissions, state, symbols = np.cumsum(rng.dirichlet(np.full(6, 0.3), 3), axis=1), 0, []
    for move, show in rng.random((800, 2)):
        state = state if move < 0.8 else (state + 1) % 3
        symbols.append(min(int(np.searchsorted(emissions[state], show)), 5))
    return symbols


def alike_counts(seed):
    rng = np.random.default_rng(seed)
    return rng.poisson(rng.gamma(0.5, 4.0, size=(3, 6))[rng.integers(0, 3, 400)])


def crowd(k=3, *, n=2000, n_workers=20, density=0.3, adversarial=0.2, seed=0):
    errors = worker_confusions(n_workers, k, adversarial=adversarial, rng=[seed, 1])
    return crowd_votes(n, errors, density=density, rng=[seed, 2])


def named_votes():
    """Return 60 tasks, 8 workers and 3 labels, all of them strings, one vote a row."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 60)
    task, worker = np.nonzero(rng.random((60, 8)) < 0.7)
    given = np.where(rng.random(task.size) < 0.7, truth[task], rng.integers(0, 3, task.size))
    columns = [np.array([f"{name}{i}" for i in column]) for name, column in (("t", task), ("w", worker), ("l", given))]
    return np.stack(columns, axis=1)[rng.permutation(task.size)]


def projection_stack(factor, weights, n_projections, *, noise=0.0, seed=None):
    """Return projections of a noisy symmetric tensor with these components along random unit vectors."""
    rng = np.random.default_rng(seed)
    size = factor.shape[0]
    directions = rng.standard_normal((size, n_projections))
    directions /= np.linalg.norm(directions, axis=0)
    symmetric = symmetrize(rng.standard_normal((size, size, size)))
    diagonals = (directions.T @ factor) * weights
    matrices = (factor * diagonals[:, None, :]) @ factor.T + noise * np.moveaxis(symmetric @ directions, 2, 0)
    return Stack(matrices, factor, factor, diagonals)
