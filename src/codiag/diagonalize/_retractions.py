"""Ways to move inverse factors along a step, and to keep them orthonormal."""

from __future__ import annotations

from codiag._array import Array, array_namespace, identity, on_host


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

INVERSION_STEPS = 16
"""Steps to the inverse of a matrix of condition 40, to rounding; of a worse one they give a bounded part."""


def solve_near_identity(move: Array, target: Array) -> Array:
    """Return (I - W)^-1 applied to the target: by its series where W is small, which needs no factorization.

    An accelerator takes as long for a factorization as for a hundred products, so that there the inverse is found by
    products, too.
    """
    xp = array_namespace(move)
    if float(xp.linalg.vector_norm(move)) > SMALL:
        matrix = identity(move.shape[-1], move) - move
        return xp.linalg.solve(matrix, target) if on_host(move) else inverse_by_products(matrix) @ target
    result = target
    for _ in range(4):
        result = target + move @ result
    return result


def inverse_by_products(matrix: Array) -> Array:
    r"""Return the inverse by the iteration of Newton and Schulz, :math:`X \leftarrow X (2I - A X)`.

    From :math:`A^\top / (\|A\|_1 \|A\|_\infty)` it converges for every matrix, and inverts the large singular values
    first.
    """
    xp = array_namespace(matrix)
    sizes = xp.abs(matrix)
    bound = xp.max(xp.sum(sizes, axis=-1), axis=-1) * xp.max(xp.sum(sizes, axis=-2), axis=-1)
    twice = 2 * identity(matrix.shape[-1], matrix)
    inverse = xp.matrix_transpose(matrix) / bound[..., None, None]
    for _ in range(INVERSION_STEPS):
        inverse = inverse @ (twice - matrix @ inverse)
    return inverse
