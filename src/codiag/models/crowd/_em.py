"""Expectation maximization for votes of a crowd."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from codiag.models.crowd._votes import Votes
from codiag.models.frame import Diagnostics


class CrowdModel(NamedTuple):
    """Confusion matrices (workers, given, true), columns of sum one, and the shares of the classes (true,)."""

    confusions: np.ndarray
    shares: np.ndarray

    @property
    def accuracies(self) -> np.ndarray:
        """How often each worker is right, over tasks like these, (workers,)."""
        return np.einsum("wcc,c->w", self.confusions, self.shares)


class Prior(NamedTuple):
    """What is assumed before any vote: votes added to every cell (given, true), tasks added to every class.

    Where `shares` are given, the shares of the classes are these and not estimated.
    """

    cells: np.ndarray
    tasks: float
    shares: np.ndarray | None
    one_coin: bool


class Start(NamedTuple):
    """The classes of the tasks (tasks, true) to begin with, the model they come from, and what is known about that.

    `spread` is the standard deviation of confusion matrices over partitions, where they come from several.
    """

    classes: np.ndarray
    model: CrowdModel | None = None
    spread: np.ndarray | None = None
    diagnostics: Diagnostics = Diagnostics()


class Run(NamedTuple):
    """A model, the classes of the tasks (tasks, true) it implies, and how it was reached."""

    model: CrowdModel
    classes: np.ndarray
    log_likelihood: float
    history: list[float]
    converged: bool


def log_joint(votes: Votes, model: CrowdModel) -> np.ndarray:
    """Return the log-probability of the votes on every task together with each class, (tasks, true)."""
    k = model.shares.size
    with np.errstate(divide="ignore"):  # what never happens has the logarithm -inf
        return votes.counts @ np.log(model.confusions).reshape(-1, k) + np.log(model.shares)


def expect(votes: Votes, model: CrowdModel) -> tuple[np.ndarray, float]:
    """Return the probability of each class for every task, and the log-likelihood of the votes and known classes."""
    joint = log_joint(votes, model)
    if votes.gold is not None:
        joint = np.where(votes.held(np.ones_like(joint)) > 0, joint, -np.inf)
    largest = joint.max(axis=1, keepdims=True)
    impossible = np.isneginf(largest[:, 0])
    log_likelihood = -np.inf if np.any(impossible) else 0.0
    if np.any(impossible):  # from votes that no class explains, nothing is learned
        joint[impossible] = np.log(model.shares)
        largest[impossible] = 0.0
    classes = np.exp(joint - largest)
    sums = classes.sum(axis=1, keepdims=True)
    classes = votes.held(classes / sums)
    return classes, log_likelihood + float(np.sum(largest) + np.sum(np.log(sums)))


def maximize(votes: Votes, classes: np.ndarray, prior: Prior) -> CrowdModel:
    """Return the most probable workers and shares, given the classes of the tasks."""
    k = classes.shape[1]
    cells = (votes.by_worker @ classes).reshape(-1, k, k) + prior.cells
    confusions = one_coin(cells) if prior.one_coin else _normalized(cells)
    if prior.shares is not None:
        return CrowdModel(confusions, prior.shares)
    shares = classes.sum(axis=0) + prior.tasks
    return CrowdModel(confusions, shares / shares.sum())


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
        density += float(np.sum(prior.cells * np.log(model.confusions)))
    if prior.tasks > 0 and prior.shares is None:
        density += prior.tasks * float(np.sum(np.log(model.shares)))
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
    empty = model.confusions.sum(axis=1, keepdims=True) == 0
    return CrowdModel(np.where(empty, 1 / model.shares.size, model.confusions), model.shares)
