"""Orthogonal joint diagonalization by Newton-like steps of one matrix product each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from array_api_compat import array_namespace

from codiag._array import Array, epsilon, like, to_host
from codiag.diagonalize._alternatives import End, contraction, criterion, lowest, whitened_start
from codiag.diagonalize._base import Iterate
from codiag.diagonalize._fixed_point import Limits, Outcome, Step, find_fixed_point, solve_near_identity
from codiag.diagonalize._jacobi import Jacobi
from codiag.diagonalize._newton_like import NewtonLike
from codiag.diagonalize._products import Slabs
from codiag.diagonalize._starts import orthogonal_start, sketch_limits, sketched

SMALL = 30
"""Size up to which sweeps over pairs cost no more than some dozen steps."""


@dataclass(frozen=True, kw_only=True)
class OrthogonalNewton(NewtonLike):
    r"""Orthogonal joint diagonalization: one eigendecomposition, then Newton-like steps.

    Each step rotates by the Cayley transform of

    .. math:: W_{ij} = (y_{ji} - y_{ij}) / \sum_l (d_{il} - d_{jl})^2, \quad y_{ij} = \sum_l d_{jl} (D_l)_{ij},

    Cardoso's first-order error with the current off-diagonal entries as the noise, at the cost of one matrix product of
    :math:`2 n d^3` operations. A step that lowers the diagonal energy is replaced by a shorter one; where contraction
    is slow, Anderson acceleration takes over. Where the noise is so large that theory does not promise a single
    solution, other starts are tried until the lowest off-diagonal energy has been reached twice, six at most.

    Parameters
    ----------
    statistical_tol : float
        Stop, too, when every entry of the step is below this share of its standard error: what is left to gain is then
        invisible under the noise. Zero asks for the minimiser to `tol`.

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

    survives_doubling: ClassVar[bool] = True

    def _is_orthogonal(self) -> bool:
        return True

    def _iterate(self, core: Slabs, rng: np.random.Generator) -> Iterate:
        limits = self._limits(core.stack)
        probe = like(rng.choice([-1.0, 1.0], core.stack.shape[1]), core.stack)
        sketch, n_sweeps = sketched(core, rng), 0
        inverse = orthogonal_start(core.stack if sketch is None else sketch.stack, rng)
        if sketch is not None:
            outcome = _newton(sketch, inverse, probe, sketch_limits(limits))
            inverse, n_sweeps = outcome.point, outcome.n_sweeps
        outcome = _newton(core, inverse, probe, limits)
        inverse = newton_schulz(outcome.point)
        iterate = Iterate(inverse, inverse, n_sweeps + outcome.n_sweeps, outcome.converged)
        if outcome.certain:
            return iterate
        found = lowest(self._ends(core, rng, probe, iterate))
        return found._replace(n_sweeps=found.n_sweeps + iterate.n_sweeps)

    def _ends(self, core: Slabs, rng: np.random.Generator, probe: Array, first: Iterate) -> Iterator[End]:
        """Go from several starts, of sweeps over pairs too where these cost little."""
        yield _end(core, first._replace(n_sweeps=0))
        if core.stack.shape[1] <= SMALL:
            yield _end(core, Jacobi(max_sweeps=self.max_sweeps)._iterate(core, rng))
        starts = [lambda: _largest_start(core.stack)] + [lambda: orthogonal_start(core.stack, rng)] * 3
        for start in starts:
            outcome = _newton(core, start(), probe, self._limits(core.stack))
            inverse = newton_schulz(outcome.point)
            yield _end(core, Iterate(inverse, inverse, outcome.n_sweeps, outcome.converged))


def _end(core: Slabs, iterate: Iterate) -> End:
    return End(iterate, criterion(core, iterate.left, iterate.left, orthogonal=True))


def _largest_start(stack: Array) -> Array:
    """Return the eigenvectors, as rows, of the largest of the matrices."""
    rows = whitened_start(stack)
    return rows / array_namespace(rows).linalg.vector_norm(rows, axis=1, keepdims=True)


def _newton(core: Slabs, inverse: Array, probe: Array, limits: Limits) -> Outcome:
    return find_fixed_point(lambda point: _evaluate(core, point, probe), cayley, inverse, limits)


def cayley(skew: Array, inverse: Array) -> Array:
    """Rotate the inverse factors by (I - W/2)^-1 (I + W/2)."""
    return solve_near_identity(skew / 2, inverse + skew @ inverse / 2)


def newton_schulz(inverse: Array) -> Array:
    """Return the rows to orthonormality, from which the products of rotations drift in single precision."""
    xp = array_namespace(inverse)
    return 1.5 * inverse - 0.5 * (inverse @ xp.matrix_transpose(inverse)) @ inverse


def _evaluate(core: Slabs, inverse: Array, probe: Array) -> Step:
    xp = array_namespace(inverse)
    n, k, _ = core.stack.shape
    diagonals, sums, energy = core.moments(inverse, inverse, probe)
    cross = inverse @ xp.matrix_transpose(sums)
    products = diagonals @ xp.matrix_transpose(diagonals)
    squares = xp.linalg.diagonal(products)
    totals = squares[:, None] + squares[None, :]
    gaps = totals - 2 * products
    resolved = gaps > 100 * epsilon(inverse) * totals  # below that the gap itself is rounding
    gaps = xp.where(resolved, gaps, totals)
    move = xp.where(resolved, (xp.matrix_transpose(cross) - cross) / gaps, xp.zeros_like(gaps))
    move = xp.clip(move, -0.5, 0.5)
    sizes = xp.abs(move)
    # Each pair is taken to be left with its share of the energy, in units of its own gap.
    ratio = xp.sqrt(xp.sum(energy) / (k * (k - 1)) / gaps)
    rate = contraction(ratio, xp.astype(resolved, gaps.dtype), n)
    numbers = [xp.sum(squares), xp.max(sizes), xp.max(sizes * xp.sqrt(gaps)), xp.sum(energy), rate]
    objective, largest, scaled, off, rate = to_host(xp.stack(numbers)).tolist()
    noise = max(off / (n * k * (k - 1)), 1e-300)
    return Step(inverse, move, -objective, largest, scaled / noise**0.5, rate)
