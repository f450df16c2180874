"""Random factors with unit columns, and stacks of matrices with common factors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from codiag._arrays import is_complex, normal_draws
from codiag._checks import RNGLike, as_finite, as_generator, as_number
from codiag._text import ReprMixin


def orthonormal_factor(size: int, rank: int, rng: RNGLike = None) -> np.ndarray:
    """Draw a uniformly distributed matrix with orthonormal columns.

    Parameters
    ----------
    size : int
        Number of rows, d.
    rank : int
        Number of columns, k, at most d.
    rng : int, sequence of int or numpy.random.Generator, optional
        The same seed gives the same columns.

    Returns
    -------
    numpy.ndarray of shape (d, k)
        Orthonormal columns.

    See Also
    --------
    unit_factor : Columns that are not orthogonal.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.synthetic import orthonormal_factor
    >>> factor = orthonormal_factor(5, 3, rng=0)
    >>> bool(np.allclose(factor.T @ factor, np.eye(3)))
    True
    """
    as_number("size", size, integer=True)
    as_number("rank", rank, integer=True)
    if rank > size:
        raise ValueError(f"rank must be at most {size}, the size of orthonormal columns; got {rank}")
    columns, triangle = np.linalg.qr(as_generator(rng).standard_normal((size, rank)))
    return columns * np.sign(np.diag(triangle))


def unit_factor(size: int, rank: int, rng: RNGLike = None) -> np.ndarray:
    """Draw columns that are uniform on the unit sphere, badly conditioned if the rank is close to the size.

    Parameters
    ----------
    size : int
        Number of rows, d.
    rank : int
        Number of columns, k.
    rng : int, sequence of int or numpy.random.Generator, optional
        The same seed gives the same columns.

    Returns
    -------
    numpy.ndarray of shape (d, k)
        Unit columns.

    See Also
    --------
    orthonormal_factor : Orthogonal columns.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.synthetic import unit_factor
    >>> factor = unit_factor(5, 8, rng=0)
    >>> bool(np.allclose(np.linalg.norm(factor, axis=0), 1))
    True
    """
    as_number("size", size, integer=True)
    as_number("rank", rank, integer=True)
    return unit_columns(as_generator(rng).standard_normal((size, rank)))


def mild_factor(size: int, rank: int, rng: RNGLike = None, *, spread: float = 0.3) -> np.ndarray:
    """Draw unit columns that are not orthogonal but well conditioned.

    They are orthonormal columns plus `spread` times columns that are uniform on the unit sphere, scaled to unit norm.

    Parameters
    ----------
    size : int
        Number of rows, d.
    rank : int
        Number of columns, k, at most d.
    rng : int, sequence of int or numpy.random.Generator, optional
        The same seed gives the same columns.
    spread : float
        Deviation from orthogonality; with zero the columns are orthonormal.

    Returns
    -------
    numpy.ndarray of shape (d, k)
        Unit columns.

    See Also
    --------
    unit_factor : Columns that can be badly conditioned.
    orthonormal_factor : Orthogonal columns.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.synthetic import mild_factor
    >>> bool(np.linalg.cond(mild_factor(20, 20, rng=0)) < 10)
    True
    """
    as_number("spread", spread, zero=True)
    rng = as_generator(rng)
    return unit_columns(orthonormal_factor(size, rank, rng) + spread * unit_factor(size, rank, rng))


def unit_columns(columns: np.ndarray) -> np.ndarray:
    """Return the columns divided by their norms."""
    return columns / np.linalg.norm(columns, axis=0)


@dataclass(frozen=True, eq=False, repr=False)
class Stack(ReprMixin):
    """Matrices with common factors, and the factors and diagonals from which they were made."""

    matrices: np.ndarray  # (n, d, d'): factor @ diag(diagonals[l]) @ right_factor.T plus noise
    factor: np.ndarray  # (d, k)
    right_factor: np.ndarray  # (d', k)
    diagonals: np.ndarray  # (n, k)


def matrix_stack(
    factor: np.ndarray,
    n_matrices: int,
    *,
    right_factor: np.ndarray | None = None,
    noise: float = 0.0,
    rng: RNGLike = None,
) -> Stack:
    r"""Draw matrices :math:`U \operatorname{diag}(d_l) U^\top` with Gaussian diagonals, plus Gaussian noise.

    The noise is symmetric, with twice the variance on the diagonal. With a `right_factor` V the matrices are
    :math:`U \operatorname{diag}(d_l) V^\top`, and the entries of the noise are independent. If U is complex, diagonals
    and noise are complex and circular; if V is the conjugate of U, the matrices and their noise are Hermitian, and the
    diagonals real.

    Parameters
    ----------
    factor : array of shape (d, k)
        The common factor U, real or complex.
    n_matrices : int
        Number of matrices, n.
    right_factor : array of shape (d', k), optional
        The factor V on the right; by default U.
    noise : float
        Standard deviation of the noise in each entry off the diagonal.
    rng : int, sequence of int or numpy.random.Generator, optional
        The same seed gives the same matrices.

    Returns
    -------
    Stack
        With ``matrices`` of shape (n, d, d'); ``factor`` of shape (d, k); ``right_factor`` of shape (d', k), the array
        `factor` itself if the matrices are symmetric; and ``diagonals`` of shape (n, k).

    See Also
    --------
    unit_factor : A random factor.
    codiag.joint_diagonalize : The function that estimates the factor.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.synthetic import matrix_stack
    >>> stack = matrix_stack(np.eye(4), 3, rng=0)
    >>> stack.matrices.shape, stack.diagonals.shape
    ((3, 4, 4), (3, 4))
    """
    as_number("n_matrices", n_matrices, integer=True)
    as_number("noise", noise, zero=True)
    factor = as_finite("factor", factor, (None, None), allow_complex=True)
    right = factor
    if right_factor is not None:
        right = as_finite("right_factor", right_factor, (None, factor.shape[1]), allow_complex=True)
    hermitian = right_factor is not None and is_complex(factor) and np.array_equal(right, factor.conj())
    rng = as_generator(rng)
    diagonals = normal_draws(rng, (n_matrices, factor.shape[1]), factor.real if hermitian else factor)
    errors = normal_draws(rng, (n_matrices, factor.shape[0], right.shape[0]), factor)
    if right is factor or hermitian:
        other = errors.conj() if hermitian else errors
        errors = (errors + other.transpose(0, 2, 1)) / np.sqrt(2)
    matrices = (factor * diagonals[:, None, :]) @ right.T + noise * errors
    return Stack(matrices, factor, right, diagonals)
