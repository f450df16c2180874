"""Expected errors of joint diagonalization for directions of projections, and directions that make them small."""

from __future__ import annotations

import numpy as np

from codiag._checks import as_finite, as_flag, as_number
from experiments.theory.bounds import as_theorem_weights, as_unit_factor
from experiments.theory.metric import best_metric, directions_of, symmetric_model


def expected_errors(
    factor: np.ndarray, weights: np.ndarray, directions: np.ndarray, *, orthogonal: bool, symmetric: bool = True
) -> np.ndarray:
    r"""Return the root mean squared error of every factor for white noise of unit variance, to first order.

    The tensor :math:`\sum_i \pi_i u_i^{\otimes 3}` is projected along the rows of W, which count through
    :math:`S = W^\top W` alone. Errors are proportional to the standard deviation of the noise.

    Parameters
    ----------
    factor : array of shape (d, k)
        Unit columns; orthonormal with ``orthogonal=True``.
    weights : array of shape (k,)
        The weights of the components; only their absolute values matter.
    directions : array of shape (n, d)
        The directions W, one per row.
    orthogonal : bool
        Whether the diagonalizer keeps the factors orthonormal.
    symmetric : bool
        Whether the noise is a tensor of independent normal entries that is made symmetric in all modes, so that entries
        with three different indices have variance 1/6; otherwise its entries are independent.

    Returns
    -------
    array of shape (k,)
        The errors. Below full rank they include those outside the range of the factors, as estimated from all matrices.

    See Also
    --------
    optimal_directions : Directions that make the errors of free factors small.
    first_order_perturbation : The errors for known noise.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.theory import expected_errors
    >>> expected_errors(np.eye(4), np.ones(4), np.eye(4), orthogonal=True).round(6)
    array([0.707107, 0.707107, 0.707107, 0.707107])
    """
    as_flag("symmetric", symmetric)
    factor = as_unit_factor(factor, orthogonal)
    sizes = as_theorem_weights(weights, factor.shape[1])
    rows = as_finite("directions", directions, (None, factor.shape[0]))
    metric = rows.T @ rows
    with np.errstate(divide="ignore", invalid="ignore"):
        if orthogonal:
            squares = _orthogonal_squares(factor, sizes, metric, symmetric)
        else:
            squares = symmetric_model(factor, sizes, symmetric_noise=symmetric).squares(metric)
            squares = squares + _outside_squares(factor, sizes, metric, symmetric)
    if not np.all(np.isfinite(squares)):
        raise ValueError("directions must tell all pairs of factors apart, and some do not; use more directions")
    return np.sqrt(np.maximum(squares, 0))


def optimal_directions(
    factor: np.ndarray, weights: np.ndarray, *, symmetric: bool = True, floor: float = 0.0
) -> np.ndarray:
    """Return directions of projections that make the expected squared errors of free factors small.

    The sum of squared errors is minimized over the metric of the directions, from the isotropic metric. It is not
    convex: the result is a local minimum, never worse than isotropic directions.

    Parameters
    ----------
    factor : array of shape (d, k)
        Unit columns, which are independent.
    weights : array of shape (k,)
        The weights of the components; only their absolute values matter.
    symmetric : bool
        Whether the noise is symmetric in all modes, as for `expected_errors`.
    floor : float
        Isotropic part that is added to the metric, relative to the mean of its eigenvalues. ``NOJD(plug_in="optimal")``
        uses 0.3, because the best metric of estimated factors is often singular.

    Returns
    -------
    array of shape (k, d)
        The directions, one per row, in the range of the factors.

    See Also
    --------
    expected_errors : The errors of directions.
    codiag.methods.NOJD : With ``plug_in="optimal"``, projects along such directions.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.theory import expected_errors, optimal_directions
    >>> from codiag.synthetic import unit_factor
    >>> factor, weights = unit_factor(6, 6, rng=0), np.ones(6)
    >>> best = optimal_directions(factor, weights)
    >>> errors = [np.sum(expected_errors(factor, weights, w, orthogonal=False) ** 2) for w in (best, np.eye(6))]
    >>> bool(errors[0] < 0.9 * errors[1])
    True
    """
    as_flag("symmetric", symmetric)
    as_number("floor", floor, zero=True)
    factor = as_unit_factor(factor, False)
    sizes = as_theorem_weights(weights, factor.shape[1])
    basis, inside = np.linalg.qr(factor)
    metric = best_metric(symmetric_model(inside, sizes, symmetric_noise=symmetric), floor=floor)
    rows: np.ndarray = directions_of(metric) @ basis.T
    return rows


def _orthogonal_squares(factor: np.ndarray, sizes: np.ndarray, metric: np.ndarray, symmetric: bool) -> np.ndarray:
    """Sum the variances of all coefficients of pairs: p'S C S p / (p'S p)^2 with the covariance C of their noise."""
    size, rank = factor.shape
    basis = np.hstack([factor, np.linalg.svd(factor)[0][:, rank:]])
    inside = basis.T @ metric @ basis
    scales = np.pad(sizes, (0, size - rank))
    squares = np.zeros(rank)
    for j in range(rank):
        differences = np.diag(scales)  # row i: p_ij = pi_i e_i - pi_j e_j
        differences[:, j] = -scales[j]
        images = differences @ inside
        lengths = np.sum(images * differences, axis=1)
        variances = np.sum(images**2, axis=1)
        if symmetric:
            variances = (variances + np.diagonal(images) ** 2 + images[:, j] ** 2) / 3
        squares[j] = np.sum(np.delete(variances / lengths**2, j)) / 2
    return squares


def _outside_squares(factor: np.ndarray, sizes: np.ndarray, metric: np.ndarray, symmetric: bool) -> np.ndarray:
    """Return the expected squared errors outside the range of the factors: zero at full rank."""
    size, rank = factor.shape
    outside = np.linalg.svd(factor)[0][:, rank:]
    if size == rank:
        return np.zeros(rank)
    images = metric @ (factor * sizes)
    gram = (factor.T @ factor) * ((factor * sizes).T @ images)
    shares = np.linalg.pinv(gram)
    squares = np.zeros(rank)
    for j in range(rank):
        matrix = (factor * shares[j]) @ images.T  # the error along w is the noise's product with w and this matrix
        if symmetric:
            half = (matrix + matrix.T) / 2
            squares[j] = ((size - rank) * np.sum(half**2) + 2 * np.sum((half @ outside) ** 2)) / 3
        else:
            squares[j] = (size - rank) * np.sum(matrix**2) / 2
    return squares
