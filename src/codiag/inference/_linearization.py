"""Least squares to first order at components with constraints, missing entries or shared factors, by dense matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING

import numpy as np

from codiag._arrays import asarray_like, to_double, to_host
from codiag.inference._noise_model import NoiseModel
from codiag.inference._sandwich import ModeCovariance, residual_scale
from codiag.inference._sensitivity import (
    MOST_UNKNOWNS,
    Inverse,
    Unknowns,
    entry_errors,
    inverse_of,
    relative_weight_errors,
)
from codiag.least_squares import LeastSquares
from codiag.problem import Problem
from codiag.tensors import DenseTensor, FactoredTensor

if TYPE_CHECKING:
    from codiag.result import Factorization

Errors = tuple[list[np.ndarray], np.ndarray]
"""Standard errors of the entries of unit factors, and of the weights relative to them."""


@dataclass(frozen=True, eq=False)
class Linearization:
    """A fit to first order: its unknowns, and the inverse of the Gauss-Newton matrix."""

    unknowns: Unknowns
    components: FactoredTensor
    inverse: Inverse

    @classmethod
    def of(cls, fit: Factorization) -> Linearization | None:
        """Return that of a fit; None if unknowns are too many, or components have no weight."""
        components = fit._components
        if not np.all(to_host(components.weights)):
            return None
        known = components.changed(lambda factor, _: to_double(factor), to_double(components.weights))
        problem = fit._linearization or Problem(known, known.rank, symmetric=bool(known.symmetric))
        unknowns = Unknowns.of(LeastSquares(problem.in_double_precision(), known), known)
        if np.count_nonzero(unknowns.free) > MOST_UNKNOWNS:
            return None
        return cls(unknowns, known, inverse_of(unknowns))

    @cached_property
    def model(self) -> np.ndarray:
        """The fit, entry by entry."""
        return np.asarray(to_host(self.components.to_dense()))

    @cached_property
    def factors(self) -> list[np.ndarray]:
        """The factors that the unknowns stand for, mode by mode."""
        return [to_host(factor) for factor in self.unknowns.objective.parametrization.expand(self.unknowns.point)]

    @cached_property
    def _weights(self) -> np.ndarray:
        """Weights of entries, one in the mean over those that were observed."""
        problem = self.unknowns.objective.problem
        weights = weights_of(problem)
        return np.ones(self.model.shape) if weights is None else weights / problem.data.mean_weight

    def errors(self, noise_model: NoiseModel, covariances: Sequence[ModeCovariance]) -> Errors:
        """Return standard errors relative to those of white noise of unit variance.

        The residual of correlated noise is smaller than that of white noise, since a fit follows more of it.
        """
        meat = self.meat(noise_model, covariances)
        covariance = self.inverse.covariance @ meat @ self.inverse.covariance
        n_entries = self.unknowns.objective.problem.n_independent
        scale = residual_scale(n_entries, self.inverse.n_parameters, float(np.sum(self.inverse.covariance * meat)))
        entries = entry_errors(self.unknowns, covariance, self.inverse.null)
        relative = relative_weight_errors(self.unknowns, covariance, self.inverse.null)
        return [scale * errors for errors in entries], scale * relative

    def errors_of_whitened(self, precisions: Sequence[np.ndarray]) -> Errors:
        """Return the errors of a fit that takes the inverse covariance of each mode into account."""
        images = [precision @ factor for precision, factor in zip(precisions, self.factors, strict=True)]
        inverse = inverse_of(self.unknowns, _separable(self.factors, precisions, images))
        entries = entry_errors(self.unknowns, inverse.covariance, inverse.null)
        return entries, relative_weight_errors(self.unknowns, inverse.covariance, inverse.null)

    def meat(self, noise_model: NoiseModel, covariances: Sequence[ModeCovariance]) -> np.ndarray:
        r"""Return :math:`J^\top \Sigma J` on the free unknowns, for noise of unit variance in the mean, and ridges."""
        index = np.flatnonzero(self.unknowns.free)
        ridges = np.diag(self.unknowns.ridges.ravel()[index])
        if noise_model.is_independent:
            whole = self._independent(noise_model.relative_deviations(self.model) ** 2)
        elif noise_model.gain is not None:
            whole = self._of_gain(noise_model.gain)
        else:
            whole = self._correlated(covariances)
        return whole[np.ix_(index, index)] + ridges

    def _independent(self, variances: np.ndarray) -> np.ndarray:
        """Return the matrix for independent noise: that of Gauss-Newton, with variances as weights of entries."""
        problem, weights = self.unknowns.objective.problem, self._weights
        variances = variances / np.mean(variances[weights > 0])
        point = self.unknowns.point
        ones = DenseTensor.of(asarray_like(np.ones(weights.shape), point), symmetric=problem.tensor.symmetric)
        varied = LeastSquares(problem.with_weights(ones, asarray_like(weights * variances, point)), self.components)
        return np.asarray(to_host(varied.curvature(point).matrix()))

    def _correlated(self, covariances: Sequence[ModeCovariance]) -> np.ndarray:
        """Return the matrix for a Kronecker product of covariances; of correlated entries, one may be missing."""
        share = np.count_nonzero(self._weights) / self.model.size
        variances = reduce(np.multiply.outer, [own.diagonal for own in covariances])
        alone = [own.diagonal[:, None] * factor for own, factor in zip(covariances, self.factors, strict=True)]
        images = [own.product(factor) for own, factor in zip(covariances, self.factors, strict=True)]
        matrices = [own.product(np.eye(own.diagonal.size)) for own in covariances]
        together = _separable(self.factors, matrices, images)
        together -= _separable(self.factors, [np.diag(own.diagonal) for own in covariances], alone)
        return self._independent(variances) + share * together  # the variances are of observed entries

    def _of_gain(self, mode: int) -> np.ndarray:
        r"""Return the matrix for noise :math:`\mu_{ijk} z_{jk}`: each fibre moves by its gradient."""
        factors, unknowns = self.factors, self.unknowns
        model = self.model * (self._weights > 0)
        model = model / root_mean_square(model[self._weights > 0])
        rank, order = self.components.rank, len(factors)
        fibres = np.zeros((model.size // model.shape[mode], unknowns.free.size))
        moved = np.moveaxis(model, mode, -1).reshape(fibres.shape[0], -1)
        others = [other for other in range(order) if other != mode]
        rows = np.indices([model.shape[other] for other in others]).reshape(len(others), -1)
        parts = [factors[other][row] for other, row in zip(others, rows, strict=True)]
        along, numbers = moved @ factors[mode], unknowns.numbers
        whole = math.prod(parts[1:], start=parts[0])
        for row in range(model.shape[mode]):
            fibres[:, numbers[mode][row]] += moved[:, row, None] * whole
        places = np.arange(fibres.shape[0])[:, None]
        for number, other in enumerate(others):
            rest = math.prod((part for own, part in enumerate(parts) if own != number), start=np.ones((1, rank)))
            np.add.at(fibres, (places, numbers[other][rows[number]]), along * rest)
        return np.asarray(fibres.T @ fibres)


def root_mean_square(values: np.ndarray) -> float:
    """Return the root of the mean square, whose squares may be no numbers."""
    largest = max(float(np.max(np.abs(values))), 1e-300)
    return largest * math.sqrt(float(np.mean((values / largest) ** 2)))


def weights_of(problem: Problem) -> np.ndarray | None:
    """Return the weights of entries as an array, zero for missing ones; None if all count equally."""
    if problem.entries is None:
        return None
    weights = problem.observed_mask() if problem.weights is None else to_host(problem.weights)
    return np.asarray(weights, dtype=np.float64)


def _separable(
    factors: Sequence[np.ndarray], covariances: Sequence[np.ndarray], images: Sequence[np.ndarray]
) -> np.ndarray:
    r"""Return :math:`J^\top (C_0 \otimes C_1 \otimes \dots) J` for the factors of all modes, row by row."""
    grams = [factor.T @ image for factor, image in zip(factors, images, strict=True)]
    modes, rank = range(len(factors)), factors[0].shape[1]
    ends = np.cumsum([factor.size for factor in factors])
    matrix = np.empty((ends[-1], ends[-1]))
    for one in modes:
        for other in modes:
            rest = np.ones((rank, rank))
            for third in set(modes) - {one, other}:
                rest = rest * grams[third]
            if one == other:
                block = np.einsum("ij,rs->irjs", covariances[one], rest)
            else:
                block = np.einsum("is,jr,rs->irjs", images[one], images[other], rest)
            rows = slice(ends[one] - factors[one].size, ends[one])
            columns = slice(ends[other] - factors[other].size, ends[other])
            matrix[rows, columns] = block.reshape(factors[one].size, factors[other].size)
    return matrix
