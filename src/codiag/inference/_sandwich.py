r"""The sandwich covariance of free components of a complete tensor, in the coordinates of the ranges of the factors.

With the factors :math:`A_m`, scaled by the weights, orthonormal bases :math:`U_m` of their ranges and the columnwise
Kronecker product :math:`Z_m` of the others, noise E moves a factor by

.. math:: \delta A_m = (I - U_m U_m^\top) E_{(m)} Z_m \Gamma_m^{-1} + U_m Y_m, \qquad Y = H^{-1} g, \quad
          g_m = U_m^\top E_{(m)} Z_m,

where H is the Gauss-Newton matrix in these coordinates, of :math:`\sum_m \min(d_m, k)\, k` rows. So the covariance of
all entries follows from those of the rows of :math:`E_{(m)} Z_m` and of g, in memory linear in the sides of the tensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from codiag._arrays import is_complex, to_double, to_host
from codiag.inference._sensitivity import weight_errors, within_ranges
from codiag.tensors import FactoredTensor

Errors = tuple[list[np.ndarray], np.ndarray]
"""Standard errors of the entries of unit factors, and of the weights relative to them."""


@dataclass(frozen=True, eq=False)
class ModeCovariance:
    r"""The covariance of noise along a mode, :math:`D + (L R^\top + R L^\top) / 2`.

    Attributes
    ----------
    variances : array of shape (d,)
        The diagonal of D.
    left, right : arrays of shape (d, n)
        L and R; by default R is L.
    """

    variances: np.ndarray
    left: np.ndarray | None = None
    right: np.ndarray | None = None

    @classmethod
    def of_fibres(cls, fibres: np.ndarray, deviations: np.ndarray) -> ModeCovariance:
        """Return that of fibres, (d, n), whose mean variance is one, times deviations of the indices."""
        scale = math.sqrt(float(np.mean(np.sum(fibres**2, axis=1))))
        return cls(np.zeros(len(fibres)), fibres * (deviations / scale)[:, None])

    @property
    def diagonal(self) -> np.ndarray:
        """The variances of all indices."""
        if self.left is None:
            return self.variances
        return self.variances + np.sum(self.left * (self.left if self.right is None else self.right), axis=1)

    def product(self, columns: np.ndarray) -> np.ndarray:
        """Return the matrix times columns, (d, n)."""
        found = self.variances[:, None] * columns
        if self.left is None:
            return found
        if self.right is None:
            return np.asarray(found + self.left @ (self.left.T @ columns))
        return np.asarray(found + (self.left @ (self.right.T @ columns) + self.right @ (self.left.T @ columns)) / 2)


class Spread(NamedTuple):
    r"""The covariance of what noise adds to the gradient.

    Attributes
    ----------
    rows : list of arrays (d_m, k, k)
        Of the rows of :math:`E_{(m)} Z_m` out of the range of the factor, each row by itself.
    inside : array (K, K)
        Of g.
    across : callable
        From a mode and a component to the covariance, (d_m, K), of these rows, times :math:`\Gamma_m^{-1}`, with g.
    """

    rows: list[np.ndarray]
    inside: np.ndarray
    across: Callable[[int, int], np.ndarray]


@dataclass(frozen=True, eq=False)
class RangeLinearization:
    """Least squares to first order at free components of a complete tensor.

    Attributes
    ----------
    factors, bases : list of arrays (d_m, k) and (d_m, q_m)
        Scaled factors, and orthonormal bases of their ranges.
    grams, own : list of arrays (k, k)
        Gram matrices of the factors, and products of those of all other modes.
    inverse : array (K, K)
        The inverse of the Gauss-Newton matrix in the ranges.
    free : array of bool of shape (k,)
        Components that the data does not determine.
    """

    factors: list[np.ndarray]
    bases: list[np.ndarray]
    grams: list[np.ndarray]
    own: list[np.ndarray]
    inverse: np.ndarray
    free: np.ndarray

    @classmethod
    def of(cls, components: FactoredTensor) -> RangeLinearization | None:
        """Return that of real components with a factor for each mode; None of others, and if some have no weight."""
        weights = to_double(to_host(components.weights))
        if components.symmetric or is_complex(weights) or is_complex(components.reference) or not np.all(weights):
            return None
        sizes = np.abs(weights) ** (1 / components.order)
        factors = [to_double(to_host(factor)) * sizes for factor in components.factors]
        factors[0] = factors[0] * np.sign(weights)
        bases, inner, curvature, inverse, free = within_ranges(factors, None)
        grams = [part.T @ part for part in inner]
        own = [np.asarray(curvature.own[mode]) for mode in range(len(factors))]
        return cls(factors, bases, grams, own, inverse.reshape(inverse.shape[0] * inverse.shape[1], -1), free)

    @property
    def order(self) -> int:
        """Number of modes."""
        return len(self.factors)

    @property
    def parts(self) -> list[slice]:
        """Where the coordinates of each mode are in g."""
        ends = np.cumsum([basis.shape[1] * self.factors[0].shape[1] for basis in self.bases])
        return [
            slice(end - basis.shape[1] * self.factors[0].shape[1], end)
            for basis, end in zip(self.bases, ends, strict=True)
        ]

    def separable(self, covariances: Sequence[ModeCovariance]) -> Spread:
        r"""Return the covariance for noise whose covariance is a Kronecker product of one for each mode."""
        modes, parts = range(self.order), self.parts
        images = [own.product(factor) for own, factor in zip(covariances, self.factors, strict=True)]
        turned = [own.product(basis) for own, basis in zip(covariances, self.bases, strict=True)]
        inner = [basis.T @ image for basis, image in zip(self.bases, images, strict=True)]
        squares = [basis.T @ image for basis, image in zip(self.bases, turned, strict=True)]
        grams = [factor.T @ image for factor, image in zip(self.factors, images, strict=True)]
        inverses = [_pinv(own) for own in self.own]

        def rest(*left_out: int) -> np.ndarray:
            parts = [gram for mode, gram in enumerate(grams) if mode not in left_out]
            return reduce(np.multiply, parts, np.ones_like(grams[0]))

        inside = np.empty(self.inverse.shape)
        rows = []
        for m in modes:
            outside = covariances[m].diagonal - np.sum(
                (2 * turned[m] - self.bases[m] @ squares[m]) * self.bases[m], axis=1
            )
            rows.append(np.maximum(outside, 0.0)[:, None, None] * rest(m))
            for n in modes:
                block = (
                    np.einsum("ab,rs->arbs", squares[m], rest(m))
                    if m == n
                    else np.einsum("as,br,rs->arbs", inner[m], inner[n], rest(m, n))
                )
                inside[parts[m], parts[n]] = block.reshape(inner[m].size, inner[n].size)

        def across(m: int, r: int) -> np.ndarray:
            found = np.empty((len(self.factors[m]), len(inside)))
            own, outside = turned[m] - self.bases[m] @ squares[m], images[m] - self.bases[m] @ inner[m]
            for n in modes:
                if n == m:
                    block = own[:, :, None] * (inverses[m][r] @ rest(m))
                else:
                    block = outside[:, None, :] * (inner[n] @ (rest(m, n) * inverses[m][r][:, None]))
                found[:, parts[n]] = block.reshape(found.shape[0], -1)
            return found

        return Spread(rows, inside, across)

    def separable_sum(self, terms: Sequence[Sequence[ModeCovariance]]) -> Spread:
        """Return the covariance for a sum of such products."""
        spreads = [self.separable(term) for term in terms]

        def across(m: int, r: int) -> np.ndarray:
            return np.asarray(np.sum([spread.across(m, r) for spread in spreads], axis=0))

        rows = [np.sum([spread.rows[mode] for spread in spreads], axis=0) for mode in range(self.order)]
        return Spread(rows, np.sum([spread.inside for spread in spreads], axis=0), across)

    def independent(self, variances: np.ndarray) -> Spread:
        r"""Return the covariance for independent noise: :math:`N k^2` operations for each pair of modes."""
        rank, modes, parts, bases = self.factors[0].shape[1], range(self.order), self.parts, self.bases
        inverses = [_pinv(own) for own in self.own]
        within = [np.empty((factor.shape[0], rank, rank)) for factor in self.factors]
        inside = np.empty(self.inverse.shape)
        sides = [np.zeros((factor.shape[0], rank, self.inverse.shape[0])) for factor in self.factors]
        for m in modes:
            for n in modes:
                if n == m:
                    continue
                for r in range(rank):
                    # By index of both modes and the other component; the products of all other modes are summed.
                    pair = self._contracted(variances, m, n, r) * self.factors[n][None, :, r, None]
                    if n == (m + 1) % self.order:
                        within[m][:, r] = np.einsum("ijs,js->is", pair, self.factors[n])
                    block = np.einsum("ijs,is,jb->ibs", pair, self.factors[m], bases[n], optimize=True)
                    sides[m][:, r, parts[n]] = block.reshape(block.shape[0], -1)
        rows = []
        for m in modes:
            basis, size = bases[m], bases[m].shape[1]
            products = np.einsum("ia,ib,irs->abrs", basis, basis, within[m], optimize=True)
            shares = np.sum(basis**2, axis=1)
            again = np.einsum("ia,ib,abrs->irs", basis, basis, products, optimize=True)
            rows.append((1 - 2 * shares)[:, None, None] * within[m] + again)
            sides[m][:, :, parts[m]] = np.einsum("ia,irs->iras", basis, within[m]).reshape(-1, rank, size * rank)
            inside[parts[m]] = np.einsum("ia,irK->arK", basis, sides[m], optimize=True).reshape(size * rank, -1)
            sides[m] = sides[m] - np.einsum("ia,arK->irK", basis, inside[parts[m]].reshape(size, rank, -1))
        return Spread(rows, inside, lambda m, r: np.einsum("s,isK->iK", inverses[m][r], sides[m]))

    def _contracted(self, variances: np.ndarray, m: int, n: int, r: int) -> np.ndarray:
        """Return variances times the factors of component r and of all components, summed over all modes but two."""
        order = self.order
        operands: list[Any] = [variances, list(range(order))]
        for mode in range(order):
            if mode not in (m, n):
                operands += [self.factors[mode] * self.factors[mode][:, r, None], [mode, order]]
        return np.asarray(np.einsum(*operands, [m, n, order], optimize=True))

    def errors(self, spread: Spread) -> tuple[list[np.ndarray], np.ndarray]:
        """Return the standard errors of the entries of unit factors, and of the weights relative to them.

        The residual of correlated noise is smaller than that of white noise, since a fit follows more of it.
        """
        covariance, found = self.inverse @ spread.inside @ self.inverse, []
        rank, shape = self.factors[0].shape[1], [factor.shape[0] for factor in self.factors]
        taken = float(np.sum(self.inverse * spread.inside))
        taken += sum(float(np.sum(_pinv(own) * rows)) for own, rows in zip(self.own, spread.rows, strict=True))
        scale = residual_scale(math.prod(shape), rank * (sum(shape) - self.order + 1), taken)
        for mode, (factor, basis, part) in enumerate(zip(self.factors, self.bases, self.parts, strict=True)):
            inner, size = basis.T @ factor, basis.shape[1]
            own = covariance[part, part].reshape(size, rank, size, rank)
            inverse, turn = _pinv(self.own[mode]), self.inverse[part].reshape(size, rank, -1)
            errors = np.empty(factor.shape)
            for r in range(rank):
                unit = inner[:, r] / np.linalg.norm(inner[:, r])
                along = basis - np.outer(basis @ unit, unit)
                squares = np.einsum("s,ist,t->i", inverse[r], spread.rows[mode], inverse[r], optimize=True)
                squares += np.sum((along @ own[:, r, :, r]) * along, axis=1)
                squares += 2 * np.sum((along @ turn[:, r]) * spread.across(mode, r), axis=1)
                errors[:, r] = np.sqrt(np.maximum(squares, 0.0)) / np.linalg.norm(inner[:, r])
            found.append(np.where(self.free, np.inf, scale * errors))
        inner = [basis.T @ factor for basis, factor in zip(self.bases, self.factors, strict=True)]
        blocks = covariance.reshape(-1, rank, covariance.shape[0] // rank, rank)
        return found, np.where(self.free, np.inf, scale * weight_errors(blocks, inner))


def residual_scale(n_entries: float, n_parameters: float, taken: float) -> float:
    """Return by how much noise exceeds what its residual shows, if a fit does not take `n_parameters` shares of it."""
    return math.sqrt((n_entries - n_parameters) / (n_entries - min(taken, n_entries / 2)))


def _pinv(gram: np.ndarray) -> np.ndarray:
    return np.asarray(np.linalg.pinv(gram, hermitian=True))
