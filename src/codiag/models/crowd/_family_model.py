r"""Families of workers who think alike: a model of their votes, and its fit by expectation maximization.

The workers of a family share a second answer z to every task. Given the true class c it is l with the probability
:math:`A[l, c]`, which is the confusion matrix of the family. Worker i follows it with the probability :math:`\rho_i`,
and votes by the own confusion matrix :math:`C_i` otherwise. The votes :math:`v_i` of a family on a task then have the
probability

.. math:: \sum_z A[z, c] \prod_i (\rho_i 1[v_i = z] + (1 - \rho_i) C_i[v_i, c]),

and those of different families are independent given the class. Copiers are a family with :math:`\rho` near one. A
family is one view of the class, however many members it has: the model of the third moment of three groups of workers
holds if no family has members in two of them. With :math:`b_i[l, c] = \log(1 + \rho_i / ((1 - \rho_i) C_i[l, c]))` the
logarithm of a term is :math:`\log A[z, c] + \sum_i \log((1 - \rho_i) C_i[v_i, c]) + \sum_{i: v_i = z} b_i[z, c]`, so
that a step costs as much as one for independent workers, and :math:`k^2` numbers for each family and task.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from codiag.models.crowd._em import CrowdModel, Posterior, Prior, class_posterior, one_coin
from codiag.models.crowd._votes import Votes

FOLLOWS = 0.5
"""Probability to follow the answer of the family that steps begin with."""
LEAST, MOST = 1e-6, 1 - 1e-6
"""Bounds of this probability."""


class Family(NamedTuple):
    """The votes of a family: its workers, the tasks they voted on, and for each label their votes (tasks, workers)."""

    workers: np.ndarray
    tasks: np.ndarray
    counts: list[sparse.csr_array]


class FamilyModel(NamedTuple):
    """Workers, families and class shares.

    Attributes
    ----------
    own : array of shape (n_workers, n_classes, n_classes)
        Confusion matrices of votes that do not follow a family, given label by true class.
    follows : array of shape (n_workers,)
        Probability to follow the answer of the family; zero for workers without one.
    answers : array of shape (n_families, n_classes, n_classes)
        Confusion matrices of the answers of families.
    shares : array of shape (n_classes,)
        The shares of the classes.
    family : array of int, shape (n_workers,)
        The family of each worker; -1 for workers without one.
    """

    own: np.ndarray
    follows: np.ndarray
    answers: np.ndarray
    shares: np.ndarray
    family: np.ndarray

    @property
    def workers(self) -> CrowdModel:
        """The confusion matrices of all votes of every worker, whether they follow a family or not."""
        follows = self.follows[:, None, None]
        followed = self.answers[self.family] if len(self.answers) else self.own
        return CrowdModel(follows * followed + (1 - follows) * self.own, self.shares)

    @property
    def trust(self) -> np.ndarray:
        r"""Probability that a vote follows the family, if that has the same answer, (workers, given, true)."""
        follows = self.follows[:, None, None]
        return follows / (follows + (1 - follows) * self.own)


class FamilyRun(NamedTuple):
    """A model of families, its class probabilities (tasks, true), those of the answers, and the objective by step.

    `answers` holds for each family the probability of its answer, given its votes and the class: (tasks, true, answer).
    """

    model: FamilyModel
    classes: np.ndarray
    answers: list[np.ndarray]
    log_likelihood: float
    history: list[float]
    converged: bool


def families_of(votes: Votes, family: np.ndarray) -> list[Family]:
    """Return the votes of each family; `family` has its number for every worker, -1 for none."""
    k, found = votes.classes.size, []
    for number in range(int(family.max(initial=-1)) + 1):
        workers = np.flatnonzero(family == number)
        counts = [sparse.csr_array(votes.counts[:, workers * k + label]) for label in range(k)]
        tasks = np.unique(np.concatenate([part.nonzero()[0] for part in counts]))
        found.append(Family(workers, tasks, [sparse.csr_array(part[tasks]) for part in counts]))
    return found


def expect_families(votes: Votes, families: list[Family], model: FamilyModel) -> tuple[Posterior, list[np.ndarray]]:
    """Return the probabilities of the classes, and those of the answers of families (tasks, true, answer)."""
    k = model.shares.size
    own = np.log(np.maximum((1 - model.follows)[:, None, None] * model.own, 1e-300))
    joint = votes.counts @ own.reshape(-1, k) + np.log(model.shares)
    bonus = -np.log1p(-np.minimum(model.trust, MOST))
    answers = []
    for family, matrix in zip(families, model.answers, strict=True):
        terms = np.stack([part @ bonus[family.workers, label] for label, part in enumerate(family.counts)], axis=2)
        terms += np.log(np.maximum(matrix, 1e-300)).T
        largest = terms.max(axis=2, keepdims=True)
        np.exp(terms - largest, out=terms)
        sums = terms.sum(axis=2, keepdims=True)
        answers.append(terms / sums)
        joint[family.tasks] += (largest + np.log(sums))[..., 0]
    return class_posterior(votes, joint, model.shares), answers


class Cells(NamedTuple):
    """Expected votes (given, true): by workers themselves, of families, and those of workers that follow a family."""

    own: np.ndarray
    answers: np.ndarray
    followed: np.ndarray


def count_cells(
    votes: Votes, families: list[Family], model: FamilyModel, classes: np.ndarray, answers: list[np.ndarray]
) -> Cells:
    """Return the expected votes, given the probabilities of the classes and of the answers of families."""
    k = classes.shape[1]
    total = (votes.by_worker @ classes).reshape(-1, k, k)
    followed, of_families, trust = np.zeros_like(total), np.zeros((len(families), k, k)), model.trust
    for place, (family, answer) in enumerate(zip(families, answers, strict=True)):
        joint = classes[family.tasks][:, :, None] * answer
        of_families[place] = joint.sum(axis=0).T
        for label, part in enumerate(family.counts):
            followed[family.workers, label] = trust[family.workers, label] * (part.T @ joint[:, :, label])
    return Cells(np.maximum(total - followed, 0), of_families, followed)


def maximize_families(cells: Cells, family: np.ndarray, classes: np.ndarray, prior: Prior) -> FamilyModel:
    """Return the most probable model, given the expected votes."""
    followed, total = (part.sum(axis=(1, 2)) for part in (cells.followed, cells.own + cells.followed))
    follows = np.where(family >= 0, np.clip((followed + 1) / (total + 2), LEAST, MOST), 0.0)
    shares = classes.sum(axis=0) + prior.tasks
    own, answers = (_as_confusions(part + prior.cells, prior) for part in (cells.own, cells.answers))
    return FamilyModel(own, follows, answers, shares / shares.sum() if prior.shares is None else prior.shares, family)


def _as_confusions(cells: np.ndarray, prior: Prior) -> np.ndarray:
    return one_coin(cells) if prior.one_coin else cells / cells.sum(axis=1, keepdims=True)


def log_density(model: FamilyModel, prior: Prior) -> float:
    """Return the logarithm of the prior's density, up to a constant."""
    density = sum(float(np.sum(prior.cells * np.log(part))) for part in (model.own, model.answers))
    follows = model.follows[model.family >= 0]
    density += float(np.sum(np.log(follows) + np.log1p(-follows)))
    return density if prior.shares is not None else density + prior.tasks * float(np.sum(np.log(model.shares)))


def begin_families(votes: Votes, families: list[Family], family: np.ndarray) -> tuple[FamilyModel, list[np.ndarray]]:
    """Return a model that only says who may follow whom, and answers like the squared numbers of votes in families."""
    k = votes.classes.size
    even, n_workers = np.full((1, k, k), 1 / k), family.size
    follows = np.where(family >= 0, FOLLOWS, 0.0)
    model = FamilyModel(np.repeat(even, n_workers, 0), follows, np.repeat(even, len(families), 0), even[0, 0], family)
    answers = []
    for each in families:
        counts = np.stack([np.asarray(part.sum(axis=1)).ravel() for part in each.counts], axis=1) + 0.1
        answers.append(np.repeat((counts**2 / np.sum(counts**2, axis=1, keepdims=True))[:, None], k, axis=1))
    return model, answers


def run_families(
    votes: Votes,
    family: np.ndarray,
    classes: np.ndarray,
    prior: Prior,
    max_iter: int,
    tol: float,
) -> FamilyRun:
    """Alternate both steps, at most `max_iter` times, until the objective rises by less than `tol` per vote."""
    families, converged = families_of(votes, family), False
    history: list[float] = []
    model, answers = begin_families(votes, families, family)
    while len(history) < max_iter and not converged:
        cells = count_cells(votes, families, model, classes, answers)
        model = maximize_families(cells, family, classes, prior)
        (classes, log_likelihood), answers = expect_families(votes, families, model)
        history.append((log_likelihood + log_density(model, prior)) / votes.label.size)
        converged = len(history) > 1 and history[-1] - history[-2] < tol
    return FamilyRun(model, classes, answers, log_likelihood, history, converged)
