r"""Standard errors and intervals of the workers of a crowd; the other workers are taken as known.

With pseudo-counts that are given they come from the information in the likelihood, with an estimated prior from the
posterior distribution of a worker.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import betaincinv

from codiag._arrays import blocks
from codiag.models.crowd._em import Prior, Run, counted
from codiag.models.crowd._prior import CrowdPrior, accuracy_deviations, confusion_deviations
from codiag.models.crowd._votes import Votes

LEVEL = 0.9
"""Probability that an accuracy lies in its interval."""
LOW, HIGH = (f"accuracy_{end}_{round(100 * LEVEL)}" for end in ("low", "high"))
"""Names of the columns with the ends of the intervals of accuracies."""
TAILS = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
"""Probabilities of the quantiles that bound an interval."""


class Uncertainty(NamedTuple):
    """Standard errors of confusion matrices (workers, given, true) and accuracies; intervals of accuracies."""

    confusions: np.ndarray
    accuracies: np.ndarray
    intervals: np.ndarray


def information_uncertainty(votes: Votes, run: Run, prior: Prior) -> Uncertainty:
    """Return standard errors by the inverse of the information, and intervals of Beta distributions that have them."""
    errors = _confusion_errors(votes, run, prior)
    by_class = np.einsum("wcc->wc", errors) * run.model.shares
    accuracies = by_class.sum(axis=1) if prior.one_coin else np.sqrt(np.sum(by_class**2, axis=1))
    return Uncertainty(errors, accuracies, beta_intervals(run.model.accuracies, accuracies))


def posterior_uncertainty(votes: Votes, run: Run, workers: CrowdPrior) -> Uncertainty:
    r"""Return standard deviations of posterior distributions, given an estimated prior, and intervals that have them.

    A vote that is right with probability q has the information :math:`(q / a - (1 - q) / (1 - a))^2` about the accuracy
    a, where a vote on a task of known class has :math:`1 / (a (1 - a))`. The ratio is the number of votes on tasks of
    known class that it is worth.
    """
    right = run.classes[votes.task, votes.label]
    n_workers, totals = votes.workers.size, np.maximum(votes.votes_of_workers, 1)
    n_right = np.bincount(votes.worker, right, n_workers)
    rate = np.clip(n_right / totals, 0.01, 0.99)[votes.worker]
    worth = (right * (1 - rate) - (1 - right) * rate) ** 2 / (rate * (1 - rate))
    ratio = np.minimum(np.bincount(votes.worker, worth, n_workers) / totals, 1.0)
    errors = confusion_deviations(ratio[:, None, None] * counted(votes, run.classes), workers)
    accuracies = accuracy_deviations(ratio * n_right, ratio * (totals - n_right))
    return Uncertainty(errors, accuracies, beta_intervals(run.model.accuracies, accuracies))


def beta_intervals(means: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Return intervals of Beta distributions with these means and standard deviations, which hold the means, (n, 2)."""
    means = np.clip(means, 1e-9, 1 - 1e-9)
    strength = np.maximum(means * (1 - means) / np.maximum(errors, 1e-9) ** 2 - 1, 1e-3)
    low, high = (betaincinv(means * strength, (1 - means) * strength, tail) for tail in TAILS)
    return np.stack([np.minimum(low, means), np.maximum(high, means)], axis=1)


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
