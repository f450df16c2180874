"""Random problems whose answer is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from codiag._validation import as_finite, as_flag, as_generator, as_number, as_share
from codiag.tensors import FactoredTensor, symmetrize
from codiag.tensors._base import check_shape, check_symmetric_shape

Seed = int | Sequence[int] | np.random.Generator | None


LARGEST = 2**40
"""Numbers in a factor: eight terabytes of them."""


@dataclass(frozen=True, eq=False)
class Stack:
    """Matrices with common factors, and what they were made from."""

    matrices: np.ndarray  # (n, d, d')
    factor: np.ndarray  # (d, k)
    right_factor: np.ndarray  # (d', k), the same array as `factor` where the matrices are symmetric
    diagonals: np.ndarray  # (n, k)


def orthonormal_factor(size: int, rank: int, seed: Seed = None) -> np.ndarray:
    """Return `rank` orthonormal columns, uniformly distributed."""
    _check_orthonormal(size, rank)
    columns, triangle = np.linalg.qr(as_generator(seed).standard_normal((size, rank)))
    return columns * np.sign(np.diag(triangle))


def _check_orthonormal(size: int, rank: int) -> None:
    _check_sizes(size, rank)
    if rank > size:
        raise ValueError(f"rank must be at most {size}, the size of orthonormal columns; got {rank}")


def unit_factor(size: int, rank: int, seed: Seed = None) -> np.ndarray:
    """Return `rank` columns, each uniform on the sphere: badly conditioned where the rank is close to the size."""
    _check_sizes(size, rank)
    return _unit(as_generator(seed).standard_normal((size, rank)))


def mild_factor(size: int, rank: int, seed: Seed = None, *, spread: float = 0.3) -> np.ndarray:
    """Return orthonormal columns plus `spread` times random unit ones, rescaled: not orthogonal, well conditioned."""
    as_number("spread", spread, zero=True)
    rng = as_generator(seed)
    return _unit(orthonormal_factor(size, rank, rng) + spread * unit_factor(size, rank, rng))


def matrix_stack(
    factor: np.ndarray,
    n_matrices: int,
    *,
    right_factor: np.ndarray | None = None,
    noise: float = 0.0,
    seed: Seed = None,
) -> Stack:
    """Return matrices U diag(d_l) U^T with Gaussian diagonals, plus noise of this standard deviation in each entry.

    The noise is symmetric, with twice the variance on the diagonal; with a `right_factor` V the matrices are
    U diag(d_l) V^T and the noise has independent entries.
    """
    as_number("n_matrices", n_matrices, integer=True)
    as_number("noise", noise, zero=True)
    factor = as_finite("factor", factor, (None, None))
    right = factor if right_factor is None else as_finite("right_factor", right_factor, (None, factor.shape[1]))
    rng = as_generator(seed)
    diagonals = rng.standard_normal((n_matrices, factor.shape[1]))
    errors = rng.standard_normal((n_matrices, factor.shape[0], right.shape[0]))
    if right is factor:
        errors = (errors + errors.transpose(0, 2, 1)) / np.sqrt(2)
    matrices = (factor * diagonals[:, None, :]) @ right.T + noise * errors
    return Stack(matrices, factor, right, diagonals)


def projection_stack(
    factor: np.ndarray, weights: np.ndarray, n_projections: int, *, noise: float = 0.0, seed: Seed = None
) -> Stack:
    """Return projections along random unit vectors of sum_i w_i u_i (x) u_i (x) u_i + noise, R symmetrised Gaussian."""
    as_number("n_projections", n_projections, integer=True)
    as_number("noise", noise, zero=True)
    factor = as_finite("factor", factor, (None, None))
    weights = as_finite("weights", weights, factor.shape[1:])
    rng = as_generator(seed)
    size = factor.shape[0]
    directions = _unit(rng.standard_normal((size, n_projections)))
    symmetric = symmetrize(rng.standard_normal((size, size, size)))
    diagonals = (directions.T @ factor) * weights
    matrices = (factor * diagonals[:, None, :]) @ factor.T + noise * np.moveaxis(symmetric @ directions, 2, 0)
    return Stack(matrices, factor, factor, diagonals)


@dataclass(frozen=True, eq=False)
class Problem:
    """A noisy tensor, and the components it was made from."""

    tensor: np.ndarray
    weights: np.ndarray  # (k,)
    factors: tuple[np.ndarray, ...]  # (d_m, k), unit columns; one and the same array where symmetric


def noisy_tensor(
    shape: Sequence[int], rank: int, *, symmetric: bool = False, noise: float = 0.0, seed: Seed = None
) -> Problem:
    r"""Return a tensor with unit factors uniform on the sphere and weights N(0, 1), plus Gaussian noise.

    The noise R, symmetrised where the tensor is symmetric, is scaled to :math:`\|\epsilon R\| = \epsilon \|T\|`.
    """
    sizes = check_shape(shape, "shape")
    as_flag("symmetric", symmetric)
    as_number("noise", noise, zero=True)
    if symmetric:
        check_symmetric_shape(sizes)
    rng = as_generator(seed)
    factors = tuple(unit_factor(size, rank, rng) for size in (sizes[:1] if symmetric else sizes))
    factors = factors * len(sizes) if symmetric else factors
    weights = rng.standard_normal(rank)
    clean = FactoredTensor(weights, factors).to_dense()
    errors = rng.standard_normal(sizes)
    errors = symmetrize(errors) if symmetric else errors
    return Problem(clean + noise * np.linalg.norm(clean) / np.linalg.norm(errors) * errors, weights, factors)


def nonorthogonal_model(size: int, rank: int, *, noise: float, seed: Seed = None) -> Problem:
    r"""Return a tensor of the authors' non-orthogonal experiments.

    Unit factors uniform on the sphere, weights that are squared Gaussians, and :math:`\epsilon` times independent
    Gaussian entries, not symmetrised: factorize it with ``symmetric=True``.
    """
    as_number("noise", noise, zero=True)
    rng = as_generator(seed)
    factors = (unit_factor(size, rank, rng),) * 3
    weights = rng.standard_normal(rank) ** 2
    clean = FactoredTensor(weights, factors).to_dense()
    return Problem(clean + noise * rng.standard_normal(clean.shape), weights, factors)


def orthogonal_model(size: int, rank: int, *, noise: float, seed: Seed = None) -> Problem:
    r"""Return a tensor of the authors' orthogonal experiments.

    Factors are the first left singular vectors of a square Gaussian matrix, weights are squared Gaussians. The noise is
    :math:`\epsilon` times another tensor of this kind, of full rank whatever the rank asked for: its weights are
    squared Gaussians too, and its operator norm, the largest of them, is not scaled.
    """
    as_number("noise", noise, zero=True)
    rng = as_generator(seed)
    _check_orthonormal(size, rank)
    factor = np.linalg.svd(rng.standard_normal((size, size)))[0][:, :rank]
    weights = rng.standard_normal(rank) ** 2
    errors = FactoredTensor(rng.standard_normal(size) ** 2, (orthonormal_factor(size, size, rng),) * 3)
    clean = FactoredTensor(weights, (factor,) * 3).to_dense()
    return Problem(clean + noise * errors.to_dense(), weights, (factor,) * 3)


def paper_tensor(
    size: int, rank: int, *, orthogonal: bool, noise: float, model: str = "authors", seed: Seed = None
) -> Problem:
    r"""Return a symmetric tensor of the paper's experiments, under one of its three noise models.

    Parameters
    ----------
    size, rank : int
    orthogonal : bool
        Whether factors are orthonormal, or uniform on the sphere.
    noise : float
        :math:`\epsilon`.
    model : "authors", "text" or "theory"
        The authors' scripts: `orthogonal_model` or `nonorthogonal_model`. The text: weights N(0, 1), and a tensor of
        independent Gaussian entries. The theory: the same weights, and symmetric noise of unit operator norm.
    """
    as_flag("orthogonal", orthogonal)
    as_number("noise", noise, zero=True)
    if model == "authors":
        return (orthogonal_model if orthogonal else nonorthogonal_model)(size, rank, noise=noise, seed=seed)
    if model not in ("text", "theory"):
        raise ValueError(f"model must be 'authors', 'text' or 'theory'; got {model!r}")
    rng = as_generator(seed)
    factor = (orthonormal_factor if orthogonal else unit_factor)(size, rank, rng)
    weights = rng.standard_normal(rank)
    errors = rng.standard_normal((size, size, size)) if model == "text" else unit_noise(size, rng)
    return Problem(FactoredTensor(weights, (factor,) * 3).to_dense() + noise * errors, weights, (factor,) * 3)


def unit_noise(size: int, seed: Seed = None) -> np.ndarray:
    """Return a symmetrised Gaussian tensor over its operator norm, which is found by power iterations."""
    as_number("size", size, integer=True)
    rng = as_generator(seed)
    tensor = symmetrize(rng.standard_normal((size, size, size)))
    return tensor / operator_norm(tensor, rng)


def operator_norm(tensor: np.ndarray, seed: Seed = None, *, n_starts: int = 20, n_steps: int = 50) -> float:
    """Return the largest value of a symmetric tensor at unit vectors, the best that so many starts find."""
    tensor = as_finite("tensor", tensor, (None, None, None))
    check_symmetric_shape(tensor.shape, "tensor")
    gap = max(float(np.abs(tensor - tensor.transpose(turn)).max()) for turn in ((1, 0, 2), (1, 2, 0)))
    if gap > 1e-6 * np.abs(tensor).max():
        raise ValueError(
            f"tensor must be symmetric; permuting its modes changes entries by up to {gap:.3g}. "
            "Pass codiag.tensors.symmetrize(tensor)"
        )
    as_number("n_starts", n_starts, integer=True)
    as_number("n_steps", n_steps, integer=True)
    if not np.any(tensor):
        return 0.0
    rng = as_generator(seed)
    sides = _unit(rng.standard_normal((tensor.shape[0], n_starts)))
    other = sides
    for _ in range(n_steps):  # each step is the best of one side, given the other two: it never falls
        sides, other = _unit(np.einsum("abc,bn,cn->an", tensor, sides, other, optimize=True)), sides
    return float(np.max(np.abs(np.einsum("abc,an,bn,cn->n", tensor, sides, sides, sides, optimize=True))))


@dataclass(frozen=True, eq=False)
class Crowd:
    """Votes of a crowd, and what they were made from."""

    votes: tuple[np.ndarray, np.ndarray, np.ndarray]  # task, worker, label of every vote
    truth: np.ndarray  # (n_tasks,)
    errors: np.ndarray  # (n_workers, n_classes, n_classes), given label by true class, columns of sum one


def worker_errors(n_workers: int, n_classes: int, *, adversarial: float = 0.0, seed: Seed = None) -> np.ndarray:
    """Return confusion matrices (workers, given, true) of workers who are right with probability 0.5 to 0.9.

    The rest falls on the other labels unevenly. Of adversarial workers, the first of all, the matrices have their rows
    moved on by one: they mostly give the label after the true one.
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
    """Return votes of workers with these confusion matrices, each on a share of the tasks drawn at random."""
    as_number("n_tasks", n_tasks, integer=True)
    as_share("density", density)
    errors = as_finite("errors", errors, (None, None, None))
    n_workers, k, _ = errors.shape
    if errors.shape[2] != k:
        raise ValueError(f"errors must have shape (n_workers, k, k); got {errors.shape}")
    _check_chances("errors", errors, axis=1)
    if priors is not None:
        priors = as_finite("priors", priors, (k,))
        _check_chances("priors", priors, axis=0)
    rng = as_generator(seed)
    truth = rng.choice(k, n_tasks, p=priors)
    task, worker = np.nonzero(rng.random((n_tasks, n_workers)) < density)
    ladder = np.cumsum(errors, axis=1)
    label = np.empty(task.size, dtype=np.int64)
    draws = rng.random(task.size)
    for rung in range(0, task.size, 10**6):
        some = slice(rung, rung + 10**6)
        label[some] = np.sum(ladder[worker[some], :, truth[task[some]]] < draws[some, None], axis=1)
    return Crowd((task, worker, np.minimum(label, k - 1)), truth, errors)


@dataclass(frozen=True, eq=False)
class Graph:
    """A random graph with communities, and what it was made from."""

    adjacency: sparse.csr_array  # (n, n), symmetric, 0 and 1
    memberships: np.ndarray  # (n, k), rows on the simplex
    connectivity: np.ndarray  # (k, k)


def mixed_membership_graph(
    n: int,
    k: int,
    *,
    alpha_0: float = 1.0,
    inside: float = 0.1,
    outside: float = 0.01,
    degrees: np.ndarray | None = None,
    seed: Seed = None,
) -> Graph:
    r"""Return a graph of the mixed-membership model: nodes x and y are linked with probability :math:`p_x^\top P p_y`.

    Memberships p are Dirichlet with parameters :math:`\alpha_0 / k`, zero makes them pure; P is `inside` on the
    diagonal and `outside` elsewhere. With `degrees` (n,), of mean one, the probability is multiplied by those of both.
    """
    as_number("n", n, integer=True)
    as_number("k", k, integer=True)
    as_number("alpha_0", alpha_0, zero=True)
    as_share("inside", inside)
    as_share("outside", outside)
    if degrees is not None:
        degrees = as_finite("degrees", degrees, (n,))
        if np.any(degrees < 0):
            raise ValueError(f"degrees must not be negative; the least is {degrees.min():g}")
    rng = as_generator(seed)
    memberships = rng.dirichlet(np.full(k, alpha_0 / k), n) if alpha_0 > 0 else np.eye(k)[rng.integers(0, k, n)]
    connectivity = np.full((k, k), outside) + (inside - outside) * np.eye(k)
    scaled = memberships if degrees is None else memberships * degrees[:, None]
    rows, columns = [], []
    for start in range(0, n, 1000):
        chances = scaled[start : start + 1000] @ connectivity @ scaled.T
        row, column = np.nonzero(rng.random(chances.shape) < chances)
        above = column > row + start
        rows.append(row[above] + start)
        columns.append(column[above])
    row, column = np.concatenate(rows), np.concatenate(columns)
    both = np.concatenate([row, column]), np.concatenate([column, row])
    return Graph(sparse.csr_array((np.ones(both[0].size), both), shape=(n, n)), memberships, connectivity)


def _check_sizes(size: int, rank: int) -> None:
    as_number("size", size, integer=True)
    as_number("rank", rank, integer=True)
    if size * rank > LARGEST:
        raise ValueError(
            f"rank must be at most {LARGEST // size} for columns of size {size}, or no memory holds them; got {rank}"
        )


def _check_chances(name: str, chances: np.ndarray, axis: int) -> None:
    """Raise unless these are probabilities that sum to one along an axis."""
    totals = chances.sum(axis=axis)
    if np.any(chances < 0) or not np.allclose(totals, 1):
        raise ValueError(
            f"{name} must be probabilities that sum to one along axis {axis}; the least is {chances.min():.3g}, sums "
            f"run from {totals.min():.3g} to {totals.max():.3g}"
        )


def _unit(columns: np.ndarray) -> np.ndarray:
    return columns / np.linalg.norm(columns, axis=0)
