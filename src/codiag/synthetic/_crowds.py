"""Votes of simulated workers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from codiag._checks import Seed, as_finite, as_generator, as_number, as_share

BLOCK = 10**6
"""Votes that are drawn at once."""


@dataclass(frozen=True, eq=False)
class Crowd:
    """Votes of a crowd, and what they were made from.

    Attributes
    ----------
    votes : tuple of three numpy.ndarray of shape (n_votes,)
        Task, worker and label of every vote: what `codiag.models.DawidSkene` takes.
    truth : numpy.ndarray of shape (n_tasks,)
        The true class of every task.
    errors : numpy.ndarray of shape (n_workers, k, k)
        Confusion matrices: the probability of a given label (rows) for each true class (columns).

    See Also
    --------
    crowd_votes : Draws one.
    codiag.models.DawidSkene : Takes the votes.

    Examples
    --------
    >>> from codiag.models import DawidSkene
    >>> from codiag.synthetic import crowd_votes, worker_errors
    >>> crowd = crowd_votes(300, worker_errors(15, 2, seed=0), seed=1)
    >>> bool((DawidSkene().fit_predict(crowd.votes) == crowd.truth).mean() > 0.95)
    True
    """

    votes: tuple[np.ndarray, np.ndarray, np.ndarray]
    truth: np.ndarray
    errors: np.ndarray


def worker_errors(n_workers: int, n_classes: int, *, adversarial: float = 0.0, seed: Seed = None) -> np.ndarray:
    """Draw confusion matrices of workers who are right with probability 0.5 to 0.9.

    The rest falls on the other labels unevenly. The rows of adversarial workers, who come first, are moved on by one:
    they mostly give the label after the true one.

    Parameters
    ----------
    n_workers : int
        Number of workers.
    n_classes : int
        Number of classes, k, at least two.
    adversarial : float
        Share of adversarial workers, from 0 to 1.
    seed : int, sequence of int or numpy.random.Generator, optional
        The same seed gives the same matrices.

    Returns
    -------
    numpy.ndarray of shape (n_workers, k, k)
        The probability of a given label (rows) for each true class (columns), worker by worker.

    See Also
    --------
    crowd_votes : Draws votes with them.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.synthetic import worker_errors
    >>> matrices = worker_errors(4, 3, adversarial=0.25, seed=0)
    >>> bool(np.allclose(matrices.sum(axis=1), 1)), (np.trace(matrices, axis1=1, axis2=2) > 1.5).tolist()
    (True, [False, True, True, True])
    """
    as_number("n_workers", n_workers, integer=True)
    as_number("n_classes", n_classes, integer=True)
    as_share("adversarial", adversarial)
    if n_classes < 2:
        raise ValueError(f"n_classes must be at least 2, or nobody can be wrong; got {n_classes}")
    rng = as_generator(seed)
    wrong = rng.dirichlet(np.ones(n_classes - 1), (n_workers, n_classes)) if n_classes > 2 else 1.0
    right = rng.uniform(0.5, 0.9, (n_workers, n_classes, 1))
    errors = np.zeros((n_workers, n_classes, n_classes))  # worker, true, given
    errors[:, ~np.eye(n_classes, dtype=bool)] = ((1 - right) * wrong).reshape(n_workers, -1)
    errors[:, range(n_classes), range(n_classes)] = right[..., 0]
    errors = errors.transpose(0, 2, 1)
    n_adversarial = round(adversarial * n_workers)
    errors[:n_adversarial] = np.roll(errors[:n_adversarial], 1, axis=1)
    return errors


def crowd_votes(
    n_tasks: int, errors: np.ndarray, *, density: float = 1.0, priors: np.ndarray | None = None, seed: Seed = None
) -> Crowd:
    """Draw votes of workers with these confusion matrices.

    Parameters
    ----------
    n_tasks : int
        Number of tasks.
    errors : array of shape (n_workers, k, k)
        The probability of a given label (rows) for each true class (columns), as `worker_errors` draws them.
    density : float
        Probability from 0 to 1 that a worker votes on a task.
    priors : array of shape (k,), optional
        Probabilities of the true classes; equal by default.
    seed : int, sequence of int or numpy.random.Generator, optional
        The same seed gives the same votes.

    Returns
    -------
    Crowd
        The votes, the true labels and the confusion matrices.

    See Also
    --------
    worker_errors : Draws confusion matrices.
    codiag.models.DawidSkene : Estimates them from votes.

    Examples
    --------
    >>> from codiag.synthetic import crowd_votes, worker_errors
    >>> crowd = crowd_votes(10, worker_errors(4, 2, seed=0), seed=1)
    >>> [column.shape for column in crowd.votes], crowd.truth.shape
    ([(40,), (40,), (40,)], (10,))
    """
    as_number("n_tasks", n_tasks, integer=True)
    as_share("density", density)
    errors = as_finite("errors", errors, (None, None, None))
    n_workers, k, _ = errors.shape
    if errors.shape[2] != k:
        raise ValueError(f"errors must have shape (n_workers, k, k); got {errors.shape}")
    _check_probabilities("errors", errors, axis=1)
    if priors is not None:
        priors = as_finite("priors", priors, (k,))
        _check_probabilities("priors", priors, axis=0)
    rng = as_generator(seed)
    truth = rng.choice(k, n_tasks, p=priors)
    task, worker = np.nonzero(rng.random((n_tasks, n_workers)) < density)
    cumulative = np.cumsum(errors, axis=1)
    label = np.empty(task.size, dtype=np.int64)
    draws = rng.random(task.size)
    for start in range(0, task.size, BLOCK):
        some = slice(start, start + BLOCK)
        label[some] = np.sum(cumulative[worker[some], :, truth[task[some]]] < draws[some, None], axis=1)
    return Crowd((task, worker, np.minimum(label, k - 1)), truth, errors)


def _check_probabilities(name: str, values: np.ndarray, axis: int) -> None:
    """Raise unless these are probabilities that sum to one along an axis."""
    totals = values.sum(axis=axis)
    if np.any(values < 0) or not np.allclose(totals, 1):
        raise ValueError(
            f"{name} must be probabilities that sum to one along axis {axis}; the least is {values.min():.3g}, sums "
            f"run from {totals.min():.3g} to {totals.max():.3g}"
        )
