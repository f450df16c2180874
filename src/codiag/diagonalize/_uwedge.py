"""Non-orthogonal joint diagonalization by weighted exhaustive steps of one matrix product each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from codiag._arrays import Array, identity, like, to_host
from codiag._checks import as_flag
from codiag.diagonalize._base import Iterate, NewtonLike
from codiag.diagonalize._compression import Slabs
from codiag.diagonalize._jdi import hyperbolic_sweeps
from codiag.diagonalize._restarts import FixedPoint, criterion, lowest, sketch_limits, sketched
from codiag.diagonalize._starts import orthogonal_start, pencil_start, whitened_start
from codiag.diagonalize.steps import Limits, Outcome, follow_shears, shear_step

LARGE = 120
"""Size above which a symmetric eigenproblem is tried as the start before the far slower nonsymmetric one, and above
which no starts are drawn again."""

SWEPT = 60
"""Size above which sweeps of J-Di, which cost as much as a hundred steps each, are left to those who ask for them."""


@dataclass(frozen=True, kw_only=True)
class UWEDGE(NewtonLike):
    r"""Non-orthogonal joint diagonalization: one generalized eigendecomposition, then exhaustive weighted steps.

    With rows of B scaled so that :math:`\sum_l d_{il}^2 = 1` and :math:`\rho_{ij} = \sum_l d_{il} d_{jl}`, each step is
    :math:`B \leftarrow (I - W)^{-1} B` with

    .. math:: W_{ij} = (\rho_{ij} y_{ji} - y_{ij}) / (1 - \rho_{ij}^2), \quad y_{ij} = \sum_l d_{jl} (D_l)_{ij},

    the solution of all 2 x 2 least-squares problems at once. Anderson acceleration takes over near a solution.

    **Needs** symmetric matrices, and components whose diagonals are not proportional. **Costs** one eigendecomposition
    and, for each step, one matrix product of :math:`2 n d^3` operations; a handful of steps under small noise.
    **Guarantees** fixed points that depend neither on the scale of the rows nor on the coordinates of the matrices,
    and one start that is enough where the noise is so small that the steps contract (see Notes). **Fails** to be
    certain elsewhere, where several fixed points may exist: more starts are then tried until the lowest
    :math:`\sum_{i \ne j} R_{ij} / \sqrt{R_{ii} R_{jj}}`, with :math:`R_{ij} = \sum_l (D_l)_{ij}^2`, has been reached
    twice, four at most. Where the steps do not converge, sweeps of `JDi` go before them, up to size 60; beyond that
    each costs as much as a hundred steps, and the best iterate is returned with ``converged`` false.

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
        invisible under the noise. Zero asks for the fixed point to `tol`.
    fallback : bool
        Whether to try more starts where the steps do not converge, or converge where theory does not promise that the
        fixed point is the only one. False is for a start that another method improves.

    See Also
    --------
    OrthogonalNewton : For orthogonal factors.
    TwoSided : For matrices that are not symmetric.
    QRJ1D : The paper's method.
    JDi : Sweeps of pairs, tried where the steps do not converge.

    Notes
    -----
    The steps contract where :math:`(2 c\, r_{ij} + 2 (1 + c)^2 r_{ij}^2) / (1 - \rho_{ij}^2) < 1` for all pairs, with
    :math:`r_{ij}` the root of the energy left at a pair and c the root of the size over the number of matrices.

    The steps do not minimize the energy off the diagonals for factors of unit norm. Where the factors are nearly
    dependent, that is least for others, further apart than the true ones. With random unit columns of size 50 and noise
    of 1e-3 that minimum was 1.8 to 6 times lower than a fixed point, and 1.8 to 7 times further from the truth.

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
    >>> fit = UWEDGE()([factor @ np.diag(rng.standard_normal(4)) @ factor.T for _ in range(5)], seed=0)
    >>> fit.converged, fit.off_diagonal < 1e-20
    (True, True)
    """

    max_sweeps: int = 100
    fallback: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        as_flag("fallback", self.fallback)

    def iterate(self, stack: Array, rng: np.random.Generator) -> Iterate:
        core, limits = Slabs(stack), self._limits(stack)
        probe = like(rng.choice([-1.0, 1.0], stack.shape[1]), stack)
        start, n_sweeps = _start(stack, rng, probe, limits)
        outcome = _follow(core, start, probe, limits)
        iterate = Iterate(outcome.point, outcome.point, n_sweeps + outcome.n_sweeps, outcome.converged)
        if outcome.certain or not self.fallback:
            return iterate
        found = lowest(self._restarts(core, rng, probe, iterate), stack.shape[1])
        return found._replace(n_sweeps=found.n_sweeps + iterate.n_sweeps)

    def iterate_from(self, stack: Array, rng: np.random.Generator, left: Array, right: Array) -> Iterate:
        probe = like(rng.choice([-1.0, 1.0], stack.shape[1]), stack)
        outcome = _follow(Slabs(stack), left, probe, self._limits(stack))
        return Iterate(outcome.point, outcome.point, outcome.n_sweeps, outcome.converged)

    def _restarts(self, core: Slabs, rng: np.random.Generator, probe: Array, first: Iterate) -> Iterator[FixedPoint]:
        """Go from several starts to the fixed point itself: without theory the standard error is no reason to stop.

        Where the steps did not converge, rough sweeps of J-Di find a basin first; where even that is not enough, fine
        ones follow.
        """
        swept = core.stack.shape[1] <= SWEPT
        sweep_first = swept and not first.converged
        settled = False
        for start in _starts(core.stack, rng, first, sweep_first):
            end = None if sweep_first else self._stepped(core, start, probe, cautious=True)
            if end is None or (swept and not end.iterate.converged):
                end = self._swept(core, start if end is None else end.iterate.left, probe)
            settled = settled or end.iterate.converged
            yield end
        if first.converged and not settled:
            yield FixedPoint(first._replace(n_sweeps=0), criterion(core, first.left, first.left))

    def _stepped(self, core: Slabs, point: Array, probe: Array, *, cautious: bool) -> FixedPoint:
        limits = replace(self._limits(core.stack), statistical_tol=0.0, cautious=cautious)
        outcome = _follow(core, point, probe, limits)
        iterate = Iterate(outcome.point, outcome.point, outcome.n_sweeps, outcome.converged)
        return FixedPoint(iterate, criterion(core, outcome.point, outcome.point))

    def _swept(self, core: Slabs, point: Array, probe: Array) -> FixedPoint:
        rough = hyperbolic_sweeps(core.stack, 1e-2, 50, point)
        end = self._stepped(core, rough.left, probe, cautious=False)
        n_sweeps = rough.n_sweeps + end.iterate.n_sweeps
        if end.iterate.converged and end.criterion < 1.01 * criterion(core, rough.left, rough.left):
            return end._replace(iterate=end.iterate._replace(n_sweeps=n_sweeps))
        # The steps do not settle, or have left the basin that the sweeps had found.
        fine = hyperbolic_sweeps(core.stack, max(self.tol, self.statistical_tol / 100), 200, rough.left)
        regular = np.linalg.cond(to_host(fine.left)) < 1e10
        fine = fine._replace(n_sweeps=n_sweeps + fine.n_sweeps, converged=fine.converged and bool(regular))
        return FixedPoint(fine, criterion(core, fine.left, fine.left))


def _starts(stack: Array, rng: np.random.Generator, first: Iterate, sweep_first: bool) -> Iterator[Array]:
    """Yield where to start again: two starts that the matrices determine, then up to a size two that are drawn."""
    yield identity(stack.shape[1], stack) if sweep_first else first.left
    yield whitened_start(stack)
    for _ in range(2 if stack.shape[1] <= LARGE else 0):
        yield like(pencil_start(stack, rng)[0], stack)


def _start(stack: Array, rng: np.random.Generator, probe: Array, limits: Limits) -> tuple[Array, int]:
    """Return inverse factors near a solution, and the sweeps over the sketch that led there."""
    sketch = sketched(stack, rng)
    if sketch is None:
        return like(pencil_start(stack, rng)[0], stack), 0
    core, wasted = Slabs(sketch), 0
    if stack.shape[1] > LARGE:
        outcome = _follow(core, orthogonal_start(sketch, rng), probe, sketch_limits(limits))
        if outcome.converged:
            return outcome.point, outcome.n_sweeps
        wasted = outcome.n_sweeps
    outcome = _follow(core, like(pencil_start(sketch, rng)[0], stack), probe, sketch_limits(limits))
    return outcome.point, wasted + outcome.n_sweeps


def _follow(core: Slabs, inverse: Array, probe: Array, limits: Limits) -> Outcome:
    return follow_shears(lambda point: shear_step(core, point, probe), inverse, limits)
