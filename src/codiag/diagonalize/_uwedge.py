"""Non-orthogonal joint diagonalization by weighted exhaustive steps of one matrix product each."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from array_api_compat import array_namespace

from codiag._array import Array, epsilon, identity, like, to_host
from codiag._validation import as_flag
from codiag.diagonalize._alternatives import End, contraction, criterion, lowest, whitened_start
from codiag.diagonalize._base import Iterate
from codiag.diagonalize._fixed_point import Limits, Outcome, Step, find_fixed_point, solve_near_identity
from codiag.diagonalize._jdi import hyperbolic_sweeps
from codiag.diagonalize._newton_like import NewtonLike
from codiag.diagonalize._products import Slabs
from codiag.diagonalize._starts import general_rows, orthogonal_start, pencil_start, sketch_limits, sketched

LARGE = 120
"""Size above which a symmetric eigenproblem is tried as the start before the far slower nonsymmetric one, and above
which sweeps of J-Di, minutes each, are left to those who ask for them."""


@dataclass(frozen=True, kw_only=True)
class UWEDGE(NewtonLike):
    r"""Non-orthogonal joint diagonalization: one generalized eigendecomposition, then exhaustive weighted steps.

    With rows of B scaled so that :math:`\sum_l d_{il}^2 = 1` and :math:`\rho_{ij} = \sum_l d_{il} d_{jl}`, each step is
    :math:`B \leftarrow (I - W)^{-1} B` with

    .. math:: W_{ij} = (\rho_{ij} y_{ji} - y_{ij}) / (1 - \rho_{ij}^2), \quad y_{ij} = \sum_l d_{jl} (D_l)_{ij},

    the solution of all 2 x 2 least-squares problems at once, for one matrix product of :math:`2 n d^3` operations.
    Anderson acceleration takes over near a solution. Fixed points do not depend on the scale of the rows, nor on the
    coordinates of the matrices.

    One start is enough where the noise is so small that the steps contract (see Notes). Elsewhere several fixed points
    may exist, and matrices without common factors have nothing else: then more starts are tried until the lowest
    :math:`\sum_{i \ne j} R_{ij} / \sqrt{R_{ii} R_{jj}}`, with :math:`R_{ij} = \sum_l (D_l)_{ij}^2`, has been reached
    twice, or four starts are spent. Where the steps do not converge, sweeps of `JDi` go before them, up to size 120;
    beyond that they take minutes and the best iterate is returned instead.

    Parameters
    ----------
    statistical_tol : float
        Stop, too, when every entry of the step is below this share of its standard error: what is left to gain is then
        invisible under the noise. Zero asks for the fixed point to `tol`.
    fallback : bool
        Whether to look further where the steps do not converge, or converge where theory does not promise that the end
        is the only one. Leave it out for a start that something else improves.

    Notes
    -----
    The steps contract where :math:`(2 c\, r_{ij} + 2 (1 + c)^2 r_{ij}^2) / (1 - \rho_{ij}^2) < 1` for all pairs, with
    :math:`r_{ij}` the root of the energy left at a pair and c the root of the size over the number of matrices.

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

    def _iterate(self, core: Slabs, rng: np.random.Generator) -> Iterate:
        limits = self._limits(core.stack)
        probe = like(rng.choice([-1.0, 1.0], core.stack.shape[1]), core.stack)
        start, n_sweeps = _start(core, rng, probe, limits)
        outcome = _exhaust(core, start, probe, limits)
        iterate = Iterate(outcome.point, outcome.point, n_sweeps + outcome.n_sweeps, outcome.converged)
        if outcome.certain or not self.fallback:
            return iterate
        found = lowest(self._ends(core, rng, probe, iterate))
        return found._replace(n_sweeps=found.n_sweeps + iterate.n_sweeps)

    def _ends(self, core: Slabs, rng: np.random.Generator, probe: Array, first: Iterate) -> Iterator[End]:
        """Go from several starts to the fixed point itself: without theory the standard error is no reason to stop.

        Where the steps did not converge, rough sweeps of J-Di find a basin first; where even that is not enough, fine
        ones follow.
        """
        small = core.stack.shape[1] <= LARGE
        starts = [lambda: first.left, lambda: whitened_start(core.stack)]
        if small:
            starts += [lambda: like(pencil_start(core.stack, rng)[0], core.stack)] * 2
        if small and not first.converged:
            starts[0] = lambda: identity(core.stack.shape[1], core.stack)
        settled = False
        for start in starts:
            end = None if small and not first.converged else self._stepped(core, start(), probe, cautious=True)
            if end is None or (small and not end.iterate.converged):
                end = self._swept(core, start() if end is None else end.iterate.left, probe)
            settled = settled or end.iterate.converged
            yield end
        if first.converged and not settled:
            yield End(first._replace(n_sweeps=0), criterion(core, first.left, first.left))

    def _stepped(self, core: Slabs, point: Array, probe: Array, *, cautious: bool) -> End:
        limits = replace(self._limits(core.stack), statistical_tol=0.0, cautious=cautious)
        outcome = _exhaust(core, point, probe, limits)
        iterate = Iterate(outcome.point, outcome.point, outcome.n_sweeps, outcome.converged)
        return End(iterate, criterion(core, outcome.point, outcome.point))

    def _swept(self, core: Slabs, point: Array, probe: Array) -> End:
        rough = hyperbolic_sweeps(core, 1e-2, 50, point)
        end = self._stepped(core, rough.left, probe, cautious=False)
        n_sweeps = rough.n_sweeps + end.iterate.n_sweeps
        if end.iterate.converged and end.criterion < 1.01 * criterion(core, rough.left, rough.left):
            return end._replace(iterate=end.iterate._replace(n_sweeps=n_sweeps))
        # The steps do not settle, or have left the basin that the sweeps had found.
        fine = hyperbolic_sweeps(core, max(self.tol, self.statistical_tol / 100), 200, rough.left)
        regular = np.linalg.cond(to_host(fine.left)) < 1e10
        fine = fine._replace(n_sweeps=n_sweeps + fine.n_sweeps, converged=fine.converged and bool(regular))
        return End(fine, criterion(core, fine.left, fine.left))


def _start(core: Slabs, rng: np.random.Generator, probe: Array, limits: Limits) -> tuple[Array, int]:
    """Return inverse factors near a solution, and the sweeps over the sketch that led there."""
    sketch = sketched(core, rng)
    if sketch is None:
        return like(pencil_start(core.stack, rng)[0], core.stack), 0
    wasted = 0
    if core.stack.shape[1] > LARGE:
        outcome = _exhaust(sketch, orthogonal_start(sketch.stack, rng), probe, sketch_limits(limits))
        if outcome.converged:
            return outcome.point, outcome.n_sweeps
        wasted = outcome.n_sweeps
    outcome = _exhaust(sketch, like(pencil_start(sketch.stack, rng)[0], core.stack), probe, sketch_limits(limits))
    return outcome.point, wasted + outcome.n_sweeps


def _exhaust(core: Slabs, inverse: Array, probe: Array, limits: Limits) -> Outcome:
    outcome = find_fixed_point(lambda point: _evaluate(core, point, probe), shear, inverse, limits)
    if math.isfinite(outcome.last.merit):
        return outcome
    # Eigenvectors of a defective pencil: some vanish on all diagonals, which rows in general position do not.
    rows = like(general_rows(core.stack.shape[1]), core.stack)
    return find_fixed_point(lambda point: _evaluate(core, point, probe), shear, rows, limits)


def shear(move: Array, inverse: Array) -> Array:
    """Move the inverse factors by (I - W)^-1, which stays bounded where I + W does not."""
    return solve_near_identity(move, inverse)


def _evaluate(core: Slabs, inverse: Array, probe: Array) -> Step:
    xp = array_namespace(inverse)
    diagonals, sums, energy = core.moments(inverse, inverse, probe)
    cross = inverse @ xp.matrix_transpose(sums)
    products = diagonals @ xp.matrix_transpose(diagonals)
    # Rows scaled to sum_l d_il^2 = 1, and everything made of them with it.
    scale = xp.linalg.diagonal(products) ** -0.25
    inverse, cross = inverse * scale[:, None], cross * scale[:, None] * scale[None, :] ** 3
    rho = products * (scale[:, None] * scale[None, :]) ** 2
    move, gaps = solve_pairs(rho, cross, xp.matrix_transpose(cross))
    energy = energy * scale**2 * xp.mean(scale**2)  # the probe saw columns of the old scale, much alike after a step
    return free_step(inverse, move, gaps, (inverse, inverse), energy, core.stack.shape[0])


def solve_pairs(rho: Array, own: Array, other: Array) -> tuple[Array, Array]:
    r"""Return :math:`W_{ij} = (\rho_{ij} y'_{ij} - y_{ij}) / (1 - \rho_{ij}^2)` and the denominators.

    Two diagonals that are proportional to rounding determine no move. Their denominator is returned as zero.
    """
    xp = array_namespace(rho)
    gaps = 1 - rho**2
    proportional = gaps <= 100 * epsilon(rho)  # true on the diagonal, false for NaN, which must not pass for a solution
    gaps = xp.where(gaps < 1e-9, xp.full_like(gaps, 1e-9), gaps)
    zero = xp.zeros_like(gaps)
    return xp.where(proportional, zero, (rho * other - own) / gaps), xp.where(proportional, zero, gaps)


def free_step(point: Array, move: Array, gaps: Array, sides: tuple[Array, Array], energy: Array, n: int) -> Step:
    """Measure a move of free factors: against rounding, and against the noise that the probed energy shows.

    Where diagonals are proportional and energy is left off the diagonal, no move is not a solution but a dead end.
    """
    xp = array_namespace(point)
    k = gaps.shape[0]
    rows, columns = (xp.linalg.vector_norm(side, axis=1) for side in sides)
    pairs = rows[:, None] * columns[None, :]
    sizes = xp.abs(move)
    total = xp.sum(energy)
    variance = total / (n * (xp.sum(pairs**2) - xp.sum((rows * columns) ** 2)))
    scaled = xp.max(sizes * xp.sqrt(gaps) / pairs)
    unsettled = xp.sum(xp.astype(gaps == 0, gaps.dtype)) - k
    rate = contraction(xp.sqrt(n * variance) * pairs, gaps, n)
    numbers = [total, xp.max(sizes), scaled, variance, unsettled, rate]
    off, largest, scaled, variance, unsettled, rate = to_host(xp.stack(numbers)).tolist()
    if unsettled > 0 and off > k * (1e3 * k * epsilon(point)) ** 2:
        largest = math.inf
    return Step(point, move, off, largest, scaled / max(variance, 1e-300) ** 0.5, rate)
