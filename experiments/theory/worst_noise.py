r"""The largest errors that noise of unit operator norm causes, to first order, and noise that causes them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from codiag._checks import as_finite, as_flag
from codiag._text import ReprMixin
from experiments.theory.bounds import as_theorem_weights, as_unit_factor


@dataclass(frozen=True, eq=False, repr=False)
class WorstErrors(ReprMixin):
    """The errors of factors for the worst noise of unit operator norm, between two numbers.

    Attributes
    ----------
    attained : array of shape (k,)
        Errors that some symmetric noise causes, for each factor its own.
    bound : array of shape (k,)
        Errors that no noise exceeds.

    See Also
    --------
    worst_errors : The function that returns it.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.theory import worst_errors
    >>> worst_errors(np.eye(5), np.ones(5), orthogonal=True).attained
    array([1., 1., 1., 1., 1.])
    """

    attained: np.ndarray
    bound: np.ndarray


def worst_errors(
    factor: np.ndarray, weights: np.ndarray, *, orthogonal: bool, plug_in: bool | None = None
) -> WorstErrors:
    r"""Return how large errors of factors can be for noise of unit operator norm, to first order.

    Parameters
    ----------
    factor : array of shape (d, k)
        Unit columns.
    weights : array of shape (k,)
        The weights of the components; only their absolute values matter.
    orthogonal : bool
        Whether the diagonalizer keeps the factors orthonormal.
    plug_in : bool, optional
        Whether projections are along the inverse factors, or isotropic, to which random ones tend; the same for
        orthogonal factors, required for free ones.

    Returns
    -------
    WorstErrors
        With ``attained`` (k,) and ``bound`` (k,).

    See Also
    --------
    worst_noise : Noise that attains the errors.
    error_bound : The bounds of the paper.

    Notes
    -----
    With :math:`A_j^2 = \sum_{i \ne j} \pi_i^2 / (\pi_i^2 + \pi_j^2)^2`, sums over components:

    * orthogonal: attained :math:`A_j`, bound :math:`A_j + \max_{i \ne j} \pi_j / (\pi_i^2 + \pi_j^2)`, the maximum over
      all directions, of weight zero outside the range;
    * free, plug-in: :math:`\|v_j\|^2 / \pi_j` for both at full rank. Below it, the bound is
      :math:`\|v_j\| \sqrt{1 + \|v_j\|^2} / \pi_j`;
    * free, isotropic: attained by one of the two forms of `worst_noise`; the bound is :math:`\|v_j\|` times the largest
      nuclear norm of a matrix that depends on the direction of the error, bounded by a multiple of its Frobenius norm.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.theory import error_bound, worst_errors
    >>> worst = worst_errors(np.eye(4), np.ones(4), orthogonal=True)
    >>> paper = error_bound(np.eye(4), np.ones(4), 1.0, orthogonal=True)
    >>> [float(errors[0].round(3)) for errors in (worst.attained, worst.bound, paper)]
    [0.866, 1.366, 4.0]
    """
    if plug_in is not None:
        as_flag("plug_in", plug_in)
    factor = as_unit_factor(factor, orthogonal)
    sizes = as_theorem_weights(weights, factor.shape[1])
    if orthogonal:
        return _orthogonal_worst(sizes, factor.shape[0])
    if plug_in is None:
        raise ValueError("plug_in must be True or False for free factors; got None")
    return _plug_in_worst(factor, sizes) if plug_in else _isotropic_worst(factor, sizes)


def worst_noise(direction: np.ndarray, other: np.ndarray | None = None) -> np.ndarray:
    r"""Return a symmetric tensor of unit operator norm that moves a factor as far as noise can, or nearly.

    Parameters
    ----------
    direction : array of shape (d,)
        A vector v, for the error of factor j the inverse factor :math:`v_j`; scaled to unit norm.
    other : array of shape (d,), optional
        A vector x that is not parallel to v; scaled to unit norm.

    Returns
    -------
    array of shape (d, d, d)
        Without `other`, the tensor of the cubic form :math:`3 z |y|^2 - z^3`, where z is the coordinate along v and y
        the rest. With `other`, the tensor of the plane of v and x, :math:`\cos(\alpha + \beta + \gamma)` of three
        angles, turned so that :math:`R(x, v, v) = 1`.

    See Also
    --------
    worst_errors : The errors that it causes.

    Notes
    -----
    A symmetric tensor has the operator norm of its form on unit vectors (Banach 1938). Both forms are
    :math:`\cos 3\theta` of an angle on every great circle, or less.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.theory import worst_noise
    >>> worst_noise(np.array([1.0, 0.0]))[0].tolist()
    [[-1.0, 0.0], [0.0, 1.0]]
    """
    unit = _unit("direction", direction, None)
    if other is None:
        cube, part = np.einsum("a,b,c->abc", unit, unit, unit), np.einsum("a,bc->abc", unit, np.eye(unit.size))
        return np.asarray(part + part.transpose(1, 0, 2) + part.transpose(1, 2, 0) - 4 * cube)
    target = _unit("other", other, unit.size)
    if np.linalg.norm(target - (target @ unit) * unit) < 1e-12:
        raise ValueError("other must not be parallel to direction, since both span a plane; leave it out")
    corner, turn = _corner(unit, target)
    return np.asarray(np.real(turn * np.einsum("a,b,c->abc", corner, corner, corner)))


def _unit(name: str, vector: np.ndarray, size: int | None) -> np.ndarray:
    array = as_finite(name, vector, (size,))
    largest = np.max(np.abs(array))
    if largest == 0:
        raise ValueError(f"{name} must not be zero, since it has no direction; got {array.size} zeros")
    scaled = array / largest
    return np.asarray(scaled / np.linalg.norm(scaled))


def _orthogonal_worst(sizes: np.ndarray, size: int) -> WorstErrors:
    sums = sizes[:, None] ** 2 + sizes**2  # (i, j)
    others = 1 - np.eye(sizes.size)
    attained = np.sqrt(np.sum(others * (sizes[:, None] / sums) ** 2, axis=0))
    largest = np.max(others * sizes / sums, axis=0)
    return WorstErrors(attained, attained + (1 / sizes if size > sizes.size else largest))


def _plug_in_worst(factor: np.ndarray, sizes: np.ndarray) -> WorstErrors:
    size, rank = factor.shape
    lengths = np.linalg.norm(np.linalg.pinv(factor), axis=1)
    inside = lengths**2 / sizes if rank > 1 else np.zeros(1)
    outside = lengths / sizes if size > rank else np.zeros(rank)
    return WorstErrors(np.maximum(inside, outside), np.hypot(inside, outside))


def _plane_coefficients(inverse: np.ndarray, j: int, vectors: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return R(v_i, v_j, y_ij) for the noise in the plane of v_j and another vector, as `worst_noise` turns it."""
    corner, turn = _corner(_unit("direction", inverse[j], None), other)
    found: np.ndarray = np.real(turn * (inverse @ corner) * (inverse[j] @ corner) * (corner @ vectors))
    return found


def _corner(unit: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, complex]:
    """Return a plane as a complex vector, and the turn for which R(x, v, v) = 1 of unit vectors x and v."""
    rest = target - (target @ unit) * unit
    height = float(np.linalg.norm(rest))
    if height < 1e-12:
        return unit.astype(complex), 1.0 + 0j
    return unit + 1j * rest / height, complex(np.exp(-1j * np.arctan2(height, target @ unit)))


def _isotropic_worst(factor: np.ndarray, sizes: np.ndarray) -> WorstErrors:
    """Use R(v_i, v_j, y_ij) of the cubic form along v_j; and nuclear norms of the sum of v_i (x) y_ij for the bound."""
    size, rank = factor.shape
    inverse, cosines = np.linalg.pinv(factor), factor.T @ factor
    lengths = np.linalg.norm(inverse, axis=1)
    squares = cosines**2
    attained, bound = np.zeros(rank), np.zeros(rank)
    duals = np.linalg.inv(squares) if size > rank else np.zeros((rank, rank))
    for j in range(rank):
        gaps = sizes[j] * (1 - squares[j])
        gaps[j] = np.inf
        coefficients = (2 * (inverse @ inverse[j]) / lengths[j] + cosines[j] * lengths[j]) / gaps
        tangent = np.eye(size) - np.outer(factor[:, j], factor[:, j])
        moved = tangent @ factor
        vectors = (factor[:, [j]] - factor * cosines[j]) / gaps  # y_ij as columns
        # The Frobenius norm of the sum of (x . u_i) v_i (x) y_ij is a quadratic form in x.
        values, axes = np.linalg.eigh(moved @ ((inverse @ inverse.T) * (vectors.T @ vectors)) @ moved.T)
        inside = lengths[j] * np.sqrt((rank - 1) * max(values[-1], 0))
        in_plane = _plane_coefficients(inverse, j, vectors, axes[:, -1])
        attained[j] = max(np.linalg.norm(moved @ coefficients), np.linalg.norm(moved @ in_plane))
        matrix = (factor * duals[j]) @ factor.T / sizes[j]
        bound[j] = np.hypot(inside, np.sum(np.abs(np.linalg.eigvalsh(matrix))))
        attained[j] = max(attained[j], np.max(np.abs(np.linalg.eigvalsh(matrix))))
    return WorstErrors(attained, bound)
