"""How well votes determine workers, from the information in the likelihood: the other workers are taken for known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import betaincinv

from codiag._array import blocks
from codiag.models._crowd_em import Prior, Run
from codiag.models._vote_order import Order
from codiag.models._votes import Votes

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

    def undone(self, order: Order, shares: np.ndarray) -> Uncertainty:
        """Return the same for votes as they came, classes having these shares.

        Where labels stand for other classes, which is with one coin alone, a worker who gives with probability p the
        label that stands for the class is right with probability p for a share b of the tasks, whose label has the name
        of the class, and with probability (1 - p) / (k - 1) for the rest.
        """
        named = float(np.sum(shares[order.labels == order.classes]))
        rest = 0.0 if np.all(order.labels == order.classes) else (1 - named) / (shares.size - 1)
        slope = 1.0 if rest == 0 else named - rest
        found = self._replace(
            accuracies=abs(slope) * self.accuracies, intervals=np.sort(rest + slope * self.intervals, axis=1)
        )
        axes = "wlc", "w", "w.", "c"
        return Uncertainty(*(order.undone(one, of) for one, of in zip(found, axes, strict=True)))


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
