"""Joint diagonalization of matrices with different factors on the two sides."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import ClassVar

import numpy as np
from array_api_compat import array_namespace

from codiag._array import Array, epsilon, like, moved, to_host
from codiag._validation import as_flag
from codiag.diagonalize._alternatives import End, contraction, criterion, lowest
from codiag.diagonalize._base import Iterate
from codiag.diagonalize._fixed_point import Limits, Outcome, Step, find_fixed_point
from codiag.diagonalize._newton import cayley, newton_schulz
from codiag.diagonalize._newton_like import NewtonLike
from codiag.diagonalize._products import Slabs
from codiag.diagonalize._starts import general_rows, pencil_start, random_combinations, sketch_limits, sketched
from codiag.diagonalize._uwedge import free_step, shear, solve_pairs


@dataclass(frozen=True, kw_only=True)
class TwoSided(NewtonLike):
    r"""Joint diagonalization :math:`M_l \approx A\, \mathrm{diag}(d_l)\, B^\top` of square or rectangular matrices.

    The two-sided forms of `OrthogonalNewton` and `UWEDGE`: the same start, the same steps on both sides at once, two
    matrix products each. Where they do not converge, or theory does not promise that the end is the only one, the start
    is drawn again until the lowest end has been reached three times, eight times at most.

    Parameters
    ----------
    orthogonal : bool
        Constrain A and B to orthonormal columns.
    statistical_tol : float
        Stop, too, when every entry of the step is below this share of its standard error.
    fallback : bool
        Whether to look for lower ends; otherwise free factors are drawn again only until one start converges, four
        times at most.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.diagonalize import TwoSided
    >>> rng = np.random.default_rng(0)
    >>> left, right = rng.standard_normal((4, 3)), rng.standard_normal((6, 3))
    >>> fit = TwoSided(rank=3)([left @ np.diag(rng.standard_normal(3)) @ right.T for _ in range(5)], seed=0)
    >>> fit.factor.shape, fit.right_factor.shape, fit.off_diagonal < 1e-20
    ((4, 3), (6, 3), True)
    """

    orthogonal: bool = False
    max_sweeps: int = 100
    fallback: bool = True
    symmetric: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        as_flag("orthogonal", self.orthogonal)
        as_flag("fallback", self.fallback)

    def _is_orthogonal(self) -> bool:
        return self.orthogonal

    def _iterate(self, core: Slabs, rng: np.random.Generator) -> Iterate:
        probe = like(rng.choice([-1.0, 1.0], core.stack.shape[1]), core.stack)
        sketch, n_sweeps, limits = sketched(core, rng), 0, self._limits(core.stack)
        sides, point = _Sides(core), self._start(core.stack, rng)
        if sketch is not None:
            outcome = self._descend(_Sides(sketch), point, probe, sketch_limits(limits))
            point, n_sweeps = outcome.point, outcome.n_sweeps
        outcome = self._descend(sides, point, probe, limits)
        iterate = self._ended(outcome)._replace(n_sweeps=n_sweeps + outcome.n_sweeps)
        if outcome.certain or (not self.fallback and (outcome.converged or self.orthogonal)):
            return iterate
        n_trials, times = (9, 3) if self.fallback else (4, 1)
        found = lowest(islice(self._ends(core, rng, probe, iterate), n_trials), times)
        return found._replace(n_sweeps=found.n_sweeps + iterate.n_sweeps)

    def _ends(self, core: Slabs, rng: np.random.Generator, probe: Array, first: Iterate) -> Iterator[End]:
        """Go from several starts, with care for saddles at every other."""
        sides, iterate = _Sides(core), first._replace(n_sweeps=0)
        for trial in count():
            if trial:
                limits = replace(self._limits(core.stack), cautious=trial % 2 == 0)
                iterate = self._ended(self._descend(sides, self._start(core.stack, rng), probe, limits))
            yield End(iterate, criterion(core, iterate.left, iterate.right, orthogonal=self.orthogonal))

    def _ended(self, outcome: Outcome) -> Iterate:
        point = newton_schulz(outcome.point) if self.orthogonal else outcome.point
        return Iterate(point[0, ...], point[1, ...], outcome.n_sweeps, outcome.converged)

    def _start(self, stack: Array, rng: np.random.Generator) -> Array:
        """Return left and right inverse factors, stacked, that diagonalize random combinations of the matrices."""
        if self.orthogonal:
            combination = random_combinations(stack, rng, 1)[0, ...]
            xp = array_namespace(combination)
            left, _, right = xp.linalg.svd(combination)
            return moved(xp.stack([xp.matrix_transpose(left), right]), stack)
        left, second = pencil_start(stack, rng)
        # B N C^T = I for the combination N that the pencil was taken against.
        return like(np.stack([left, np.linalg.inv(left @ second).T]), stack)

    def _descend(self, sides: _Sides, point: Array, probe: Array, limits: Limits) -> Outcome:
        if self.orthogonal:
            return find_fixed_point(lambda point: _rotate(sides, point, probe), cayley, point, limits)
        outcome = find_fixed_point(lambda point: _shear(sides, point, probe), shear, point, limits)
        if math.isfinite(outcome.last.merit):
            return outcome
        rows = general_rows(point.shape[-1])  # see UWEDGE
        return find_fixed_point(
            lambda point: _shear(sides, point, probe), shear, like(np.stack([rows, rows]), point), limits
        )


class _Sides:
    """The matrices and their transposes, each laid out for its own product."""

    def __init__(self, core: Slabs) -> None:
        self.n = core.stack.shape[0]
        self._rows = core
        self._columns = Slabs(array_namespace(core.stack).matrix_transpose(core.stack))

    def moments(self, point: Array, probe: Array) -> tuple[Array, Array, Array, Array]:
        r"""Return d, :math:`y^1_{ij} = \sum_l d_{jl} D_{ij}`, :math:`y^2_{ij} = \sum_l d_{il} D_{ij}`, energy."""
        xp = array_namespace(point)
        left, right = point[0, ...], point[1, ...]
        diagonals, sums, energy = self._rows.moments(left, right, probe)
        _, other_sums, _ = self._columns.moments(right, left)
        return diagonals, left @ xp.matrix_transpose(other_sums), sums @ xp.matrix_transpose(right), energy


def _rotate(sides: _Sides, point: Array, probe: Array) -> Step:
    xp = array_namespace(point)
    diagonals, first, second, energy = sides.moments(point, probe)
    products = diagonals @ xp.matrix_transpose(diagonals)
    squares = xp.linalg.diagonal(products)
    totals = squares[:, None] + squares[None, :]
    gaps = totals**2 - 4 * products**2
    resolved = gaps > 100 * epsilon(point) * totals**2
    gaps = xp.where(resolved, gaps, totals**2)
    turn, swing = first - xp.matrix_transpose(first), second - xp.matrix_transpose(second)
    moves = xp.stack([2 * products * swing - totals * turn, totals * swing - 2 * products * turn]) / gaps
    moves = xp.clip(xp.where(resolved, moves, xp.zeros_like(moves)), -0.5, 0.5)
    sizes = xp.abs(moves)
    k = products.shape[0]
    scaled = xp.max(sizes * xp.sqrt(gaps / totals))
    # The narrower of the gaps |d_i - d_j|^2 and |d_i + d_j|^2, of turning both sides together and against each other.
    ratio = xp.sqrt(
        xp.sum(energy) / (k * (k - 1)) / (totals - 2 * xp.abs(products) + xp.where(resolved, 0 * totals, totals))
    )
    rate = contraction(ratio, xp.astype(resolved, gaps.dtype), sides.n)
    numbers = [xp.sum(squares), xp.max(sizes), scaled, xp.sum(energy), rate]
    objective, largest, scaled, off, rate = to_host(xp.stack(numbers)).tolist()
    noise = max(off / (sides.n * k * (k - 1)), 1e-300)
    return Step(point, moves, -objective, largest, scaled / noise**0.5, rate)


def _shear(sides: _Sides, point: Array, probe: Array) -> Step:
    xp = array_namespace(point)
    diagonals, first, second, energy = sides.moments(point, probe)
    products = diagonals @ xp.matrix_transpose(diagonals)
    # Rows scaled to sum_l d_il^2 = 1 with equal lengths on both sides, and everything made of them with it.
    norms = xp.linalg.vector_norm(point, axis=2)
    total = xp.linalg.diagonal(products) ** -0.25
    ratio = xp.sqrt(norms[1, :] / norms[0, :])
    left, right = total * ratio, total / ratio
    point = point * xp.stack([left, right])[:, :, None]
    share = total**2
    first = first * left[:, None] * (right * share)[None, :]
    second = second * (left * share)[:, None] * right[None, :]
    rho = products * share[:, None] * share[None, :]
    move, gaps = solve_pairs(rho, first, second)
    other, _ = solve_pairs(rho, second, first)
    energy = energy * left**2 * xp.mean(right**2)
    step = free_step(point, xp.stack([move, other]), gaps, (point[0, ...], point[1, ...]), energy, sides.n)
    return step._replace(move=xp.stack([move, xp.matrix_transpose(other)]))  # the right side moves by Z_ji
