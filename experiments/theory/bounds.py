r"""The four theorems of the paper: bounds on :math:`\|\tilde u_i - u_i\|`, to first order in the noise.

They are for symmetric tensors :math:`\sum_i \pi_i u_i^{\otimes 3} + \epsilon R` with R of unit operator norm,
projected along Gaussian directions (random) or along approximate inverse factors (plug-in). The constants are those of
the paper's appendix.
"""

from __future__ import annotations

import math
from bisect import bisect_left

import numpy as np

from codiag._checks import as_finite, as_flag, as_number
from codiag.diagnosis import as_columns, incoherence

MANY_PROJECTIONS = 10**18
"""Number of projections for which the bound of random projections is taken for its limit."""

LARGEST_COSINE = 1e-6
"""Largest cosine between columns that count as orthogonal: rounding errors of single precision."""


def error_bound(
    factor: np.ndarray,
    weights: np.ndarray,
    noise: float,
    *,
    orthogonal: bool,
    n_projections: int | None = None,
    delta: float = 0.05,
) -> np.ndarray:
    r"""Return the bound of the paper's theorems on the error of every factor.

    Parameters
    ----------
    factor : array of shape (d, k)
        Unit columns.
    weights : array of shape (k,)
        :math:`\pi`; only their absolute values matter.
    noise : float
        :math:`\epsilon`, the operator norm of the noise tensor.
    orthogonal : bool
        Whether the factors are orthonormal.
    n_projections : int, optional
        Number L of random projections; by default projections along the inverse factors (plug-in).
    delta : float
        The bound for random projections is true with probability 1 - delta, if L is at least the number below.

    Returns
    -------
    array of shape (k,)
        Upper bounds on :math:`\|\tilde u_i - u_i\|`, to first order in the noise.

    See Also
    --------
    projections_needed : The number of projections for an accuracy.
    first_order_perturbation : The errors themselves, for known noise.

    Notes
    -----
    With :math:`s = \sqrt{\|\pi\|_1 \pi_{\max}}`, V the inverse factors and :math:`\mu` the incoherence:

    * orthogonal, plug-in: :math:`2 s \epsilon / \pi_i^2`
    * orthogonal, random: :math:`(2 \sqrt 2 s / \pi_i^2 + C / \pi_i) \epsilon`
    * free, plug-in: :math:`8 s \|V\|^3 \epsilon / \pi_{\min}^2`
    * free, random: :math:`8 s \|V\|^2 (1 + C \sqrt d) \epsilon / ((1 - \mu^2) \pi_{\min}^2)`

    C falls like :math:`1 / \sqrt L`. The bounds for random projections are true for
    :math:`L \ge L_0 \log^2(c\, d (k - 1) / \delta)`, with :math:`L_0 = 16` and :math:`c = 2` for orthonormal factors,
    :math:`L_0 = (50 / (1 - \mu^2))^2` and :math:`c = 15` for free ones.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.theory import error_bound
    >>> error_bound(np.eye(4), np.ones(4), 0.01, orthogonal=True)
    array([0.04, 0.04, 0.04, 0.04])
    """
    factor = as_theorem_factor(factor, orthogonal)
    sizes = as_theorem_weights(weights, factor.shape[1])
    as_number("noise", noise, zero=True)
    _check_delta(delta)
    spread = math.sqrt(sizes.sum() * sizes.max())
    random = 0.0
    if n_projections is not None:
        random = projection_concentration(factor, n_projections, orthogonal=orthogonal, delta=delta)
    if orthogonal:
        fundamental = 2 * spread / sizes**2 * (1 if n_projections is None else math.sqrt(2))
        return noise * (fundamental + random / sizes)
    inverse = float(np.linalg.norm(np.linalg.pinv(factor), 2))
    shared = 8 * spread / sizes.min() ** 2
    if n_projections is None:
        return np.full(sizes.size, noise * shared * inverse**3)
    conditioning = inverse**2 / (1 - incoherence(factor) ** 2)
    return np.full(sizes.size, noise * shared * conditioning * (1 + random * math.sqrt(factor.shape[0])))


def projection_concentration(factor: np.ndarray, n_projections: int, *, orthogonal: bool, delta: float = 0.05) -> float:
    r"""Return :math:`C(\delta)`, the term of the bound for L random projections that falls like :math:`1 / \sqrt L`.

    Parameters
    ----------
    factor : array of shape (d, k)
        Unit columns.
    n_projections : int
        Number of random projections.
    orthogonal : bool
        Whether the factors are orthonormal.
    delta : float
        Probability that the bound is exceeded.

    Returns
    -------
    float
        The constant C of the bound.

    See Also
    --------
    error_bound : The bound.
    minimum_projections : The number of projections that the bound needs.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.theory import projection_concentration
    >>> few, many = (projection_concentration(np.eye(4), n, orthogonal=True) for n in (1000, 4000))
    >>> round(few / many, 12)
    2.0
    """
    factor = as_theorem_factor(factor, orthogonal)
    as_number("n_projections", n_projections, integer=True)
    d = factor.shape[0]
    if orthogonal:
        return 20 * math.sqrt(2 * d / n_projections) * _log(2, factor, delta)
    return (20 + math.sqrt(_base(factor))) / math.sqrt(n_projections) * _log(15, factor, delta)


def minimum_projections(factor: np.ndarray, *, orthogonal: bool, delta: float = 0.05) -> int:
    """Return the smallest number of random projections for which the theorems are proved.

    Parameters
    ----------
    factor : array of shape (d, k)
        Unit columns.
    orthogonal : bool
        Whether the factors are orthonormal.
    delta : float
        Probability that the bound is exceeded.

    Returns
    -------
    int
        The number of projections.

    See Also
    --------
    projections_needed : The number for an accuracy.
    projection_concentration : The term of the bound that falls with this number.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.theory import minimum_projections
    >>> minimum_projections(np.eye(4), orthogonal=True)
    610
    """
    factor = as_theorem_factor(factor, orthogonal)
    base = 16.0 if orthogonal else _base(factor)
    return math.ceil(base * _log(2 if orthogonal else 15, factor, delta) ** 2)


def projections_needed(
    accuracy: float,
    factor: np.ndarray,
    weights: np.ndarray,
    noise: float,
    *,
    orthogonal: bool,
    delta: float = 0.05,
) -> int | None:
    """Return the number of random projections for which the bound on all factors reaches an accuracy.

    Parameters
    ----------
    accuracy : float
        Largest distance of a factor from the true one.
    factor : array of shape (d, k)
        Unit columns.
    weights : array of shape (k,)
        Weights of the components; only their absolute values matter.
    noise : float
        Operator norm of the noise tensor.
    orthogonal : bool
        Whether the factors are orthonormal.
    delta : float
        Probability that the bound is exceeded.

    Returns
    -------
    int or None
        None if no number of projections is enough.

    See Also
    --------
    error_bound : The bound that is solved for the number.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.theory import projections_needed
    >>> projections_needed(0.1, np.eye(4), np.ones(4), 0.01, orthogonal=True)
    6467
    >>> projections_needed(0.01, np.eye(4), np.ones(4), 0.01, orthogonal=True) is None
    True
    """
    as_number("accuracy", accuracy)
    limit = error_bound(
        factor, weights, noise, orthogonal=orthogonal, n_projections=MANY_PROJECTIONS, delta=delta
    ).max()
    if not limit <= accuracy:
        return None
    minimum = minimum_projections(factor, orthogonal=orthogonal, delta=delta)

    def reached(n_projections: int) -> bool:
        bound = error_bound(factor, weights, noise, orthogonal=orthogonal, n_projections=n_projections, delta=delta)
        return bool(bound.max() <= accuracy)

    return minimum + bisect_left(range(minimum, MANY_PROJECTIONS), True, key=reached)


def _base(factor: np.ndarray) -> float:
    """Return the constant L_0 of the paper."""
    return (50 / (1 - incoherence(factor) ** 2)) ** 2


def as_theorem_factor(factor: np.ndarray, orthogonal: bool) -> np.ndarray:
    """Return a factor that the theorems are about: independent columns, orthogonal ones if so declared."""
    as_flag("orthogonal", orthogonal)
    columns = as_columns("factor", factor)
    if columns.shape[1] > columns.shape[0]:
        raise ValueError(
            f"factor must have no more columns than rows, since the theorems need independent components; got "
            f"shape {columns.shape}"
        )
    if orthogonal and incoherence(columns) > LARGEST_COSINE:
        raise ValueError(
            f"factor must have orthogonal columns with orthogonal=True; the largest cosine between two is "
            f"{incoherence(columns):.2g}. Use orthogonal=False"
        )
    if not orthogonal and 1 - incoherence(columns) ** 2 < 1e-12:
        raise ValueError("factor must not have parallel columns, for which there is no bound; remove one of them")
    return columns


def as_unit_factor(factor: np.ndarray, orthogonal: bool) -> np.ndarray:
    """Return a factor that the theorems are about, its columns scaled to unit norm; dependent ones are refused."""
    columns = as_theorem_factor(factor, orthogonal)
    unit: np.ndarray = columns / np.linalg.norm(columns, axis=0)
    if np.linalg.matrix_rank(unit) < unit.shape[1]:
        raise ValueError(f"factor must have independent columns; got shape {unit.shape}, which has fewer")
    return unit


def as_theorem_weights(weights: np.ndarray, rank: int) -> np.ndarray:
    """Return the absolute values of weights, none of which may be zero."""
    sizes: np.ndarray = np.abs(as_finite("weights", weights, (rank,)))
    if np.any(sizes == 0):
        raise ValueError("weights must not be zero, since such a component has no bound; remove it")
    return sizes


def _check_delta(delta: float) -> None:
    as_number("delta", delta)
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie between 0 and 1; got {delta}")


def _log(constant: float, factor: np.ndarray, delta: float) -> float:
    _check_delta(delta)
    d, k = factor.shape
    return math.log(constant * d * max(k - 1, 1) / delta)
