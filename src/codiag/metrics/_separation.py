"""Distances of an unmixing from the inverse of a mixing, up to the order, the signs and the scales of sources."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from codiag._arrays import Array
from codiag._checks import as_finite


def minimum_distance(unmixing: Array, mixing: Array) -> float:
    r"""Return the minimum distance index of an unmixing: zero if it separates the sources, one in the worst case.

    The index is :math:`\min_C \|C W A - I\|_F / \sqrt{k - 1}` over all C that reorder and rescale the sources.

    Parameters
    ----------
    unmixing : array of shape (k, d)
        The estimated unmixing W: sources are its product with channels.
    mixing : array of shape (d, k)
        The true mixing A.

    Returns
    -------
    float
        Between 0 and 1; zero for one source.

    See Also
    --------
    amari_index : An older index.
    codiag.models.JADE : A model that estimates an unmixing, ``components_``.

    References
    ----------
    P. Ilmonen, K. Nordhausen, H. Oja and E. Ollila, "A new performance index for ICA: properties, computation and
    asymptotic analysis", LVA/ICA 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.metrics import minimum_distance
    >>> mixing = np.array([[1.0, 2.0], [0.5, -1.0]])
    >>> minimum_distance(-3 * np.linalg.inv(mixing)[::-1], mixing)
    0.0
    """
    squares = _gain(unmixing, mixing) ** 2
    k = squares.shape[0]
    if k == 1:
        return 0.0
    sums = np.sum(squares, axis=1, keepdims=True)
    fractions = squares / np.where(sums > 0, sums, 1)
    rest = k - np.sum(fractions[linear_sum_assignment(fractions, maximize=True)])
    return float(np.sqrt(min(max(rest, 0.0) / (k - 1), 1.0)))


def amari_index(unmixing: Array, mixing: Array) -> float:
    r"""Return the Amari index of an unmixing: zero if it separates the sources, one in the worst case.

    With :math:`G = |W A|`, the index is the mean over rows of :math:`(\sum_j G_{ij} / \max_j G_{ij} - 1) / (k - 1)`,
    averaged with the same mean over columns. Unlike `minimum_distance` it depends on the scales of sources.

    Parameters
    ----------
    unmixing : array of shape (k, d)
        The estimated unmixing W: sources are its product with channels.
    mixing : array of shape (d, k)
        The true mixing A.

    Returns
    -------
    float
        Between 0 and 1; zero for one source.

    See Also
    --------
    minimum_distance : An index on the scale of a distance.
    codiag.models.SOBI : A model that estimates an unmixing, ``components_``.

    References
    ----------
    S. Amari, A. Cichocki and H. H. Yang, "A new learning algorithm for blind signal separation", NIPS 1995.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.metrics import amari_index
    >>> mixing = np.array([[1.0, 2.0], [0.5, -1.0]])
    >>> amari_index(-3 * np.linalg.inv(mixing)[::-1], mixing), amari_index(np.ones((2, 2)), np.eye(2))
    (0.0, 1.0)
    """
    sizes = np.abs(_gain(unmixing, mixing))
    k = sizes.shape[0]
    if k == 1:
        return 0.0
    excess = []
    for axis in (0, 1):
        largest = np.max(sizes, axis=axis)
        if not np.all(largest > 0):
            return 1.0  # a source is in no component, or a component is zero
        excess.append(np.mean(np.sum(sizes, axis=axis) / largest - 1))
    return float(np.mean(excess) / (k - 1))


def _gain(unmixing: Array, mixing: Array) -> np.ndarray:
    """Return the product W A, which is the identity up to order and scales if the sources are separated."""
    left, right = as_finite("unmixing", unmixing, (None, None)), as_finite("mixing", mixing, (None, None))
    if left.shape != right.shape[::-1]:
        raise ValueError(
            f"unmixing must have shape {right.shape[::-1]}, that of the mixing transposed; got {left.shape}. Pass "
            "components_ and the true mixing"
        )
    # Scaling prevents overflow of squares and does not change the indices.
    left, right = (array / (np.max(np.abs(array)) or 1.0) for array in (left, right))
    return left @ right
