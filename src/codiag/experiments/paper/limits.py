"""What comparisons need beside the methods: the orthogonal oracle, and De Lathauwer's method at larger ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from codiag._array import like, to_host
from codiag._estimate import Estimate, Log
from codiag._problem import Problem
from codiag.diagonalize import UWEDGE
from codiag.methods import Method
from codiag.methods._reduction import reduce
from codiag.methods._slices import Roles, components_from_sides
from codiag.methods.least_squares._components import with_best_weights
from codiag.methods.least_squares._rank_one import split_columns


def orthogonal_oracle(
    tensor: np.ndarray, factors: Sequence[np.ndarray], *, symmetric: bool, tol: float = 1e-10, max_steps: int = 2000
) -> list[np.ndarray]:
    r"""Return the orthonormal factors nearest to the tensor in least squares, from the true ones.

    With orthonormal factors the best weights are :math:`w_i = T(a_i, b_i, c_i)`, so :math:`\sum_i w_i^2` is to be
    largest. Given the other modes that is convex in one, and the polar factor of its slope never lowers it; where modes
    share one factor the slope is shifted by as much as the sum would fall otherwise.
    """
    current = [factors[0]] if symmetric else list(factors)
    height, shift = _height(tensor, current), 0.0
    for _ in range(max_steps):
        before = list(current)
        for mode in range(len(current)):
            slope, weights = _slope(tensor, current, mode)
            current[mode] = _polar(slope * weights + shift * current[mode])
        reached = _height(tensor, current)
        if reached < height * (1 - 1e-14):  # only modes that share a factor can overshoot
            current, shift = before, max(2 * shift, height / before[0].shape[1])
            continue
        height = reached
        if max(float(np.max(np.abs(now - then))) for now, then in zip(current, before, strict=True)) < tol:
            break
    return current * 3 if symmetric else current


def _slope(tensor: np.ndarray, factors: Sequence[np.ndarray], mode: int) -> tuple[np.ndarray, np.ndarray]:
    others = [factors[place % len(factors)] for place in range(3) if place != mode]
    first = np.tensordot(np.moveaxis(tensor, mode, 0), others[1], axes=1)  # (d, d', k)
    slope = np.einsum("ajk,jk->ak", first, others[0])
    return slope, np.sum(slope * factors[mode], axis=0)


def _height(tensor: np.ndarray, factors: Sequence[np.ndarray]) -> float:
    return float(np.sum(_slope(tensor, factors, 0)[1] ** 2))


def _polar(matrix: np.ndarray) -> np.ndarray:
    left, _, right = np.linalg.svd(matrix, full_matrices=False)
    return np.asarray(left @ right)


@dataclass(frozen=True, kw_only=True)
class GramLathauwer(Method):
    r"""De Lathauwer's method, by the Gram matrix of its system of rank-one equations instead of the system itself.

    The system has some :math:`d^4 / 4` rows; the products of its columns are traces of products of four slices,

    .. math:: \langle \Phi_{rs}, \Phi_{tu} \rangle = g_{rt} g_{su} + g_{ru} g_{st}
        - \mathrm{tr}(X_r X_u^\top X_s X_t^\top) - \mathrm{tr}(X_r X_t^\top X_s X_u^\top),

    so that :math:`2 k^4 d^2` flops do. Singular values below 1e-8 of the largest are lost, far below any noise here.
    """

    def fit(self, problem: Problem, rng: np.random.Generator) -> Estimate:
        rank, log = problem.rank, Log()
        reduction = reduce(problem, rng)
        core, roles = reduction.core, Roles((0,), (1,), (2,))
        entries = to_host(core.to_dense()).transpose(roles.order)
        _, sizes, right = np.linalg.svd(entries.reshape(entries.shape[0], -1), full_matrices=False)
        stack = (sizes[:rank, None] * right[:rank]).reshape(rank, *entries.shape[1:])
        null = gram_null_space(stack)
        log.add("rank-one system", 0, math.nan, 2.0 * rank**4 * stack[0].size + 2.0 * rank**6)
        joint = UWEDGE()(null, seed=rng)
        products = np.einsum("rij,rt->ijt", stack, joint.factor).reshape(-1, joint.factor.shape[1])
        left, right_side = split_columns(like(products, core.reference), stack.shape[1:])
        if core.symmetric:
            components = with_best_weights(core, [left] * core.order)
        else:
            components = components_from_sides(core, roles, left, right_side)
        log.add("diagonalize", joint.n_sweeps, math.nan, joint.n_sweeps * 2.0 * rank**4)
        return Estimate(reduction.lift(components), log.stages, joint.converged)


def gram_null_space(stack: np.ndarray) -> np.ndarray:
    """Return the symmetric matrices (k, k, k) that the rank-one equations of slices (k, I, J) send nearest to zero."""
    k = stack.shape[0]
    products = np.einsum("rij,tlj->rtil", stack, stack, optimize=True).reshape(k * k, -1)  # X_r X_t^T
    traces = (products @ products.T).reshape(k, k, k, k)  # [r, u, t, s] = tr(X_r X_u^T (X_t X_s^T)^T)
    gram = np.einsum("rij,tij->rt", stack, stack)
    first, second = np.triu_indices(k)
    r, s, t, u = first[:, None], second[:, None], first[None], second[None]
    system = gram[r, t] * gram[s, u] + gram[r, u] * gram[s, t] - traces[r, u, t, s] - traces[r, t, u, s]
    scale = np.where(first == second, 1.0, math.sqrt(2))  # an orthonormal basis of symmetric matrices
    vectors = np.linalg.eigh(system * np.outer(scale, scale))[1][:, :k].T
    null = np.zeros((k, k, k))
    null[:, first, second] = vectors / scale
    return null + np.triu(null, 1).transpose(0, 2, 1)
