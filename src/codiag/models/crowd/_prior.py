r"""The prior of the workers of a crowd, estimated from their votes (empirical Bayes).

It is a distribution of workers. Given the true class c, a worker is right with a probability that has
a Beta distribution of mean :math:`\sigma(\mathrm{logit}\, r + d_c)` and strength s. Skill r and strength s belong to
the worker and are drawn from a grid, with frequencies that are estimated; the ease :math:`d_c` of a class is common to
all workers. Wrong labels have a Dirichlet distribution of strength t around the wrong labels of all workers. The
estimate for a worker with few votes is then close to that of the crowd, and for a worker with many votes it is close to
the frequencies of these votes. Several kinds of workers are possible, such as experts and spammers. Intervals of
accuracies, and standard errors of confusion matrices, are those of the posterior.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv, betaln, expit, gammaln, logit, logsumexp, softmax

from codiag.models.crowd._em import Prior, Run, Start, counted, run_em
from codiag.models.crowd._votes import Votes

SKILLS = expit(np.linspace(-4.4, 4.4, 34))
"""Grid of skills: probabilities from 0.012 to 0.988."""
STRENGTHS = np.array([2.0, 10.0, 50.0, 250.0, 1250.0])
"""Grid of strengths, in votes: how closely the accuracies of a worker in different classes follow the skill."""
SKILL, STRENGTH = (grid.ravel() for grid in np.meshgrid(SKILLS, STRENGTHS, indexing="ij"))
"""Skill and strength of every kind of worker."""
LEVEL = 0.9
"""Probability that an accuracy lies in its interval."""
LOW, HIGH = (f"accuracy_{end}_{round(100 * LEVEL)}" for end in ("low", "high"))
"""Names of the columns with the ends of the intervals of accuracies."""
TAILS = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
"""Probabilities of the quantiles that bound an interval."""
ADDED = np.where(SKILL > 0.5, 1.0, 0.01) / np.sum(np.where(SKILL > 0.5, 1.0, 0.01))
"""Pseudo-counts of the kinds, one worker in all: 100 times more for skills above 1/2, as most workers are right."""


class Outcomes(NamedTuple):
    """Numbers of right and wrong votes of workers.

    Attributes
    ----------
    right, wrong : arrays of shape (n_workers, n_columns)
        Votes for the true class and for others, by true class; in one column if accuracy does not depend on the class.
    cells : array of shape (n_workers, n_classes, n_classes) or None
        All votes, given label by true class; None if wrong labels are uniform.
    """

    right: np.ndarray
    wrong: np.ndarray
    cells: np.ndarray | None

    @classmethod
    def of(cls, cells: np.ndarray, *, one_coin: bool) -> Outcomes:
        """Return the outcomes of votes (workers, given, true)."""
        right = np.einsum("wcc->wc", cells)
        wrong = np.maximum(cells.sum(axis=1) - right, 0)
        if one_coin:
            return cls(right.sum(axis=1, keepdims=True), wrong.sum(axis=1, keepdims=True), None)
        return cls(right, wrong, cells)


class CrowdPrior(NamedTuple):
    """The distribution of workers.

    Attributes
    ----------
    frequencies : array of shape (n_kinds,)
        The share of each kind among the workers.
    ease : array of shape (n_columns,)
        Amount that a class adds to the logit of a skill.
    wrong : array of shape (n_classes, n_classes)
        Distribution of wrong labels (given, true): columns of sum one, zero on the diagonal.
    strength : float
        Weight of `wrong` in the estimate of a single worker, in votes.
    """

    frequencies: np.ndarray
    ease: np.ndarray
    wrong: np.ndarray
    strength: float

    @property
    def rates(self) -> np.ndarray:
        """Probability that a worker of each kind is right, (n_kinds, n_columns)."""
        return expit(logit(SKILL)[:, None] + self.ease)


def run_with_estimated_prior(
    votes: Votes, start: Start, prior: Prior, max_iter: int, tol: float
) -> tuple[Run, CrowdPrior]:
    """Alternate the estimate of the prior of workers and expectation maximization under it."""
    # the prior of workers and the classes depend on each other
    for _ in range(4):
        cells = counted(votes, start.classes)
        workers = estimate_prior(cells, one_coin=prior.one_coin)
        prior = prior._replace(cells=added_votes(cells, workers), tasks=1.0)
        run = run_em(votes, start, prior, max_iter, tol)
        start = start if max_iter == 0 else Start(run.classes)
    return run, workers


def estimate_prior(cells: np.ndarray, *, one_coin: bool) -> CrowdPrior:
    """Return a prior with large marginal likelihood of the votes (workers, given, true), after a few steps.

    Frequencies of kinds are estimated by expectation maximization. Ease and strength are proposed from the votes of all
    workers together, and accepted if the likelihood rises.
    """
    outcomes, k = Outcomes.of(cells, one_coin=one_coin), cells.shape[1]
    frequencies = np.full(SKILL.size, 1 / SKILL.size)
    prior = CrowdPrior(frequencies, np.zeros(1 if one_coin else k), _wrong_labels(cells.sum(axis=0)), 2.0)
    if outcomes.cells is not None:
        ease = np.log(outcomes.right.sum(axis=0) + 1) - np.log(outcomes.wrong.sum(axis=0) + 1)
        priors = prior, prior._replace(ease=ease - ease.mean())
        prior = max(priors, key=lambda each: np.sum(logsumexp(kind_scores(outcomes, each), axis=1)))
        prior = prior._replace(strength=_climb(lambda strength: _wrong_evidence(cells, prior.wrong, strength), 2.0))
    return prior._replace(frequencies=_frequencies(kind_scores(outcomes, prior)))


def _frequencies(scores: np.ndarray, n_steps: int = 50) -> np.ndarray:
    """Return the shares of the kinds among workers, from log-probabilities of their votes (workers, kinds)."""
    frequencies = np.full(SKILL.size, 1 / SKILL.size)
    for _ in range(n_steps):
        expected = softmax(scores + np.log(frequencies), axis=1).sum(axis=0) + ADDED
        frequencies = expected / expected.sum()
    return frequencies


def accuracy_deviations(right: np.ndarray, wrong: np.ndarray) -> np.ndarray:
    """Return standard deviations of the accuracies of workers, from numbers of right and wrong votes (workers,).

    Accuracies have a mixture of Beta distributions, one for each kind.
    """
    outcomes = Outcomes(right[:, None], wrong[:, None], None)
    prior = CrowdPrior(np.empty(0), np.zeros(1), np.empty((0, 0)), 0.0)
    # workers may be less alike than they seem
    scores = np.where(STRENGTH <= 50.0, kind_scores(outcomes, prior), -np.inf)
    mean, square = _moments(outcomes, prior._replace(frequencies=_frequencies(scores, 10)))
    return np.sqrt(np.maximum(square - mean**2, 0))[:, 0]


def confusion_deviations(cells: np.ndarray, prior: CrowdPrior) -> np.ndarray:
    """Return standard deviations of confusion matrices, given votes (workers, given, true)."""
    k, same = prior.wrong.shape[0], np.eye(prior.wrong.shape[0], dtype=bool)
    outcomes = Outcomes.of(cells, one_coin=prior.ease.size < k)
    mean, square = _moments(outcomes, prior)
    center, scatter = np.full((1, k, k), 1 / max(k - 1, 1)), np.zeros((1, 1, 1))  # of wrong labels
    if outcomes.cells is not None:
        alpha = np.where(same, 0.0, prior.strength * prior.wrong + cells)
        size = np.maximum(alpha.sum(axis=1, keepdims=True), 1e-9)
        center, scatter = alpha / size, alpha * (size - alpha) / (size**2 * (size + 1))
    wrong_square = (1 - 2 * mean + square)[:, None] * (center**2 + scatter)
    variances = np.where(same, (square - mean**2)[:, None], wrong_square - ((1 - mean)[:, None] * center) ** 2)
    return np.sqrt(np.maximum(variances, 0))


def _moments(outcomes: Outcomes, prior: CrowdPrior) -> tuple[np.ndarray, np.ndarray]:
    """Return means and mean squares of the probabilities to be right, (workers, columns), given the votes."""
    kinds = softmax(kind_scores(outcomes, prior) + np.log(prior.frequencies), axis=1)
    mean, square = np.empty_like(outcomes.right), np.empty_like(outcomes.right)
    for c in range(mean.shape[1]):
        first = STRENGTH * prior.rates[:, c] + outcomes.right[:, c, None]
        total = STRENGTH + (outcomes.right + outcomes.wrong)[:, c, None]
        mean[:, c] = np.sum(kinds * first / total, axis=1)
        square[:, c] = np.sum(kinds * first * (first + 1) / (total * (total + 1)), axis=1)
    return mean, square


def added_votes(cells: np.ndarray, prior: CrowdPrior) -> np.ndarray:
    """Return pseudo-counts (workers, given, true) for which ``cells`` plus these have the posterior means as shares.

    Posterior means are over the kinds of a worker, given the votes, and over wrong labels. The number of pseudo-counts
    is the posterior mean of the strength.
    """
    k, same = prior.wrong.shape[0], np.eye(prior.wrong.shape[0], dtype=bool)
    outcomes = Outcomes.of(cells, one_coin=prior.ease.size < k)
    kinds = softmax(kind_scores(outcomes, prior) + np.log(prior.frequencies), axis=1)
    mean, totals, strength = _moments(outcomes, prior)[0], outcomes.right + outcomes.wrong, (kinds @ STRENGTH)[:, None]
    right, wrong = mean * (strength + totals), (1 - mean) * (strength + totals)
    if outcomes.cells is None:
        right, wrong = (np.maximum(part, 1e-3) / k for part in (right - outcomes.right, wrong - outcomes.wrong))
        return np.where(same, right[:, None], wrong[:, None] / max(k - 1, 1))
    pattern = (prior.strength * prior.wrong + np.where(same, 0.0, cells)) / (prior.strength + outcomes.wrong[:, None])
    return np.maximum(np.where(same, right[:, None], wrong[:, None] * pattern) - cells, 1e-3)


def kind_scores(outcomes: Outcomes, prior: CrowdPrior) -> np.ndarray:
    """Return the log-probability of the numbers of right and wrong votes (n_workers, n_kinds), for each kind."""
    right, wrong = outcomes.right, outcomes.wrong
    first, second = STRENGTH[:, None] * prior.rates, STRENGTH[:, None] * (1 - prior.rates)
    scores = np.zeros((right.shape[0], SKILL.size))
    both = np.zeros((right.shape[0], STRENGTHS.size))
    for c in range(right.shape[1]):
        scores += gammaln(first[:, c] + right[:, c, None])
        scores += gammaln(second[:, c] + wrong[:, c, None])
        both += gammaln(STRENGTHS + (right[:, c, None] + wrong[:, c, None]))
    return scores - np.tile(both, SKILLS.size) - betaln(first, second).sum(axis=1)


def _climb(score: Callable[[float], float], value: float) -> float:
    """Return the value, doubled or halved for as long as its score rises and it is within bounds."""
    best = score(value)
    for factor in (2.0, 0.5):
        while 0.2 < value * factor < 2000.0 and (other := score(value * factor)) > best:
            value, best = value * factor, other
    return value


def _wrong_labels(cells: np.ndarray) -> np.ndarray:
    """Return the distribution of wrong labels (given, true), after one pseudo-count is spread over every column."""
    k = cells.shape[0]
    cells = np.where(np.eye(k, dtype=bool), 0.0, cells + 1 / max(k - 1, 1))
    return cells / np.maximum(cells.sum(axis=0), 1e-300)


def _wrong_evidence(cells: np.ndarray, wrong: np.ndarray, strength: float) -> float:
    """Return the log-probability of the wrong labels, given which votes are wrong."""
    off = ~np.eye(cells.shape[1], dtype=bool)
    counts, alpha = cells[:, off], (strength * wrong)[off]
    totals = np.maximum(cells.sum(axis=1) - np.einsum("wcc->wc", cells), 0)
    evidence = np.sum(gammaln(alpha + counts)) - counts.shape[0] * np.sum(gammaln(alpha))
    return float(evidence + totals.size * gammaln(strength) - np.sum(gammaln(strength + totals)))


def posterior_deviations(
    votes: Votes, run: Run, prior: Prior, workers: CrowdPrior | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return standard deviations of confusion matrices (workers, given, true) and accuracies (workers,).

    The prior of the workers has pseudo-counts, or it is estimated.
    """
    right = run.classes[votes.task, votes.label]
    n_workers, totals = votes.workers.size, np.maximum(votes.votes_of_workers, 1)
    n_right = np.bincount(votes.worker, right, n_workers)
    rate = np.clip(n_right / totals, 0.01, 0.99)[votes.worker]
    worth = (right * (1 - rate) - (1 - right) * rate) ** 2 / (rate * (1 - rate))
    ratio = np.minimum(np.bincount(votes.worker, worth, n_workers) / totals, 1.0)
    cells = ratio[:, None, None] * counted(votes, run.classes)
    if workers is not None:
        accuracies = accuracy_deviations(ratio * n_right, ratio * (totals - n_right))
        return confusion_deviations(cells, workers), accuracies
    errors = _dirichlet_deviations(cells + prior.cells, one_coin=prior.one_coin)
    by_class = np.einsum("wcc->wc", errors) * run.model.shares
    return errors, by_class.sum(axis=1) if prior.one_coin else np.sqrt(np.sum(by_class**2, axis=1))


def _dirichlet_deviations(alpha: np.ndarray, *, one_coin: bool) -> np.ndarray:
    """Return standard deviations of confusion matrices with these parameters (workers, given, true)."""
    k = alpha.shape[1]
    if one_coin:
        right, total = np.trace(alpha, axis1=1, axis2=2), np.maximum(alpha.sum(axis=(1, 2)), 1e-9)
        deviations = np.sqrt(right * np.maximum(total - right, 0) / (total**2 * (total + 1)))
        return deviations[:, None, None] * np.where(np.eye(k, dtype=bool), 1.0, 1 / max(k - 1, 1))
    size = np.maximum(alpha.sum(axis=1, keepdims=True), 1e-9)
    return np.sqrt(alpha * np.maximum(size - alpha, 0) / (size**2 * (size + 1)))


def beta_intervals(means: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Return intervals of Beta distributions with these means and standard deviations, which hold the means, (n, 2)."""
    means = np.clip(means, 1e-9, 1 - 1e-9)
    strength = np.maximum(means * (1 - means) / np.maximum(errors, 1e-9) ** 2 - 1, 1e-3)
    low, high = (betaincinv(means * strength, (1 - means) * strength, tail) for tail in TAILS)
    return np.stack([np.minimum(low, means), np.maximum(high, means)], axis=1)
