"""Votes of judges who make the same mistakes within clusters, such as language models of one maker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri


class DrawnJury(NamedTuple):
    """Votes of a jury, and what they were drawn from."""

    votes: tuple[np.ndarray, np.ndarray, np.ndarray]  # task, judge and label of every vote
    truth: np.ndarray  # (n_tasks,)
    confusions: np.ndarray  # (n_judges, k, k): label, true class
    clusters: np.ndarray  # (n_judges,)


def jury_votes(
    n_tasks: int,
    sizes: Sequence[int],
    n_classes: int,
    *,
    shared: float = 0.6,
    ordered: bool = False,
    outsider: float | None = None,
    rng: int | Sequence[int] | None = None,
) -> DrawnJury:
    """Draw votes: clusters of these sizes, and an outsider of this accuracy if one is given.

    A cluster has an answer of its own to every task, right with a probability between 0.5 and 0.8, and its members give
    this answer with probability `shared`, and otherwise one of their own. If classes are ordered, a task has a
    quality, and judges grade by thresholds what they see of it; `shared` is the share of the cluster in the variance of
    their errors, and thresholds differ between clusters.
    """
    draw, generator = _graded if ordered else _classified, np.random.default_rng(rng)
    labels, truth, confusions = draw(n_tasks, list(sizes), n_classes, shared, outsider, generator)
    members = [*sizes, *([1] if outsider is not None else [])]
    task, judge = np.indices(labels.shape).reshape(2, -1)
    return DrawnJury((task, judge, labels.ravel()), truth, confusions, np.repeat(np.arange(len(members)), members))


def _classified(
    n_tasks: int, sizes: list[int], k: int, shared: float, outsider: float | None, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    truth = rng.choice(k, n_tasks, p=rng.dirichlet(np.full(k, 10.0)))
    labels, confusions = [], []
    for size in sizes:
        accuracy = rng.uniform(0.5, 0.8)
        common = _confusion(accuracy, k, rng)
        answer = _answers(common, truth, rng)
        follows = shared if size > 1 else 0.0
        for _ in range(size):
            own = _confusion(float(np.clip(accuracy + rng.normal(0, 0.04), 0.3, 0.97)), k, rng)
            is_common = rng.random(n_tasks) < follows
            labels.append(np.where(is_common, answer, _answers(own, truth, rng)))
            confusions.append(follows * common + (1 - follows) * own)
    if outsider is not None:
        confusions.append(_confusion(outsider, k, rng))
        labels.append(_answers(confusions[-1], truth, rng))
    return np.stack(labels, axis=1), truth, np.stack(confusions)


def _confusion(accuracy: float, k: int, rng: np.random.Generator) -> np.ndarray:
    """Return a confusion matrix of about this accuracy, with uneven wrong labels."""
    right = np.clip(accuracy + rng.normal(0, 0.05, k), 0.05, 0.98)
    wrong = rng.dirichlet(np.full(k - 1, 3.0), k)
    matrix = np.diag(right)
    matrix[~np.eye(k, dtype=bool)] = ((1 - right)[:, None] * wrong).ravel()  # by true class
    return np.asarray(matrix.T)


def _answers(confusion: np.ndarray, truth: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    sums = np.cumsum(confusion, axis=0)[:, truth]
    return np.minimum(np.sum(sums < rng.random(truth.size), axis=0), len(confusion) - 1)


def _graded(
    n_tasks: int, sizes: list[int], k: int, shared: float, outsider: float | None, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    quality = rng.standard_normal(n_tasks)
    cuts = ndtri(np.arange(1, k) / k)
    labels, confusions = [], []
    kinds = [(size, rng.uniform(0.5, 1.2), rng.normal(0, 0.3)) for size in sizes]
    kinds += [] if outsider is None else [(1, 1 / outsider - 1, 0.0)]
    for size, noise, shift in kinds:
        error = rng.standard_normal(n_tasks)
        common = shared if size > 1 else 0.0
        for _ in range(size):
            own = cuts + shift + rng.normal(0, 0.1)
            seen = quality + noise * (np.sqrt(common) * error + np.sqrt(1 - common) * rng.standard_normal(n_tasks))
            labels.append(np.searchsorted(own, seen))
            confusions.append(_graded_confusion(own, noise, k))
    return np.stack(labels, axis=1), np.searchsorted(cuts, quality), np.stack(confusions)


def _graded_confusion(cuts: np.ndarray, noise: float, k: int) -> np.ndarray:
    """Return the confusion matrix of a judge with these thresholds, by the midpoint rule over quantiles of quality."""
    quality = ndtri((np.arange(200 * k) + 0.5) / (200 * k))
    below = ndtr((cuts[:, None] - quality) / noise)
    chances = np.diff(below, axis=0, prepend=0.0, append=1.0)
    return np.asarray(chances.reshape(k, k, 200).mean(axis=2))
