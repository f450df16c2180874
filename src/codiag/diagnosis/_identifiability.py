"""Identifiability of components: angles between factors, Kruskal ranks, and moduli of uniqueness."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from codiag._checks import as_finite, as_number


def as_columns(name: str, columns: np.ndarray) -> np.ndarray:
    """Return a finite matrix without columns of zeros."""
    array = as_finite(name, columns, (None, None), allow_complex=True)
    empty = np.flatnonzero(~np.any(array, axis=0))
    if empty.size:
        raise ValueError(f"{name} must not have columns of zeros, which have no direction; column {empty[0]} is one")
    return array


def _has_empty_column(factor: np.ndarray) -> bool:
    return not np.all(np.any(as_finite("factor", factor, (None, None), allow_complex=True), axis=0))


def _unit(name: str, columns: np.ndarray) -> np.ndarray:
    array = as_columns(name, columns)
    # Scaling by a power of two prevents overflow of squares and is exact.
    exponents = -np.frexp(np.max(np.abs(array), axis=0))[1]
    scaled = np.ldexp(array.real, exponents)
    if np.iscomplexobj(array):
        scaled = scaled + 1j * np.ldexp(array.imag, exponents)
    unit: np.ndarray = scaled / np.linalg.norm(scaled, axis=0)
    return unit


def incoherence(factor: np.ndarray) -> float:
    r"""Return :math:`\mu = \max_{i \ne j} |u_i^{\mathsf H} u_j|` of columns, scaled to unit norm.

    Parameters
    ----------
    factor : array of shape (d, k)
        The columns; none may be zero.

    Returns
    -------
    float
        Between 0 (orthogonal columns) and 1 (two parallel columns).

    See Also
    --------
    factor_condition : The condition number.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.diagnosis import incoherence
    >>> round(incoherence(np.array([[1, 3], [0, 4]])), 12)
    0.6
    """
    unit = _unit("factor", factor)
    cosines = np.abs(unit.conj().T @ unit)
    np.fill_diagonal(cosines, 0)
    return float(cosines.max())


def factor_condition(factor: np.ndarray) -> float:
    """Return the condition number of a factor whose columns are scaled to unit norm.

    Parameters
    ----------
    factor : array of shape (d, k)
        The columns.

    Returns
    -------
    float
        The ratio of the largest to the smallest singular value; infinite if a column is zero.

    See Also
    --------
    incoherence : The largest cosine between two columns.
    kruskal_rank : The number of columns that are always independent.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.diagnosis import factor_condition
    >>> round(factor_condition(np.diag([2, 5])), 12)
    1.0
    """
    if _has_empty_column(factor):
        return math.inf
    return float(np.linalg.cond(_unit("factor", factor)))


def uniqueness_moduli(diagonals: np.ndarray) -> np.ndarray:
    r"""Return the moduli of uniqueness :math:`\rho_{ij}`: the cosines between the diagonals of two components.

    The free factors of a joint diagonalization are unique if no modulus is 1 or -1. Errors grow like
    :math:`1 / (1 - \rho_{ij}^2)`.

    Parameters
    ----------
    diagonals : array of shape (n, k)
        The diagonals of n matrices, one component per column.

    Returns
    -------
    array of shape (k, k)
        The moduli, with a diagonal of ones.

    See Also
    --------
    codiag.Diagonalization.unresolved : Pairs that the matrices do not determine separately.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.diagnosis import uniqueness_moduli
    >>> uniqueness_moduli(np.diag([1, 2])).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    unit = _unit("diagonals", diagonals)
    cosines: np.ndarray = unit.conj().T @ unit
    return cosines


def kruskal_rank(factor: np.ndarray, *, tol: float = 1e-8) -> int | None:
    """Return the largest r such that any r columns are independent, or None if that was not determined.

    Up to 16 columns all subsets are tested. Of more columns the rank is known if all are independent, or if the bounds
    1 / mu from the incoherence and d from the size meet.

    Parameters
    ----------
    factor : array of shape (d, k)
        The columns.
    tol : float
        Columns of unit norm count as independent if their smallest singular value exceeds it.

    Returns
    -------
    int or None
        Between 0 (a column is zero) and k.

    See Also
    --------
    kruskal_condition : Whether the ranks of all modes make the components unique.
    factor_condition : The condition number.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.diagnosis import kruskal_rank
    >>> kruskal_rank(np.array([[1, 0, 1], [0, 1, 1]])), kruskal_rank(np.array([[1, 0, 2], [0, 1, 0]]))
    (2, 1)
    """
    as_number("tol", tol)
    least, most = _rank_bounds(factor, tol)
    return least if least == most else None


def _rank_bounds(factor: np.ndarray, tol: float = 1e-8) -> tuple[int, int]:
    """Return bounds of the Kruskal rank, which are equal where it was determined."""
    if _has_empty_column(factor):
        return 0, 0
    unit = _unit("factor", factor)
    d, k = (int(size) for size in unit.shape)
    most = min(d, k)
    if k <= d and np.linalg.svd(unit, compute_uv=False)[-1] > tol:
        return k, k
    if k > 16:
        return min(most, max(1, math.floor(1 / max(incoherence(unit), 1e-12)))), most
    for size in range(2, most + 1):
        for columns in itertools.combinations(range(k), size):
            if np.linalg.svd(unit[:, columns], compute_uv=False)[-1] <= tol:
                return size - 1, size - 1
    return most, most


def kruskal_condition(factors: Sequence[np.ndarray]) -> bool | None:
    """Return whether the Kruskal ranks of the factors guarantee that the components are unique.

    For N modes and k components their sum must be at least 2 k + N - 1, which is sufficient but not necessary. Of more
    than 16 components that are dependent in a mode, this may remain unknown.

    Parameters
    ----------
    factors : sequence of arrays of shape (d_m, k)
        One per mode, three or more.

    Returns
    -------
    bool or None
        True if the condition is satisfied, None if that was not determined.

    See Also
    --------
    kruskal_rank : The rank of each mode.
    codiag.choose_rank : The number of components that the data support.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.diagnosis import kruskal_condition
    >>> kruskal_condition([np.eye(3)] * 3), kruskal_condition([np.eye(3), np.eye(3), np.ones((3, 3))])
    (True, False)
    """
    if not hasattr(factors, "__len__") or isinstance(factors, str | bytes | dict):
        raise TypeError(f"factors must be a sequence of arrays, one per mode; got {type(factors).__name__}")
    if len(factors) < 3:
        raise ValueError(f"factors must be those of three modes or more; got {len(factors)}")
    arrays = [as_finite("factors", factor, (None, None), allow_complex=True) for factor in factors]
    if len({array.shape[1] for array in arrays}) > 1:
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise ValueError(f"factors must have one number of columns in all modes; got shapes {shapes}")
    least, most = np.sum([_rank_bounds(array) for array in arrays], axis=0)
    k = arrays[0].shape[1]
    needed = len(arrays) if k == 1 else 2 * k + len(arrays) - 1  # one component is unique unless it is zero
    if least >= needed:
        return True
    return False if most < needed else None
