"""Expectation maximization for votes of a crowd."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from codiag.models.crowd._votes import Votes


class CrowdModel(NamedTuple):
    """Confusion matrices (workers, given, true), columns of sum one, and the shares of the classes (true,)."""

    confusions: np.ndarray
    shares: np.ndarray

    @property
    def accuracies(self) -> np.ndarray:
        """Probability that each worker is right, averaged over the classes by their shares, (workers,)."""
        return np.einsum("wcc,c->w", self.confusions, self.shares)


class Prior(NamedTuple):
    """Pseudo-counts: votes added to every cell (given, true), and tasks added to every class.

    If `shares` are given, the shares of the classes are fixed at these.
    """

    cells: np.ndarray
    tasks: float
    shares: np.ndarray | None
    one_coin: bool


class Start(NamedTuple):
    """Initial probabilities of the classes (tasks, true), the model they come from, and what `init_` says."""

    classes: np.ndarray
    model: CrowdModel | None = None
    init: str = "majority"


class Run(NamedTuple):
    """A model, the probabilities of the classes of the tasks (tasks, true), and the history of the objective."""

    model: CrowdModel
    classes: np.ndarray
    log_likelihood: float
    history: list[float]
    converged: bool


def log_joint(votes: Votes, model: CrowdModel) -> np.ndarray:
    """Return the log-probability of the votes on every task together with each class, (tasks, true)."""
    with np.errstate(divide="ignore"):  # the logarithm of zero is -inf
        return votes.counts @ np.log(model.confusions).reshape(-1, model.shares.size) + np.log(model.shares)


def expect(votes: Votes, model: CrowdModel) -> tuple[np.ndarray, float]:
    """Return the probability of each class for every task, and the log-likelihood of the votes and known classes."""
    joint = log_joint(votes, model)
    if votes.known_class is not None:
        joint = np.where(votes.with_known(np.ones_like(joint)) > 0, joint, -np.inf)
    largest = joint.max(axis=1, keepdims=True)
    impossible = np.isneginf(largest[:, 0])
    log_likelihood = -np.inf if np.any(impossible) else 0.0
    if np.any(impossible):  # votes that no class explains: their classes have the prior probabilities
        joint[impossible] = np.log(model.shares)
        largest[impossible] = 0.0
    classes = np.exp(joint - largest)
    sums = classes.sum(axis=1, keepdims=True)
    classes = votes.with_known(classes / sums)
    return classes, log_likelihood + float(np.sum(largest) + np.sum(np.log(sums)))


def maximize(votes: Votes, classes: np.ndarray, prior: Prior) -> CrowdModel:
    """Return the most probable workers and shares, given the probabilities of the classes."""
    cells = counted(votes, classes) + prior.cells
    totals = cells.sum(axis=1, keepdims=True)  # zero if a worker has no task of a class
    confusions = one_coin(cells) if prior.one_coin else cells / np.where(totals > 0, totals, 1)
    if prior.shares is not None:
        return CrowdModel(confusions, prior.shares)
    shares = classes.sum(axis=0) + prior.tasks
    return CrowdModel(confusions, shares / shares.sum())


def known_or_uniform(confusions: np.ndarray) -> np.ndarray:
    """Return confusion matrices with equal probabilities for classes of which a worker has no task."""
    is_known = confusions.sum(axis=1, keepdims=True) > 0.5  # sums are one, or zero
    return np.where(is_known, confusions, 1 / confusions.shape[1])


def counted(votes: Votes, classes: np.ndarray) -> np.ndarray:
    """Return expected numbers of votes (workers, given, true), given the probabilities of the classes."""
    return (votes.by_worker @ classes).reshape(-1, classes.shape[1], classes.shape[1])


def one_coin(cells: np.ndarray) -> np.ndarray:
    """Return confusion matrices of workers who are right with one probability, and whose wrong labels are uniform."""
    k = cells.shape[-1]
    right = np.trace(cells, axis1=1, axis2=2) / np.maximum(cells.sum(axis=(1, 2)), 1e-300)
    return np.where(np.eye(k, dtype=bool), right[:, None, None], (1 - right[:, None, None]) / max(k - 1, 1))


def log_density(model: CrowdModel, prior: Prior) -> float:
    """Return the logarithm of the prior's density, up to a constant."""
    density = 0.0
    if np.any(prior.cells > 0):
        density += float(np.sum(prior.cells * np.log(model.confusions)))
    if prior.tasks > 0 and prior.shares is None:
        density += prior.tasks * float(np.sum(np.log(model.shares)))
    return density


def run_em(votes: Votes, start: Start, prior: Prior, max_iter: int, tol: float) -> Run:
    """Alternate both steps, at most `max_iter` times, until the objective rises by less than `tol` per vote."""
    classes, n_votes = start.classes, votes.label.size
    model = start.model or maximize(votes, classes, prior)
    if max_iter == 0:
        return Run(model, classes, expect(votes, model)[1], [], False)
    history: list[float] = []
    converged = False
    while len(history) < max_iter and not converged:
        model = maximize(votes, classes, prior)
        classes, log_likelihood = expect(votes, model)
        history.append((log_likelihood + log_density(model, prior)) / n_votes)
        converged = len(history) > 1 and history[-1] - history[-2] < tol
    model = model._replace(confusions=known_or_uniform(model.confusions))
    return Run(model, classes, log_likelihood, history, bool(converged))


def as_numbers(name: str, values: Any) -> np.ndarray:
    """Return an option as an array of floats."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be an array of numbers; got {values!r:.60}: {error}") from None


def as_prior(votes: Votes, prior: Any, smoothing: float | str, *, one_coin: bool) -> Prior:
    """Return the pseudo-counts; zero if they are estimated later."""
    k = votes.classes.size
    given = np.full(k, 1 / k) if isinstance(prior, str) else as_numbers("prior", prior)
    shares = None if isinstance(prior, str) and prior == "estimated" else given
    if shares is not None and (shares.shape != (k,) or not np.all(shares > 0) or not abs(shares.sum() - 1) < 1e-6):
        raise ValueError(f"prior must contain {k} positive shares of sum one, one for each class; got {shares}")
    added = 0.0 if isinstance(smoothing, str) else float(smoothing)
    cells = np.full((k, k), added / k if one_coin else added)
    return Prior(cells, added, shares, one_coin)
