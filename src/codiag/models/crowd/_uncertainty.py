r"""How well votes determine workers, from the information in the likelihood: the other workers are taken for known.

How well votes determine workers, with the truth, the other workers and the crowd itself uncertain: Gibbs sampling.

A round draws the classes of the tasks, the kinds of the workers, their confusion matrices and all frequencies. Given
the classes, it is known which votes are right. Over tasks drawn at random each vote of a worker is right with one
probability, the worker's accuracy, whatever its parts by class; its distribution over workers is a mixture of Beta
distributions on a grid, whose frequencies are drawn too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import betaincinv, betaln, gammaln

from codiag._arrays import blocks
from codiag.models.crowd._em import CrowdModel, Prior, Run, expect
from codiag.models.crowd._prior import ADDED, SKILLS, STRENGTH, CrowdPrior, Outcomes, kind_scores
from codiag.models.crowd._votes import Votes

LEVEL = 0.9
"""The probability with which an accuracy lies in its interval."""


class Uncertainty(NamedTuple):
    """Standard errors of confusion matrices (workers, given, true) and of accuracies, intervals of accuracies.

    Also standard errors of the shares of classes; zero where these are given.
    """

    confusions: np.ndarray
    accuracies: np.ndarray
    intervals: np.ndarray
    shares: np.ndarray

    def with_labels(self, labels: np.ndarray, shares: np.ndarray) -> Uncertainty:
        """Return the same where label c was label ``labels[c]``, and classes have these shares.

        Let p be the probability that a worker gives the label that stands for the class. If the class has the name of
        that label, the worker is right with probability p, and otherwise with probability (1 - p) / (k - 1).
        """
        same = labels == np.arange(labels.size)
        if np.all(same):
            return self
        named = float(np.sum(shares[same]))
        rest = (1 - named) / (labels.size - 1)
        slope = named - rest
        return self._replace(
            confusions=self.confusions[:, np.argsort(labels)],
            accuracies=abs(slope) * self.accuracies,
            intervals=np.sort(rest + slope * self.intervals, axis=1),
        )


def information_uncertainty(votes: Votes, run: Run, prior: Prior) -> Uncertainty:
    """Return standard errors by the inverse of the information, and intervals of Beta distributions that have them."""
    deviations = standard_errors(votes, run, prior)
    by_class = np.einsum("wcc->wc", deviations) * run.model.shares
    accuracies = by_class.sum(axis=1) if prior.one_coin else np.sqrt(np.sum(by_class**2, axis=1))
    return Uncertainty(
        deviations, accuracies, beta_intervals(run.model.accuracies, accuracies), _share_deviations(run, prior)
    )


def beta_intervals(means: np.ndarray, deviations: np.ndarray) -> np.ndarray:
    """Return intervals of Beta distributions with these means and standard deviations, (n, 2)."""
    means = np.clip(means, 1e-9, 1 - 1e-9)
    strength = np.maximum(means * (1 - means) / np.maximum(deviations, 1e-9) ** 2 - 1, 1e-3)
    tails = np.array([(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return betaincinv((means * strength)[:, None], ((1 - means) * strength)[:, None], tails)


def standard_errors(votes: Votes, run: Run, prior: Prior) -> np.ndarray:
    """Return standard errors of confusion matrices, (workers, given, true).

    The information is the sum of squared scores, plus the curvature of the prior.
    """
    n_workers, k, _ = run.model.confusions.shape
    if prior.one_coin:
        return _one_coin_deviations(votes, run, prior)
    parts = []
    for some in blocks(n_workers, k**3):
        rows = votes.by_worker[some.start * k : some.stop * k]
        parts.append(_deviations(rows, run.classes, run.model.confusions[some], prior.cells))
    return np.concatenate(parts)


def _share_deviations(run: Run, prior: Prior) -> np.ndarray:
    r"""Return standard errors of the shares of classes, (true,): a task has the score :math:`q_c / \pi_c`."""
    shares = np.maximum(run.model.shares, 1e-9)
    if prior.shares is not None or shares.size == 1:
        return np.zeros(shares.size)
    scores = run.classes / shares
    inverse = np.linalg.inv(scores.T @ scores + np.diag(max(prior.tasks, 1e-6) / shares**2))
    ends = inverse.sum(axis=1)
    return np.asarray(np.sqrt(np.maximum(np.diag(inverse) - ends**2 / ends.sum(), 0)))


def _deviations(rows: sparse.csr_array, classes: np.ndarray, confusions: np.ndarray, added: np.ndarray) -> np.ndarray:
    r"""Return standard errors for some workers.

    A vote l on task t has the score :math:`q_{tc} / C[l, c]`. Scores of unlike votes do not mix, so the information of
    a worker is a matrix :math:`A_l` over true classes for each given label; as columns of C sum to one, the covariance
    is :math:`A_l^{-1} - A_l^{-1} (\sum_m A_m^{-1})^{-1} A_l^{-1}`.
    """
    k = confusions.shape[-1]
    floored = np.maximum(confusions, 1e-9)
    information = np.empty((*confusions.shape, k))  # worker, given, true, true
    for c in range(k):
        together = (rows @ (classes[:, c : c + 1] * classes)).reshape(confusions.shape)
        information[:, :, c] = together / (floored[:, :, c : c + 1] * floored)
    information[:, :, range(k), range(k)] += np.maximum(added, 1e-6) / floored**2
    inverse = np.linalg.inv(information)
    constrained = inverse - inverse @ np.linalg.inv(inverse.sum(axis=1))[:, None] @ inverse
    return np.sqrt(np.maximum(constrained[:, :, range(k), range(k)], 0))


def _one_coin_deviations(votes: Votes, run: Run, prior: Prior) -> np.ndarray:
    """Return the same where a worker has one probability a to be right: a vote's score is q / a - (1 - q) / (1 - a)."""
    n_workers, k, _ = run.model.confusions.shape
    right = np.clip(run.model.confusions[:, 0, 0], 1e-9, 1 - 1e-9)
    chance = run.classes[votes.task, votes.label]
    scores = chance / right[votes.worker] - (1 - chance) / (1 - right[votes.worker])
    information = np.bincount(votes.worker, weights=scores**2, minlength=n_workers)
    diagonal = np.trace(prior.cells)
    information += diagonal / right**2 + (prior.cells.sum() - diagonal) / (1 - right) ** 2
    deviation = 1 / np.sqrt(np.maximum(information, 1e-12))
    return deviation[:, None, None] * np.where(np.eye(k, dtype=bool), 1.0, 1 / max(k - 1, 1))


ROUNDS, FEWEST_ROUNDS, MOST_NUMBERS = 60, 20, 3 * 10**7
"""Rounds that are kept: fewer, down to a limit, where all together would draw more numbers than that."""
DRAWS = 10
"""Accuracies that are drawn from every round."""
MEAN, SPREAD = (grid.ravel() for grid in np.meshgrid(SKILLS, [4.0, 16.0, 64.0], indexing="ij"))
FIRST, SECOND = MEAN * SPREAD, (1 - MEAN) * SPREAD
ADDED_ACCURACY = np.where(MEAN > 0.5, 1.0, 0.01) / np.sum(np.where(MEAN > 0.5, 1.0, 0.01))


class State(NamedTuple):
    """What is drawn anew in every round: workers and class shares, the prior of workers, frequencies of accuracies."""

    model: CrowdModel
    prior: CrowdPrior
    accuracies: np.ndarray


def sample_uncertainty(
    votes: Votes, run: Run, prior: CrowdPrior, shares: np.ndarray | None, rng: np.random.Generator
) -> Uncertainty:
    """Return how uncertain the workers of a run are; `shares` are those of the classes where they are known."""
    n_workers, k, _ = run.model.confusions.shape
    one_coin = prior.ease.size < k
    kept = int(np.clip(MOST_NUMBERS // (n_workers * k**2 + votes.label.size * k), FEWEST_ROUNDS, ROUNDS))
    state = State(run.model, prior, np.full(MEAN.size, 1 / MEAN.size))
    moments, share_moments = np.zeros((2, n_workers, k, k)), np.zeros((2, k))
    drawn = np.empty((kept, DRAWS, n_workers))
    for turn in range(-(kept // 5), kept):
        truth = _draw(expect(votes, state.model)[0], rng)[0]
        places = (votes.worker * k + votes.label) * k + truth[votes.task]
        cells = np.bincount(places, minlength=n_workers * k**2).reshape(n_workers, k, k).astype(np.float64)
        tasks = 1.0 + np.bincount(truth, minlength=k)
        drawn_shares = rng.dirichlet(tasks) if shares is None else shares
        state, first, second = _draw_workers(Outcomes.of(cells, one_coin=one_coin), state, drawn_shares, rng)
        state, accuracies = _draw_accuracies(np.einsum("wcc->w", cells), votes.votes_of_workers, state, rng)
        if turn >= 0:
            moments += first, second
            share_moments += _dirichlet_moments(tasks)
            drawn[turn] = accuracies
    mean, square = moments / kept
    tails = np.quantile(drawn.reshape(-1, n_workers), [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    deviations = drawn.reshape(-1, n_workers).std(axis=0)
    center, spread = share_moments / kept
    share_deviations = np.sqrt(np.maximum(spread - center**2, 0)) if shares is None else np.zeros(k)
    return Uncertainty(np.sqrt(np.maximum(square - mean**2, 0)), deviations, tails.T, share_deviations)


def _dirichlet_moments(alpha: np.ndarray) -> np.ndarray:
    """Return the first and second moments (2, k) of shares that have a Dirichlet distribution."""
    total = alpha.sum()
    return np.stack([alpha / total, alpha * (alpha + 1) / (total * (total + 1))])


def _draw(weights: np.ndarray, rng: np.random.Generator, size: int = 1) -> np.ndarray:
    """Return places in every row, (size, n_rows), as probable as their weights."""
    n_rows, n_places = weights.shape
    sums = np.cumsum(weights, axis=1)
    rows = np.arange(n_rows)
    steps = (sums / sums[:, -1:] + rows[:, None]).ravel()  # those of row r lie between r and r + 1: one search for all
    found = np.searchsorted(steps, rng.random((size, n_rows)) + rows) - rows * n_places
    return np.clip(found, 0, n_places - 1)


def _draw_kinds(scores: np.ndarray, frequencies: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return a kind for every worker, and the weights it was drawn by."""
    joint = scores + np.log(frequencies)
    weights = np.exp(joint - joint.max(axis=1, keepdims=True))
    return _draw(weights, rng)[0], weights


def _draw_frequencies(kinds: np.ndarray, added: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return frequencies of kinds, given how often they were drawn, none of them zero."""
    amounts = rng.gamma(np.bincount(kinds, minlength=added.size) + added) + 1e-12
    return amounts / amounts.sum()


def _draw_workers(
    outcomes: Outcomes, state: State, shares: np.ndarray, rng: np.random.Generator
) -> tuple[State, np.ndarray, np.ndarray]:
    """Return new workers, and first and second moments of the distribution their confusion matrices are drawn from."""
    prior, k = state.prior, shares.size
    kinds, _ = _draw_kinds(kind_scores(outcomes, prior), prior.frequencies, rng)
    prior = prior._replace(frequencies=_draw_frequencies(kinds, ADDED, rng))
    strength = STRENGTH[kinds][:, None]
    first = strength * prior.rates[kinds] + outcomes.right
    total = strength + outcomes.right + outcomes.wrong
    mean, variance = first / total, first * (total - first) / (total**2 * (total + 1))
    right = rng.beta(first, total - first)
    pattern = center = np.full((1, k, k), 1 / max(k - 1, 1))
    scatter = np.zeros_like(center)
    same = np.eye(k, dtype=bool)
    if outcomes.cells is not None and k > 1:
        alpha = np.where(same, 0.0, prior.strength * prior.wrong + outcomes.cells)
        size = alpha.sum(axis=1, keepdims=True)
        center, scatter = alpha / size, alpha * (size - alpha) / (size**2 * (size + 1))
        drawn = np.where(same, 0.0, rng.gamma(alpha) + 1e-300)
        pattern = drawn / drawn.sum(axis=1, keepdims=True)
    confusions = np.where(same, right[:, None], (1 - right)[:, None] * pattern)
    means = np.where(same, mean[:, None], (1 - mean)[:, None] * center)
    squares = np.where(same, mean[:, None] ** 2, (1 - mean)[:, None] ** 2 * (center**2 + scatter))
    squares += variance[:, None] * np.where(same, 1.0, center**2 + scatter)
    model = CrowdModel(np.clip(confusions, 1e-12, 1.0), shares)
    return State(model, prior, state.accuracies), means, squares


def _draw_accuracies(
    right: np.ndarray, totals: np.ndarray, state: State, rng: np.random.Generator
) -> tuple[State, np.ndarray]:
    """Return a state with new frequencies of accuracies, and accuracies (draws, workers), given the right votes."""
    scores = gammaln(FIRST + right[:, None]) + gammaln(SECOND + (totals - right)[:, None])
    scores -= gammaln(SPREAD + totals[:, None]) + betaln(FIRST, SECOND)
    kinds, weights = _draw_kinds(scores, state.accuracies, rng)
    places = _draw(weights, rng, DRAWS)
    accuracies = rng.beta(FIRST[places] + right, SECOND[places] + (totals - right))
    return state._replace(accuracies=_draw_frequencies(kinds, ADDED_ACCURACY, rng)), accuracies
