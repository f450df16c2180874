r"""Directions of projections that make the expected errors of free factors small, to first order in the noise.

Projections along the rows of W see the third mode through the metric :math:`S = W^\top W` alone. The noise of pair (i,
j) is a vector :math:`r_{ij}`; the coefficient of factor i in the error of factor j is :math:`E_{ij} = -y_{ij}^\top
r_{ij}`, where :math:`y_{ij} = S (\alpha x_j + \beta x_i)` with :math:`y_{ij}^\top x_j = 1`, :math:`y_{ij}^\top x_i = 0`
is regression in that metric and :math:`x_i` are the scaled factors of the third mode. Errors of factors are quadratic
in the :math:`y_{ij}`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

LIMITS = {"maxiter": 200, "ftol": 1e-7, "gtol": 1e-6}
"""Limits of the search for the best metric: of steps, each at the cost of a sweep of diagonalization, and of gains."""


class SymmetricPart(NamedTuple):
    """What symmetric noise adds, because the noise of a pair is correlated with inverse factors.

    Attributes
    ----------
    inverse : array of shape (k, d)
        The inverse factors.
    tangents : array of shape (k, k, k)
        Entry (j, i, l): the inner product of factors i and l after projection orthogonal to factor j.
    """

    inverse: np.ndarray
    tangents: np.ndarray


@dataclass(frozen=True, eq=False)
class DirectionModel:
    """The expected squared errors of factors as a function of the metric, for white noise of unit variance.

    Attributes
    ----------
    columns : array of shape (d, k)
        The scaled factors x_i of the mode that is projected.
    products : array of shape (k, k, k)
        Entry (j, i, l): the factor of the inner product of y_ij and y_lj in the error of factor j.
    symmetric : SymmetricPart, optional
        For noise that is symmetric in all modes.
    """

    columns: np.ndarray
    products: np.ndarray
    symmetric: SymmetricPart | None = None

    def squares(self, metric: np.ndarray) -> np.ndarray:
        """Return the expected squared error of every factor."""
        return self._squares_and_slopes(self._regressions(metric)[0])[0]

    def value_and_gradient(self, metric: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the sum of expected squared errors, and its gradient, a symmetric matrix."""
        vectors, ahead, across, inverse = self._regressions(metric)
        squares, slopes = self._squares_and_slopes(vectors)
        # dy = (I - P) dS z for the regression P on x_i and x_j: only what is orthogonal to both in the metric counts.
        seen = slopes @ (metric @ self.columns)  # (j, i, m)
        number = np.arange(seen.shape[0])
        with_own, with_other = seen[number, :, number].T, seen[:, number, number].T  # (i, j): x_j, x_i
        left = slopes - np.einsum("ij,dj->jid", inverse[0] * with_own + inverse[1] * with_other, self.columns)
        left -= np.einsum("ij,di->jid", inverse[1] * with_own + inverse[0].T * with_other, self.columns)
        rows = np.einsum("ij,jid->jd", ahead, left) + np.einsum("ij,jid->id", across, left)
        gradient = self.columns @ rows
        return float(squares.sum()), (gradient + gradient.T) / 2

    def _regressions(self, metric: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[np.ndarray, ...]]:
        """Return y_ij (j, i, d), its coefficients (i, j) of x_j and x_i, and the inverse Gram matrices of pairs."""
        images = metric @ self.columns
        gram = self.columns.T @ images
        own = np.diagonal(gram)
        determinants = np.outer(own, own) - gram**2
        np.fill_diagonal(determinants, np.inf)
        ahead, across = own[:, None] / determinants, -gram / determinants
        vectors = np.einsum("ij,dj->jid", ahead, images) + np.einsum("ij,di->jid", across, images)
        return vectors, ahead, across, (ahead, across)

    def _squares_and_slopes(self, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the expected squared errors (k,), and the derivatives (j, i, d) of their sum by y_ij."""
        slopes = self.products @ vectors
        squares = np.einsum("jid,jid->j", slopes, vectors)
        if self.symmetric is not None:
            more, steeper = _of_symmetric_noise(vectors, *self.symmetric)
            squares, slopes = squares + more, slopes + steeper
        return squares, 2 * slopes


def _of_symmetric_noise(
    vectors: np.ndarray, inverse: np.ndarray, tangents: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the terms of the covariance of r_ij that lie along inverse factors, and half their slopes."""
    products = inverse @ inverse.T
    with_all = inverse @ np.swapaxes(vectors, 1, 2)  # (j, m, i): v_m . y_ij
    number = np.arange(products.shape[0])
    with_own = with_all[number, number]  # (j, i): v_j . y_ij
    shares = tangents / 6
    both = shares * products
    squared = shares * np.diagonal(products)[:, None, None] * with_all
    mixed = shares * products[:, :, None] * with_own[:, None, :]
    turned = np.swapaxes(with_all, 1, 2)
    own_terms = np.einsum("jil,jl->ji", both, with_own)
    squares = np.sum(own_terms * with_own, axis=1) + np.sum((squared + 2 * mixed) * turned, axis=(1, 2))
    along_own = own_terms + np.einsum("jil,ji,jil->jl", shares, products, turned)
    return squares, along_own[:, :, None] * inverse[:, None] + (squared + mixed) @ inverse


def symmetric_model(factor: np.ndarray, weights: np.ndarray, *, symmetric_noise: bool) -> DirectionModel:
    """Return the model of a symmetric tensor, for noise that is symmetric as it is, or of independent entries."""
    inverse = np.linalg.pinv(factor)
    products, tangents = inverse @ inverse.T, _tangents(factor)
    pairs = np.diagonal(products)[:, None, None] * products + products[:, :, None] * products[:, None, :]
    part = SymmetricPart(inverse, tangents) if symmetric_noise else None
    return DirectionModel(factor * weights, tangents * pairs / (6 if symmetric_noise else 2), part)


def two_sided_model(left: np.ndarray, right: np.ndarray, columns: np.ndarray) -> DirectionModel:
    """Return the model of a tensor without symmetry: errors of the factors of both modes that are not projected."""
    products = 0
    for factor, other in ((left, right), (right, left)):
        inverse, sizes = np.linalg.pinv(factor), np.sum(np.linalg.pinv(other) ** 2, axis=1)
        products = products + _tangents(factor) * (inverse @ inverse.T) * sizes[:, None, None]
    return DirectionModel(columns, np.asarray(products))


def best_metric(model: DirectionModel, *, floor: float) -> np.ndarray:
    """Return the metric of least expected squared error, of mean eigenvalue one, plus `floor` times the identity.

    The search starts from the isotropic metric. There may be other local minima.
    """
    size = model.columns.shape[0]
    identity = np.eye(size)

    def objective(entries: np.ndarray) -> tuple[float, np.ndarray]:
        root = entries.reshape(size, size)
        metric = root @ root.T + floor * np.sum(root**2) / size * identity
        value, gradient = model.value_and_gradient(metric)
        slope = 2 * (gradient @ root + floor * np.trace(gradient) / size * root)
        return float(np.log(value)), slope.ravel() / value

    with np.errstate(all="ignore"):  # parallel columns, and steps to singular metrics
        start = float(model.squares(identity).sum())
        if not 0 < start < np.inf:
            return identity
        found = scipy.optimize.minimize(objective, identity.ravel(), jac=True, method="L-BFGS-B", options=LIMITS)
        root = found.x.reshape(size, size)
        metric = root @ root.T * (size / np.sum(root**2)) + floor * identity
    return metric if np.all(np.isfinite(metric)) and found.fun <= np.log(start) else identity


def directions_of(metric: np.ndarray) -> np.ndarray:
    """Return directions, as rows, whose Gram matrix over directions is the metric."""
    values, vectors = np.linalg.eigh(metric)
    rows: np.ndarray = (vectors * np.sqrt(np.maximum(values, 0))).T
    return rows


def _tangents(factor: np.ndarray) -> np.ndarray:
    cosines = factor.T @ factor
    return cosines - cosines[:, :, None] * cosines[:, None, :]
