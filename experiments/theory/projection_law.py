r"""The exact law of random projections for orthogonal factors, to first order in white noise.

Gaussian directions estimate the third mode's metric by a Wishart matrix. The regression of a pair of factors on it has
the error of an isotropic metric and an independent Gaussian part, of which only the expected squared size counts.
"""

from __future__ import annotations

import math

from codiag._checks import as_flag, as_number


def random_projection_ratio(size: int, n_projections: int, *, symmetric: bool = True) -> float:
    r"""Return the root mean squared error of L Gaussian projections over its limit for infinitely many.

    It holds for every factor of an orthogonal tensor, whatever the rank and the weights, to first order in the noise:

    .. math::

        \sqrt{1 + \frac{d}{2 (L - 2)}}
        \quad\text{for symmetric white noise,}\qquad
        \sqrt{1 + \frac{d - 1}{L - 2}}
        \quad\text{for independent entries.}

    Parameters
    ----------
    size : int
        Size d of the mode that is projected; if the tensor is compressed first, the rank takes its place for errors
        inside the range of the factors.
    n_projections : int
        Number L of directions, independent and Gaussian.
    symmetric : bool
        Whether the noise is symmetric in all modes.

    Returns
    -------
    float
        The ratio, above 1; infinite if there are one or two projections.

    See Also
    --------
    projections_for_ratio : The number of projections for a ratio.
    expected_errors : The errors themselves, for given directions.

    Examples
    --------
    >>> from experiments.theory import random_projection_ratio
    >>> round(random_projection_ratio(10, 22), 3)
    1.118
    """
    excess = _excess(size, symmetric)
    as_number("n_projections", n_projections, integer=True)
    return math.sqrt(1 + excess / (n_projections - 2)) if n_projections > 2 or not excess else math.inf


def projections_for_ratio(ratio: float, size: int, *, symmetric: bool = True) -> int:
    """Return the number of Gaussian projections for which the error is at most `ratio` times its limit.

    For symmetric noise and a ratio of 1.1 it is 2 + 2.38 times the size, rounded up.

    Parameters
    ----------
    ratio : float
        Root mean squared error over its limit for infinitely many projections, above 1.
    size : int
        Size of the mode that is projected.
    symmetric : bool
        Whether the noise is symmetric in all modes.

    Returns
    -------
    int
        The number of projections, at least 3.

    See Also
    --------
    random_projection_ratio : The ratio of a number of projections.
    projections_needed : The number for which the bound of the paper reaches an accuracy.

    Examples
    --------
    >>> from experiments.theory import projections_for_ratio
    >>> [projections_for_ratio(1.1, size) for size in (10, 100)]
    [26, 241]
    """
    excess = _excess(size, symmetric)
    as_number("ratio", ratio)
    if ratio <= 1:
        raise ValueError(f"ratio must be above 1, which infinitely many projections reach; got {ratio}")
    needed = excess / (ratio - 1) / (ratio + 1)
    if needed > 2**53:
        raise ValueError(f"ratio must be further from 1: more than 2**53 projections would be needed; got {ratio}")
    return max(3, 2 + math.ceil(needed))


def _excess(size: int, symmetric: bool) -> float:
    as_number("size", size, integer=True)
    as_flag("symmetric", symmetric)
    return size / 2 if symmetric else size - 1
