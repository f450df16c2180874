r"""Lower bounds of the contributions of components of a symmetric tensor, from one eigenvalue.

Without component i, the objective rises by at least half of :math:`x_i^\top S_i x_i`, where :math:`S_i` is the Schur
complement of the other components in the Gauss-Newton matrix H. If :math:`H \ge \lambda\, I \otimes \Gamma`, where
:math:`I \otimes \Gamma` is the part of H that maps moves of the factor to its own rows, Schur complements have the same
order, and the rise is at least

.. math:: \tfrac\lambda2\, \|x_i\|^2 / (\Gamma^{-1})_{ii}.

If modes have factors of their own, their scales may move against each other without any effect. Then
:math:`\lambda = 0`, and there is no bound.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from codiag._arrays import to_host
from codiag.least_squares import BRIEF, ROUGHEST, ROUNDING, GaussNewtonOperator, LeastSquares
from codiag.problem import Problem
from codiag.tensors import FactoredTensor


def removal_rise_bounds(problem: Problem, components: FactoredTensor) -> np.ndarray:
    r"""Return lower bounds of the rises of the objective without each component; zeros if there is none.

    :math:`\lambda` is halved, since Lanczos iterations approach it from above, and a rough minimum is not quite a
    minimum.
    """
    objective, none = LeastSquares(problem, components), np.zeros(components.rank)
    if objective.parametrization.signs is None or problem.constraints:
        return none
    signs = to_host(objective.parametrization.signs)
    point = to_host(objective.parametrization.vectorize(components))
    curvature = GaussNewtonOperator(replace(objective.parametrization, signs=signs), point)
    sizes = np.sqrt(curvature.scales[0])
    values, vectors = np.linalg.eigh(curvature.own[0] / np.outer(sizes, sizes))
    if not values[0] > ROUNDING * values[-1]:
        return none
    inverse = np.diag((vectors / values) @ vectors.T) / sizes**2
    eigenvalue = _smallest_eigenvalue(curvature, (vectors / np.sqrt(values)) @ vectors.T / sizes[:, None])
    return eigenvalue / 4 * problem.data.mean_share * np.sum((point / problem.tensor.order) ** 2, axis=0) / inverse


def _smallest_eigenvalue(curvature: GaussNewtonOperator, root: np.ndarray) -> float:
    """Return the smallest eigenvalue of the matrix between moves times a root of the inverse; 0 if it is not found."""
    shape = curvature.point.shape
    product = LinearOperator(
        (curvature.point.size,) * 2,
        matvec=lambda move: (curvature.product(move.reshape(shape) @ root.T) @ root).ravel(),
        dtype=np.float64,
    )
    first = np.random.default_rng(0).standard_normal(curvature.point.size)
    try:
        found = eigsh(
            product, k=1, which="SA", tol=ROUGHEST, v0=first, maxiter=BRIEF.max_products, return_eigenvectors=False
        )
    except ArpackNoConvergence:
        return 0.0
    return max(float(found[0]), 0.0)
