r"""The distribution that the workers of a crowd come from, estimated from their votes, and what it says of each worker.

Given the true class c, a worker is right with a probability that has a Beta distribution of mean
:math:`\sigma(\mathrm{logit}\, r + d_c)` and strength s. Skill r and strength s belong to the worker and are drawn from a
grid whose shares are estimated; the ease :math:`d_c` of a class is common to all workers. Wrong labels have a Dirichlet
distribution of strength t around the wrong labels of all workers. A worker with few votes is thus taken for one of this
crowd, with many votes for what the votes show. Workers may be of several kinds, such as experts beside spammers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import betaln, digamma, expit, gammaln, logit, logsumexp

SKILLS = expit(np.linspace(-4.4, 4.4, 12))
STRENGTHS = np.array([2.0, 10.0, 50.0])
SKILL, STRENGTH = (grid.ravel() for grid in np.meshgrid(SKILLS, STRENGTHS, indexing="ij"))
"""Skill and strength of every kind of worker."""
WRONG_STRENGTHS = 2.0 ** np.arange(-1, 11)
EVEN = 1.0
"""Workers, spread evenly over the kinds, that are added before the shares of the kinds are taken."""


class Outcomes(NamedTuple):
    """Votes of workers by what they are worth.

    Attributes
    ----------
    right, wrong : arrays of shape (n_workers, n_columns)
        Votes that name the true class and those that do not, by true class, or in one column where the class does not
        matter.
    cells : array of shape (n_workers, n_classes, n_classes) or None
        All votes, given label by true class; None where wrong labels are even.
    """

    right: np.ndarray
    wrong: np.ndarray
    cells: np.ndarray | None

    @classmethod
    def of(cls, cells: np.ndarray, *, one_coin: bool) -> Outcomes:
        """Sort votes (workers, given, true)."""
        right = np.einsum("wcc->wc", cells)
        wrong = np.maximum(cells.sum(axis=1) - right, 0)
        if one_coin:
            return cls(right.sum(axis=1, keepdims=True), wrong.sum(axis=1, keepdims=True), None)
        return cls(right, wrong, cells)


class CrowdPrior(NamedTuple):
    """The distribution workers come from.

    Attributes
    ----------
    shares : array of shape (n_kinds,)
        How frequent each kind of worker is.
    ease : array of shape (n_columns,)
        What a class adds to the logit of a skill.
    wrong : array of shape (n_classes, n_classes)
        Wrong labels (given, true): columns of sum one, zero on the diagonal.
    strength : float
        How many votes the wrong labels of all are worth for a single worker.
    """

    shares: np.ndarray
    ease: np.ndarray
    wrong: np.ndarray
    strength: float

    @property
    def rates(self) -> np.ndarray:
        """How often a worker of each kind is right, (n_kinds, n_columns)."""
        return expit(logit(SKILL)[:, None] + self.ease)


class Belief(NamedTuple):
    """Mean confusion matrices of workers (workers, given, true), mean logarithms of their cells, and the evidence."""

    errors: np.ndarray
    logarithms: np.ndarray
    log_evidence: float


def first_prior(k: int, *, one_coin: bool) -> CrowdPrior:
    """Return a prior of all kinds of workers alike."""
    shares = np.full(SKILL.size, 1 / SKILL.size)
    return CrowdPrior(shares, np.zeros(1 if one_coin else k), _pattern(np.zeros((k, k))), 2.0)


def update_prior(outcomes: Outcomes, prior: CrowdPrior, *, propose: bool) -> tuple[CrowdPrior, np.ndarray]:
    """Return a prior under which the votes are at least as probable, and the scores of `kind_scores` under it.

    Shares take a step of expectation maximization; the rest may be proposed from the votes of all workers together, and
    is taken where that makes them more probable.
    """
    scores = kind_scores(outcomes, prior)
    if outcomes.cells is not None and propose:
        totals = outcomes.right.sum(axis=0), outcomes.wrong.sum(axis=0)
        ease = np.log(totals[0] + 1) - np.log(totals[1] + 1)
        proposed = prior._replace(ease=ease - ease.mean())
        if np.max(np.abs(proposed.ease - prior.ease)) > 0.01:
            others = kind_scores(outcomes, proposed)
            if _evidence(others, prior.shares) > _evidence(scores, prior.shares):
                prior, scores = proposed, others
        prior = _update_wrong(outcomes.cells, prior)
    joint = scores + np.log(prior.shares)
    expected = np.exp(joint - logsumexp(joint, axis=1, keepdims=True)).sum(axis=0) + EVEN / SKILL.size
    return prior._replace(shares=expected / expected.sum()), scores


def log_even(prior: CrowdPrior) -> float:
    """Return what the workers added to the kinds contribute to the objective."""
    return EVEN * float(np.mean(np.log(prior.shares)))


def kind_scores(outcomes: Outcomes, prior: CrowdPrior) -> np.ndarray:
    """Return the log-probability that votes are right and wrong as they are, for each kind of worker."""
    right, wrong = outcomes.right, outcomes.wrong
    first, second = STRENGTH[:, None] * prior.rates, STRENGTH[:, None] * (1 - prior.rates)
    scores = np.zeros((right.shape[0], SKILL.size))
    both = np.zeros((right.shape[0], STRENGTHS.size))
    for c in range(right.shape[1]):
        scores += gammaln(first[:, c] + right[:, c, None])
        scores += gammaln(second[:, c] + wrong[:, c, None])
        both += gammaln(STRENGTHS + (right[:, c, None] + wrong[:, c, None]))
    return scores - np.tile(both, SKILLS.size) - betaln(first, second).sum(axis=1)


def believe(outcomes: Outcomes, prior: CrowdPrior, scores: np.ndarray) -> Belief:
    """Return what is believed of workers with these votes, `scores` being those of `kind_scores`."""
    k = prior.wrong.shape[0]
    joint = scores + np.log(prior.shares)
    kinds = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    mean, log_right, log_wrong = (np.empty_like(outcomes.right) for _ in range(3))
    for c in range(mean.shape[1]):
        first = STRENGTH * prior.rates[:, c] + outcomes.right[:, c, None]
        second = STRENGTH * (1 - prior.rates[:, c]) + outcomes.wrong[:, c, None]
        total = STRENGTHS + (outcomes.right[:, c, None] + outcomes.wrong[:, c, None])
        mean[:, c] = np.sum(kinds * first / np.tile(total, SKILLS.size), axis=1)
        logs = np.tile(digamma(total), SKILLS.size)
        log_right[:, c] = np.sum(kinds * (digamma(first) - logs), axis=1)
        log_wrong[:, c] = np.sum(kinds * (digamma(second) - logs), axis=1)
    evidence = _evidence(scores, prior.shares)
    pattern, log_pattern = np.full((1, k, k), 1 / max(k - 1, 1)), np.full((1, k, k), -np.log(max(k - 1, 1)))
    same = np.eye(k, dtype=bool)
    if outcomes.cells is not None:
        evidence += _wrong_evidence(outcomes.cells, prior.wrong, prior.strength)
        alpha = np.where(same, 1.0, prior.strength * prior.wrong + outcomes.cells)
        total = prior.strength + outcomes.wrong[:, None]
        pattern, log_pattern = alpha / total, digamma(alpha) - digamma(total)
    errors = np.where(same, mean[:, None], (1 - mean)[:, None] * pattern)
    return Belief(errors, np.where(same, log_right[:, None], log_wrong[:, None] + log_pattern), evidence)


def _evidence(scores: np.ndarray, shares: np.ndarray) -> float:
    return float(np.sum(logsumexp(scores + np.log(shares), axis=1)))


def _update_wrong(cells: np.ndarray, prior: CrowdPrior) -> CrowdPrior:
    """Return the prior with wrong labels like those of all workers, or another strength, where that is better."""
    place = int(np.searchsorted(WRONG_STRENGTHS, prior.strength))
    near = WRONG_STRENGTHS[max(place - 1, 0) : place + 2].tolist()
    options = [(wrong, strength) for wrong in (prior.wrong, _pattern(cells.sum(axis=0))) for strength in near]
    best = max(options, key=lambda option: _wrong_evidence(cells, *option))
    return prior._replace(wrong=best[0], strength=best[1])


def _pattern(cells: np.ndarray) -> np.ndarray:
    """Return how wrong labels (given, true) are spread, after a vote in all is added to every column."""
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
