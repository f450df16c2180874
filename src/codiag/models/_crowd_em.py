"""Expectation maximization for votes of a crowd, and how well it determines the workers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from codiag.models._votes import Votes

BLOCK = 10**7
"""Numbers that are held at a time."""


class CrowdModel(NamedTuple):
    """Confusion matrices (workers, given, true), columns of sum one, and the shares of the classes (true,)."""

    errors: np.ndarray
    priors: np.ndarray


class Prior(NamedTuple):
    """What is believed before a vote: votes added to every cell (given, true), tasks added to every class.

    With `shares` the shares of the classes are not estimated but these.
    """

    cells: np.ndarray
    tasks: float
    shares: np.ndarray | None
    one_coin: bool


class Start(NamedTuple):
    """The classes of the tasks (tasks, true) to begin with, and the model they come from, if any."""

    classes: np.ndarray
    model: CrowdModel | None


class Run(NamedTuple):
    """A model, the classes of the tasks (tasks, true) it implies, and how it was reached."""

    model: CrowdModel
    classes: np.ndarray
    log_likelihood: float
    history: list[float]
    converged: bool


def expect(votes: Votes, model: CrowdModel) -> tuple[np.ndarray, float]:
    """Return the probability of each class for every task, and the log-likelihood of the votes."""
    k = model.priors.size
    with np.errstate(divide="ignore"):  # what never happens has the logarithm -inf
        joint = votes.counts @ np.log(model.errors).reshape(-1, k) + np.log(model.priors)
    largest = joint.max(axis=1, keepdims=True)
    impossible = np.isneginf(largest[:, 0])
    log_likelihood = -np.inf if np.any(impossible) else 0.0
    if np.any(impossible):  # of votes that no class explains nothing can be learnt
        joint[impossible] = np.log(model.priors)
        largest[impossible] = 0.0
    classes = np.exp(joint - largest)
    sums = classes.sum(axis=1, keepdims=True)
    classes /= sums
    return classes, log_likelihood + float(np.sum(largest) + np.sum(np.log(sums)))


def maximize(votes: Votes, classes: np.ndarray, prior: Prior) -> CrowdModel:
    """Return the most probable workers and shares, given the classes of the tasks."""
    k = classes.shape[1]
    cells = (votes.by_worker @ classes).reshape(-1, k, k) + prior.cells
    errors = one_coin(cells) if prior.one_coin else _normalized(cells)
    if prior.shares is not None:
        return CrowdModel(errors, prior.shares)
    shares = classes.sum(axis=0) + prior.tasks
    return CrowdModel(errors, shares / shares.sum())


def one_coin(cells: np.ndarray) -> np.ndarray:
    """Return confusion matrices of workers who are right with one probability and otherwise guess evenly."""
    k = cells.shape[-1]
    right = np.trace(cells, axis1=1, axis2=2) / np.maximum(cells.sum(axis=(1, 2)), 1e-300)
    same = np.eye(k, dtype=bool)
    return np.where(same, right[:, None, None], (1 - right[:, None, None]) / max(k - 1, 1))


def _normalized(cells: np.ndarray) -> np.ndarray:
    """Return columns of sum one; zeros where a worker has met no task of a class."""
    totals = cells.sum(axis=1, keepdims=True)
    return cells / np.where(totals > 0, totals, 1)


def log_density(model: CrowdModel, prior: Prior) -> float:
    """Return the logarithm of the prior's density, up to a constant."""
    density = 0.0
    if np.any(prior.cells > 0):
        density += float(np.sum(prior.cells * np.log(model.errors)))
    if prior.tasks > 0 and prior.shares is None:
        density += prior.tasks * float(np.sum(np.log(model.priors)))
    return density


def run_em(votes: Votes, start: Start, prior: Prior, n_rounds: int, tol: float) -> Run:
    """Maximize and expect in turn, at most `n_rounds` times, until the objective rises by less than `tol` per vote."""
    classes, n_votes = start.classes, votes.label.size
    model = start.model or maximize(votes, classes, prior)
    if n_rounds == 0:
        return Run(model, classes, expect(votes, model)[1], [], False)
    history: list[float] = []
    converged = False
    while len(history) < n_rounds and not converged:
        model = maximize(votes, classes, prior)
        classes, log_likelihood = expect(votes, model)
        history.append((log_likelihood + log_density(model, prior)) / n_votes)
        converged = len(history) > 1 and history[-1] - history[-2] < tol
    return Run(_filled(model), classes, log_likelihood, history, bool(converged))


def _filled(model: CrowdModel) -> CrowdModel:
    """Return the model with even columns where there were none: nothing is known of them."""
    empty = model.errors.sum(axis=1, keepdims=True) == 0
    return CrowdModel(np.where(empty, 1 / model.priors.size, model.errors), model.priors)


def standard_errors(votes: Votes, run: Run, prior: Prior) -> np.ndarray:
    """Return standard errors of confusion matrices (workers, given, true), those of the other workers taken for known.

    The information is the sum of squared scores, plus the curvature of the prior.
    """
    n_workers, k, _ = run.model.errors.shape
    if prior.one_coin:
        return _coin_errors(votes, run, prior)
    step = max(1, BLOCK // k**3)
    parts = []
    for first in range(0, n_workers, step):
        some = slice(first, first + step)
        rows = votes.by_worker[first * k : (first + step) * k]
        parts.append(_cell_errors(rows, run.classes, run.model.errors[some], prior.cells))
    return np.concatenate(parts)


def _cell_errors(rows: sparse.csr_array, classes: np.ndarray, errors: np.ndarray, believed: np.ndarray) -> np.ndarray:
    r"""Return standard errors for some workers.

    A vote l on task t has the score :math:`q_{tc} / C[l, c]`. Scores of unlike votes do not mix, so the information of
    a worker is a matrix :math:`A_l` over true classes for each given label; as columns of C sum to one, the covariance
    is :math:`A_l^{-1} - A_l^{-1} (\sum_m A_m^{-1})^{-1} A_l^{-1}`.
    """
    k = errors.shape[-1]
    floored = np.maximum(errors, 1e-9)
    information = np.empty((*errors.shape, k))  # worker, given, true, true
    for c in range(k):
        together = (rows @ (classes[:, c : c + 1] * classes)).reshape(errors.shape)
        information[:, :, c] = together / (floored[:, :, c : c + 1] * floored)
    information[:, :, range(k), range(k)] += np.maximum(believed, 1e-6) / floored**2
    inverse = np.linalg.inv(information)
    constrained = inverse - inverse @ np.linalg.inv(inverse.sum(axis=1))[:, None] @ inverse
    return np.sqrt(np.maximum(constrained[:, :, range(k), range(k)], 0))


def _coin_errors(votes: Votes, run: Run, prior: Prior) -> np.ndarray:
    """Return the same where one number says all: the score of a vote is q / a - (1 - q) / (1 - a)."""
    n_workers, k, _ = run.model.errors.shape
    right = np.clip(run.model.errors[:, 0, 0], 1e-9, 1 - 1e-9)
    chance = run.classes[votes.task, votes.label]
    scores = chance / right[votes.worker] - (1 - chance) / (1 - right[votes.worker])
    information = np.bincount(votes.worker, weights=scores**2, minlength=n_workers)
    diagonal = np.trace(prior.cells)
    information += diagonal / right**2 + (prior.cells.sum() - diagonal) / (1 - right) ** 2
    deviation = 1 / np.sqrt(np.maximum(information, 1e-12))
    return deviation[:, None, None] * np.where(np.eye(k, dtype=bool), 1.0, 1 / max(k - 1, 1))
