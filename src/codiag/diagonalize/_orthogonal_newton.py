"""Orthogonal joint diagonalization by Newton-like steps of one matrix product each."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from codiag._arrays import Array, like
from codiag.diagonalize._base import Iterate, NewtonLike
from codiag.diagonalize._compression import Slabs
from codiag.diagonalize._given_start import follow_past_saddles
from codiag.diagonalize._jacobi import Jacobi
from codiag.diagonalize._restarts import FixedPoint, criterion, lowest, sketch_limits, sketched
from codiag.diagonalize._starts import eigenvector_start, orthogonal_start
from codiag.diagonalize.steps import (
    Limits,
    Outcome,
    find_fixed_point,
    newton_rotations,
    orthonormalize,
    rotate,
    rotation_step,
)

SMALL = 30
"""Size up to which sweeps over pairs cost no more than some dozen steps."""

QUICK = 30
"""Steps after which convergence is called slow, and the whole curvature is used."""

KEPT = 2**24
"""Entries of the matrices up to which a transformed copy of them is held, which that takes."""


@dataclass(frozen=True, kw_only=True)
class OrthogonalNewton(NewtonLike):
    r"""Orthogonal joint diagonalization: one eigendecomposition, then Newton-like steps.

    Each step rotates by the Cayley transform of

    .. math:: W_{ij} = (y_{ji} - y_{ij}) / \sum_l (d_{il} - d_{jl})^2, \quad y_{ij} = \sum_l d_{jl} (D_l)_{ij},

    Cardoso's first-order error with the current off-diagonal entries as the noise. A step that lowers the diagonal
    energy is replaced by a shorter one; where contraction is slow, Anderson acceleration takes over, and after 30 steps
    Newton's method with the whole curvature, by conjugate gradients.

    **Needs** symmetric matrices and orthonormal factors. **Costs** one eigendecomposition and, for each step, one
    matrix product of :math:`2 n d^3` operations; a handful of steps under small noise. **Guarantees** that the
    off-diagonal energy does not rise, and quadratic convergence without noise. **Fails** to be certain where the noise
    is so large that theory does not promise a single solution: other starts, and `Jacobi` up to size 30, are then tried
    until the lowest off-diagonal energy has been reached twice, six at most.

    Parameters
    ----------
    rank : int, optional
        Number of components, as in `Diagonalizer`.
    tol : float
        Stop when the largest entry of the relative step falls below it.
    max_sweeps : int
        Steps or sweeps before giving up, as in `Diagonalizer`.
    statistical_tol : float
        Stop, too, when every entry of the step is below this share of its standard error: what is left to gain is then
        invisible under the noise. Zero asks for the minimizer to `tol`.

    See Also
    --------
    Jacobi : Rotations of pairs, the classical method.
    UWEDGE : For factors that are not orthogonal.

    References
    ----------
    J.-F. Cardoso, "Perturbation of joint diagonalizers", 1994.
    A. Ziehe, P. Laskov, G. Nolte and K.-R. Mueller, "A fast algorithm for joint diagonalization with non-orthogonal
    transformations", JMLR 5, 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.diagonalize import OrthogonalNewton
    >>> rng = np.random.default_rng(0)
    >>> basis = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    >>> fit = OrthogonalNewton()([basis @ np.diag(rng.standard_normal(4)) @ basis.T for _ in range(5)], seed=0)
    >>> fit.converged, fit.off_diagonal < 1e-20
    (True, True)
    """

    handles_opposite_diagonals: ClassVar[bool] = True
    orthogonal = True

    def iterate(self, stack: Array, rng: np.random.Generator) -> Iterate:
        core, limits = Slabs(stack), self._limits(stack)
        probe = like(rng.choice([-1.0, 1.0], stack.shape[1]), stack)
        sketch, n_sweeps = sketched(stack, rng), 0
        inverse = orthogonal_start(stack if sketch is None else sketch, rng)
        if sketch is not None:
            outcome = _follow_rotations(Slabs(sketch), inverse, probe, sketch_limits(limits))
            inverse, n_sweeps = outcome.point, outcome.n_sweeps
        outcome = _follow_rotations(core, inverse, probe, limits)
        inverse = orthonormalize(outcome.point)
        iterate = Iterate(inverse, inverse, n_sweeps + outcome.n_sweeps, outcome.converged)
        if outcome.certain:
            return iterate
        found = lowest(self._restarts(core, rng, probe, iterate), n=stack.shape[0])
        return found._replace(n_sweeps=found.n_sweeps + iterate.n_sweeps)

    def iterate_from(self, stack: Array, rng: np.random.Generator, left: Array, right: Array) -> Iterate:
        core, limits = Slabs(stack), self._limits(stack)
        probe = like(rng.choice([-1.0, 1.0], stack.shape[1]), stack)
        outcome = follow_past_saddles(lambda point: _follow_rotations(core, point, probe, limits), stack, left, rng)
        inverse = orthonormalize(outcome.point)
        return Iterate(inverse, inverse, outcome.n_sweeps, outcome.converged)

    def _restarts(self, core: Slabs, rng: np.random.Generator, probe: Array, first: Iterate) -> Iterator[FixedPoint]:
        """Go from several starts, of sweeps over pairs too where these cost little."""
        yield _fixed_point(core, first._replace(n_sweeps=0))
        if core.stack.shape[1] <= SMALL:
            yield _fixed_point(core, Jacobi(max_sweeps=self.max_sweeps).iterate(core.stack, rng))
        for trial in range(4):
            start = orthogonal_start(core.stack, rng) if trial else eigenvector_start(core.stack)
            outcome = _follow_rotations(core, start, probe, self._limits(core.stack))
            inverse = orthonormalize(outcome.point)
            yield _fixed_point(core, Iterate(inverse, inverse, outcome.n_sweeps, outcome.converged))


def _fixed_point(core: Slabs, iterate: Iterate) -> FixedPoint:
    return FixedPoint(iterate, criterion(core, iterate.left, iterate.left, orthogonal=True))


def _follow_rotations(core: Slabs, inverse: Array, probe: Array, limits: Limits) -> Outcome:
    """Follow the steps, and where they are slow those of Newton's method with all of the curvature."""
    entries = math.prod(core.stack.shape)
    finish = limits.max_sweeps > QUICK and entries <= KEPT
    first = replace(limits, max_sweeps=QUICK) if finish else limits
    outcome = find_fixed_point(lambda point: rotation_step(core, point, probe), rotate, inverse, first)
    if outcome.converged or not finish:
        return outcome
    start = orthonormalize(outcome.point)
    end = newton_rotations(core.stack, start, limits.tol, limits.statistical_tol, limits.max_sweeps - QUICK)
    last = rotation_step(core, end.point, probe)
    return Outcome(end.point, last, outcome.n_sweeps + end.n_products, end.converged)
