"""Joint diagonalization of matrices with different factors on the two sides, directly or at twice the size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import ClassVar

import numpy as np

from codiag._arrays import Array, adjoint, array_namespace, conjugate, like, moved, to_host
from codiag._checks import as_flag
from codiag.diagonalize._base import Diagonalizer, NewtonLike, check_method
from codiag.diagonalize._fixed_point import (
    FixedPoint,
    Iterate,
    Limits,
    Outcome,
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

    **Needs** components whose diagonals are not proportional (free factors) or neither equal nor opposite (orthonormal
    ones). **Costs** one eigendecomposition and, for each step, two matrix products of :math:`2 n d^3` operations.
    **Guarantees** the factors of both sides up to a common order and sign, and a unique fixed point if the noise is so
    small that the steps contract. **Fails** to be certain with larger noise: up to eight other starts are then drawn,
    until the lowest fixed point has been reached three times.

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
    symmetrized : The same by a method for symmetric matrices of twice the size.

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
    complex_kinds: ClassVar[tuple[str, ...]] = ("general",)

    def __post_init__(self) -> None:
        super().__post_init__()
        as_flag("orthogonal", self.orthogonal)
        as_flag("fallback", self.fallback)

    def iterate(self, stack: Array, rng: np.random.Generator) -> Iterate:
        probe = like(rng.choice([-1.0, 1.0], stack.shape[1]), stack)
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
        probe = like(rng.choice([-1.0, 1.0], stack.shape[1]), stack)
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

    def _iterate_of(self, outcome: Outcome) -> Iterate:
        point = orthonormalize(outcome.point) if self.orthogonal else outcome.point
        return Iterate(point[0, ...], point[1, ...], outcome.n_sweeps, outcome.converged)

    def _start(self, stack: Array, rng: np.random.Generator) -> Array:
        """Return left and right inverse factors, stacked, that diagonalize random combinations of the matrices."""
        if self.orthogonal:
            combination = random_combinations(stack, rng, 1)[0, ...]
            xp = array_namespace(combination)
            left, _, right = xp.linalg.svd(combination)
            return moved(xp.stack([adjoint(left), conjugate(right)]), stack)
        left, second = pencil_start(stack, rng)
        # B N C^T = I for the combination N that the pencil was taken against.
        return like(np.stack([left, np.linalg.inv(left @ second).T]), stack)

    def _follow(self, core: TwoSidedStack, point: Array, probe: Array, limits: Limits) -> Outcome:
        if self.orthogonal:
            return find_fixed_point(lambda point: two_sided_rotation_step(core, point, probe), rotate, point, limits)
        return follow_shears(lambda point: two_sided_shear_step(core, point, probe), point, limits)


def symmetrized(diagonalizer: Diagonalizer) -> Diagonalizer:
    r"""Return a method for :math:`M_l = A\, \mathrm{diag}(d_l)\, B^\top` that runs a symmetric one on twice the size.

    The matrices :math:`\begin{pmatrix} 0 & M_l^\top \\ M_l & 0 \end{pmatrix}` have the factors
    :math:`(b_i, \pm a_i)` with diagonals :math:`\pm d_{il} / 2` (section 6 of the paper).

    **Needs** a diagonalizer that ``handles_opposite_diagonals``: the diagonals of the two factors are proportional, so
    that methods that divide by :math:`1 - \rho_{ij}^2` break down. **Costs** eight times a sweep over symmetric
    matrices of the same size. **Guarantees** for orthonormal factors the objective of ``TwoSided(orthogonal=True)``.
    **Fails** to converge with `QRJ1D` and noise, which drifts along such pairs. `TwoSided` needs no reduction and is
    the better choice; this function reproduces the paper. Matrices must be real: complex components of opposite
    diagonals differ by a phase only.

    Parameters
    ----------
    diagonalizer : Diagonalizer
        `Jacobi`, `OrthogonalNewton` or `QRJ1D`. Its ``rank``, if any, is that of the asymmetric matrices.

    Returns
    -------
    Diagonalizer
        With the same options, for stacks of shape (n, d, d').

    See Also
    --------
    TwoSided : Matrices that are not symmetric, without doubling their size.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.diagonalize import Jacobi, symmetrized
    >>> rng = np.random.default_rng(0)
    >>> left, right = (np.linalg.qr(rng.standard_normal((4, 4)))[0] for _ in range(2))
    >>> fit = symmetrized(Jacobi())([left @ np.diag(rng.standard_normal(4)) @ right.T for _ in range(5)])
    >>> fit.off_diagonal < 1e-20
    True
    """
    inner = check_method(diagonalizer)
    if not inner.handles_opposite_diagonals:
        raise ValueError(
            f"the reduction to twice the size is degenerate for {type(inner).__name__}, because components come in "
            "pairs with opposite diagonals; use Jacobi(), OrthogonalNewton() or QRJ1D(), or TwoSided() instead"
        )
    if getattr(inner, "max_rows", None) is not None:
        raise ValueError("max_rows counts rows of the doubled problem; use rank instead")
    return _Symmetrized(rank=inner.rank, tol=inner.tol, max_sweeps=inner.max_sweeps, inner=inner)


@dataclass(frozen=True, kw_only=True)
class _Symmetrized(Diagonalizer):
    inner: Diagonalizer
    symmetric: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return f"symmetrized({self.inner.name})"

    @property
    def orthogonal(self) -> bool:
        return self.inner.orthogonal

    def sweep_flops(self, n: int, size: int) -> float:
        return self.inner.sweep_flops(n, 2 * size)

    def iterate(self, stack: Array, rng: np.random.Generator) -> Iterate:
        return self._merged(self._inner().iterate(_doubled(stack), rng), stack)

    def iterate_from(self, stack: Array, rng: np.random.Generator, left: Array, right: Array) -> Iterate:
        xp = array_namespace(stack)
        halves = [xp.concat([right, left], axis=1), xp.concat([right, -left], axis=1)]
        rows = xp.concat(halves, axis=0) / 2**0.5
        return self._merged(self._inner().iterate_from(_doubled(stack), rng, rows, rows), stack)

    def _inner(self) -> Diagonalizer:
        return replace(self.inner, tol=self.tol, max_sweeps=self.max_sweeps)

    def _merged(self, iterate: Iterate, stack: Array) -> Iterate:
        inverse = to_host(iterate.left).astype(np.float64)
        factor = inverse.T if self.orthogonal else np.linalg.inv(inverse)
        right, left = _merge_pairs(factor)
        return iterate._replace(
            left=_inverse(left, stack, self.orthogonal),
            right=_inverse(right, stack, self.orthogonal),
        )


def _doubled(stack: Array) -> Array:
    xp = array_namespace(stack)
    zeros = xp.zeros_like(stack)
    top = xp.concat([zeros, xp.matrix_transpose(stack)], axis=2)
    return xp.concat([top, xp.concat([stack, zeros], axis=2)], axis=1)


def _merge_pairs(factor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Identify the pairs of columns (b, a), (b, -a), and return each b and a once."""
    k = factor.shape[0] // 2
    halves = [half / np.linalg.norm(half, axis=0) for half in (factor[:k], factor[k:])]
    overlaps = [half.T @ half for half in halves]
    similarity = np.triu(np.abs(overlaps[0] * overlaps[1]), 1)
    merged = []
    for _ in range(k):
        i, j = np.unravel_index(np.argmax(similarity), similarity.shape)
        similarity[[i, j], :] = similarity[:, [i, j]] = -1
        merged.append(
            [half[:, i] + np.sign(overlap[i, j]) * half[:, j] for half, overlap in zip(halves, overlaps, strict=True)]
        )
    return np.stack([top for top, _ in merged], axis=1), np.stack([bottom for _, bottom in merged], axis=1)


def _inverse(factor: np.ndarray, reference: Array, orthogonal: bool) -> Array:
    """Return inverse factors as rows; merged factors are made orthonormal again by the polar decomposition."""
    if orthogonal:
        left, _, right = np.linalg.svd(factor)
        return like((left @ right).T, reference)
    return like(np.linalg.inv(factor), reference)
