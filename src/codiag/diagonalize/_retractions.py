"""Ways to move inverse factors along a step, and to keep them orthonormal."""

from __future__ import annotations

from array_api_compat import array_namespace

from codiag._array import Array, identity, on_host


def shear(move: Array, inverse: Array) -> Array:
    """Move free inverse factors by (I - W)^-1, which stays bounded where I + W does not."""
    return solve_near_identity(move, inverse)


def rotate(skew: Array, inverse: Array) -> Array:
    """Rotate inverse factors by the Cayley transform (I - W/2)^-1 (I + W/2)."""
    return solve_near_identity(skew / 2, inverse + skew @ inverse / 2)


def orthonormalize(inverse: Array) -> Array:
    """Return the rows to orthonormality, from which products of rotations drift in single precision (Newton-Schulz)."""
    xp = array_namespace(inverse)
    return 1.5 * inverse - 0.5 * (inverse @ xp.matrix_transpose(inverse)) @ inverse


SMALL = 0.3
"""Norm up to which the first terms of a series are enough for a step."""


def solve_near_identity(move: Array, target: Array) -> Array:
    """Return (I - W)^-1 applied to the target: by its series where W is small, which needs no factorization."""
    xp = array_namespace(move)
    if float(xp.linalg.vector_norm(move)) > SMALL:
        return _solve(move, target)
    result = target
    for _ in range(4):
        result = target + move @ result
    return result


def _solve(move: Array, target: Array) -> Array:
    r"""Solve exactly, or on an accelerator, where a factorization takes as long as a hundred products, by products.

    The Frobenius norm of a square is closer to the spectral one, so that most moves pass whose own is not small:
    :math:`(I - W)^{-1} = (I + W)(I + W^2)(I + W^4) \dots`, whose next power is then below 1e-8.
    """
    xp = array_namespace(move)
    if not on_host(move):
        power = move @ move
        if float(xp.linalg.vector_norm(power)) <= SMALL:
            result = target + move @ target
            for _ in range(4):
                result = result + power @ result
                power = power @ power
            return result
    return xp.linalg.solve(identity(move.shape[-1], move) - move, target)
