"""Ways to label tasks if workers depend on each other: families, ordered classes, the majority, and mixtures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from codiag.models.crowd._dependence import vote_weights
from codiag.models.crowd._family_model import FamilyModel, expect_families, families_of
from codiag.models.crowd._ordered import OrderedModel, expect_ordered
from codiag.models.crowd._votes import Votes

LEAST = 1e-6
"""Least probability of a class that is mixed with others."""


class Labeler(Protocol):
    """What gives the probabilities of the classes of tasks, (tasks, classes), from votes of the workers of a fit."""

    def classes(self, votes: Votes) -> np.ndarray: ...


@dataclass(frozen=True)
class FamilyLabeler:
    """Labels by a model of families."""

    model: FamilyModel

    def classes(self, votes: Votes) -> np.ndarray:
        return expect_families(votes, families_of(votes, self.model.family), self.model)[0].classes


@dataclass(frozen=True)
class OrderedLabeler:
    """Labels by a model of ordered classes."""

    model: OrderedModel

    def classes(self, votes: Votes) -> np.ndarray:
        return votes.with_known(self.model.classes(self._quality(votes)))

    def shifted(self, votes: Votes, amounts: np.ndarray) -> list[np.ndarray]:
        """Return the same for cuts between the classes that are so many standard errors higher, (times, cuts)."""
        quality = self._quality(votes)
        return [votes.with_known(self.model.classes(quality, amount)) for amount in amounts]

    def _quality(self, votes: Votes) -> np.ndarray:
        return expect_ordered(votes, families_of(votes, self.model.family), self.model)[0]


@dataclass(frozen=True)
class MajorityLabeler:
    r"""Labels by the number of votes; every vote adds ``evidence`` times its weight to the log-odds of its label."""

    evidence: float
    family: np.ndarray
    within: np.ndarray
    common: float

    def classes(self, votes: Votes) -> np.ndarray:
        k = votes.classes.size
        counts = np.bincount(votes.task * k + votes.label, minlength=votes.tasks.size * k).reshape(-1, k)
        weights = vote_weights(votes, self.family, self.within, self.common)
        sizes = np.maximum(counts.sum(axis=1), 1)
        worth = np.bincount(votes.task, weights, votes.tasks.size) / sizes  # the same for all votes on a task
        return votes.with_known(softmax(self.evidence * worth[:, None] * counts, axis=1))


@dataclass(frozen=True)
class MixedLabeler:
    """Labels by the product of probabilities of several labelers, each raised to a power."""

    parts: tuple[Labeler, ...]
    powers: np.ndarray

    def classes(self, votes: Votes) -> np.ndarray:
        logs = np.stack([np.log(np.maximum(part.classes(votes), LEAST)) for part in self.parts])
        return votes.with_known(softmax(np.tensordot(self.powers, logs, 1), axis=1))


def fitted_powers(logs: np.ndarray, truth: np.ndarray) -> np.ndarray:
    r"""Return the powers (parts,) under which known classes are most probable, from log-probabilities of each part.

    `logs` is (parts, tasks, classes). Powers are not negative; their prior is normal with deviation one around one for
    the first part and zero for the others, so that few known classes change little.
    """
    rows, target = np.arange(truth.size), np.eye(len(logs))[0]

    def objective(powers: np.ndarray) -> tuple[float, np.ndarray]:
        mixed = log_softmax(np.tensordot(powers, logs, 1), axis=1)
        value = -np.sum(mixed[rows, truth]) + 0.5 * np.sum((powers - target) ** 2)
        gradient = np.sum(np.exp(mixed) * logs, axis=(1, 2)) - np.sum(logs[:, rows, truth], axis=1) + powers - target
        return float(value), gradient

    return np.asarray(minimize(objective, target, jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(logs)).x)
