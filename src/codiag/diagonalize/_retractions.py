"""Ways to move inverse factors along a step, and to keep them orthonormal."""

from __future__ import annotations

from codiag._array import Array, array_namespace, identity


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


def solve_near_identity(move: Array, target: Array) -> Array:
    """Return (I - W)^-1 applied to the target: by its series where W is small, which needs no factorization."""
    xp = array_namespace(move)
    if float(xp.linalg.vector_norm(move)) > 0.3:
        return xp.linalg.solve(identity(move.shape[-1], move) - move, target)
    result = target
    for _ in range(4):
        result = target + move @ result
    return result
