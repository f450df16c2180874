r"""The loop of the Newton-like methods: evaluate, accelerate, move, and never accept a step that makes things worse.

What the methods of one matrix product a step have in common.

Newton steps of orthonormal factors with the whole curvature, where steps of single pairs are too slow.

With few matrices and much noise, pairs are coupled through what is left off the diagonals, and steps that look at each
pair alone creep along flat directions. For :math:`D_l = B M_l B^\top` and :math:`B \leftarrow e^W B`, W skew,
:math:`\dot D_l = W D_l + (W D_l)^\top`; the gradient of :math:`-\sum_l \sum_i d_{il}^2 / 4` is
:math:`G = \sum_l (D_l \,\mathrm{diag}(d_l) - \mathrm{diag}(d_l) D_l) / 2`, and its derivative along W the product with
the curvature, at one matrix product of :math:`2 n d^3` operations. The Newton equation is solved by conjugate
gradients, preconditioned by the gaps of the pairs, and cut short where the curvature turns negative (Steihaug).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from codiag._arrays import Array, array_namespace, epsilon
from codiag.diagonalize.steps._rotations import orthonormalize, rotate

PRODUCTS = 200
"""Products with the curvature that one Newton equation may take."""


class NewtonOutcome(NamedTuple):
    """Where the steps ended, and the products of :math:`2 n d^3` operations that it took."""

    point: Array
    n_products: int
    converged: bool


class _Place(NamedTuple):
    inverse: Array
    entries: Array  # D_l
    diagonals: Array  # (n, k)
    gradient: Array
    gaps: Array  # of the pairs, for the preconditioner
    energy: float  # on the diagonals


def newton_rotations(stack: Array, inverse: Array, tol: float, statistical_tol: float, max_steps: int) -> NewtonOutcome:
    """Take Newton steps until the largest entry of one is below tolerance, alone or in units of its standard error."""
    place, n_products = _look(stack, inverse), 2
    for _ in range(max_steps):
        move, used, convex = _direction(place)
        n_products += used
        if convex and _is_small(place, move, tol, statistical_tol):
            return NewtonOutcome(orthonormalize(rotate(move, place.inverse)), n_products, True)
        for halvings in range(8):
            trial = _look(stack, orthonormalize(rotate(_clipped(move) / 2**halvings, place.inverse)))
            n_products += 2
            if trial.energy > place.energy * (1 - 10 * epsilon(stack)):
                break
        else:
            break
        place = trial
    return NewtonOutcome(place.inverse, n_products, False)


def _look(stack: Array, inverse: Array) -> _Place:
    xp = array_namespace(stack)
    entries = inverse @ stack @ xp.matrix_transpose(inverse)
    diagonals = xp.linalg.diagonal(entries)
    weighted = xp.sum(entries * diagonals[:, None, :], axis=0)
    squares = xp.sum(diagonals**2, axis=0)
    gaps = squares[:, None] + squares[None, :] - 2 * xp.matrix_transpose(diagonals) @ diagonals
    gaps = xp.clip(gaps, 1e-3 * float(xp.max(gaps)), None)
    gradient = (weighted - xp.matrix_transpose(weighted)) / 2
    return _Place(inverse, entries, diagonals, gradient, gaps, float(xp.sum(squares)))


def _curvature(place: _Place, move: Array) -> Array:
    """Return how the gradient changes along a move."""
    xp = array_namespace(move)
    product = move @ place.entries
    change = product + xp.matrix_transpose(product)
    weighted = xp.sum(
        change * place.diagonals[:, None, :] + place.entries * xp.linalg.diagonal(change)[:, None, :], axis=0
    )
    return (weighted - xp.matrix_transpose(weighted)) / 2


def _direction(place: _Place) -> tuple[Array, int, bool]:
    """Solve the Newton equation; return the move, the products it took, and whether all curvature met was positive."""
    xp = array_namespace(place.gradient)
    residual = -place.gradient
    move, ahead = xp.zeros_like(residual), 2 * residual / place.gaps
    along = xp.sum(residual * ahead)
    first = float(along)
    if not first > 0:
        return move, 0, True
    scaled = ahead
    for used in range(1, PRODUCTS + 1):
        image = _curvature(place, scaled)
        bend = float(xp.sum(scaled * image))
        if not bend > 0:
            return (scaled if used == 1 else move), used, False
        length = float(along) / bend
        move, residual = move + length * scaled, residual - length * image
        ahead = 2 * residual / place.gaps
        before, along = along, xp.sum(residual * ahead)
        # Quadratic convergence at the end, and no more work than the model deserves before.
        if float(along) < first * min(1e-2, math.sqrt(first / place.energy)):
            return move, used, True
        scaled = ahead + float(along / before) * scaled
    return move, PRODUCTS, True


def _is_small(place: _Place, move: Array, tol: float, statistical_tol: float) -> bool:
    xp = array_namespace(move)
    n, k = place.diagonals.shape
    off = float(xp.sum(place.entries**2)) - place.energy
    noise = math.sqrt(max(off, 1e-300) / (n * k * (k - 1)))
    standardized = float(xp.max(xp.abs(move) * xp.sqrt(place.gaps))) / noise
    return float(xp.max(xp.abs(move))) < max(tol, 4 * epsilon(move)) or standardized < statistical_tol


def _clipped(move: Array) -> Array:
    """Shorten a move whose largest angle is beyond what a quadratic model describes."""
    xp = array_namespace(move)
    largest = float(xp.max(xp.abs(move)))
    return move if largest < 0.3 else move * (0.3 / largest)
