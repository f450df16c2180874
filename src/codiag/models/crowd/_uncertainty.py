r"""Standard errors and intervals of the workers of a crowd: those of the posterior distribution of each.

The other workers are taken as known. A vote that is right with probability q has the information
:math:`(q / a - (1 - q) / (1 - a))^2` about the accuracy a of its worker, where a vote on a task of known class has
:math:`1 / (a (1 - a))`. The ratio is the number of votes on tasks of known class with the same information. Confusion
matrices have Dirichlet distributions, given so many votes and pseudo-counts, or those of an estimated prior.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaincinv

from codiag.models.crowd._em import Prior, Run, counted
from codiag.models.crowd._prior import CrowdPrior, accuracy_deviations, confusion_deviations
from codiag.models.crowd._votes import Votes

LEVEL = 0.9
"""Probability that an accuracy lies in its interval."""
LOW, HIGH = (f"accuracy_{end}_{round(100 * LEVEL)}" for end in ("low", "high"))
"""Names of the columns with the ends of the intervals of accuracies."""
TAILS = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
"""Probabilities of the quantiles that bound an interval."""


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
