"""Data of latent-variable models: votes of a crowd, and graphs with communities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from codiag._arrays import blocks
from codiag._checks import RNGLike, as_finite, as_generator, as_number, as_share, explains_keywords
from codiag._text import ReprMixin


@dataclass(frozen=True, eq=False, repr=False)
class Crowd(ReprMixin):
    """Votes of a crowd, and the classes and confusion matrices from which they were drawn."""

    votes: tuple[np.ndarray, np.ndarray, np.ndarray]  # task, worker and label of every vote
    truth: np.ndarray  # (n_tasks,)
    confusions: np.ndarray  # (n_workers, k, k): label, true class


def worker_confusions(n_workers: int, n_classes: int, *, adversarial: float = 0.0, rng: RNGLike = None) -> np.ndarray:
    """Draw confusion matrices of workers whose labels are correct with a probability of 0.5 to 0.9 for each class.

    The remaining probability is divided randomly among the other labels. The first workers can be adversarial: their
    rows are shifted by one, so that they mostly give the label after the true one.

    Parameters
    ----------
    n_workers : int
        Number of workers.
    n_classes : int
        Number of classes, k, at least two.
    adversarial : float
        Fraction of adversarial workers, between 0 and 1.
    rng : int, sequence of int or numpy.random.Generator, optional
        The same seed gives the same matrices.

    Returns
    -------
    numpy.ndarray of shape (n_workers, k, k)
        For each worker the probability of every label (rows) given the true class (columns).

    See Also
    --------
    crowd_votes : Votes of such workers.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.synthetic import worker_confusions
    >>> matrices = worker_confusions(4, 3, adversarial=0.25, rng=0)
    >>> bool(np.allclose(matrices.sum(axis=1), 1)), (np.trace(matrices, axis1=1, axis2=2) > 1.5).tolist()
    (True, [False, True, True, True])
    """
    as_number("n_workers", n_workers, integer=True)
    as_number("n_classes", n_classes, integer=True)
    as_share("adversarial", adversarial)
    if n_classes < 2:
        raise ValueError(f"n_classes must be at least 2, so that labels can be wrong; got {n_classes}")
    rng = as_generator(rng)
    wrong = rng.dirichlet(np.ones(n_classes - 1), (n_workers, n_classes)) if n_classes > 2 else 1.0
    right = rng.uniform(0.5, 0.9, (n_workers, n_classes, 1))
    confusions = np.zeros((n_workers, n_classes, n_classes))  # worker, true class, label
    confusions[:, ~np.eye(n_classes, dtype=bool)] = ((1 - right) * wrong).reshape(n_workers, -1)
    confusions[:, range(n_classes), range(n_classes)] = right[..., 0]
    confusions = confusions.transpose(0, 2, 1)
    n_adversarial = round(adversarial * n_workers)
    confusions[:n_adversarial] = np.roll(confusions[:n_adversarial], 1, axis=1)
    return confusions


@explains_keywords
def crowd_votes(
    n_tasks: int, confusions: np.ndarray, *, density: float = 1.0, priors: np.ndarray | None = None, rng: RNGLike = None
) -> Crowd:
    """Draw votes of workers with given confusion matrices.

    Parameters
    ----------
    n_tasks : int
        Number of tasks.
    confusions : array of shape (n_workers, k, k)
        For each worker the probability of every label (rows) given the true class (columns).
    density : float
        Probability that a worker votes on a task, between 0 and 1.
    priors : array of shape (k,), optional
        Probabilities of the true classes; equal by default.
    rng : int, sequence of int or numpy.random.Generator, optional
        The same seed gives the same votes.

    Returns
    -------
    Crowd
        With ``votes``, three arrays of shape (n_votes,) with the task, the worker and the label of every vote, as
        `codiag.models.DawidSkene` takes them; ``truth`` (n_tasks,), the true classes; and ``confusions``.

    See Also
    --------
    worker_confusions : Random confusion matrices.
    codiag.models.DawidSkene : A model that estimates them from votes.

    Examples
    --------
    >>> from codiag.synthetic import crowd_votes, worker_confusions
    >>> crowd = crowd_votes(10, worker_confusions(4, 2, rng=0), rng=1)
    >>> [column.shape for column in crowd.votes], crowd.truth.shape
    ([(40,), (40,), (40,)], (10,))
    """
    as_number("n_tasks", n_tasks, integer=True)
    as_share("density", density)
    confusions = as_finite("confusions", confusions, (None, None, None))
    n_workers, k, _ = confusions.shape
    if confusions.shape[2] != k:
        raise ValueError(f"confusions must have shape (n_workers, k, k); got {confusions.shape}")
    _check_probabilities("confusions", confusions, axis=1)
    if priors is not None:
        priors = as_finite("priors", priors, (k,))
        _check_probabilities("priors", priors, axis=0)
    rng = as_generator(rng)
    truth = rng.choice(k, n_tasks, p=priors)
    task, worker = np.nonzero(rng.random((n_tasks, n_workers)) < density)
    cumulative = np.cumsum(confusions, axis=1)
    label = np.empty(task.size, dtype=np.int64)
    draws = rng.random(task.size)
    for part in blocks(task.size, k):
        label[part] = np.sum(cumulative[worker[part], :, truth[task[part]]] < draws[part, None], axis=1)
    return Crowd((task, worker, np.minimum(label, k - 1)), truth, confusions)


def _check_probabilities(name: str, values: np.ndarray, axis: int) -> None:
    """Raise an error unless the values are probabilities that sum to one along an axis."""
    totals = values.sum(axis=axis)
    if np.any(values < 0) or not np.allclose(totals, 1):
        raise ValueError(
            f"{name} must be probabilities that sum to one along axis {axis}; the smallest is {values.min():.3g}, sums "
            f"range from {totals.min():.3g} to {totals.max():.3g}"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Graph(ReprMixin):
    """A random graph with communities, and the parameters from which it was drawn."""

    adjacency: sparse.csr_array  # (n, n), symmetric, of zeros and ones
    memberships: np.ndarray  # (n, k), rows that sum to one
    connectivity: np.ndarray  # (k, k): probability of a link between pure members of two communities


def mixed_membership_graph(
    n: int,
    k: int,
    *,
    alpha_0: float = 1.0,
    inside: float = 0.1,
    outside: float = 0.01,
    degrees: np.ndarray | None = None,
    rng: RNGLike = None,
) -> Graph:
    r"""Draw a graph of the mixed-membership model: nodes x and y are linked with probability :math:`p_x^\top P p_y`.

    Parameters
    ----------
    n : int
        Number of nodes.
    k : int
        Number of communities.
    alpha_0 : float
        Memberships :math:`p_x` have a Dirichlet distribution with parameters :math:`\alpha_0 / k`; with zero every node
        belongs to one community.
    inside : float
        The diagonal of P: the probability of a link within a community.
    outside : float
        The other entries of P: the probability of a link between communities.
    degrees : array of shape (n,), optional
        Relative degrees of mean one: the probability of a link is multiplied by those of both nodes.
    rng : int, sequence of int or numpy.random.Generator, optional
        The same seed gives the same graph.

    Returns
    -------
    Graph
        With ``adjacency``, a symmetric sparse array (n, n) of zeros and ones; ``memberships`` (n, k), rows that sum to
        one; and ``connectivity`` (k, k), the matrix P.

    See Also
    --------
    codiag.models.MixedMembershipSBM : A model that estimates the memberships.
    codiag.metrics.overlapping_nmi : The agreement of estimated and true communities.

    Examples
    --------
    >>> from codiag.synthetic import mixed_membership_graph
    >>> graph = mixed_membership_graph(50, 2, rng=0)
    >>> graph.adjacency.shape, graph.memberships.shape, graph.connectivity.tolist()
    ((50, 50), (50, 2), [[0.1, 0.01], [0.01, 0.1]])
    """
    as_number("n", n, integer=True)
    as_number("k", k, integer=True)
    as_number("alpha_0", alpha_0, zero=True)
    as_share("inside", inside)
    as_share("outside", outside)
    if degrees is not None:
        degrees = as_finite("degrees", degrees, (n,))
        if np.any(degrees < 0):
            raise ValueError(f"degrees must not be negative; the smallest is {degrees.min():g}")
    rng = as_generator(rng)
    memberships = rng.dirichlet(np.full(k, alpha_0 / k), n) if alpha_0 > 0 else np.eye(k)[rng.integers(0, k, n)]
    connectivity = np.full((k, k), outside) + (inside - outside) * np.eye(k)
    scaled = memberships if degrees is None else memberships * degrees[:, None]
    return Graph(_links(scaled, connectivity, rng), memberships, connectivity)


def _links(scaled: np.ndarray, connectivity: np.ndarray, rng: np.random.Generator) -> sparse.csr_array:
    """Draw the adjacency matrix in blocks of rows."""
    n = scaled.shape[0]
    parts = []
    for rows in blocks(n, n):
        probabilities = scaled[rows] @ connectivity @ scaled.T
        linked = rng.random(probabilities.shape) < probabilities
        parts.append(sparse.csr_array(np.triu(linked, rows.start + 1), dtype=np.float64))
    above = sparse.vstack(parts, format="csr")
    return sparse.csr_array(above + above.T)
