"""Orthogonal joint diagonalization by Newton-like steps of one matrix product each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from codiag._arrays import Array, asarray_like
from codiag.diagonalize._base import NewtonLike
from codiag.diagonalize._fixed_point import (
    FixedPoint,
    FixedPointResult,
    Iterate,
    Limits,
    criterion,
    find_fixed_point,
    lowest_fixed_point,
    sketch_limits,
    sketched,
)
from codiag.diagonalize._jacobi import Jacobi
from codiag.diagonalize._rotations import follow_past_saddles, newton_rotations, orthonormalize, rotate, rotation_step
from codiag.diagonalize._stack import MatrixStack
from codiag.diagonalize._starts import eigenvector_start, orthogonal_start

MAX_SWEPT_SIZE = 30
"""Size of the matrices up to which `Jacobi` is one of the starts: its sweeps then take as long as a few dozen steps."""

ROUGH = 1e-2
"""Largest angle of a step or a sweep of `Jacobi`, in radians, at which a basin of attraction has been reached. Energies
are then within 1e-4 of their minimum, relative to the gaps of the diagonals. Other starts, which are tried if
off-diagonal energies are as large as the gaps, need no more to be compared."""

MAX_PAIR_STEPS = 12
"""Steps of single pairs after which Newton's method takes over, because they converge slowly. Between 6 and 20 the time
hardly depends on it; with less noise than that pair steps converge in fewer."""


@dataclass(frozen=True, kw_only=True)
class OrthogonalNewton(NewtonLike):
    r"""Orthogonal joint diagonalization: one eigendecomposition, then Newton-like steps.

    Each step rotates by the Cayley transform of

    .. math:: W_{ij} = (y_{ji} - y_{ij}) / \sum_l (d_{il} - d_{jl})^2, \quad y_{ij} = \sum_l d_{jl} (D_l)_{ij},

    Cardoso's first-order error with the current off-diagonal entries as the noise. A step that lowers the diagonal
    energy is replaced by a shorter one. If convergence is slow, Anderson acceleration speeds it up, and after 12 steps
    Newton's method with the whole second derivative, by conjugate gradients.

    Parameters
    ----------
    rank : int, optional
        Number of components, as in `Diagonalizer`.
    tol : float
        Stop when the largest entry of the relative step falls below it.
    max_sweeps : int
        Steps or sweeps before giving up, as in `Diagonalizer`.
    statistical_tol : float
        Stop also when every entry of the step is below this fraction of its standard error: further steps change less
        than the noise does. With zero, only `tol` counts.

    See Also
    --------
    Jacobi : Rotations of pairs, the classical method.
    UWEDGE : For factors that are not orthogonal.

    Notes
    -----
    **Assumptions.** Symmetric matrices and orthonormal factors.

    **Complexity.** One eigendecomposition and, for each step, one matrix product of :math:`2 n d^3` operations; a few
    steps with small noise.

    **Guarantees.** The off-diagonal energy does not increase, and quadratic convergence without noise.

    **Limitations.** Fails to be certain if the noise is so large that theory does not guarantee a unique solution:
    other starts, and `Jacobi` up to size 30, are then tried, six in all at most, until the lowest off-diagonal energy
    has been reached twice.

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
    >>> fit = OrthogonalNewton()([basis @ np.diag(rng.standard_normal(4)) @ basis.T for _ in range(5)], rng=0)
    >>> fit.converged, fit.off_diagonal < 1e-20
    (True, True)
    """

    complex_kinds: ClassVar[tuple[str, ...]] = ("hermitian", "symmetric")
    orthogonal = True

    def iterate(self, stack: Array, rng: np.random.Generator) -> Iterate:
        core, limits = MatrixStack(stack), self._limits(stack)
        probe = asarray_like(rng.choice([-1.0, 1.0], stack.shape[1]), stack)
        sketch, n_sweeps = sketched(stack, rng), 0
        inverse = orthogonal_start(stack if sketch is None else sketch, rng)
        if sketch is not None:
            outcome = _follow_rotations(MatrixStack(sketch), inverse, probe, sketch_limits(limits))
            inverse, n_sweeps = outcome.point, outcome.n_sweeps
        outcome = _follow_rotations(core, inverse, probe, limits)
        iterate = _iterate_of(outcome._replace(n_sweeps=n_sweeps + outcome.n_sweeps))
        if outcome.is_unique:
            return iterate
        lowest = lowest_fixed_point(self._restarts(core, rng, probe, iterate), n=stack.shape[0])
        return lowest._replace(n_sweeps=lowest.n_sweeps + iterate.n_sweeps)

    def iterate_from(self, stack: Array, rng: np.random.Generator, left: Array, right: Array) -> Iterate:
        core, limits = MatrixStack(stack), self._limits(stack)
        probe = asarray_like(rng.choice([-1.0, 1.0], stack.shape[1]), stack)
        outcome = follow_past_saddles(lambda point: _follow_rotations(core, point, probe, limits), stack, left, rng)
        return _iterate_of(outcome)

    def _restarts(
        self, core: MatrixStack, rng: np.random.Generator, probe: Array, first: Iterate
    ) -> Iterator[FixedPoint]:
        """Yield fixed points from several starts, those above the first one only roughly."""
        limits = self._limits(core.matrices)
        reference = _fixed_point(core, first._replace(n_sweeps=0))
        yield reference
        for start in self._starts(core.matrices, rng):
            outcome = _follow_rotations(core, start, probe, replace(limits, tol=max(limits.tol, ROUGH)))
            end = _fixed_point(core, _iterate_of(outcome))
            if outcome.converged and (not first.converged or end.criterion < reference.criterion):
                rest = replace(limits, max_sweeps=limits.max_sweeps - outcome.n_sweeps)
                last = _follow_rotations(core, end.iterate.left, probe, rest)
                end = _fixed_point(core, _iterate_of(last._replace(n_sweeps=outcome.n_sweeps + last.n_sweeps)))
            yield end

    def _starts(self, stack: Array, rng: np.random.Generator) -> Iterator[Array]:
        """Yield further starts: the end of rough Jacobi sweeps if the matrices are small, eigenvectors, random ones."""
        if stack.shape[1] <= MAX_SWEPT_SIZE:
            yield Jacobi(tol=ROUGH, max_sweeps=self.max_sweeps).iterate(stack, rng).left
        yield eigenvector_start(stack)
        for _ in range(3):
            yield orthogonal_start(stack, rng)


def _iterate_of(outcome: FixedPointResult) -> Iterate:
    inverse = orthonormalize(outcome.point)
    return Iterate(inverse, inverse, outcome.n_sweeps, outcome.converged)


def _fixed_point(core: MatrixStack, iterate: Iterate) -> FixedPoint:
    return FixedPoint(iterate, criterion(core, iterate.left, iterate.left, orthogonal=True))


def _follow_rotations(core: MatrixStack, inverse: Array, probe: Array, limits: Limits) -> FixedPointResult:
    """Follow the steps of single pairs, and those of Newton's method if they converge slowly."""
    max_newton_steps = limits.max_sweeps - MAX_PAIR_STEPS
    n, size, _ = core.matrices.shape
    has_newton = max_newton_steps > 0 and max(n, size) * size**2 <= 2**24  # entries that are kept: 128 MB
    first = replace(limits, max_sweeps=MAX_PAIR_STEPS) if has_newton else limits
    outcome = find_fixed_point(lambda point: rotation_step(core, point, probe), rotate, inverse, first)
    if outcome.converged or not has_newton:
        return outcome
    start = orthonormalize(outcome.point)
    end = newton_rotations(core, start, limits.tol, limits.statistical_tol, max_newton_steps)
    last = rotation_step(core, end.left, probe)
    return FixedPointResult(end.left, last, outcome.n_sweeps + end.n_sweeps, end.converged)
