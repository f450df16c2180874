"""Simultaneous diagonalization of two projections."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from codiag._arrays import like, to_host
from codiag._checks import UndeterminedError, as_number
from codiag.diagonalize import real_eigenvectors
from codiag.least_squares import best_rank_one, with_best_weights
from codiag.methods._method import Method
from codiag.problem import Estimate, Log, Problem
from codiag.reduction import random_directions, reduce
from codiag.starts import Roles, components_from_sides, matrix_roles, roles_refusal
from codiag.tensors import DenseTensor, FactoredTensor


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
    NOJD : The method with many projections.
    Lathauwer : The method for ranks above the size of the modes.

    References
    ----------
    A. Anandkumar, D. Hsu and S. Kakade, "A method of moments for mixture models and hidden Markov models", COLT 2012.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> rng = np.random.default_rng(0)
    >>> a, b, c = (rng.standard_normal((6, 4)) for _ in range(3))
    >>> fit = codiag.factorize(np.einsum("ir,jr,kr->ijk", a, b, c), 4, method=codiag.methods.SD2(), seed=0)
    >>> codiag.factor_error(fit, (a, b, c)) < 1e-6
    True
    """

    n_pairs: int = 10

    def __post_init__(self) -> None:
        as_number("n_pairs", self.n_pairs, integer=True)

    def refusal(self, problem: Problem) -> str | None:
        return super().refusal(problem) or roles_refusal(problem, "SD2")

    def fit(self, problem: Problem, rng: np.random.Generator) -> Estimate:
        roles, rank, log = matrix_roles(problem), problem.rank, Log()
        reduction = reduce(problem, rng)
        core = reduction.core
        if rank == 1:
            return Estimate(reduction.to_tensor(best_rank_one(core)), log.stages, True)
        pairs = [_diagonalized_pair(core, roles, rng) for _ in range(self.n_pairs)]
        candidates = [components for components in pairs if components is not None]
        if not candidates:
            raise UndeterminedError(
                f"rank must be at most that of the tensor, whose projections are singular in each of n_pairs="
                f"{self.n_pairs} pairs; got {rank}. method=None fits it by least squares"
            )
        distances = [core.squared_distance(components.weights, components.factors) for components in candidates]
        best = int(np.argmin(distances))
        flops = self.n_pairs * (4.0 * math.prod(core.shape) + 25.0 * rank**3)
        log.add("diagonalize pairs", self.n_pairs, (distances[best] / core.squared_norm()) ** 0.5, flops)
        return Estimate(reduction.to_tensor(candidates[best]), log.stages, True)


def _diagonalized_pair(core: DenseTensor, roles: Roles, rng: np.random.Generator) -> FactoredTensor | None:
    """Return the components that two projections have in common, or None if the second one is singular."""
    directions = random_directions(rng, 2, [core.shape[mode] for mode in roles.others])
    projected = core.permute(roles.rows + roles.columns + roles.others)
    first, second = to_host(projected.project(*(like(rows, core.reference) for rows in directions)))
    try:
        left = real_eigenvectors(np.linalg.solve(second.T, first.T).T)
        right = left if core.symmetric else np.linalg.solve(left, second).T
    except np.linalg.LinAlgError:
        return None
    lengths = np.linalg.norm(right, axis=0)
    if not np.all(np.isfinite(left)) or not np.all(np.isfinite(lengths) & (lengths > 0)):
        return None
    if core.symmetric:
        return with_best_weights(core, [like(left, core.reference)] * core.order)
    return components_from_sides(core, roles, like(left, core.reference), like(right / lengths, core.reference))
