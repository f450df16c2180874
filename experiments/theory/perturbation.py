r"""Errors of joint diagonalization to first order in the noise.

Matrices :math:`M_l = U \mathrm{diag}(\lambda_l) U^\top + \epsilon R_l` give estimates
:math:`\tilde u_j = u_j - \epsilon \sum_i E_{ij} u_i + o(\epsilon)`, the sum running over a full-rank extension of U
with :math:`\lambda_{il} = 0` for i > k.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from codiag._checks import as_finite, as_flag
from codiag._text import ReprMixin
from codiag.diagnosis import as_columns

ROUNDING = 100 * np.finfo(np.float64).eps
"""Rounding errors of a sum of squares, relative to it."""
MAX_DIAGONAL = 1e70
"""Largest entry of a diagonal: products of four stay below the overflow threshold."""


@dataclass(frozen=True, eq=False, repr=False)
class Perturbation(ReprMixin):
    """The errors of the factors of a joint diagonalization, to first order in the noise.

    Attributes
    ----------
    matrix : array of shape (d, k)
        The coefficients :math:`E_{ij}` of factor i in the error of factor j; the rows from k on are directions outside
        the range of the factors.
    displacements : array of shape (d, k)
        The errors of the factors; those of free factors are orthogonal to the factors, which keep unit norm.

    See Also
    --------
    first_order_perturbation : The function that returns it.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.theory import first_order_perturbation
    >>> noise = np.array([[[0.0, 1.0], [1.0, 0.0]]] * 2)
    >>> first_order_perturbation(np.eye(2), np.array([[3.0, 1.0], [1.0, 1.0]]), noise, orthogonal=True).matrix
    array([[ 0. ,  0.5],
           [-0.5,  0. ]])
    """

    matrix: np.ndarray
    displacements: np.ndarray

    @property
    def errors(self) -> np.ndarray:
        """The norms (k,) of the displacements.

        See Also
        --------
        first_order_perturbation : The function that returns the displacements.

        Examples
        --------
        >>> import numpy as np
        >>> from experiments.theory import first_order_perturbation
        >>> diagonals = np.array([[1.0, 0.0], [0.0, 1.0]])
        >>> noise = np.array([[[0.0, 1.0], [1.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]])
        >>> first_order_perturbation(np.eye(2), diagonals, noise, orthogonal=True).errors.round(6).tolist()
        [0.5, 0.5]
        """
        distances: np.ndarray = np.linalg.norm(self.displacements, axis=0)
        return distances


def first_order_perturbation(
    factor: np.ndarray, diagonals: np.ndarray, noise: np.ndarray, *, orthogonal: bool
) -> Perturbation:
    r"""Return the errors of the factors of a joint diagonalization, to first order in known noise.

    Parameters
    ----------
    factor : array of shape (d, k)
        True factors, unit columns; orthonormal with ``orthogonal=True``.
    diagonals : array of shape (n, k)
        :math:`\lambda_{li}`.
    noise : array of shape (n, d, d)
        The symmetric matrices :math:`R_l`, of size one: errors are proportional to the size.
    orthogonal : bool
        Whether the diagonalizer keeps the factors orthonormal (Cardoso 1994),
        :math:`E_{ij} = \sum_l (\lambda_i - \lambda_j)_l\, u_j^\top R_l u_i / \|\lambda_i - \lambda_j\|^2`, or leaves
        them free (Afsari 2008).

    Returns
    -------
    Perturbation
        With ``matrix`` (d, k), the coefficients :math:`E_{ij}` of factor i in the error of factor j;
        ``displacements`` (d, k), the errors of the factors; and ``errors`` (k,), their norms. The rows of ``matrix``
        from k on are directions outside the range of the factors. Errors are infinite for components that the
        diagonals do not separate: equal ones if the factors are orthonormal, proportional ones if they are free.

    See Also
    --------
    afsari_bound : A bound on the coefficients.
    codiag.Diagonalization.standard_errors : Errors for unknown white noise, estimated from the data.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.theory import first_order_perturbation
    >>> noise = np.array([[[0.0, 1.0], [1.0, 0.0]]] * 2)
    >>> first_order_perturbation(np.eye(2), np.array([[3.0, 1.0], [1.0, 1.0]]), noise, orthogonal=True).errors
    array([0.5, 0.5])
    """
    as_flag("orthogonal", orthogonal)
    factor, diagonals, noise = _as_problem(factor, diagonals, noise)
    extended, inverse = _extended(factor)
    values = np.pad(diagonals, ((0, 0), (0, factor.shape[0] - diagonals.shape[1])))
    entries = np.einsum("ia,lab,jb->lij", inverse, noise, inverse[: factor.shape[1]])
    matrix = _cardoso(values, diagonals, entries) if orthogonal else _afsari(values, diagonals, entries)
    np.fill_diagonal(matrix, 0)
    if not orthogonal:
        matrix[factor.shape[1] :] = _outside(factor, extended[:, factor.shape[1] :], diagonals, noise)
    determined = np.isfinite(matrix)
    displacements = -extended @ np.where(determined, matrix, 0)
    if not orthogonal:
        displacements = displacements - factor * np.sum(factor * displacements, axis=0)
    displacements[:, ~np.all(determined, axis=0)] = np.inf
    return Perturbation(matrix, displacements)


def afsari_bound(factor: np.ndarray, diagonals: np.ndarray, noise: np.ndarray) -> np.ndarray:
    r"""Return the bound on the coefficients :math:`|E_{ij}|` of the paper's non-orthogonal theorems.

    .. math::

        \frac{1}{1 - \rho_{ij}^2} \left(\frac{1}{\|\lambda_i\|^2} + \frac{1}{\|\lambda_j\|^2}\right)
        \left(\left|\sum_l v_i^\top R_l v_j \lambda_{jl}\right|
        + \left|\sum_l v_i^\top R_l v_j \lambda_{il}\right|\right)

    Parameters
    ----------
    factor : array of shape (d, k)
        True factors, unit columns; :math:`v_i` are the rows of the pseudo-inverse.
    diagonals : array of shape (n, k)
        :math:`\lambda_{li}`.
    noise : array of shape (n, d, d)
        The symmetric matrices :math:`R_l`.

    Returns
    -------
    array of shape (k, k)
        The bounds, with a diagonal of zeros; infinite for pairs with proportional diagonals.

    See Also
    --------
    first_order_perturbation : The coefficients that are bounded.
    error_bound : The bound on the errors of the factors.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.theory import afsari_bound
    >>> noise = np.array([[[0.0, 1.0], [1.0, 0.0]]] * 2)
    >>> afsari_bound(np.eye(2), np.array([[1.0, 0.0], [0.0, 1.0]]), noise)
    array([[0., 4.],
           [4., 0.]])
    """
    factor, diagonals, noise = _as_problem(factor, diagonals, noise)
    diagonals = as_columns("diagonals", diagonals)
    inverse = np.linalg.pinv(factor)
    entries = np.einsum("ia,lab,jb->lij", inverse, noise, inverse)
    squares = np.sum(diagonals**2, axis=0)
    products = diagonals.T @ diagonals
    rho = products**2 / np.outer(squares, squares)
    sums = np.abs(np.einsum("lij,lj->ij", entries, diagonals)) + np.abs(np.einsum("lij,li->ij", entries, diagonals))
    np.fill_diagonal(rho, 0)
    bound = _divided((1 / squares[:, None] + 1 / squares) * sums, 1 - rho, np.full(rho.shape, ROUNDING))
    np.fill_diagonal(bound, 0)
    return bound


def project_noise(noise: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Return the matrices R(I, I, w_l) of a noise tensor R, projected along directions w_l.

    Parameters
    ----------
    noise : array of shape (d, d, d)
        The tensor R.
    directions : array of shape (n, d)
        One direction per row.

    Returns
    -------
    array of shape (n, d, d)
        The projected noise.

    See Also
    --------
    projected_diagonals : The diagonals of the same projections.
    first_order_perturbation : The errors that follow from both.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.theory import project_noise
    >>> project_noise(np.ones((2, 2, 2)), np.array([[1, 0], [1, 1]])).tolist()
    [[[1.0, 1.0], [1.0, 1.0]], [[2.0, 2.0], [2.0, 2.0]]]
    """
    tensor = as_finite("noise", noise, (None, None, None))
    along = as_finite("directions", directions, (None, tensor.shape[2]))
    projected: np.ndarray = np.einsum("abc,lc->lab", tensor, along)
    return projected


def projected_diagonals(factor: np.ndarray, weights: np.ndarray, directions: np.ndarray) -> np.ndarray:
    r"""Return the diagonals :math:`\lambda_{li} = \pi_i w_l^\top u_i` of a projected symmetric tensor.

    Parameters
    ----------
    factor : array of shape (d, k)
        The factors :math:`u_i`, unit columns.
    weights : array of shape (k,)
        The weights :math:`\pi_i`.
    directions : array of shape (n, d)
        The directions :math:`w_l`, one per row.

    Returns
    -------
    array of shape (n, k)
        The diagonals, one row a direction.

    See Also
    --------
    project_noise : The noise of the same projections.
    first_order_perturbation : The errors that follow from both.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.theory import projected_diagonals
    >>> projected_diagonals(np.eye(2), np.array([2, 3]), np.array([[1, 1]])).tolist()
    [[2.0, 3.0]]
    """
    columns = as_finite("factor", factor, (None, None))
    along = as_finite("directions", directions, (None, columns.shape[0]))
    diagonals: np.ndarray = (along @ columns) * as_finite("weights", weights, columns.shape[1:])
    return diagonals


def _as_problem(
    factor: np.ndarray, diagonals: np.ndarray, noise: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    columns = as_columns("factor", factor)
    size, rank = columns.shape
    if rank > size or np.linalg.matrix_rank(columns) < rank:
        raise ValueError(f"factor must have independent columns; got shape {columns.shape}, which has fewer")
    values = as_finite("diagonals", diagonals, (None, rank))
    largest = np.max(np.abs(values), initial=0)
    if largest > MAX_DIAGONAL:
        raise ValueError(
            f"diagonals must be at most {MAX_DIAGONAL:g}, so that their products fit into float64; got {largest:g}"
        )
    return columns, values, as_finite("noise", noise, (values.shape[0], size, size))


def _cardoso(values: np.ndarray, diagonals: np.ndarray, entries: np.ndarray) -> np.ndarray:
    gaps = values[:, :, None] - diagonals[:, None, :]
    sizes = np.sum(values**2, axis=0)[:, None] + np.sum(diagonals**2, axis=0)
    return _divided(np.sum(gaps * entries, axis=0), np.sum(gaps**2, axis=0), ROUNDING**2 * sizes)


def _afsari(values: np.ndarray, diagonals: np.ndarray, entries: np.ndarray) -> np.ndarray:
    r""":math:`E_{ij} = -e_{ij}^\top n_{ij}`, :math:`e = (|a|^2 b - (a \cdot b) a) / (|a|^2 |b|^2 - (a \cdot b)^2)`."""
    squares, other_squares = np.sum(values**2, axis=0)[:, None], np.sum(diagonals**2, axis=0)
    products = values.T @ diagonals
    along_b, along_a = np.einsum("lij,lj->ij", entries, diagonals), np.einsum("lij,li->ij", entries, values)
    sizes = squares * other_squares
    return _divided(products * along_a - squares * along_b, sizes - products**2, ROUNDING * sizes)


def _divided(sums: np.ndarray, gaps: np.ndarray, rounding: np.ndarray) -> np.ndarray:
    """Return the quotients, infinite for a gap of rounding errors: noise of any size rotates such a pair."""
    resolved = gaps > rounding
    return np.where(resolved, sums / np.where(resolved, gaps, 1), np.inf)


def _outside(factor: np.ndarray, outside: np.ndarray, diagonals: np.ndarray, noise: np.ndarray) -> np.ndarray:
    r"""Return the rows of the directions outside the range, which is estimated first, from all matrices at once.

    In direction w the range moves by the least-squares solution D of :math:`w^\top R_l \approx D \Lambda_l U^\top` for
    all l.
    """
    scaled = factor * diagonals[:, None]  # U Lambda_l
    present = np.any(diagonals != 0, axis=0)
    scaled = scaled[:, :, present]
    gram = np.einsum("lai,laj->ij", scaled, scaled)
    rows = np.full((outside.shape[1], factor.shape[1]), np.inf)  # of components that no matrix contains
    rows[:, present] = -np.linalg.solve(gram, np.einsum("aw,lab,lbi->iw", outside, noise, scaled)).T
    return rows


def _extended(factor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the factors, completed by an orthonormal basis of the complement of their range, and the inverse."""
    size, rank = factor.shape
    outside = np.linalg.svd(factor)[0][:, rank:]
    extended = np.hstack([factor, outside])
    return extended, np.linalg.inv(extended) if size > rank else np.linalg.inv(factor)
