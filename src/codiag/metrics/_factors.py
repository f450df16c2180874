"""Distances of estimated factors and unmixings from the true ones, up to order, signs and scales."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from codiag._arrays import Array, is_complex, squared_magnitudes, to_double, to_host
from codiag._checks import as_finite, as_number_array
from codiag._text import ReprMixin
from codiag.tensors import components_of, n_axes

Factors = Any
"""A fit, a pair (weights, factors), an array (d, k) with components as columns, or a sequence of such arrays."""


@dataclass(frozen=True, eq=False, repr=False)
class Matching(ReprMixin):
    """A one-to-one matching of estimated and true components.

    Attributes
    ----------
    permutation : array of shape (k,)
        Estimated component ``permutation[i]`` is matched to the true component i.
    signs : array of shape (n_modes, k)
        The signs, or phases of complex factors, by which the matched factors are multiplied.
    factors : tuple of arrays of shape (d, k)
        The estimated factors, unit columns, in the order and with the signs of the true ones.

    See Also
    --------
    codiag.match_components : The function that returns it.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> matching = codiag.match_components(-np.eye(3)[:, [2, 0, 1]], np.eye(3))
    >>> matching.signs.tolist(), bool(np.allclose(matching.factors[0], np.eye(3)))
    ([[-1.0, -1.0, -1.0]], True)
    """

    permutation: np.ndarray
    signs: np.ndarray
    factors: tuple[np.ndarray, ...]


def match_components(estimate: Factors, truth: Factors) -> Matching:
    """Match estimated and true components one to one, with the largest total similarity.

    The similarity of two components is the product over the modes of the absolute cosines between their factors.

    Parameters
    ----------
    estimate, truth : fit, pair (weights, factors), array of shape (d, k), or sequence of such arrays
        The components; weights are ignored. The estimate must have at least as many components as the truth.

    Returns
    -------
    Matching
        With ``permutation``, ``signs`` and the matched ``factors``.

    See Also
    --------
    factor_error : The mean distance after matching.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> truth = np.eye(3)
    >>> codiag.match_components(-truth[:, [2, 0, 1]], truth).permutation.tolist()
    [1, 2, 0]
    """
    estimates, truths = _compared(estimate, truth)
    _check_shapes(estimates, truths)
    cosines = np.stack([true.conj().T @ estimated for estimated, true in zip(estimates, truths, strict=True)])
    _, permutation = scipy.optimize.linear_sum_assignment(-np.prod(np.abs(cosines), axis=0))
    chosen = cosines[:, np.arange(permutation.size), permutation]
    signs = _aligning(chosen)
    factors = tuple(factor[:, permutation] * sign for factor, sign in zip(estimates, signs, strict=True))
    return Matching(permutation, signs, factors)


def factor_error(estimate: Factors, truth: Factors) -> float:
    r"""Return the mean of :math:`\|\tilde u_i - u_i\|` over components and modes, after one-to-one matching.

    Parameters
    ----------
    estimate, truth : fit, pair (weights, factors), array of shape (d, k), or sequence of such arrays
        The components, as in `match_components`.

    Returns
    -------
    float
        Zero if the factors are the same up to order, signs and norms.

    See Also
    --------
    match_components : The matching.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> codiag.factor_error(-np.eye(3)[:, ::-1], np.eye(3))
    0.0
    """
    matched = match_components(estimate, truth).factors
    pairs = zip(matched, _compared(estimate, truth)[1], strict=True)
    return float(np.mean([np.linalg.norm(estimated - true, axis=0) for estimated, true in pairs]))


def nearest_error(estimate: Factors, truth: Factors) -> float:
    """Return the mean distance of true factors from the nearest estimated ones, of either sign.

    This is the error in the paper's experiments. Several true factors may have the same nearest estimate, so that it
    never exceeds `codiag.factor_error` and can be small although components are missing.

    Parameters
    ----------
    estimate, truth : fit, pair (weights, factors), array of shape (d, k), or sequence of such arrays
        The components, as in `codiag.match_components`.

    Returns
    -------
    float
        At most the root of two; zero if every true factor is among the estimated ones.

    See Also
    --------
    codiag.factor_error : The error with one-to-one matching.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> from codiag.metrics import nearest_error
    >>> truth = np.array([[1.0, 1.0], [0.0, 0.1]])  # two components that are nearly the same
    >>> estimate = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> round(nearest_error(estimate, truth), 2), round(codiag.factor_error(estimate, truth), 2)
    (0.05, 0.67)
    """
    estimates, truths = _compared(estimate, truth)
    _check_shapes(estimates, truths)
    return float(np.mean([_nearest_distances(*pair) for pair in zip(estimates, truths, strict=True)]))


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
    squares = squared_magnitudes(_gain(unmixing, mixing))
    k = squares.shape[0]
    if k == 1:
        return 0.0
    sums = np.sum(squares, axis=1, keepdims=True)
    fractions = squares / np.where(sums > 0, sums, 1)
    rest = k - np.sum(fractions[scipy.optimize.linear_sum_assignment(fractions, maximize=True)])
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


def _aligning(cosines: np.ndarray) -> np.ndarray:
    """Return the signs, or phases of complex numbers, that turn cosines to positive numbers."""
    if not np.iscomplexobj(cosines):
        return np.where(cosines < 0, -1.0, 1.0)
    sizes = np.abs(cosines)
    phases: np.ndarray = np.where(sizes > 0, cosines.conj() / np.where(sizes > 0, sizes, 1), 1)
    return phases


def _nearest_distances(estimate: np.ndarray, truth: np.ndarray) -> np.ndarray:
    cosines = truth.conj().T @ estimate
    nearest = np.argmax(np.abs(cosines), axis=1)
    signs = _aligning(cosines[np.arange(nearest.size), nearest])
    return np.linalg.norm(estimate[:, nearest] * signs - truth, axis=0)


def _compared(estimate: Factors, truth: Factors) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return both with unit columns, without rows that are NaN in one of them: those that were never observed."""
    both = [_on_host(factors, name) for factors, name in ((estimate, "estimate"), (truth, "truth"))]
    for mode, pair in enumerate(zip(*both, strict=False)):
        if pair[0].ndim == pair[1].ndim == 2 and pair[0].shape[0] == pair[1].shape[0]:
            known = ~np.any([np.all(np.isnan(array), axis=1) for array in pair], axis=0)
            for arrays, array in zip(both, pair, strict=True):
                arrays[mode] = array[known] if known.any() else array
    return _unit(both[0], "estimate"), _unit(both[1], "truth")


def _on_host(factors: Factors, name: str) -> list[np.ndarray]:
    return [to_double(to_host(as_number_array(array, name))) for array in _modes(factors)]


def unit_factors(factors: Factors, name: str) -> list[np.ndarray]:
    """Return the factors of each mode with unit columns, on the host; errors call them `name`. Zero columns stay."""
    return _unit(_on_host(factors, name), name)


def _unit(arrays: list[np.ndarray], name: str) -> list[np.ndarray]:
    if len({array.shape[1:] for array in arrays}) > 1:
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise ValueError(f"{name} must have one number of components in all modes; got factors of shape {shapes}")
    for array in arrays:
        if array.ndim != 2:
            raise ValueError(f"{name} must contain factors of shape (d, k); got an array of shape {array.shape}")
        if 0 in array.shape:
            raise ValueError(f"{name} must contain factors that are not empty; got an array of shape {array.shape}")
        if not np.all(np.isfinite(array)):
            raise ValueError(f"{name} must be finite; it contains NaN or infinite entries")
    # Scaling by a power of two prevents overflow of squares and is exact.
    arrays = [_shifted(array, -int(np.frexp(np.max(np.abs(array)))[1])) for array in arrays]
    norms = [np.linalg.norm(array, axis=0) for array in arrays]
    return [array / np.where(norm > 0, norm, 1) for array, norm in zip(arrays, norms, strict=True)]


def _shifted(array: np.ndarray, exponent: int) -> np.ndarray:
    """Return an array multiplied by a power of two, which may be out of range itself."""
    if not is_complex(array):
        return np.ldexp(array, exponent)
    shifted: np.ndarray = np.ldexp(array.real, exponent) + 1j * np.ldexp(array.imag, exponent)
    return shifted


def _modes(factors: Factors) -> Sequence[Array]:
    if hasattr(factors, "right_factor"):  # a Diagonalization
        is_cone = factors.symmetric or factors.hermitian
        return [factors.factor] if is_cone else [factors.factor, factors.right_factor]
    components = components_of(factors)
    if components is not None:
        return components[1]
    if hasattr(factors, "factors"):
        return list(factors.factors)
    if isinstance(factors, list | tuple) and len(factors) > 0 and n_axes(factors[0]) == 2:
        return list(factors)
    return [factors]


def _check_shapes(estimates: list[np.ndarray], truths: list[np.ndarray]) -> None:
    if len(estimates) != len(truths):
        raise ValueError(
            f"estimate and truth must have the same number of modes; got {len(estimates)} and {len(truths)}"
        )
    for estimated, true in zip(estimates, truths, strict=True):
        if estimated.shape[0] != true.shape[0] or estimated.shape[1] < true.shape[1]:
            raise ValueError(
                "estimate must have the rows of the truth and at least as many components; "
                f"got shape {estimated.shape} for a truth of shape {true.shape}"
            )


def _gain(unmixing: Array, mixing: Array) -> np.ndarray:
    """Return the product W A, which is the identity up to order and scales if the sources are separated."""
    left = as_finite("unmixing", unmixing, (None, None), allow_complex=True)
    right = as_finite("mixing", mixing, (None, None), allow_complex=True)
    if left.shape != right.shape[::-1]:
        raise ValueError(
            f"unmixing must have shape {right.shape[::-1]}, that of the mixing transposed; got {left.shape}. Pass "
            "components_ and the true mixing"
        )
    # Scaling prevents overflow of squares and does not change the indices.
    left, right = (array / (np.max(np.abs(array)) or 1.0) for array in (left, right))
    return left @ right
