r"""Steps of orthonormal factors, with one factor matrix or with one on each side.

Each entry of a Newton-like step is Cardoso's first-order error of a pair, with the current off-diagonal entries as the
noise. With :math:`D_l = B M_l C^\top`, :math:`d_{il} = (D_l)_{ii}` and :math:`y_{ij} = \sum_l d_{jl} (D_l)_{ij}`, the
step of one side is :math:`(y_{ji} - y_{ij}) / \sum_l (d_{il} - d_{jl})^2`. With two sides each pair has two angles,
which solve a 2 x 2 system. Of complex matrices, W is skew-Hermitian: :math:`D_{ij}` of a Hermitian matrix changes by
:math:`W_{ij} (d_j - d_i)`, that of a symmetric one by :math:`W_{ij} d_j - \bar W_{ij} d_i`, which is a 2 x 2 system
of the real and the imaginary part.

With few matrices and large noise, pairs are coupled by their off-diagonal entries, and such steps converge slowly.
Newton's method uses the whole second derivative: for :math:`B \leftarrow e^W B`, W skew-symmetric,
:math:`\dot D_l = W D_l + (W D_l)^\top`; the gradient of :math:`-\sum_l \sum_i |d_{il}|^2 / 4` is the skew part of
:math:`G = \sum_l D_l \,\mathrm{diag}(\bar d_l)`. The Newton equation is solved by conjugate gradients,
preconditioned by the gaps of the pairs, and truncated at negative curvature (Steihaug).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from codiag._arrays import (
    Array,
    adjoint,
    array_namespace,
    asarray_like,
    conjugate,
    epsilon,
    identity,
    is_complex,
    is_hermitian,
    normal_draws,
    real_part,
    squared_magnitudes,
    to_host,
    to_namespace,
)
from codiag.diagonalize._fixed_point import FixedPointResult, Iterate, Step, contraction_rate
from codiag.diagonalize._shears import shear
from codiag.diagonalize._stack import MatrixStack, TwoSidedStack


def rotate(skew: Array, inverse: Array) -> Array:
    """Rotate inverse factors by the Cayley transform (I - W/2)^-1 (I + W/2)."""
    return shear(skew / 2, inverse + skew @ inverse / 2)


def orthonormalize(inverse: Array) -> Array:
    """Return nearly orthonormal rows with smaller deviation, which products of rotations accumulate (Newton-Schulz)."""
    return 1.5 * inverse - 0.5 * (inverse @ adjoint(inverse)) @ inverse


def rotation_step(core: MatrixStack, inverse: Array, probe: Array) -> Step:
    """Return the rotation to take from orthonormal inverse factors of symmetric matrices, and its measures."""
    inverse = core.here(inverse)
    xp, other = array_namespace(inverse), core.mirrored(inverse)
    diagonals, sums, energy = core.moments(inverse, other, probe)
    cross = core.mirrored(other @ xp.matrix_transpose(sums))
    products = conjugate(diagonals) @ xp.matrix_transpose(diagonals)
    squares = real_part(xp.linalg.diagonal(products))
    totals = squares[:, None] + squares[None, :]
    mirrored = core.mirrored(xp.matrix_transpose(cross))
    has_free_phases = is_complex(inverse) and not core.is_hermitian
    gaps = totals - 2 * (xp.abs(products) if has_free_phases else real_part(products))
    resolved = gaps > 100 * epsilon(inverse) * totals  # smaller gaps are rounding errors
    gaps = xp.where(resolved, gaps, totals)
    if has_free_phases:
        sums, products = conjugate(mirrored) - cross, 2 * conjugate(products)
        move = (totals * sums + products * conjugate(sums)) / (gaps * (2 * totals - gaps))
    else:
        move = (mirrored - cross) / gaps
    move = _bounded(xp.where(resolved, move, xp.zeros_like(move)))
    scaled = xp.max(xp.abs(move) * xp.sqrt(gaps))
    return _measured(inverse, move, squares, scaled, energy, gaps, resolved, core.matrices.shape[0])


def two_sided_rotation_step(core: TwoSidedStack, point: Array, probe: Array) -> Step:
    """Return the two rotations to take from orthonormal inverse factors on both sides, and their measures."""
    point = core.here(point)
    xp = array_namespace(point)
    diagonals, first, second, energy = core.moments(point, probe)
    products = conjugate(diagonals) @ xp.matrix_transpose(diagonals)
    squares = real_part(xp.linalg.diagonal(products))
    totals = squares[:, None] + squares[None, :]
    gaps = totals**2 - 4 * squared_magnitudes(products)
    resolved = gaps > 100 * epsilon(point) * totals**2
    gaps = xp.where(resolved, gaps, totals**2)
    first, second = first - adjoint(first), conjugate(second) - xp.matrix_transpose(second)
    doubled = 2 * conjugate(products)
    left, right = doubled * conjugate(second) - totals * first, totals * second - doubled * conjugate(first)
    moves = xp.stack([left, right]) / gaps
    moves = _bounded(xp.where(resolved, moves, xp.zeros_like(moves)))
    scaled = xp.max(xp.abs(moves) * xp.sqrt(gaps / totals))
    # The smaller of |d_i - d_j|^2 and |d_i + d_j|^2, the gaps for equal and for opposite rotations of the two sides.
    smaller = totals - 2 * xp.abs(products) + xp.where(resolved, 0 * totals, totals)
    return _measured(point, moves, squares, scaled, energy, smaller, resolved, core.matrices.shape[0])


def _bounded(moves: Array) -> Array:
    """Shorten the entries of a move to half a radian."""
    xp = array_namespace(moves)
    if not is_complex(moves):
        return xp.clip(moves, -0.5, 0.5)
    sizes = xp.abs(moves)
    return moves * xp.where(sizes > 0.5, 0.5 / xp.where(sizes > 0.5, sizes, xp.ones_like(sizes)), xp.ones_like(sizes))


def _measured(
    point: Array, move: Array, squares: Array, scaled: Array, energy: Array, gaps: Array, resolved: Array, n: int
) -> Step:
    """Return a rotation with its size, absolute and in units of the noise that the probed energy implies."""
    xp = array_namespace(point)
    k = squares.shape[0]
    # The energy is assumed to be the same for all pairs.
    residuals = xp.sqrt(xp.sum(energy) / (k * (k - 1)) / gaps)
    rate = contraction_rate(residuals, xp.astype(resolved, gaps.dtype), n)
    numbers = [xp.sum(squares), xp.max(xp.abs(move)), scaled, xp.sum(energy), rate]
    objective, largest, scaled, off, rate = to_host(xp.stack(numbers)).tolist()
    noise = max(off / (n * k * (k - 1)), 1e-300)
    return Step(point, move, -objective, largest, scaled / noise**0.5, rate)


def at_saddle(stack: Array, left: Array, right: Array) -> bool:
    r"""Return whether a small rotation of some pair of orthonormal factors lowers the off-diagonal energy.

    A small rotation of both sides by the same angle lowers it if
    :math:`\sum_l (D_{ij} + D_{ji})^2 > \sum_l (d_i - d_j)^2`, and by opposite angles if
    :math:`\sum_l (D_{ij} - D_{ji})^2 > \sum_l (d_i + d_j)^2`. If the right-hand sides vanish, Newton-like steps are
    zero: at the identity, for example, for matrices with empty diagonals. Angles of complex matrices have phases, of
    which the best one counts.
    """
    xp = array_namespace(stack)
    entries = to_namespace(left, stack) @ stack @ xp.matrix_transpose(to_namespace(right, stack))
    diagonals = xp.linalg.diagonal(entries)
    rounding = 1e3 * epsilon(stack) * xp.sum(squared_magnitudes(entries)) / stack.shape[1]
    pairs = 1 - identity(stack.shape[1], real_part(diagonals))
    if is_complex(stack):
        return bool(xp.any(_complex_gains(entries, left is right) * pairs > rounding))
    transposed = xp.matrix_transpose(entries)
    first, second = diagonals[:, :, None], diagonals[:, None, :]
    equal = xp.sum((entries + transposed) ** 2 - (first - second) ** 2, axis=0)
    opposite = xp.sum((entries - transposed) ** 2 - (first + second) ** 2, axis=0)
    return bool(xp.any(equal * pairs > rounding)) or bool(xp.any(opposite > rounding))


def _complex_gains(entries: Array, one_sided: bool) -> Array:
    """Return what small rotations of complex pairs gain with the best phases, up to a factor; negative is a loss."""
    xp = array_namespace(entries)
    diagonals = xp.linalg.diagonal(entries)
    products = adjoint(diagonals) @ diagonals
    squares = real_part(xp.linalg.diagonal(products))
    totals = squares[:, None] + squares[None, :]
    energy = xp.sum(squared_magnitudes(entries), axis=0)
    if is_hermitian(entries):
        return 2 * (energy + xp.abs(xp.sum(entries * entries, axis=0))) - totals + 2 * real_part(products)
    if one_sided:
        return 4 * energy - totals + 2 * xp.abs(products)
    overlaps = xp.abs(xp.sum(xp.matrix_transpose(entries) * conjugate(entries), axis=0))
    return energy + xp.matrix_transpose(energy) - totals + 2 * (overlaps + xp.abs(products))


def follow_past_saddles(
    follow: Callable[[Array], FixedPointResult], stack: Array, point: Array, rng: np.random.Generator
) -> FixedPointResult:
    """Follow steps of orthonormal rows, of one side or of two, with small random rotations away from saddles."""
    outcome, n_sweeps = follow(point), 0
    for trial in range(3):
        if not at_saddle(stack, *_sides(outcome.point, stack)):
            break
        n_sweeps += outcome.n_sweeps
        if trial == 2:
            return outcome._replace(n_sweeps=n_sweeps, converged=False)
        draws = normal_draws(rng, tuple(point.shape), point) / np.sqrt(point.shape[-1])
        skew = asarray_like(0.1 * (draws - np.swapaxes(draws.conj(), -1, -2)), point)
        outcome = follow(rotate(skew, outcome.point))
    return outcome._replace(n_sweeps=n_sweeps + outcome.n_sweeps)


def _sides(point: Array, stack: Array) -> tuple[Array, Array]:
    """Return the inverse factors of the two sides, of which one or both are given."""
    if point.ndim == 2:
        return point, conjugate(point) if is_hermitian(stack) else point
    return point[0, ...], point[1, ...]


@dataclass(frozen=True)
class QuadraticModel:
    r"""The diagonal energy near orthonormal inverse factors, to second order.

    The derivative of :math:`Y = \sum_l D_l \,\mathrm{diag}(\bar d_l)` along W is :math:`W Y + Z`. For real matrices
    :math:`Z_{ij} = \sum_m W_{jm} \sum_l (D_{im} d_j + 2 D_{ij} D_{mj})`; for complex ones some of the terms have the
    conjugate of W. The sums over l are computed once, by a few products of :math:`2 n d^3` operations; every product
    with the second derivative then takes :math:`4 d^3`.
    """

    inverse: Array
    entries: Array  # D_l, as (k, n, k)
    diagonals: Array  # (k, n)
    weighted: Array  # Y
    gradient: Array  # G
    gaps: Array  # of the pairs, for the preconditioner
    energy: float  # of the diagonals
    hermitian: bool

    @classmethod
    def at(cls, core: MatrixStack, inverse: Array) -> QuadraticModel:
        """Evaluate the model at inverse factors."""
        inverse = core.there(inverse)
        xp = array_namespace(inverse)
        entries, hermitian = core.entries(inverse), core.is_hermitian
        diagonals = xp.matrix_transpose(xp.linalg.diagonal(xp.permute_dims(entries, (1, 0, 2))))
        rows = (conjugate(diagonals)[:, None, :] @ entries)[:, 0, :]
        weighted = adjoint(rows) if hermitian else xp.matrix_transpose(rows)
        squares = xp.sum(squared_magnitudes(diagonals), axis=1)
        gaps = squares[:, None] + squares[None, :] - 2 * real_part(diagonals @ adjoint(diagonals))
        gaps = xp.clip(gaps, 1e-3 * float(xp.max(gaps)), None)
        gradient = (weighted - adjoint(weighted)) / 2
        return cls(inverse, entries, diagonals, weighted, gradient, gaps, float(xp.sum(squares)), hermitian)

    @cached_property
    def _couplings(self) -> list[Array]:
        """The sums over l in Z, as (j, i, m): the factors of W_jm, and those of its conjugate if that differs."""
        xp, entries = array_namespace(self.entries), self.entries
        first = xp.permute_dims(conjugate(self.diagonals) @ entries, (1, 0, 2))
        turned = xp.matrix_transpose(entries)
        if not is_complex(entries):
            return [first + 2 * turned @ entries]
        if self.hermitian:
            return [conjugate(turned @ entries), first + conjugate(turned) @ entries]
        return [first, 2 * turned @ conjugate(entries)]

    def curvature(self, move: Array) -> Array:
        """Return the derivative of the gradient along a move."""
        xp = array_namespace(move)
        moves = (move, conjugate(move))
        sums = [(coupling @ part[:, :, None])[:, :, 0] for coupling, part in zip(self._couplings, moves, strict=False)]
        change = move @ self.weighted + xp.matrix_transpose(sum(sums[1:], sums[0]))
        return (change - adjoint(change)) / 2

    def newton_step(self) -> tuple[Array, bool]:
        """Solve the Newton equation; return the move, and whether the curvature was positive."""
        xp = array_namespace(self.gradient)
        residual = -self.gradient
        move, preconditioned = xp.zeros_like(residual), 2 * residual / self.gaps
        product = _inner(residual, preconditioned)
        first = float(product)
        if not first > 0:
            return move, True
        direction = preconditioned
        for n_products in range(1, 201):
            image = self.curvature(direction)
            curvature = float(_inner(direction, image))
            if not curvature > 0:
                return (direction if n_products == 1 else move), False
            length = float(product) / curvature
            move, residual = move + length * direction, residual - length * image
            preconditioned = 2 * residual / self.gaps
            previous, product = product, _inner(residual, preconditioned)
            # Accurate enough for quadratic convergence, and no more accurate than the model.
            if float(product) < first * min(1e-2, math.sqrt(first / self.energy)):
                return move, True
            direction = preconditioned + float(product / previous) * direction
        return move, True

    def is_small(self, move: Array, tol: float, statistical_tol: float) -> bool:
        """Return whether a move is below tolerance, or small in units of its standard error."""
        xp = array_namespace(move)
        k, n = self.diagonals.shape
        off = float(xp.sum(squared_magnitudes(self.entries))) - self.energy
        noise = math.sqrt(max(off, 1e-300) / (n * k * (k - 1)))
        standardized = float(xp.max(xp.abs(move) * xp.sqrt(self.gaps))) / noise
        return float(xp.max(xp.abs(move))) < max(tol, 4 * epsilon(move)) or standardized < statistical_tol


def _inner(first: Array, second: Array) -> Array:
    """Return the real inner product of two moves."""
    return array_namespace(first).sum(real_part(conjugate(first) * second))


def newton_rotations(core: MatrixStack, inverse: Array, tol: float, statistical_tol: float, max_steps: int) -> Iterate:
    """Take Newton steps until the largest entry of one is below tolerance, or small in units of its standard error.

    A sweep is a matrix product of :math:`2 n d^3` operations: two for each point, and two for each Newton equation.
    """
    model, n_products = QuadraticModel.at(core, inverse), 2
    for _ in range(max_steps):
        move, convex = model.newton_step()
        n_products += 2
        if convex and model.is_small(move, tol, statistical_tol):
            inverse = orthonormalize(rotate(move, model.inverse))
            return Iterate(inverse, inverse, n_products, True)
        for halvings in range(8):
            shortened = _clipped(move) / 2**halvings
            trial = QuadraticModel.at(core, orthonormalize(rotate(shortened, model.inverse)))
            n_products += 2
            if trial.energy > model.energy * (1 - 10 * epsilon(inverse)):
                break
        else:
            break
        model = trial
    return Iterate(model.inverse, model.inverse, n_products, False)


def _clipped(move: Array) -> Array:
    """Shorten a move to 0.3 radians, beyond which a quadratic model is not accurate."""
    xp = array_namespace(move)
    largest = float(xp.max(xp.abs(move)))
    return move if largest < 0.3 else move * (0.3 / largest)
