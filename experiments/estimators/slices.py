"""Algebraic methods on slices and projections: pairs of projections, and the rank-one detecting map."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from codiag._arrays import Array, asarray_like, to_host
from codiag._checks import RankDeficientError, as_number
from codiag.diagonalize import UWEDGE, Diagonalizer, check_method, real_eigenvectors
from codiag.least_squares import Log, best_rank_one, split_columns, with_best_weights
from codiag.methods import Method, random_directions
from codiag.problem import Estimate, Problem
from codiag.reduction import reduce
from codiag.starts import Roles, check_roles, components_from_sides, diagonalized, matrix_roles
from codiag.tensors import DenseTensor, FactoredTensor, Tensor


@dataclass(frozen=True, kw_only=True, eq=False)
class SD2(Method):
    r"""Simultaneous diagonalization of two random projections (Anandkumar, Hsu & Kakade, 2012), the best of several.

    With :math:`M_1 = A D_1 B^\top` and :math:`M_2 = A D_2 B^\top`, the eigenvectors of :math:`M_1 M_2^{-1}` are A.

    *Needs* a rank of at most the second largest mode. *Costs* two projections and an eigendecomposition of
    :math:`25 k^3` flops for each pair. *Guarantees* exact components without noise; with noise errors of order
    :math:`k^5 \epsilon / (\pi_{\min} \min |\pi_i - \pi_j|)`, since components with similar ratios in the two matrices
    are mixed. *Fails* already with small noise.

    Parameters
    ----------
    n_pairs : int
        Number of pairs of projections; the components that fit the tensor best are returned.

    See Also
    --------
    codiag.methods.NOJD : The method with many projections.
    Lathauwer : The method for ranks above the size of the modes.

    References
    ----------
    A. Anandkumar, D. Hsu and S. Kakade, "A method of moments for mixture models and hidden Markov models", COLT 2012.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> from experiments.estimators.slices import SD2
    >>> rng = np.random.default_rng(0)
    >>> a, b, c = (rng.standard_normal((6, 4)) for _ in range(3))
    >>> fit = codiag.factorize(np.einsum("ir,jr,kr->ijk", a, b, c), 4, method=SD2(), rng=0)
    >>> codiag.factor_error(fit, (a, b, c)) < 1e-6
    True
    """

    n_pairs: int = 10

    def __post_init__(self) -> None:
        as_number("n_pairs", self.n_pairs, integer=True)

    def check_supported(self, problem: Problem) -> None:
        super().check_supported(problem)
        check_roles(problem, "SD2")

    def fit(self, problem: Problem, rng: np.random.Generator) -> Estimate:
        roles, rank, log = matrix_roles(problem), problem.rank, Log()
        reduction = reduce(problem, rng)
        core = reduction.core
        if rank == 1:
            return Estimate(reduction.to_tensor(best_rank_one(core)), log.history, True)
        pairs = [_diagonalized_pair(core, roles, rng) for _ in range(self.n_pairs)]
        candidates = [components for components in pairs if components is not None]
        if not candidates:
            raise RankDeficientError(
                f"rank must be at most that of the tensor, whose projections are singular in each of n_pairs="
                f"{self.n_pairs} pairs; got {rank}. method=None fits it by least squares"
            )
        distances = [core.squared_distance(components.weights, components.factors) for components in candidates]
        best = int(np.argmin(distances))
        flops = self.n_pairs * (4.0 * math.prod(core.shape) + 25.0 * rank**3)
        log.add("diagonalize pairs", self.n_pairs, (distances[best] / core.squared_norm()) ** 0.5, flops)
        return Estimate(reduction.to_tensor(candidates[best]), log.history, True)


def _diagonalized_pair(core: DenseTensor, roles: Roles, rng: np.random.Generator) -> FactoredTensor | None:
    """Return the components that two projections have in common, or None if the second one is singular."""
    directions = random_directions(rng, 2, [core.shape[mode] for mode in roles.others])
    projected = core.permute(roles.rows + roles.columns + roles.others)
    first, second = to_host(projected.project(*(asarray_like(rows, core.reference) for rows in directions)))
    try:
        left = real_eigenvectors(np.linalg.solve(second.T, first.T).T)
        right = left if core.symmetric else np.linalg.solve(left, second).T
    except np.linalg.LinAlgError:
        return None
    lengths = np.linalg.norm(right, axis=0)
    if not np.all(np.isfinite(left)) or not np.all(np.isfinite(lengths) & (lengths > 0)):
        return None
    if core.symmetric:
        return with_best_weights(core, [asarray_like(left, core.reference)] * core.order)
    return components_from_sides(
        core, roles, asarray_like(left, core.reference), asarray_like(right / lengths, core.reference)
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Lathauwer(Method):
    r"""The method of De Lathauwer (2006): rank-one detecting maps, a null space, and a joint diagonalization.

    The range of the tensor, unfolded to :math:`(A \odot B) C^\top`, is spanned by matrices :math:`E_r`. The map
    :math:`\Phi(X, Y)_{ijkl} = x_{ik} y_{jl} + y_{ik} x_{jl} - x_{il} y_{jk} - y_{il} x_{jk}` has
    :math:`\Phi(X, X) = 0` for matrices of rank one only. Symmetric matrices M with
    :math:`\sum_{rs} M_{rs} \Phi(E_r, E_s) = 0` are :math:`F D F^\top`, and :math:`\sum_r E_r F_{rt}` has rank one.

    *Needs* a rank k of at most the largest mode, and :math:`k (k - 1) \le I (I - 1) J (J - 1) / 2` for the other modes
    I and J, which k may exceed. *Costs* a singular value decomposition of a matrix with
    :math:`I (I - 1) J (J - 1) / 4` rows and :math:`k (k + 1) / 2` columns, :math:`O(k^8)` flops for cubes, so that it
    refuses ranks above about thirty. *Guarantees* exact components without noise, and errors of first order with small
    noise. *Fails* if the noise hides the null space.

    Parameters
    ----------
    diagonalizer : Diagonalizer, optional
        A method for symmetric matrices and free factors; by default `codiag.diagonalize.UWEDGE`.
    max_bytes : float
        Largest memory of the linear system, in bytes.

    See Also
    --------
    codiag.methods.Auto : The default method, with a similar start if the rank exceeds the size of the modes.
    SD2 : The method of two matrices, for smaller ranks.

    References
    ----------
    L. De Lathauwer, "A link between the canonical decomposition in multilinear algebra and simultaneous matrix
    diagonalization", SIAM J. Matrix Anal. Appl. 28(3), 2006.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> from experiments.estimators.slices import Lathauwer
    >>> rng = np.random.default_rng(0)
    >>> a, b, c = (rng.standard_normal((6, 4)) for _ in range(3))
    >>> fit = codiag.factorize(np.einsum("ir,jr,kr->ijk", a, b, c), 4, method=Lathauwer(), rng=0)
    >>> codiag.factor_error(fit, (a, b, c)) < 1e-6
    True
    """

    diagonalizer: Diagonalizer | None = None
    max_bytes: float = 2e9

    def __post_init__(self) -> None:
        as_number("max_bytes", self.max_bytes)
        if self.diagonalizer is None:
            return
        diagonalizer = check_method(self.diagonalizer)
        if diagonalizer.orthogonal or not diagonalizer.symmetric:
            raise ValueError(f"Lathauwer needs a symmetric diagonalizer with free factors; got {diagonalizer!r}")

    def check_supported(self, problem: Problem) -> None:
        roles, tensor, rank = _roles(problem.tensor), problem.tensor, problem.rank
        sizes = [math.prod(tensor.shape[mode] for mode in role) for role in roles]
        i, j, k = min(sizes[0], rank), min(sizes[1], rank), sizes[2]
        if rank > k or rank * (rank - 1) > i * (i - 1) * j * (j - 1) / 2:
            raise ValueError(
                f"rank must be at most {k}, the largest mode, and satisfy rank (rank - 1) <= I (I - 1) J (J - 1) / 2 "
                f"for the others, I = {i} and J = {j}, for Lathauwer; got {rank}. method=None fits it by least squares"
            )
        height, width = _system_size(i, j, rank)
        if 3 * 8 * height * width > self.max_bytes:
            raise ValueError(
                f"rank {rank} needs a system of {height} x {width} numbers, {3 * 8 * height * width / 1e9:.1f} GB with "
                f"its decomposition, above max_bytes={self.max_bytes:g}; use NOJD, which needs no such system"
            )
        super().check_supported(problem)

    def fit(self, problem: Problem, rng: np.random.Generator) -> Estimate:
        roles, rank, log = _roles(problem.tensor), problem.rank, Log()
        reduction = reduce(problem, rng)
        core = reduction.core
        if rank == 1:
            return Estimate(reduction.to_tensor(best_rank_one(core)), log.history, True)
        rows, columns = (core.shape[role[0]] for role in roles[:2])
        height, width = _system_size(rows, columns, rank)
        stack = _range(core, roles, rank)
        null = _null_space(stack, rank)
        log.add("rank-one system", 0, math.nan, 2.0 * height * width**2 + 11.0 * width**3)
        joint = diagonalized(self.diagonalizer or UWEDGE(), null, rank, rng)
        log.add("diagonalize", joint.n_sweeps, math.nan, joint.n_sweeps * 2.0 * rank**4)
        components = _rank_one_factors(core, roles, np.einsum("rij,rt->ijt", stack, joint.factor))
        return Estimate(reduction.to_tensor(components), log.history, joint.converged)


def _roles(tensor: Tensor) -> Roles:
    """Use the second and third largest modes for rows and columns, and all others to index the matrices."""
    modes = sorted(range(tensor.order), key=lambda mode: tensor.shape[mode])
    if tensor.symmetric:
        return Roles((0,), (1,), tuple(range(2, tensor.order)))
    return Roles((modes[-3],), (modes[-2],), tuple(sorted(set(modes) - {modes[-3], modes[-2]})))


def _system_size(rows: int, columns: int, rank: int) -> tuple[int, int]:
    return math.comb(rows, 2) * math.comb(columns, 2), rank * (rank + 1) // 2


def _range(core: DenseTensor, roles: Roles, rank: int) -> np.ndarray:
    """Return matrices (rank, I, J) that span the range of the core's slices, on the host."""
    entries = to_host(core.to_dense()).transpose(roles.order)
    shape = [core.shape[mode] for mode in roles.rows + roles.columns]
    flat = entries.reshape(-1, math.prod(shape))
    _, sizes, right = np.linalg.svd(flat, full_matrices=False)
    dimension = int(np.count_nonzero(sizes > 10 * max(flat.shape) * np.finfo(entries.dtype).eps * sizes[0]))
    if dimension < rank:
        raise RankDeficientError(
            f"rank must be at most {dimension}, the dimension of the range of the slices, for Lathauwer; got {rank}. "
            "method=None fits it by least squares"
        )
    return (sizes[:rank, None] * right[:rank]).reshape(rank, *shape)


def _null_space(stack: np.ndarray, rank: int) -> np.ndarray:
    """Return the symmetric matrices (rank, rank, rank) with the smallest images under the rank-one detecting map.

    The map changes sign if i and j, or k and l, are exchanged, so that pairs i < j and k < l determine it.
    """
    first, second = np.triu_indices(rank)
    (i, j), (k, l) = (np.triu_indices(size, 1) for size in stack.shape[1:])
    # In an orthonormal basis of symmetric matrices: e_r e_r^T, and (e_r e_s^T + e_s e_r^T) / sqrt(2).
    scale = np.where(first == second, 1.0, math.sqrt(2))
    system = np.empty((i.size * k.size, first.size))
    for column, (r, s) in enumerate(zip(first, second, strict=True)):
        x, y = stack[r], stack[s]
        image = x[i][:, k] * y[j][:, l] + y[i][:, k] * x[j][:, l] - x[i][:, l] * y[j][:, k] - y[i][:, l] * x[j][:, k]
        system[:, column] = scale[column] * image.ravel()
    triangle = np.linalg.qr(system, mode="r") if system.shape[0] > system.shape[1] else system
    null = np.zeros((rank, rank, rank))
    null[:, first, second] = np.linalg.svd(triangle)[2][-rank:] / scale
    return np.asarray(null + np.triu(null, 1).transpose(0, 2, 1))


def _rank_one_factors(core: DenseTensor, roles: Roles, products: np.ndarray) -> FactoredTensor:
    """Split matrices of rank one, (I, J, k), and compute the factors of the other modes."""
    flat: Array = asarray_like(products.reshape(-1, products.shape[2]), core.reference)
    left, right = split_columns(flat, products.shape[:2])
    if core.symmetric:
        return with_best_weights(core, [left] * core.order)
    return components_from_sides(core, roles, left, right)
