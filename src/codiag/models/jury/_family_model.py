r"""Families of judges who think alike, and items that are hard for all: a model of votes, fitted by EM.

An item has a class c and a difficulty g: with probability g a judge guesses, whatever the item is, so that given both a
judge who has the confusion matrix C gives label l with the probability :math:`(1 - g) C[l, c] + g / k`. Difficulties
are on a grid, with shares that are estimated for every class. All judges find the same items hard, which correlates
their votes given the class, although they vote independently.

The judges of a family share a second answer z to every item, which has a confusion matrix A of its own. Judge i follows
it with the probability :math:`\rho_i`, and votes by :math:`C_i` otherwise. With :math:`A^g` and :math:`C_i^g` for the
matrices on items of difficulty g, the votes :math:`v_i` of a family on an item have the probability

.. math:: \sum_z A^g[z, c] \prod_i (\rho_i 1[v_i = z] + (1 - \rho_i) C_i^g[v_i, c]),

and those of different families are independent given the class and the difficulty. Copiers are a family with
:math:`\rho` near one. With :math:`b_i[l] = \log(1 + \rho_i / ((1 - \rho_i) C_i^g[l, c]))` the logarithm of a term is
:math:`\log A^g[z, c] + \sum_i \log((1 - \rho_i) C_i^g[v_i, c]) + \sum_{i: v_i = z} b_i[z]`, so that a step costs as
much as one for independent judges, and :math:`k^2` numbers for each difficulty, family and item.

A state is a pair of class and difficulty; arrays by state have the difficulties of the first class first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from codiag.models.crowd import Votes, one_coin

GUESSES = np.array([0.0, 0.4, 0.8])
"""Grid of difficulties: the probability that a judge guesses."""
FIRST_SHARES = np.array([0.6, 0.3, 0.1])
"""Shares of the difficulties that steps begin with."""
FOLLOWS = 0.5
"""Probability to follow the answer of the family that steps begin with."""
LEAST, MOST = 1e-6, 1 - 1e-6
"""Bounds of this probability."""
ADDED = 0.5
"""Votes added to every cell of a confusion matrix, and items added to every state."""


class Family(NamedTuple):
    """The votes of a family: its judges, the items they voted on, and for each label their votes (items, judges)."""

    workers: np.ndarray
    tasks: np.ndarray
    counts: list[sparse.csr_array]


class FamilyModel(NamedTuple):
    """Judges, families and shares of the states.

    Attributes
    ----------
    own : array of shape (n_workers, n_classes, n_classes)
        Confusion matrices of votes that follow no family and are no guesses, given label by true class.
    follows : array of shape (n_workers,)
        Probability to follow the answer of the family; zero for judges without one.
    answers : array of shape (n_families, n_classes, n_classes)
        Confusion matrices of the answers of families.
    shares : array of shape (n_states,)
        The shares of the states.
    family : array of int, shape (n_workers,)
        The family of each judge; -1 for judges without one.
    """

    own: np.ndarray
    follows: np.ndarray
    answers: np.ndarray
    shares: np.ndarray
    family: np.ndarray

    def by_state(self) -> np.ndarray:
        """Return the probability of every vote in each state, (workers, labels, states)."""
        follows = self.follows[:, None, None]
        followed = self.answers[self.family] if len(self.answers) else self.own
        return _by_state(follows * followed + (1 - follows) * self.own)

    def states(self, votes: Votes) -> np.ndarray:
        """Return the probabilities of the states of items, (items, states)."""
        return expect_families(votes, families_of(votes, self.family), self)[0]

    def classes(self, states: np.ndarray) -> np.ndarray:
        """Return probabilities of the classes (items, classes) from those of the states."""
        return states.reshape(len(states), -1, GUESSES.size).sum(axis=2)

    def drawn(self, rng: np.random.Generator) -> FamilyModel:
        """Return the model itself: all that is uncertain in it are the items it was fitted to."""
        return self


class FamilyRun(NamedTuple):
    """A model, the probabilities of states (items, states) and of answers, and the objective by step.

    `answers` has for each family the probability of its answer, given its votes and the state: (items, states, answer).
    """

    model: FamilyModel
    states: np.ndarray
    answers: list[np.ndarray]
    log_likelihood: float
    history: list[float]
    converged: bool


class Cells(NamedTuple):
    """Expected votes that are no guesses, by class: of judges themselves, of families, and those that follow them."""

    own: np.ndarray
    answers: np.ndarray
    followed: np.ndarray


def families_of(votes: Votes, family: np.ndarray) -> list[Family]:
    """Return the votes of each family; `family` has its number for every judge, -1 for none."""
    k, found = votes.classes.size, []
    for number in range(int(family.max(initial=-1)) + 1):
        workers = np.flatnonzero(family == number)
        counts = [sparse.csr_array(votes.counts[:, workers * k + label]) for label in range(k)]
        tasks = np.unique(np.concatenate([part.nonzero()[0] for part in counts]))
        found.append(Family(workers, tasks, [sparse.csr_array(part[tasks]) for part in counts]))
    return found


def _by_state(matrices: np.ndarray) -> np.ndarray:
    """Return confusion matrices (..., given, true) on items of every difficulty, (..., given, states)."""
    k = matrices.shape[-1]
    mixed = matrices[..., None] * (1 - GUESSES) + GUESSES / k
    return mixed.reshape(*matrices.shape[:-1], k * GUESSES.size)


def _meant(cells: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    """Return the expected votes that are no guesses (..., given, true), of votes (..., given, states)."""
    k = matrices.shape[-1]
    share = matrices[..., None] * (1 - GUESSES) / (matrices[..., None] * (1 - GUESSES) + GUESSES / k)
    return np.sum(cells.reshape(share.shape) * share, axis=-1)


def _trust(model: FamilyModel) -> np.ndarray:
    """Return the probability that a vote follows the family, if that has the same answer, (workers, given, states)."""
    follows = model.follows[:, None, None]
    return follows / (follows + (1 - follows) * _by_state(model.own))


def expect_families(
    votes: Votes, families: list[Family], model: FamilyModel
) -> tuple[np.ndarray, float, list[np.ndarray]]:
    """Return the probabilities of the states, the log-likelihood, and the probabilities of the answers of families."""
    n_states = model.shares.size
    own = np.log(np.maximum((1 - model.follows)[:, None, None] * _by_state(model.own), 1e-300))
    joint = votes.counts @ own.reshape(-1, n_states) + np.log(model.shares)
    bonus = -np.log1p(-np.minimum(_trust(model), MOST))
    answers = []
    for family, matrix in zip(families, _by_state(model.answers), strict=True):
        terms = np.stack([part @ bonus[family.workers, label] for label, part in enumerate(family.counts)], axis=2)
        terms += np.log(np.maximum(matrix, 1e-300)).T
        largest = terms.max(axis=2, keepdims=True)
        np.exp(terms - largest, out=terms)
        sums = terms.sum(axis=2, keepdims=True)
        answers.append(terms / sums)
        joint[family.tasks] += (largest + np.log(sums))[..., 0]
    if votes.gold is not None:
        is_other = votes.gold[:, None] != np.repeat(np.arange(votes.classes.size), GUESSES.size)
        joint[is_other & (votes.gold >= 0)[:, None]] = -np.inf
    largest = joint.max(axis=1, keepdims=True)
    states = np.exp(joint - largest)
    sums = states.sum(axis=1, keepdims=True)
    return states / sums, float(np.sum(largest) + np.sum(np.log(sums))), answers


def count_cells(
    votes: Votes, families: list[Family], model: FamilyModel, states: np.ndarray, answers: list[np.ndarray]
) -> Cells:
    """Return the expected votes, given the probabilities of the states and of the answers of families."""
    n_workers, k, n_states = *model.own.shape[:2], states.shape[1]
    total = (votes.by_worker @ states).reshape(n_workers, k, n_states)
    followed, of_families, trust = np.zeros_like(total), np.zeros((len(families), k, n_states)), _trust(model)
    for place, (family, answer) in enumerate(zip(families, answers, strict=True)):
        joint = states[family.tasks][:, :, None] * answer
        of_families[place] = joint.sum(axis=0).T
        for label, part in enumerate(family.counts):
            followed[family.workers, label] = trust[family.workers, label] * (part.T @ joint[:, :, label])
    own = _meant(np.maximum(total - followed, 0), model.own)
    followed = followed.reshape(n_workers, k, k, -1).sum(axis=3)
    return Cells(own, _meant(of_families, model.answers), followed)


def _maximize(
    votes: Votes,
    families: list[Family],
    model: FamilyModel,
    states: np.ndarray,
    answers: list[np.ndarray],
    *,
    coin: bool,
) -> FamilyModel:
    cells = count_cells(votes, families, model, states, answers)
    followed = cells.followed.sum(axis=(1, 2))
    follows = np.clip((followed + 1) / (votes.votes_of_workers + 2), LEAST, MOST)
    shares = states.sum(axis=0) + ADDED
    own, of_families = (_as_confusions(part + ADDED, coin=coin) for part in (cells.own, cells.answers))
    return FamilyModel(own, np.where(model.family >= 0, follows, 0.0), of_families, shares / shares.sum(), model.family)


def _as_confusions(cells: np.ndarray, *, coin: bool) -> np.ndarray:
    return one_coin(cells) if coin else cells / cells.sum(axis=1, keepdims=True)


def _log_density(model: FamilyModel) -> float:
    """Return the logarithm of the prior's density, up to a constant."""
    density = sum(ADDED * float(np.sum(np.log(part))) for part in (model.own, model.answers, model.shares))
    follows = model.follows[model.family >= 0]
    return density + float(np.sum(np.log(follows) + np.log1p(-follows)))


def _begin(votes: Votes, families: list[Family], family: np.ndarray) -> tuple[FamilyModel, list[np.ndarray]]:
    """Return a model that only says who may follow whom, and answers like the squared numbers of votes in families."""
    k, n_states = votes.classes.size, votes.classes.size * GUESSES.size
    even = np.full((1, k, k), 1 / k)
    follows = np.where(family >= 0, FOLLOWS, 0.0)
    own, of_families = np.repeat(even, family.size, 0), np.repeat(even, len(families), 0)
    answers = []
    for each in families:
        counts = np.stack([np.asarray(part.sum(axis=1)).ravel() for part in each.counts], axis=1) + 0.1
        answers.append(np.repeat((counts**2 / np.sum(counts**2, axis=1, keepdims=True))[:, None], n_states, axis=1))
    return FamilyModel(own, follows, of_families, np.full(n_states, 1 / n_states), family), answers


def run_families(
    votes: Votes, family: np.ndarray, classes: np.ndarray, max_iter: int, tol: float, *, coin: bool = False
) -> FamilyRun:
    """Alternate both steps, at most `max_iter` times, until the objective rises by less than `tol` per vote.

    `classes` are probabilities of the classes (items, classes) to begin with.
    """
    families, converged = families_of(votes, family), False
    history: list[float] = []
    model, answers = _begin(votes, families, family)
    states = (classes[:, :, None] * FIRST_SHARES).reshape(len(classes), -1)
    while len(history) < max_iter and not converged:
        model = _maximize(votes, families, model, states, answers, coin=coin)
        states, log_likelihood, answers = expect_families(votes, families, model)
        history.append((log_likelihood + _log_density(model)) / votes.label.size)
        converged = len(history) > 1 and history[-1] - history[-2] < tol
    return FamilyRun(model, states, answers, log_likelihood, history, converged)
