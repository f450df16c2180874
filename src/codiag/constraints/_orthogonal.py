"""Factors with orthogonal columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from codiag._arrays import Array, array_namespace, identity
from codiag.constraints._base import GRADIENT_STEPS, Constraint, times_gram


@dataclass(frozen=True, eq=False)
class Orthogonal(Constraint):
    r"""The columns of the factor are orthogonal; the weights absorb their lengths.

    With all modes orthogonal the components are those of the paper: the best weights are
    :math:`w_i = T(a_i, b_i, c_i)`, and least squares makes :math:`\sum_i w_i^2` largest. The rank is at most the size
    of the mode.

    See Also
    --------
    NonNegative : Entries that are not negative instead.
    codiag.methods.OJD : A method for tensors whose factors are all nearly orthogonal.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> rng = np.random.default_rng(0)
    >>> a, b, c = (np.linalg.qr(rng.standard_normal((6, 4)))[0] for _ in range(3))
    >>> tensor = np.einsum("ir,jr,kr->ijk", a, b, c) + 0.01 * rng.standard_normal((6, 6, 6))
    >>> fit = codiag.factorize(tensor, 4, constraints="orthogonal", rng=0)
    >>> all(np.allclose(factor.T @ factor, np.eye(4)) for factor in fit.factors)
    True
    """

    supports_gauss_newton: ClassVar[bool] = True
    is_manifold: ClassVar[bool] = True
    is_orthogonal: ClassVar[bool] = True
    allows_sign_change: ClassVar[bool] = True

    def project(self, factor: Array) -> Array:
        """Return the nearest factor Q D with orthonormal Q and diagonal D: in turn the best Q, and the best D."""
        xp = array_namespace(factor)
        return _alternated(factor, xp.ones_like(factor[0, :]), xp.linalg.vector_norm(factor, axis=0))

    def solve(self, gram: Array, product: Array, start: Array) -> Array:
        xp = array_namespace(product)
        if gram.ndim == 2:  # rows have equal equations, of which orthogonal columns leave the diagonal
            diagonal = xp.linalg.diagonal(gram)
            diagonal = xp.where(diagonal > 0, diagonal, xp.ones_like(diagonal))
            lengths = xp.linalg.vector_norm(self.project(start), axis=0)
            return _alternated(product, diagonal, xp.where(lengths > 0, lengths, xp.ones_like(lengths)))
        step = 1 / max(float(xp.max(xp.linalg.matrix_norm(gram, ord=2))), 1e-300)
        factor = self.project(start)
        for _ in range(GRADIENT_STEPS):
            factor = self.project(factor - step * (times_gram(factor, gram) - product))
        return factor

    def tangent(self, factor: Array, move: Array) -> Array:
        """Return a move X without its part F S, S symmetric with no diagonal, which would make columns F overlap."""
        xp = array_namespace(factor)
        squares = xp.sum(factor**2, axis=0)
        both = squares[:, None] + squares[None, :]
        overlap = xp.matrix_transpose(factor) @ move
        normal = (overlap + xp.matrix_transpose(overlap)) / xp.where(both > 0, both, xp.ones_like(both))
        return move - factor @ (normal * (1 - identity(factor.shape[1], factor)))

    def restrict(self, rows: np.ndarray) -> Constraint | None:
        return None  # parts of orthogonal columns need not be orthogonal

    def check(self, size: int, rank: int, mode: int) -> None:
        if rank > size:
            raise ValueError(
                f"constraints[{mode}]: rank must be at most {size}, the size of the mode, for orthogonal columns; "
                f"got {rank}"
            )


def _alternated(product: Array, diagonal: Array, lengths: Array) -> Array:
    r"""Return the Q D that makes :math:`\sum_i (p_i^\top q_i d_i - g_i d_i^2 / 2)` large: Q and D in turn."""
    xp = array_namespace(product)
    for _ in range(GRADIENT_STEPS):
        left, _, right = xp.linalg.svd(product * lengths, full_matrices=False)
        orthonormal = left @ right
        before, lengths = lengths, xp.sum(orthonormal * product, axis=0) / diagonal
        if float(xp.max(xp.abs(lengths - before))) <= 1e-10 * float(xp.max(xp.abs(lengths))):
            break
    return orthonormal * lengths
