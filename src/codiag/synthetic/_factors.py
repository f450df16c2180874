"""Random factors: columns of unit length."""

from __future__ import annotations

import numpy as np

from codiag._checks import Seed, as_generator, as_number

MAX_ENTRIES = 2**40
"""Entries of a factor: eight terabytes of them."""


def orthonormal_factor(size: int, rank: int, seed: Seed = None) -> np.ndarray:
    """Draw orthonormal columns, uniformly distributed.

    Parameters
    ----------
    size : int
        Number of rows, d.
    rank : int
        Number of columns, k, at most d.
    seed : int, sequence of int or numpy.random.Generator, optional
        The same seed gives the same columns.

    Returns
    -------
    numpy.ndarray of shape (d, k)
        Orthonormal columns.

    See Also
    --------
    unit_factor : Columns that are not orthogonal.
    mild_factor : Columns that are nearly orthogonal.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.synthetic import orthonormal_factor
    >>> factor = orthonormal_factor(5, 3, seed=0)
    >>> bool(np.allclose(factor.T @ factor, np.eye(3)))
    True
    """
    check_orthonormal(size, rank)
    columns, triangle = np.linalg.qr(as_generator(seed).standard_normal((size, rank)))
    return columns * np.sign(np.diag(triangle))


def unit_factor(size: int, rank: int, seed: Seed = None) -> np.ndarray:
    """Draw columns that are uniform on the unit sphere: badly conditioned where the rank is close to the size.

    Parameters
    ----------
    size : int
        Number of rows, d.
    rank : int
        Number of columns, k.
    seed : int, sequence of int or numpy.random.Generator, optional
        The same seed gives the same columns.

    Returns
    -------
    numpy.ndarray of shape (d, k)
        Unit columns.

    See Also
    --------
    mild_factor : Columns that are well conditioned.
    orthonormal_factor : Orthogonal columns.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.synthetic import unit_factor
    >>> factor = unit_factor(5, 8, seed=0)
    >>> bool(np.allclose(np.linalg.norm(factor, axis=0), 1))
    True
    """
    _check_sizes(size, rank)
    return unit_columns(as_generator(seed).standard_normal((size, rank)))


def mild_factor(size: int, rank: int, seed: Seed = None, *, spread: float = 0.3) -> np.ndarray:
    """Draw unit columns that are not orthogonal, yet well conditioned.

    They are orthonormal columns plus `spread` times columns that are uniform on the unit sphere, rescaled to unit
    length.

    Parameters
    ----------
    size : int
        Number of rows, d.
    rank : int
        Number of columns, k, at most d.
    seed : int, sequence of int or numpy.random.Generator, optional
        The same seed gives the same columns.
    spread : float
        How far the columns are from orthogonal; zero makes them orthonormal.

    Returns
    -------
    numpy.ndarray of shape (d, k)
        Unit columns.

    See Also
    --------
    unit_factor : Columns without a bound on their condition.
    orthonormal_factor : Orthogonal columns.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.synthetic import mild_factor
    >>> bool(np.linalg.cond(mild_factor(20, 20, seed=0)) < 10)
    True
    """
    as_number("spread", spread, zero=True)
    rng = as_generator(seed)
    return unit_columns(orthonormal_factor(size, rank, rng) + spread * unit_factor(size, rank, rng))


def unit_columns(columns: np.ndarray) -> np.ndarray:
    """Return the columns over their lengths."""
    return columns / np.linalg.norm(columns, axis=0)


def check_orthonormal(size: int, rank: int) -> None:
    """Raise unless there are so many orthonormal columns of this size."""
    _check_sizes(size, rank)
    if rank > size:
        raise ValueError(f"rank must be at most {size}, the size of orthonormal columns; got {rank}")


def _check_sizes(size: int, rank: int) -> None:
    as_number("size", size, integer=True)
    as_number("rank", rank, integer=True)
    if size * rank > MAX_ENTRIES:
        raise ValueError(
            f"rank must be at most {MAX_ENTRIES // size} for columns of size {size}, or no memory holds them; "
            f"got {rank}"
        )
