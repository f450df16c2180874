"""Non-orthogonal joint diagonalization by rotations and hyperbolic rotations of pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from codiag._arrays import Array, array_namespace, epsilon, identity, like, moved, to_host
from codiag.diagonalize._base import Diagonalizer
from codiag.diagonalize._fixed_point import Iterate
from codiag.diagonalize._jacobi import (
    Round,
    balance_rows,
    on_device,
    pair_entries,
    paired_layout,
    round_robin,
    transform_pairs,
)


@dataclass(frozen=True, kw_only=True)
class JDi(Diagonalizer):
    r"""Non-orthogonal joint diagonalization by the J-Di method: slow and robust.

    Each pair is transformed by a rotation and a hyperbolic rotation that together minimize its off-diagonal energy.
    With :math:`g = ((d_p + d_q)/2,\ (d_p - d_q)/2,\ D_{pq})`, :math:`G = \sum_l g g^\top` and
    :math:`J = \mathrm{diag}(-1, 1, 1)`, they follow from the eigenvector of :math:`G v = \tau J v` for the median
    :math:`\tau`. The optima of disjoint pairs do not depend on each other, so that a whole round is applied at once.
    Rows are scaled to equal diagonal energy before each sweep.

    **Needs** symmetric matrices. **Costs** :math:`O(n d^3)` operations a sweep in passes over memory, and
    :math:`d^2 / 2` eigenproblems of size 3 on the host: minutes for size 120 and more. **Guarantees** the optimum of
    the 2 x 2 problem of every pair, in closed form. **Fails** only to be fast; `UWEDGE` falls back on it if its own
    steps do not converge.

    Parameters
    ----------
    rank : int, optional
        Number of components, as in `Diagonalizer`.
    tol : float
        Stop when the largest entry of the relative step falls below it.
    max_sweeps : int
        Steps or sweeps before giving up, as in `Diagonalizer`.

    See Also
    --------
    UWEDGE : Faster, and the default.
    QRJ1D : The paper's method for factors that are not orthogonal.

    References
    ----------
    A. Souloumiac, "Nonorthogonal joint diagonalization by combining Givens and hyperbolic rotations", IEEE Trans.
    Signal Process. 57(6), 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.diagonalize import JDi
    >>> rng = np.random.default_rng(0)
    >>> factor = rng.standard_normal((4, 4))
    >>> fit = JDi()([factor @ np.diag(rng.standard_normal(4)) @ factor.T for _ in range(5)])
    >>> fit.converged, fit.off_diagonal < 1e-20
    (True, True)
    """

    def iterate(self, stack: Array, rng: np.random.Generator) -> Iterate:
        return hyperbolic_sweeps(stack, self.tol, self.max_sweeps)


def hyperbolic_sweeps(stack: Array, tol: float, max_sweeps: int, start: Array | None = None) -> Iterate:
    """Sweep, from the identity or a given start, until every transformation is the identity up to the tolerance."""
    xp = array_namespace(stack)
    entries = paired_layout(stack if start is None else start @ stack @ xp.matrix_transpose(start))
    inverse = identity(entries.shape[0], entries) if start is None else xp.asarray(start, copy=True)
    rounds = on_device(round_robin(entries.shape[0]), entries)
    tol = max(tol, 4 * epsilon(entries))
    n_sweeps, converged = 0, False
    while n_sweeps < max_sweeps and not converged:
        balance_rows(entries, inverse)
        converged = max(_transform_round(entries, inverse, pairs) for pairs in rounds) < tol
        n_sweeps += 1
    inverse = moved(inverse, stack)
    return Iterate(inverse, inverse, n_sweeps, converged)


def _transform_round(entries: Array, inverse: Array, pairs: Round) -> float:
    """Transform every pair of a round, in place; return the largest sine, circular or hyperbolic."""
    xp = array_namespace(entries)
    first, second, cross = pair_entries(entries, pairs)
    vectors = xp.stack([(first + second) / 2, (first - second) / 2, cross], axis=1)
    v1, v2, v3 = _median_eigenvectors(to_host(vectors @ xp.matrix_transpose(vectors)).astype(np.float64))
    w = np.sqrt(1 + v1**2)
    cosh = np.sqrt((1 + w) / 2)
    sinh = v1 / (2 * cosh)
    cos = np.sqrt((1 + v3 / w) / 2)
    sin = -v2 / (2 * cos * w)
    matrix = np.stack(
        [cos * cosh - sin * sinh, cos * sinh + sin * cosh, cos * sinh - sin * cosh, cos * cosh + sin * sinh]
    )
    transform_pairs(entries, inverse, pairs, like(matrix, entries))
    return float(max(np.max(np.abs(sinh)), np.max(np.abs(sin))))


def _median_eigenvectors(gram: np.ndarray) -> np.ndarray:
    """Solve G v = tau J v, J = diag(-1, 1, 1), for the median tau; scale to v^T J v = 1, v_3 >= 0. Shape (3, pairs)."""
    signs = np.array([-1.0, 1.0, 1.0])
    values, vectors = np.linalg.eig(signs[:, None] * gram)
    median = np.argsort(values.real, axis=1)[:, 1]
    v = np.take_along_axis(vectors.real, median[:, None, None], axis=2)[:, :, 0]
    length = np.sum(signs * v * v, axis=1)
    # The identity, (0, 0, 1), if the pair is diagonal already or if rounding errors leave no such direction.
    usable = (length > 0) & (gram[:, 2, 2] > (10 * np.finfo(float).eps) ** 2 * np.trace(gram, axis1=1, axis2=2))
    v = np.where(usable[:, None], v / np.sqrt(np.where(usable, length, 1))[:, None], [0.0, 0.0, 1.0])
    return (v * np.where(v[:, 2] < 0, -1, 1)[:, None]).T
