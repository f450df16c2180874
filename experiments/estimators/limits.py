"""What comparisons need beside the methods: the orthogonal oracle, and De Lathauwer's method at larger ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from codiag._arrays import asarray_like, to_host
from codiag.diagonalize import UWEDGE
from codiag.extending import Estimate, Limits, Method, minimize
from codiag.least_squares import Log, split_columns, unit_components, with_best_weights
from codiag.problem import Problem
from codiag.reduction import reduce
from codiag.starts import Roles, components_from_sides, gram_null_space


def orthogonal_oracle(
    tensor: np.ndarray, factors: Sequence[np.ndarray], *, symmetric: bool, tol: float = 1e-10, max_iter: int = 2000
) -> list[np.ndarray]:
    """Return the orthonormal factors nearest to the tensor in least squares, from the true ones."""
    problem = Problem(tensor, factors[0].shape[1], constraints="orthogonal", symmetric=symmetric)
    start = with_best_weights(problem.tensor, factors)
    end = minimize(problem, start, Limits(max_iter, tol, gain=0.0))
    return list(unit_components(end.components).factors)


@dataclass(frozen=True, kw_only=True)
class GramLathauwer(Method):
    """De Lathauwer's method as the authors ran it: the matrices that span the range of the slices are orthonormal.

    Their scripts call `cpd3_sd` of Tensorlab, after De Lathauwer, Castaing and Cardoso (2007). The null space is that
    of the Gram matrix of the rank-one equations, which needs less memory than the system itself. With `scaled`, the
    matrices are multiplied by their singular values, as in `experiments.estimators.slices.Lathauwer`.
    """

    scaled: bool = False

    def fit(self, problem: Problem, rng: np.random.Generator) -> Estimate:
        rank, log = problem.rank, Log()
        reduction = reduce(problem, rng)
        core, roles = reduction.core, Roles((0,), (1,), (2,))
        entries = to_host(core.to_dense()).transpose(roles.order)
        _, sizes, right = np.linalg.svd(entries.reshape(entries.shape[0], -1), full_matrices=False)
        rows = sizes[:rank, None] * right[:rank] if self.scaled else right[:rank]
        stack = rows.reshape(rank, *entries.shape[1:])
        null = gram_null_space(stack)
        log.add("rank-one system", 0, math.nan, 2.0 * rank**4 * stack[0].size + 2.0 * rank**6)
        joint = UWEDGE()(null, rng=rng)
        products = np.einsum("rij,rt->ijt", stack, joint.factor).reshape(-1, joint.factor.shape[1])
        left, right_side = split_columns(asarray_like(products, core.reference), stack.shape[1:])
        if core.symmetric:
            components = with_best_weights(core, [left] * core.order)
        else:
            components = components_from_sides(core, roles, left, right_side)
        log.add("diagonalize", joint.n_sweeps, math.nan, joint.n_sweeps * 2.0 * rank**4)
        return Estimate(reduction.to_tensor(components), log.history, joint.converged)
