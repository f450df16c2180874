r"""Steps of orthonormal factors, with one factor matrix or with one on each side.

Each entry of a Newton-like step is Cardoso's first-order error of a pair, with the current off-diagonal entries as the
noise. With :math:`D_l = B M_l C^\top`, :math:`d_{il} = (D_l)_{ii}` and :math:`y_{ij} = \sum_l d_{jl} (D_l)_{ij}`, the
step of one side is :math:`(y_{ji} - y_{ij}) / \sum_l (d_{il} - d_{jl})^2`. With two sides each pair has two angles,
which solve a 2 x 2 system.

With few matrices and large noise, pairs are coupled by their off-diagonal entries, and such steps converge slowly.
Newton's method uses the whole second derivative: for :math:`B \leftarrow e^W B`, W skew-symmetric,
:math:`\dot D_l = W D_l + (W D_l)^\top`; the gradient of :math:`-\sum_l \sum_i d_{il}^2 / 4` is
:math:`G = \sum_l (D_l \,\mathrm{diag}(d_l) - \mathrm{diag}(d_l) D_l) / 2`. The Newton equation is solved by conjugate
gradients, preconditioned by the gaps of the pairs, and truncated at negative curvature (Steihaug).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from codiag._arrays import Array, array_namespace, epsilon, identity, like, to_host
from codiag.diagonalize._fixed_point import Iterate, Outcome, Step, contraction_rate
from codiag.diagonalize._shears import shear
from codiag.diagonalize._stack import MatrixStack, TwoSidedStack

MAX_PRODUCTS = 200
"""Products with the second derivative for one Newton equation, at most. Chosen by experience."""

LARGEST_ANGLE = 0.3
"""Largest entry of a Newton step, in radians: beyond it a quadratic model is not accurate. Chosen by experience."""


def rotate(skew: Array, inverse: Array) -> Array:
    """Rotate inverse factors by the Cayley transform (I - W/2)^-1 (I + W/2)."""
    return shear(skew / 2, inverse + skew @ inverse / 2)


def orthonormalize(inverse: Array) -> Array:
    """Return nearly orthonormal rows with smaller deviation, which products of rotations accumulate (Newton-Schulz)."""
    xp = array_namespace(inverse)
    return 1.5 * inverse - 0.5 * (inverse @ xp.matrix_transpose(inverse)) @ inverse


def rotation_step(core: MatrixStack, inverse: Array, probe: Array) -> Step:
    """Return the rotation to take from orthonormal inverse factors of symmetric matrices, and its measures."""
    xp = array_namespace(inverse)
    diagonals, sums, energy = core.moments(inverse, inverse, probe)
    cross = inverse @ xp.matrix_transpose(sums)
    products = diagonals @ xp.matrix_transpose(diagonals)
    squares = xp.linalg.diagonal(products)
    totals = squares[:, None] + squares[None, :]
    gaps = totals - 2 * products
    resolved = gaps > 100 * epsilon(inverse) * totals  # smaller gaps are rounding errors
    gaps = xp.where(resolved, gaps, totals)
    move = xp.where(resolved, (xp.matrix_transpose(cross) - cross) / gaps, xp.zeros_like(gaps))
    move = xp.clip(move, -0.5, 0.5)
    scaled = xp.max(xp.abs(move) * xp.sqrt(gaps))
    return _measured(inverse, move, squares, scaled, energy, gaps, resolved, core.matrices.shape[0])


def two_sided_rotation_step(core: TwoSidedStack, point: Array, probe: Array) -> Step:
    """Return the two rotations to take from orthonormal inverse factors on both sides, and their measures."""
    xp = array_namespace(point)
    diagonals, first, second, energy = core.moments(point, probe)
    products = diagonals @ xp.matrix_transpose(diagonals)
    squares = xp.linalg.diagonal(products)
    totals = squares[:, None] + squares[None, :]
    gaps = totals**2 - 4 * products**2
    resolved = gaps > 100 * epsilon(point) * totals**2
    gaps = xp.where(resolved, gaps, totals**2)
    first, second = first - xp.matrix_transpose(first), second - xp.matrix_transpose(second)
    moves = xp.stack([2 * products * second - totals * first, totals * second - 2 * products * first]) / gaps
    moves = xp.clip(xp.where(resolved, moves, xp.zeros_like(moves)), -0.5, 0.5)
    scaled = xp.max(xp.abs(moves) * xp.sqrt(gaps / totals))
    # The smaller of |d_i - d_j|^2 and |d_i + d_j|^2, the gaps for equal and for opposite rotations of the two sides.
    smaller = totals - 2 * xp.abs(products) + xp.where(resolved, 0 * totals, totals)
    return _measured(point, moves, squares, scaled, energy, smaller, resolved, core.matrices.shape[0])


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
    zero: at the identity, for example, for matrices with empty diagonals.
    """
    xp = array_namespace(stack)
    entries = left @ stack @ xp.matrix_transpose(right)
    transposed = xp.matrix_transpose(entries)
    diagonals = xp.linalg.diagonal(entries)
    first, second = diagonals[:, :, None], diagonals[:, None, :]
    rounding = 1e3 * epsilon(stack) * xp.sum(entries**2) / stack.shape[1]
    equal = xp.sum((entries + transposed) ** 2 - (first - second) ** 2, axis=0)
    opposite = xp.sum((entries - transposed) ** 2 - (first + second) ** 2, axis=0)
    pairs = 1 - identity(stack.shape[1], stack)
    return bool(xp.any(equal * pairs > rounding)) or bool(xp.any(opposite > rounding))


def follow_past_saddles(
    follow: Callable[[Array], Outcome], stack: Array, point: Array, rng: np.random.Generator
) -> Outcome:
    """Follow steps of orthonormal rows, of one side or of two, with small random rotations away from saddles."""
    outcome, n_sweeps = follow(point), 0
    for trial in range(3):
        left, right = (outcome.point, outcome.point) if point.ndim == 2 else outcome.point
        if not at_saddle(stack, left, right):
            break
        n_sweeps += outcome.n_sweeps
        if trial == 2:
            return outcome._replace(n_sweeps=n_sweeps, converged=False)
        draws = rng.standard_normal(tuple(point.shape)) / np.sqrt(point.shape[-1])
        skew = like(0.1 * (draws - np.swapaxes(draws, -1, -2)), point)
        outcome = follow(rotate(skew, outcome.point))
    return outcome._replace(n_sweeps=n_sweeps + outcome.n_sweeps)


@dataclass(frozen=True)
class QuadraticModel:
    r"""The diagonal energy near orthonormal inverse factors, to second order.

    The derivative of :math:`Y = \sum_l D_l \,\mathrm{diag}(d_l)` along W is :math:`W Y + Z` with
    :math:`Z_{ij} = \sum_m W_{jm} \sum_l (D_{im} d_j + 2 D_{ij} D_{mj})`. The sums over l are computed once, by two
    products of :math:`2 n d^3` operations; every product with the second derivative then takes :math:`4 d^3`.
    """

    inverse: Array
    entries: Array  # D_l, as (k, n, k)
    diagonals: Array  # (k, n)
    weighted: Array  # Y
    gradient: Array  # G
    gaps: Array  # of the pairs, for the preconditioner
    energy: float  # of the diagonals

    @classmethod
    def at(cls, core: MatrixStack, inverse: Array) -> QuadraticModel:
        """Evaluate the model at inverse factors."""
        xp = array_namespace(inverse)
        entries = core.entries(inverse)
        diagonals = xp.matrix_transpose(xp.linalg.diagonal(xp.permute_dims(entries, (1, 0, 2))))
        weighted = xp.matrix_transpose((diagonals[:, None, :] @ entries)[:, 0, :])
        squares = xp.sum(diagonals**2, axis=1)
        gaps = squares[:, None] + squares[None, :] - 2 * diagonals @ xp.matrix_transpose(diagonals)
        gaps = xp.clip(gaps, 1e-3 * float(xp.max(gaps)), None)
        gradient = (weighted - xp.matrix_transpose(weighted)) / 2
        return cls(inverse, entries, diagonals, weighted, gradient, gaps, float(xp.sum(squares)))

    @cached_property
    def _couplings(self) -> Array:
        """The sums over l in Z, as (j, i, m)."""
        xp = array_namespace(self.entries)
        first = xp.permute_dims(self.diagonals @ self.entries, (1, 0, 2))
        return first + 2 * xp.matrix_transpose(self.entries) @ self.entries

    def curvature(self, move: Array) -> Array:
        """Return the derivative of the gradient along a move."""
        xp = array_namespace(move)
        change = move @ self.weighted + xp.matrix_transpose((self._couplings @ move[:, :, None])[:, :, 0])
        return (change - xp.matrix_transpose(change)) / 2

    def newton_step(self) -> tuple[Array, bool]:
        """Solve the Newton equation; return the move, and whether the curvature was positive."""
        xp = array_namespace(self.gradient)
        residual = -self.gradient
        move, preconditioned = xp.zeros_like(residual), 2 * residual / self.gaps
        product = xp.sum(residual * preconditioned)
        first = float(product)
        if not first > 0:
            return move, True
        direction = preconditioned
        for n_products in range(1, MAX_PRODUCTS + 1):
            image = self.curvature(direction)
            curvature = float(xp.sum(direction * image))
            if not curvature > 0:
                return (direction if n_products == 1 else move), False
            length = float(product) / curvature
            move, residual = move + length * direction, residual - length * image
            preconditioned = 2 * residual / self.gaps
            previous, product = product, xp.sum(residual * preconditioned)
            # Accurate enough for quadratic convergence, and no more accurate than the model.
            if float(product) < first * min(1e-2, math.sqrt(first / self.energy)):
                return move, True
            direction = preconditioned + float(product / previous) * direction
        return move, True

    def is_small(self, move: Array, tol: float, statistical_tol: float) -> bool:
        """Return whether a move is below tolerance, or small in units of its standard error."""
        xp = array_namespace(move)
        k, n = self.diagonals.shape
        off = float(xp.sum(self.entries**2)) - self.energy
        noise = math.sqrt(max(off, 1e-300) / (n * k * (k - 1)))
        standardized = float(xp.max(xp.abs(move) * xp.sqrt(self.gaps))) / noise
        return float(xp.max(xp.abs(move))) < max(tol, 4 * epsilon(move)) or standardized < statistical_tol


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
    """Shorten a move to the largest angle."""
    xp = array_namespace(move)
    largest = float(xp.max(xp.abs(move)))
    return move if largest < LARGEST_ANGLE else move * (LARGEST_ANGLE / largest)
