"""Joint diagonalization of matrices with different factors on the two sides, directly or at twice the size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import ClassVar

import numpy as np

from codiag._arrays import Array, adjoint, array_namespace, asarray_like, conjugate, to_namespace
from codiag._checks import as_flag
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
from codiag.diagonalize._rotations import follow_past_saddles, orthonormalize, rotate, two_sided_rotation_step
from codiag.diagonalize._shears import follow_shears, two_sided_shear_step
from codiag.diagonalize._stack import TwoSidedStack, random_combinations
from codiag.diagonalize._starts import pencil_start


@dataclass(frozen=True, kw_only=True)
class TwoSided(NewtonLike):
    r"""Joint diagonalization :math:`M_l \approx A\, \mathrm{diag}(d_l)\, B^\top` of square or rectangular matrices.

    The two-sided forms of `OrthogonalNewton` and `UWEDGE`: the same start, and the same steps on both sides at once.

    Parameters
    ----------
    rank : int, optional
        Number of components, as in `Diagonalizer`.
    tol : float
        Stop when the largest entry of the relative step falls below it.
    max_sweeps : int
        Steps or sweeps before giving up, as in `Diagonalizer`.
    statistical_tol : float
        Stop also when every entry of the step is below this fraction of its standard error.
    orthogonal : bool
        Constrain A and B to orthonormal columns.
    fallback : bool
        Whether to search for lower fixed points. If false, up to three other starts are drawn for free factors, until
        one converges.

    See Also
    --------
    UWEDGE : For symmetric matrices.

    Notes
    -----
    **Assumptions.** Components whose diagonals are not proportional (free factors) or neither equal nor opposite
    (orthonormal ones).

    **Complexity.** One eigendecomposition and, for each step, two matrix products of :math:`2 n d^3` operations.

    **Guarantees.** The factors of both sides up to a common order and sign, and a unique fixed point if the noise is so
    small that the steps contract.

    **Limitations.** Fails to be certain with larger noise: up to eight other starts are then drawn, until the lowest
    fixed point has been reached three times.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.diagonalize import TwoSided
    >>> rng = np.random.default_rng(0)
    >>> left, right = rng.standard_normal((4, 3)), rng.standard_normal((6, 3))
    >>> fit = TwoSided(rank=3)([left @ np.diag(rng.standard_normal(3)) @ right.T for _ in range(5)], rng=0)
    >>> fit.factor.shape, fit.right_factor.shape, fit.off_diagonal < 1e-20
    ((4, 3), (6, 3), True)
    """

    orthogonal: bool = False
    max_sweeps: int = 100
    fallback: bool = True
    symmetric: ClassVar[bool] = False
    complex_kinds: ClassVar[tuple[str, ...]] = ("general",)

    def __post_init__(self) -> None:
        super().__post_init__()
        as_flag("orthogonal", self.orthogonal)
        as_flag("fallback", self.fallback)

    def iterate(self, stack: Array, rng: np.random.Generator) -> Iterate:
        probe = asarray_like(rng.choice([-1.0, 1.0], stack.shape[1]), stack)
        sketch, n_sweeps, limits = sketched(stack, rng), 0, self._limits(stack)
        core, point = TwoSidedStack(stack), self._start(stack, rng)
        if sketch is not None:
            outcome = self._follow(TwoSidedStack(sketch), point, probe, sketch_limits(limits))
            point, n_sweeps = outcome.point, outcome.n_sweeps
        outcome = self._follow(core, point, probe, limits)
        iterate = self._iterate_of(outcome)._replace(n_sweeps=n_sweeps + outcome.n_sweeps)
        if outcome.is_unique or (not self.fallback and (outcome.converged or self.orthogonal)):
            return iterate
        n_trials, times = (9, 3) if self.fallback else (4, 1)
        restarts = islice(self._restarts(core, rng, probe, iterate), n_trials)
        lowest = lowest_fixed_point(restarts, stack.shape[1], times)
        return lowest._replace(n_sweeps=lowest.n_sweeps + iterate.n_sweeps)

    def iterate_from(self, stack: Array, rng: np.random.Generator, left: Array, right: Array) -> Iterate:
        core, limits = TwoSidedStack(stack), self._limits(stack)
        probe = asarray_like(rng.choice([-1.0, 1.0], stack.shape[1]), stack)
        point = array_namespace(stack).stack([left, right])
        if not self.orthogonal:
            return self._iterate_of(self._follow(core, point, probe, limits))
        return self._iterate_of(
            follow_past_saddles(lambda point: self._follow(core, point, probe, limits), stack, point, rng)
        )

    def _restarts(
        self, core: TwoSidedStack, rng: np.random.Generator, probe: Array, first: Iterate
    ) -> Iterator[FixedPoint]:
        """Yield fixed points from several starts; acceleration avoids saddles in every other iteration."""
        iterate = first._replace(n_sweeps=0)
        for trial in count():
            if trial:
                limits = replace(self._limits(core.matrices), avoid_saddles=trial % 2 == 0)
                iterate = self._iterate_of(self._follow(core, self._start(core.matrices, rng), probe, limits))
            yield FixedPoint(iterate, criterion(core.rows, iterate.left, iterate.right, orthogonal=self.orthogonal))

    def _iterate_of(self, outcome: FixedPointResult) -> Iterate:
        point = orthonormalize(outcome.point) if self.orthogonal else outcome.point
        return Iterate(point[0, ...], point[1, ...], outcome.n_sweeps, outcome.converged)

    def _start(self, stack: Array, rng: np.random.Generator) -> Array:
        """Return left and right inverse factors, stacked, that diagonalize random combinations of the matrices."""
        if self.orthogonal:
            combination = random_combinations(stack, rng, 1)[0, ...]
            xp = array_namespace(combination)
            left, _, right = xp.linalg.svd(combination)
            return to_namespace(xp.stack([adjoint(left), conjugate(right)]), stack)
        left, second = pencil_start(stack, rng)
        # B N C^T = I for the combination N that the pencil was taken against.
        return asarray_like(np.stack([left, np.linalg.inv(left @ second).T]), stack)

    def _follow(self, core: TwoSidedStack, point: Array, probe: Array, limits: Limits) -> FixedPointResult:
        if self.orthogonal:
            return find_fixed_point(lambda point: two_sided_rotation_step(core, point, probe), rotate, point, limits)
        return follow_shears(lambda point: two_sided_shear_step(core, point, probe), point, limits)
