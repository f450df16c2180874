r"""The squared distance of components from a NumPy array, and its gradient, with few calls of Python.

It is what `LeastSquares` computes for arrays of any library, in half the time: on a small tensor the arithmetic takes
as long as the calls through the array API (measured on tensors of size 10 to 30 with as many components). The
residual is formed, and the gradient is its product with the factors, so that both are exact to rounding of the
residual. Equal columns of the unfolding of a symmetric tensor are computed once: at order n, about one of (n - 1)!
remains.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codiag._arrays import conjugate, squared_magnitudes
from codiag.least_squares._parametrization import Parametrization
from codiag.least_squares._symmetric_basis import symmetric_basis


class DenseDistance:
    """Half the squared distance of components from an array, plus a ridge.

    Parameters
    ----------
    entries : numpy.ndarray of float64 or complex128
    parametrization : Parametrization
        All modes have a factor of their own, or all share one.
    ridge : float
        Half of it times the squares of all unknowns is added to the objective.
    weights : numpy.ndarray of float64, optional
        Of the entries, symmetric if all modes share a factor.
    """

    def __init__(
        self,
        entries: np.ndarray,
        parametrization: Parametrization,
        ridge: float = 0.0,
        weights: np.ndarray | None = None,
    ) -> None:
        self.ridge = ridge
        self._order, self._signs = entries.ndim, parametrization.signs
        # The longest mode comes first: what is left once it is contracted is smallest.
        first = 0 if self._signs is not None else int(np.argmax(entries.shape))
        self._modes = [first, *(mode for mode in range(entries.ndim) if mode != first)]
        self._powers = None if self._signs is None else symmetric_basis(entries.shape[0], entries.ndim - 1)
        self._side, self._roots = _turned(entries, first), None if weights is None else np.sqrt(_turned(weights, first))
        if self._powers is not None:
            places = self._powers.places
            self._side = np.take(self._side, places, axis=1) * self._powers.scales
            self._roots = None if self._roots is None else np.take(self._roots, places, axis=1)
        self._left = np.empty_like(self._side)
        self._shape = tuple(entries.shape[mode] for mode in self._modes)
        ends = np.cumsum([0, *entries.shape]).tolist()
        self._rows = [slice(ends[mode], ends[mode + 1]) for mode in range(entries.ndim)]

    def value_and_gradient(self, point: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the objective and its derivative."""
        signs = self._signs
        factors = [point[self._rows[mode]] for mode in self._modes] if signs is None else [point * signs]
        rest = _khatri_rao(factors[1:]) if self._powers is None else self._powers.of(point)
        left = np.matmul(factors[0], rest.T, out=self._left)
        np.subtract(self._side, left, out=left)
        if self._roots is not None:
            left *= self._roots
        value = _inner_product(left, left) / 2
        if self._roots is not None:
            left *= self._roots
        slope = np.empty_like(point)
        factors, rest = [conjugate(factor) for factor in factors], conjugate(rest)
        if signs is not None:
            np.multiply(left @ rest, -self._order * signs, out=slope)
        else:
            slope[self._rows[self._modes[0]]] = -(left @ rest)
            inner = (factors[0].T @ left).reshape(-1, *self._shape[1:])
            for place in range(1, self._order):
                slope[self._rows[self._modes[place]]] = -_contracted(inner, factors, place)
            self._remove_scaling(point, slope)
        if self.ridge > 0:
            value += self.ridge * _inner_product(point, point) / 2
            slope += self.ridge * point
        return value, slope

    def _remove_scaling(self, point: np.ndarray, slope: np.ndarray) -> None:
        """Make derivatives along the columns of a component equal in all modes, as they are but for rounding."""
        both = conjugate(point) * slope
        starts = [rows.start for rows in self._rows]
        along = np.add.reduceat(both, starts, axis=0)
        squares = np.add.reduceat(squared_magnitudes(point), starts, axis=0)
        share = (along.mean(axis=0) - along) / np.where(squares > 0, squares, 1.0)
        for rows, own in zip(self._rows, share, strict=True):
            slope[rows] += point[rows] * own


def _turned(entries: np.ndarray, first: int) -> np.ndarray:
    """Return the unfolding along a mode."""
    return np.ascontiguousarray(np.moveaxis(entries, first, 0)).reshape(entries.shape[first], -1)


def _inner_product(left: np.ndarray, right: np.ndarray) -> float:
    return float(np.vdot(left, right).real)


def _khatri_rao(factors: Sequence[np.ndarray]) -> np.ndarray:
    product = factors[0]
    for factor in factors[1:]:
        product = (product[:, None, :] * factor[None, :, :]).reshape(-1, factor.shape[1])
    return product


def _contracted(inner: np.ndarray, factors: Sequence[np.ndarray], place: int) -> np.ndarray:
    """Contract (r, d_1, ..., d_N) with the columns of all factors but the first and one; return (d, r)."""
    for other in range(len(factors) - 1, place, -1):
        inner = (inner @ factors[other].T.reshape(-1, *[1] * (inner.ndim - 3), inner.shape[-1], 1))[..., 0]
    for other in range(1, place):
        rows = factors[other].T[:, None, :]
        inner = (rows @ inner.reshape(inner.shape[0], inner.shape[1], -1)).reshape(inner.shape[0], *inner.shape[2:])
    return inner.T
