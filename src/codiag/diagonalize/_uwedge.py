"""Non-orthogonal joint diagonalization by exhaustive weighted steps of one matrix product each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from codiag._arrays import Array, asarray_like, is_complex, to_host
from codiag._checks import as_flag
from codiag.diagonalize._base import NewtonLike
from codiag.diagonalize._fixed_point import (
    FixedPoint,
    FixedPointResult,
    Iterate,
    Limits,
    criterion,
    lowest_fixed_point,
    sketch_limits,
    sketched,
)
from codiag.diagonalize._pair_sweeps import hyperbolic_sweeps
from codiag.diagonalize._shears import follow_shears, shear_step
from codiag.diagonalize._stack import MatrixStack
from codiag.diagonalize._starts import orthogonal_start, pencil_start, whitened_start

LARGE = 120
"""Size of the matrices above which the start is a symmetric eigenproblem if its steps converge, since a nonsymmetric
one takes much longer, and above which no further starts are drawn. Chosen by experience."""

MAX_SWEPT_SIZE = 20
"""Size of the matrices up to which sweeps of J-Di replace steps that converge from no start: it takes hundreds."""

UNCERTAIN = 0.5
"""Contraction rate above which another start is tried. The rate assumes the same off-diagonal energy for all pairs;
half of what contracts leaves room for pairs that have more."""


@dataclass(frozen=True, kw_only=True)
class UWEDGE(NewtonLike):
    r"""Non-orthogonal joint diagonalization: one generalized eigendecomposition, then exhaustive weighted steps.

    With rows of B scaled so that :math:`\sum_l d_{il}^2 = 1` and :math:`\rho_{ij} = \sum_l d_{il} d_{jl}`, each step is
    :math:`B \leftarrow (I - W)^{-1} B` with

    .. math:: W_{ij} = (\rho_{ij} y_{ji} - y_{ij}) / (1 - \rho_{ij}^2), \quad y_{ij} = \sum_l d_{jl} (D_l)_{ij},

    the solution of all 2 x 2 least-squares problems at once, with Anderson acceleration near a solution.

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
    fallback : bool
        Whether to try more starts if the steps do not converge, or if theory does not guarantee that the fixed point is
        unique. False is for factors that another method refines.

    See Also
    --------
    OrthogonalNewton : For orthogonal factors.
    TwoSided : For matrices that are not symmetric.
    QRJ1D : The paper's method.
    JDi : Sweeps of pairs, tried if the steps do not converge.

    Notes
    -----
    **Assumptions.** Symmetric matrices, and components whose diagonals are not proportional.

    **Complexity.** One eigendecomposition and, for each step, one matrix product of :math:`2 n d^3` operations; a few
    steps with small noise.

    **Guarantees.** Fixed points that depend neither on the scale of the rows nor on the coordinates of the matrices,
    and a unique one if the noise is so small that the steps contract (see Notes).

    **Limitations.** Fails to be certain with larger noise, because several fixed points may exist: up to three more
    starts are then tried, until the lowest :math:`\sum_{i \ne j} R_{ij} / \sqrt{R_{ii} R_{jj}}`, with :math:`R_{ij} =
    \sum_l (D_l)_{ij}^2`, has been reached twice. If the steps converge from no start, at most 15 sweeps of `JDi`
    precede them up to size 60, and as many as it needs replace them up to size 20. Otherwise the best iterate is
    returned with ``converged`` false.

    The steps contract if :math:`(2 c\, r_{ij} + 2 (1 + c)^2 r_{ij}^2) / (1 - \rho_{ij}^2) < 1` for all pairs, with
    :math:`r_{ij}` the root of the off-diagonal energy of a pair and c the root of the ratio of the size to the number
    of matrices.

    The steps do not minimize the off-diagonal energy of factors of unit norm. If the true factors are nearly dependent,
    other factors, which are less so, have a lower energy. With random unit columns of size 50 and noise of 1e-3 this
    minimum was 1.8 to 6 times lower than at a fixed point, and 1.8 to 7 times further from the true factors.

    References
    ----------
    P. Tichavsky and A. Yeredor, "Fast approximate joint diagonalization incorporating weight matrices", IEEE Trans.
    Signal Process. 57(3), 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.diagonalize import UWEDGE
    >>> rng = np.random.default_rng(0)
    >>> factor = rng.standard_normal((4, 4))
    >>> fit = UWEDGE()([factor @ np.diag(rng.standard_normal(4)) @ factor.T for _ in range(5)], rng=0)
    >>> fit.converged, fit.off_diagonal < 1e-20
    (True, True)
    """

    max_sweeps: int = 100
    fallback: bool = True
    complex_kinds: ClassVar[tuple[str, ...]] = ("hermitian", "symmetric")

    def __post_init__(self) -> None:
        super().__post_init__()
        as_flag("fallback", self.fallback)

    def iterate(self, stack: Array, rng: np.random.Generator) -> Iterate:
        core, limits = MatrixStack(stack), self._limits(stack)
        probe = asarray_like(rng.choice([-1.0, 1.0], stack.shape[1]), stack)
        start, n_sweeps = _start(stack, rng, probe, limits)
        outcome = _follow(core, start, probe, limits)
        iterate = Iterate(outcome.point, outcome.point, n_sweeps + outcome.n_sweeps, outcome.converged)
        if (outcome.converged and outcome.last.contraction < UNCERTAIN) or not self.fallback:
            return iterate
        lowest = lowest_fixed_point(self._restarts(core, rng, probe, iterate), stack.shape[1])
        return lowest._replace(n_sweeps=lowest.n_sweeps + iterate.n_sweeps)

    def iterate_from(self, stack: Array, rng: np.random.Generator, left: Array, right: Array) -> Iterate:
        probe = asarray_like(rng.choice([-1.0, 1.0], stack.shape[1]), stack)
        outcome = _follow(MatrixStack(stack), left, probe, self._limits(stack))
        return Iterate(outcome.point, outcome.point, outcome.n_sweeps, outcome.converged)

    def _restarts(
        self, core: MatrixStack, rng: np.random.Generator, probe: Array, first: Iterate
    ) -> Iterator[FixedPoint]:
        """Yield fixed points from several starts, to full tolerance: without theory there is no standard error.

        If the steps converge from none of them, sweeps of J-Di follow.
        """
        best, limits = (
            _ended(core, first._replace(n_sweeps=0)),
            replace(self._limits(core.matrices), statistical_tol=0.0),
        )
        any_converged = False
        for start in _starts(core.matrices, rng, first):
            outcome = _follow(core, start, probe, limits)
            end = _ended(core, Iterate(outcome.point, outcome.point, outcome.n_sweeps, outcome.converged))
            any_converged = any_converged or end.iterate.converged
            best = min(best, end, key=lambda end: end.criterion)
            yield end
        if any_converged:
            return
        yield best._replace(iterate=best.iterate._replace(n_sweeps=0))
        is_swept = core.is_hermitian or not is_complex(core.matrices)
        if not best.iterate.converged and is_swept and core.matrices.shape[1] <= MAX_SWEPT_SIZE:
            tol = max(self.tol, self.statistical_tol / 100)
            swept = hyperbolic_sweeps(core.matrices, tol, 200, core.there(best.iterate.left))
            is_regular = bool(np.linalg.cond(to_host(swept.left)) < 1e10)
            yield _ended(core, swept._replace(converged=swept.converged and is_regular))


def _ended(core: MatrixStack, iterate: Iterate) -> FixedPoint:
    return FixedPoint(iterate, criterion(core, iterate.left, iterate.left))


def _starts(stack: Array, rng: np.random.Generator, first: Iterate) -> Iterator[Array]:
    """Yield further starts: the end of the first, one that the matrices determine, two random ones if they are small.

    If the steps from the first start did not converge, more of them are no better than those from another start.
    """
    if first.converged:
        yield first.left
    yield whitened_start(stack)
    for _ in range(2 if stack.shape[1] <= LARGE else 0):
        yield asarray_like(pencil_start(stack, rng)[0], stack)


def _start(stack: Array, rng: np.random.Generator, probe: Array, limits: Limits) -> tuple[Array, int]:
    """Return inverse factors near a solution, and the number of steps on the sketch that were taken."""
    sketch = sketched(stack, rng)
    if sketch is None:
        return asarray_like(pencil_start(stack, rng)[0], stack), 0
    core, n_failed = MatrixStack(sketch), 0
    if stack.shape[1] > LARGE:
        outcome = _follow(core, orthogonal_start(sketch, rng), probe, sketch_limits(limits))
        if outcome.converged:
            return outcome.point, outcome.n_sweeps
        n_failed = outcome.n_sweeps
    outcome = _follow(core, asarray_like(pencil_start(sketch, rng)[0], stack), probe, sketch_limits(limits))
    return outcome.point, n_failed + outcome.n_sweeps


def _follow(core: MatrixStack, inverse: Array, probe: Array, limits: Limits) -> FixedPointResult:
    return follow_shears(lambda point: shear_step(core, point, probe), inverse, limits)
