r"""Standard errors and intervals of the workers of a crowd.

With pseudo-counts that are given, standard errors come from the information in the likelihood, and the other workers
are taken as known. With an estimated prior they come from Gibbs sampling, in which the classes of the tasks, the other
workers and the prior are all uncertain.

A round of sampling draws the classes of the tasks, the kinds of the workers, their confusion matrices and all
frequencies. Given the classes, the numbers of right votes are known. Over tasks drawn at random each vote of a worker
is right with one probability, the accuracy of the worker, whatever the accuracies by class. The distribution of this
accuracy over workers is a mixture of Beta distributions on a grid, whose frequencies are drawn as well.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import betaincinv, betaln, gammaln

from codiag._arrays import blocks
from codiag.models.crowd._em import (
    ADDED,
    SKILLS,
    STRENGTH,
    CrowdModel,
    CrowdPrior,
    Outcomes,
    Prior,
    Run,
    expect,
    kind_scores,
)
from codiag.models.crowd._votes import Votes

LEVEL = 0.9
"""Probability that an accuracy lies in its interval."""
LOW, HIGH = (f"accuracy_{end}_{round(100 * LEVEL)}" for end in ("low", "high"))
"""Names of the columns with the ends of the intervals of accuracies."""
TAILS = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
"""Probabilities of the quantiles that bound an interval."""
ROUNDS, FEWEST_ROUNDS = 60, 20
"""Rounds of sampling that are used, after a fifth as many that are not; fewer, down to the second, for large crowds."""
MOST_NUMBERS = 3 * 10**7
"""Random numbers in all rounds above which there are fewer rounds; a bound on the time."""
DRAWS = 10
"""Accuracies that are drawn in every round."""
MEAN, SPREAD = (grid.ravel() for grid in np.meshgrid(SKILLS, [4.0, 16.0, 64.0], indexing="ij"))
"""Mean and strength of the Beta distributions of accuracies."""
FIRST, SECOND = MEAN * SPREAD, (1 - MEAN) * SPREAD
"""Parameters of these Beta distributions."""
ADDED_ACCURACY = np.where(MEAN > 0.5, 1.0, 0.01) / np.sum(np.where(MEAN > 0.5, 1.0, 0.01))
"""Pseudo-counts of these distributions, one worker in all, as `ADDED` of the kinds."""


class Uncertainty(NamedTuple):
    """Standard errors of confusion matrices (workers, given, true) and accuracies; intervals of accuracies.

    Also standard errors of the shares of classes; zero if these are given.
    """

    confusions: np.ndarray
    accuracies: np.ndarray
    intervals: np.ndarray
    shares: np.ndarray

    def widened(self, accuracies: np.ndarray, spread: np.ndarray) -> Uncertainty:
        """Return the same with a further standard deviation of the accuracies (workers,), around these."""
        errors = np.hypot(self.accuracies, spread)
        return self._replace(accuracies=errors, intervals=beta_intervals(accuracies, errors))

    def with_labels(self, labels: np.ndarray, shares: np.ndarray) -> Uncertainty:
        """Return the same for the labels as given, if label c of these results is ``labels[c]``.

        Let p be the probability that a worker gives the label that denotes the class, as one coin has it. The worker is
        right with probability p if the class has the name of that label, and otherwise with probability
        (1 - p) / (k - 1). The first has the probability that is the sum of the shares of such classes.
        """
        same = labels == np.arange(labels.size)
        if np.all(same):
            return self
        share = float(np.sum(shares[same]))
        constant = (1 - share) / (labels.size - 1)
        slope = share - constant
        return self._replace(
            confusions=self.confusions[:, np.argsort(labels)],
            accuracies=abs(slope) * self.accuracies,
            intervals=np.sort(constant + slope * self.intervals, axis=1),
        )


def information_uncertainty(votes: Votes, run: Run, prior: Prior) -> Uncertainty:
    """Return standard errors by the inverse of the information, and intervals of Beta distributions that have them."""
    errors = _confusion_errors(votes, run, prior)
    by_class = np.einsum("wcc->wc", errors) * run.model.shares
    accuracies = by_class.sum(axis=1) if prior.one_coin else np.sqrt(np.sum(by_class**2, axis=1))
    return Uncertainty(errors, accuracies, beta_intervals(run.model.accuracies, accuracies), _share_errors(run, prior))


def beta_intervals(means: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Return intervals of Beta distributions with these means and standard deviations, (n, 2)."""
    means = np.clip(means, 1e-9, 1 - 1e-9)
    strength = np.maximum(means * (1 - means) / np.maximum(errors, 1e-9) ** 2 - 1, 1e-3)
    return betaincinv((means * strength)[:, None], ((1 - means) * strength)[:, None], np.array(TAILS))


def _confusion_errors(votes: Votes, run: Run, prior: Prior) -> np.ndarray:
    """Return standard errors of confusion matrices, (workers, given, true).

    The information is the sum of squared scores, plus the curvature of the prior.
    """
    n_workers, k, _ = run.model.confusions.shape
    if prior.one_coin:
        return _one_coin_errors(votes, run, prior)
    parts = []
    for some in blocks(n_workers, k**3):
        rows = votes.by_worker[some.start * k : some.stop * k]
        parts.append(_errors_of_workers(rows, run.classes, run.model.confusions[some], prior.cells))
    return np.concatenate(parts)


def _share_errors(run: Run, prior: Prior) -> np.ndarray:
    r"""Return standard errors of the shares of classes, (true,): a task has the score :math:`q_c / \pi_c`."""
    shares = np.maximum(run.model.shares, 1e-9)
    if prior.shares is not None or shares.size == 1:
        return np.zeros(shares.size)
    scores = run.classes / shares
    inverse = np.linalg.inv(scores.T @ scores + np.diag(max(prior.tasks, 1e-6) / shares**2))
    sums = inverse.sum(axis=1)
    return np.asarray(np.sqrt(np.maximum(np.diag(inverse) - sums**2 / sums.sum(), 0)))


def _errors_of_workers(
    rows: sparse.csr_array, classes: np.ndarray, confusions: np.ndarray, added: np.ndarray
) -> np.ndarray:
    r"""Return standard errors for some workers.

    A vote l on task t has the score :math:`q_{tc} / C[l, c]`. Scores of different labels do not interact, so the
    information of a worker is a matrix :math:`A_l` over true classes for each given label. As columns of C sum to one,
    the covariance is :math:`A_l^{-1} - A_l^{-1} (\sum_m A_m^{-1})^{-1} A_l^{-1}`.
    """
    k = confusions.shape[-1]
    positive = np.maximum(confusions, 1e-9)
    information = np.empty((*confusions.shape, k))  # worker, given, true, true
    for c in range(k):
        products = (rows @ (classes[:, c : c + 1] * classes)).reshape(confusions.shape)
        information[:, :, c] = products / (positive[:, :, c : c + 1] * positive)
    information[:, :, range(k), range(k)] += np.maximum(added, 1e-6) / positive**2
    inverse = np.linalg.inv(information)
    constrained = inverse - inverse @ np.linalg.inv(inverse.sum(axis=1))[:, None] @ inverse
    return np.sqrt(np.maximum(constrained[:, :, range(k), range(k)], 0))


def _one_coin_errors(votes: Votes, run: Run, prior: Prior) -> np.ndarray:
    """Return the same if a worker is right with one probability a: a vote has the score q / a - (1 - q) / (1 - a)."""
    n_workers, k, _ = run.model.confusions.shape
    accuracy = np.clip(run.model.confusions[:, 0, 0], 1e-9, 1 - 1e-9)
    right = run.classes[votes.task, votes.label]
    scores = right / accuracy[votes.worker] - (1 - right) / (1 - accuracy[votes.worker])
    information = np.bincount(votes.worker, weights=scores**2, minlength=n_workers)
    diagonal = np.trace(prior.cells)
    information += diagonal / accuracy**2 + (prior.cells.sum() - diagonal) / (1 - accuracy) ** 2
    errors = 1 / np.sqrt(np.maximum(information, 1e-12))
    return errors[:, None, None] * np.where(np.eye(k, dtype=bool), 1.0, 1 / max(k - 1, 1))


class State(NamedTuple):
    """What every round draws: workers and class shares, the prior of workers, and frequencies of accuracies."""

    model: CrowdModel
    prior: CrowdPrior
    accuracies: np.ndarray


def sample_uncertainty(
    votes: Votes,
    run: Run,
    prior: CrowdPrior,
    shares: np.ndarray | None,
    rng: np.random.Generator,
    *,
    is_fixed: bool = False,
) -> Uncertainty:
    """Return the uncertainty of the workers of a run by Gibbs sampling; `shares` of the classes if they are known.

    If the probabilities of the classes are fixed, as for workers who depend on each other, these are drawn from.
    """
    n_workers, k, _ = run.model.confusions.shape
    one_coin = prior.ease.size < k
    n_rounds = int(np.clip(MOST_NUMBERS // (n_workers * k**2 + votes.label.size * k), FEWEST_ROUNDS, ROUNDS))
    state = State(run.model, prior, np.full(MEAN.size, 1 / MEAN.size))
    moments, share_moments = np.zeros((2, n_workers, k, k)), np.zeros((2, k))
    drawn = np.empty((n_rounds, DRAWS, n_workers))
    for turn in range(-(n_rounds // 5), n_rounds):
        truth = _draw(run.classes if is_fixed else expect(votes, state.model).classes, rng)[0]
        places = (votes.worker * k + votes.label) * k + truth[votes.task]
        cells = np.bincount(places, minlength=n_workers * k**2).reshape(n_workers, k, k).astype(np.float64)
        tasks = 1.0 + np.bincount(truth, minlength=k)
        drawn_shares = rng.dirichlet(tasks) if shares is None else shares
        state, *worker_moments = _draw_workers(Outcomes.of(cells, one_coin=one_coin), state, drawn_shares, rng)
        state, accuracies = _draw_accuracies(np.einsum("wcc->w", cells), votes.votes_of_workers, state, rng)
        if turn >= 0:
            moments += worker_moments
            share_moments += _dirichlet_moments(tasks)
            drawn[turn] = accuracies
    draws = drawn.reshape(-1, n_workers)
    intervals = np.quantile(draws, TAILS, axis=0).T
    share_errors = _deviation(share_moments / n_rounds) if shares is None else np.zeros(k)
    return Uncertainty(_deviation(moments / n_rounds), draws.std(axis=0), intervals, share_errors)


def _deviation(moments: np.ndarray) -> np.ndarray:
    """Return standard deviations from first and second moments (2, ...)."""
    return np.sqrt(np.maximum(moments[1] - moments[0] ** 2, 0))


def _dirichlet_moments(alpha: np.ndarray) -> np.ndarray:
    """Return the first and second moments (2, k) of shares that have a Dirichlet distribution."""
    total = alpha.sum()
    return np.stack([alpha / total, alpha * (alpha + 1) / (total * (total + 1))])


def _draw(weights: np.ndarray, rng: np.random.Generator, size: int = 1) -> np.ndarray:
    """Return indices of columns for every row, (size, n_rows), with probabilities proportional to the weights."""
    n_rows, n_columns = weights.shape
    sums = np.cumsum(weights, axis=1)
    rows = np.arange(n_rows)
    steps = (sums / sums[:, -1:] + rows[:, None]).ravel()  # those of row r lie between r and r + 1: one search for all
    indices = np.searchsorted(steps, rng.random((size, n_rows)) + rows) - rows * n_columns
    return np.clip(indices, 0, n_columns - 1)


def _draw_kinds(scores: np.ndarray, frequencies: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return a kind for every worker, and the weights it was drawn by."""
    joint = scores + np.log(frequencies)
    weights = np.exp(joint - joint.max(axis=1, keepdims=True))
    return _draw(weights, rng)[0], weights


def _draw_frequencies(kinds: np.ndarray, added: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return positive frequencies of kinds, given how often they were drawn."""
    amounts = rng.gamma(np.bincount(kinds, minlength=added.size) + added) + 1e-12
    return amounts / amounts.sum()


def _draw_workers(
    outcomes: Outcomes, state: State, shares: np.ndarray, rng: np.random.Generator
) -> tuple[State, np.ndarray, np.ndarray]:
    """Return new workers, and first and second moments of the distribution of their confusion matrices."""
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
        amounts = np.where(same, 0.0, rng.gamma(alpha) + 1e-300)
        pattern = amounts / amounts.sum(axis=1, keepdims=True)
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
