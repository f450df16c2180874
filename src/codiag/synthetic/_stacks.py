"""Stacks of matrices with common factors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from codiag._checks import Seed, as_finite, as_generator, as_number
from codiag.synthetic._factors import unit_columns
from codiag.tensors import symmetrize


@dataclass(frozen=True, eq=False)
class Stack:
    """Matrices with common factors, and what they were made from.

    Attributes
    ----------
    matrices : numpy.ndarray of shape (n, d, d')
        ``factor @ diag(diagonals[l]) @ right_factor.T`` plus noise.
    factor : numpy.ndarray of shape (d, k)
        The common factor.
    right_factor : numpy.ndarray of shape (d', k)
        The same array as `factor` where the matrices are symmetric.
    diagonals : numpy.ndarray of shape (n, k)
        The diagonal of each matrix.

    See Also
    --------
    matrix_stack : Draws one.
    projection_stack : Draws one from a tensor.
    codiag.joint_diagonalize : Takes the matrices.

    Examples
    --------
    >>> import codiag
    >>> from codiag.synthetic import matrix_stack, mild_factor
    >>> stack = matrix_stack(mild_factor(5, 5, seed=0), 10, seed=1)
    >>> fit = codiag.joint_diagonalize(stack.matrices, seed=0)
    >>> codiag.factor_error(fit, stack.factor) < 1e-10
    True
    """

    matrices: np.ndarray
    factor: np.ndarray
    right_factor: np.ndarray
    diagonals: np.ndarray


def matrix_stack(
    factor: np.ndarray,
    n_matrices: int,
    *,
    right_factor: np.ndarray | None = None,
    noise: float = 0.0,
    seed: Seed = None,
) -> Stack:
    r"""Draw matrices :math:`U \operatorname{diag}(d_l) U^\top` with Gaussian diagonals, plus Gaussian noise.

    The noise is symmetric, with twice the variance on the diagonal. With a `right_factor` V the matrices are
    :math:`U \operatorname{diag}(d_l) V^\top` and the noise has independent entries.

    Parameters
    ----------
    factor : array of shape (d, k)
        The common factor U.
    n_matrices : int
        Number of matrices, n.
    right_factor : array of shape (d', k), optional
        The factor V on the right; by default U.
    noise : float
        Standard deviation of the noise in each entry off the diagonal.
    seed : int, sequence of int or numpy.random.Generator, optional
        The same seed gives the same matrices.

    Returns
    -------
    Stack
        With ``matrices`` of shape (n, d, d').

    See Also
    --------
    projection_stack : Matrices that are projections of a tensor.
    unit_factor : Draws a factor for it.
    codiag.joint_diagonalize : Finds the factor.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.synthetic import matrix_stack
    >>> stack = matrix_stack(np.eye(4), 3, seed=0)
    >>> stack.matrices.shape, stack.diagonals.shape
    ((3, 4, 4), (3, 4))
    """
    as_number("n_matrices", n_matrices, integer=True)
    as_number("noise", noise, zero=True)
    factor = as_finite("factor", factor, (None, None))
    right = factor if right_factor is None else as_finite("right_factor", right_factor, (None, factor.shape[1]))
    rng = as_generator(seed)
    diagonals = rng.standard_normal((n_matrices, factor.shape[1]))
    errors = rng.standard_normal((n_matrices, factor.shape[0], right.shape[0]))
    if right is factor:
        errors = (errors + errors.transpose(0, 2, 1)) / np.sqrt(2)
    matrices = (factor * diagonals[:, None, :]) @ right.T + noise * errors
    return Stack(matrices, factor, right, diagonals)


def projection_stack(
    factor: np.ndarray, weights: np.ndarray, n_projections: int, *, noise: float = 0.0, seed: Seed = None
) -> Stack:
    r"""Draw projections of a noisy symmetric tensor along random unit vectors.

    The tensor is :math:`\sum_i w_i\, u_i \otimes u_i \otimes u_i + \epsilon R`, where R is a symmetrized tensor of
    Gaussian entries.

    Parameters
    ----------
    factor : array of shape (d, k)
        The components :math:`u_i`.
    weights : array of shape (k,)
        Their weights :math:`w_i`.
    n_projections : int
        Number of projections, n.
    noise : float
        The factor :math:`\epsilon` of the noise.
    seed : int, sequence of int or numpy.random.Generator, optional
        The same seed gives the same projections.

    Returns
    -------
    Stack
        With ``matrices`` of shape (n, d, d).

    See Also
    --------
    matrix_stack : Matrices with independent diagonals.
    codiag.theory.first_order_perturbation : The errors that such noise makes.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.synthetic import projection_stack
    >>> projection_stack(np.eye(4)[:, :2], np.ones(2), 6, noise=0.1, seed=0).matrices.shape
    (6, 4, 4)
    """
    as_number("n_projections", n_projections, integer=True)
    as_number("noise", noise, zero=True)
    factor = as_finite("factor", factor, (None, None))
    weights = as_finite("weights", weights, factor.shape[1:])
    rng = as_generator(seed)
    size = factor.shape[0]
    directions = unit_columns(rng.standard_normal((size, n_projections)))
    symmetric = symmetrize(rng.standard_normal((size, size, size)))
    diagonals = (directions.T @ factor) * weights
    matrices = (factor * diagonals[:, None, :]) @ factor.T + noise * np.moveaxis(symmetric @ directions, 2, 0)
    return Stack(matrices, factor, factor, diagonals)
