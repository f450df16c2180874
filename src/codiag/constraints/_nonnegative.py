"""Factors without negative entries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from array_api_compat import device

from codiag._arrays import Array, array_namespace, blocks, epsilon, identity
from codiag.constraints._base import Constraint, times_gram

FULL_EXCHANGES = 3
"""Exchanges of all wrong entries of a row that may fail to lower their number, before one is exchanged at a time."""


@dataclass(frozen=True, eq=False)
class NonNegative(Constraint):
    """No entry of the factor is negative, as of spectra, concentrations and counts.

    See Also
    --------
    Orthogonal : Orthonormal columns instead.
    codiag.drop_in.non_negative_parafac : The same model under the name of TensorLy.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> a = np.random.default_rng(0).random((6, 2))
    >>> fit = codiag.factorize(np.einsum("ir,jr,kr->ijk", a, a[:5], a[:4]), 2, constraints="nonnegative", rng=0)
    >>> all((factor >= 0).all() for factor in fit.factors)
    True
    """

    supports_gauss_newton: ClassVar[bool] = True
    is_cone: ClassVar[bool] = True
    is_separable: ClassVar[bool] = True

    def project(self, factor: Array) -> Array:
        xp = array_namespace(factor)
        return xp.where(factor > 0, factor, xp.zeros_like(factor))

    def free_variables(self, factor: Array, slope: Array) -> Array:
        xp = array_namespace(factor)
        return xp.astype((factor > 0) | (slope < 0), factor.dtype)

    def solve(self, gram: Array, product: Array, start: Array) -> Array:
        r"""Return the minimum, exactly, by block principal pivoting (Kim and Park, 2011) in all rows at once.

        In every row, entries are taken for positive or for zero. The positive ones solve :math:`x G = p`; entries that
        come out negative, and zeros where the gradient is negative, change sides until there are none. A small
        multiple of the distance from the start is added to the objective, which makes singular equations solvable and
        changes no stationary point of a sequence of such solutions.

        Parameters
        ----------
        gram : array of shape (rank, rank), or (d, rank, rank)
        product : array of shape (d, rank)
        start : array of shape (d, rank)

        Returns
        -------
        array of shape (d, rank)
        """
        size, rank = product.shape
        solved = [self._pivot(gram if gram.ndim == 2 else gram[part, ...], product[part, :], start[part, :])
                 for part in blocks(size, rank**2)]  # fmt: skip
        return array_namespace(product).concat(solved)

    def _pivot(self, gram: Array, product: Array, start: Array) -> Array:
        xp = array_namespace(product)
        rank, rounding = product.shape[1], epsilon(product)
        mean = xp.linalg.trace(gram) / rank
        proximity = xp.where(mean > 0, rounding**0.75 * mean, xp.ones_like(mean))[..., None]
        gram = gram + proximity[..., None] * identity(rank, product)
        product = product + proximity * start
        positive, index = start > 0, xp.arange(rank, device=device(product))
        fewest = xp.full(product.shape[:1], rank + 1, device=device(product))
        tries = xp.zeros_like(fewest)
        for _ in range(20 + 5 * rank):
            factor = _solution(gram, product, positive)
            slope = times_gram(factor, gram) - product
            size = times_gram(xp.abs(factor), xp.abs(gram)) + xp.abs(product)
            wrong = xp.where(positive, factor < 0, slope < -4 * rank * rounding * size)
            count = xp.sum(xp.astype(wrong, fewest.dtype), axis=1)
            if not bool(xp.any(wrong)):
                return self.project(factor)
            fewer = count < fewest
            fewest = xp.where(fewer, count, fewest)
            tries = xp.where(fewer, xp.full_like(tries, FULL_EXCHANGES), tries - 1)
            last = xp.max(xp.where(wrong, index, -xp.ones_like(index)), axis=1)
            positive = positive ^ (wrong & ((tries >= 0)[:, None] | (index == last[:, None])))
        return super().solve(gram, product, factor)


def _solution(gram: Array, product: Array, positive: Array) -> Array:
    """Solve the equations of every row for the entries taken for positive, with zeros elsewhere."""
    xp = array_namespace(product)
    inside = positive[:, :, None] & positive[:, None, :]
    system = xp.where(inside, gram, identity(product.shape[1], product))
    right = xp.where(positive, product, xp.zeros_like(product))
    return xp.linalg.solve(system, right[:, :, None])[:, :, 0]
