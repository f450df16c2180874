"""The estimator of Zhang, Chen, Zhou & Jordan: confusion matrices of workers from moments, then rounds of EM.

Workers are in three groups. The counts of votes of two groups are mapped to the third, which gives symmetric moments
M2 = sum_h w_h m_h m_h' and M3 = sum_h w_h m_h^(x3), where m_h holds the mean votes of a group on tasks of class h.

References
----------
Y. Zhang, X. Chen, D. Zhou and M. I. Jordan, "Spectral methods meet EM", J. Mach. Learn. Res. 17(102), 2016.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from codiag.extending import Method
from codiag.tensors import symmetrize
from experiments.fitting import silent_fit

LEAST_ENTRY = 1e-6
"""The least entry of a confusion matrix from moments, before columns are divided by their sums."""


class Crowd(NamedTuple):
    """Votes by number: task, worker and label of each, and how many there are of all three."""

    task: np.ndarray
    worker: np.ndarray
    label: np.ndarray
    shape: tuple[int, int, int]

    @classmethod
    def of(cls, votes: Any) -> Crowd:
        """Return the same votes as `codiag.models.crowd.as_votes` gives."""
        shape = (votes.tasks.size, votes.workers.size, votes.classes.size)
        return cls(votes.task, votes.worker, votes.label, shape)

    def counts(self, chosen: np.ndarray) -> np.ndarray:
        """Return the votes (tasks, classes) of some workers, added up."""
        n_tasks, _, k = self.shape
        keep = chosen[self.worker]
        flat = self.task[keep] * k + self.label[keep]
        return np.bincount(flat, minlength=n_tasks * k).reshape(n_tasks, k).astype(float)


def moment_confusions(crowd: Crowd, groups: np.ndarray, method: Method, seed: int) -> np.ndarray:
    """Return confusion matrices (workers, given, true) from moments, columns on the simplex."""
    views = [crowd.counts(groups == group) for group in range(3)]
    solved = [_view_means(views, group, method, seed) for group in range(3)]
    n_tasks, n_workers, k = crowd.shape
    confusions = np.zeros((n_workers, k, k))
    for group in range(3):
        others = [other for other in range(3) if other != group]
        rest = sum(views[other] for other in others)
        means = sum(solved[other][0] for other in others)
        shares = sum(solved[other][1] for other in others) / 2
        cross = np.zeros((n_workers, k, k))
        mine = groups[crowd.worker] == group
        np.add.at(cross, (crowd.worker[mine], crowd.label[mine]), np.asarray(rest)[crowd.task[mine]])
        inverse = np.linalg.pinv(np.asarray(means) * shares).T  # of diag(shares) means'
        of_group = groups == group
        confusions[of_group] = cross[of_group] / n_tasks @ inverse
    return _on_columns(np.maximum(confusions, LEAST_ENTRY))


def _view_means(views: list[np.ndarray], last: int, method: Method, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean votes (given, true) of a group by class, and class shares, named by their largest vote."""
    first, second = (views[group] for group in range(3) if group != last)
    third, n = views[last], views[last].shape[0]
    left = first @ (third.T @ second @ np.linalg.pinv(first.T @ second)).T
    right = second @ (third.T @ first @ np.linalg.pinv(second.T @ first)).T
    pairs = left.T @ right / n
    pairs = (pairs + pairs.T) / 2
    triples = symmetrize(np.einsum("ja,jb,jc->abc", left, right, third, optimize=True) / n)
    solve = _white_components if method.needs_orthogonal else _free_components
    means, shares = solve(pairs, triples, method, seed)
    _, order = linear_sum_assignment(-_on_columns(np.maximum(means, LEAST_ENTRY)))
    return means[:, order], shares[order]


def _white_components(
    pairs: np.ndarray, triples: np.ndarray, method: Method, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Factorize the whitened third moment: means are root(M2) times weight times vector, shares weight^-2."""
    values, vectors = np.linalg.eigh(pairs)
    roots = np.sqrt(np.maximum(values, 1e-9 * values[-1]))
    whitening = vectors / roots
    core = symmetrize(np.einsum("abc,ai,bj,ck->ijk", triples, whitening, whitening, whitening, optimize=True))
    fit = silent_fit(core, pairs.shape[0], method=method, symmetric=True, seed=seed)
    weights = np.asarray(fit.weights)
    return (vectors * roots) @ (np.asarray(fit.factors[0]) * weights), 1 / np.maximum(weights**2, 1e-12)


def _free_components(
    pairs: np.ndarray, triples: np.ndarray, method: Method, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Factorize the third moment as it is; scales and shares follow from the second."""
    fit = silent_fit(triples, pairs.shape[0], method=method, symmetric=True, seed=seed)
    units = np.asarray(fit.factors[0])
    inverse = np.linalg.pinv(units)
    squares = np.maximum(np.einsum("ia,ab,ib->i", inverse, pairs, inverse), 1e-12)  # share times squared scale
    scales = np.asarray(fit.weights) / squares
    return units * scales, squares / np.maximum(scales**2, 1e-12)


def expected_classes(crowd: Crowd, confusions: np.ndarray) -> np.ndarray:
    """Return class probabilities (tasks, classes) with equal shares; zeros of confusion matrices are left out."""
    n_tasks, _, k = crowd.shape
    logs = np.log(np.where(confusions > 0, confusions, 1.0))[crowd.worker, crowd.label]
    totals = np.stack([np.bincount(crowd.task, logs[:, c], n_tasks) for c in range(k)], axis=1)
    shares = np.exp(totals - totals.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def estimated_confusions(crowd: Crowd, classes: np.ndarray) -> np.ndarray:
    """Return confusion matrices (workers, given, true) from class probabilities."""
    _, n_workers, k = crowd.shape
    flat = crowd.worker * k + crowd.label
    totals = [np.bincount(flat, classes[crowd.task, c], n_workers * k) for c in range(k)]
    return _on_columns(np.stack(totals, axis=1).reshape(n_workers, k, k))


def labels_by_round(crowd: Crowd, classes: np.ndarray, rounds: int) -> list[np.ndarray]:
    """Return labels (tasks,) from class probabilities, and after each of so many rounds of EM."""
    labels = [classes.argmax(axis=1)]
    for _ in range(rounds):
        classes = expected_classes(crowd, estimated_confusions(crowd, classes))
        labels.append(classes.argmax(axis=1))
    return labels


def majority_classes(crowd: Crowd) -> np.ndarray:
    """Return the shares of votes (tasks, classes)."""
    counts = crowd.counts(np.ones(crowd.shape[1], dtype=bool))
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def _on_columns(matrices: np.ndarray) -> np.ndarray:
    totals = matrices.sum(axis=-2, keepdims=True)
    return np.asarray(matrices / np.where(totals > 0, totals, 1.0))
