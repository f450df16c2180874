r"""Standard errors under the noise that a residual shows.

To first order least squares moves the unknowns by :math:`(J^\top J)^+ J^\top e`, whose covariance is the sandwich
:math:`(J^\top J)^+ J^\top \Sigma J (J^\top J)^+`. For independent noise, :math:`J^\top \Sigma J` is the Gauss-Newton
matrix with variances as the weights of entries. If noise is correlated along modes,
:math:`\Sigma = C_0 \otimes C_1 \otimes \dots`, and its blocks are products of :math:`C_m`, :math:`C_m A_m` and
:math:`A_m^\top C_m A_m`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from codiag._arrays import double, is_complex, like, to_host
from codiag._text import described
from codiag.least_squares import NORMAL_QUANTILE, LeastSquares
from codiag.problem import Problem
from codiag.result import given_covariances, whitened
from codiag.tensors import DenseTensor, FactoredTensor
from codiag.theory._scatter import Scatter, correlations_at, estimate_scatter
from codiag.theory._sensitivity import (
    MOST_UNKNOWNS,
    Inverse,
    Unknowns,
    entry_errors,
    inverse_of,
    relative_weight_errors,
)

if TYPE_CHECKING:
    from codiag.result import Factorization


N_DRAWS, ROUNDS = 8, 2
"""Draws of noise from which it is estimated how much of its correlation a fit takes away, and how often in turn."""


LITTLE = 0.003
"""Share of parameters in entries up to which a fit takes away too little of the noise to correct for."""

MOST_LEVERAGE = 0.9
"""Leverage beyond which a residual says nothing about noise."""


@dataclass(frozen=True, eq=False)
class NoiseErrors:
    """Standard errors relative to `Factorization.noise`.

    Attributes
    ----------
    entries : tuple of arrays of shape (d_m, rank)
        Of the entries of unit factors.
    weights : array of shape (rank,)
    """

    entries: tuple[np.ndarray, ...]
    weights: np.ndarray


def scatter_of(fit: Factorization) -> Scatter | None:
    """Return how the noise of a fit scatters, as its residual shows it; None if the tensor is not at hand."""
    problem = fit._data
    if problem is None or problem.tensor.shape != fit.shape or 2 * problem.n_parameters > problem.n_independent:
        return None
    if problem.numbers_per_entry > 1:
        return None  # how complex noise scatters is not examined: it is taken to be circular and white
    is_known = fit._goodness is not None and fit._goodness.has_right_variance
    if is_known or fit._residual_excess == 0:  # no more than rounding
        return Scatter.white(fit.shape)
    takes_much = problem.n_parameters > LITTLE * problem.n_independent
    linear, weights = Linearization.of(fit) if takes_much else None, _weights_of(problem)
    model = to_host(fit.tensor.to_dense()).astype(np.float64) if linear is None else linear.model
    residual = np.asarray(to_host(problem.tensor.to_dense()), dtype=np.float64) - model
    residual = residual if weights is None else residual * np.sqrt(weights)
    residual = residual / 2.0 ** np.frexp(np.max(np.abs(residual)))[1]  # so that fourth powers are numbers
    observed = None if weights is None else weights > 0
    followed = 0.0 if linear is None else linear.leverages()  # as large as if the fit did not follow entries
    scatter = estimate_scatter(
        residual / np.sqrt(1 - followed), model, observed, problem.n_observed / problem.n_independent
    )
    if linear is not None and scatter.is_correlated:
        scatter = linear.with_true_correlations(scatter)
    is_noise = not scatter.is_structure and _is_typical(residual, observed, model, scatter)
    return replace(scatter, explains_residual=scatter.is_white or is_noise)


def _is_typical(residual: np.ndarray, observed: np.ndarray | None, model: np.ndarray, scatter: Scatter) -> bool:
    """Return whether no direction of a residual is stronger than in draws of noise, relative to its energy."""
    mode, rng = int(np.argmax(residual.shape)), np.random.default_rng(0)

    def strongest(tensor: np.ndarray) -> float:
        tensor = tensor if observed is None else np.where(observed, tensor, 0.0)
        value = DenseTensor.of(tensor, symmetric=False).leading_eigenpairs(mode, 1)[0][0]
        return float(value) / float(np.sum(tensor**2))

    drawn = [strongest(scatter.draw(model, rng)) for _ in range(N_DRAWS)]
    return strongest(residual) <= float(np.mean(drawn)) + 2 * NORMAL_QUANTILE * float(np.std(drawn, ddof=1))


def noise_in_words(fit: Factorization) -> str:
    """Say for which noise the errors of a fit are valid."""
    if given_covariances(fit) is not None:
        return "that of the covariances that were given"
    names = [f"mode {mode}" for mode in range(len(fit.shape))] if fit.labels is None else fit.labels.names
    if fit._goodness is not None and fit._goodness.has_right_variance:
        return f"that of {fit.loss!r}"
    if fit._goodness is not None:
        more = "" if fit._scatter is None or fit._scatter.is_white else f"; beyond that {fit._scatter.in_words(names)}"
        return f"{fit.dispersion:.2g} times the variance of {fit.loss!r}{more}"
    if fit._scatter is None:
        return "taken to be white: the residual was not examined"
    if fit.rank * sum(fit.shape) > MOST_UNKNOWNS and not fit._scatter.is_white:
        return f"taken to be white, since unknowns are many; the residual shows {fit._scatter.in_words(names)}"
    return fit._scatter.in_words(names)


def noise_errors(fit: Factorization) -> NoiseErrors:
    """Return standard errors for noise of unit variance that scatters as the residual of a fit does.

    Where the residual was not examined, or is white, and where unknowns are too many, noise is taken to be white.
    Covariances that were given are taken as they are.
    """
    whitened = _whitened_errors(fit)
    if whitened is not None:
        return whitened
    known = fit._sensitivity
    white = NoiseErrors(known.entries, known.weights)
    scatter = fit._scatter
    linear = None if scatter is None or scatter.is_white else Linearization.of(fit)
    if scatter is None or linear is None:
        return white
    entries, weights = linear.errors(scatter)
    entries = [np.where(np.isfinite(old), new, old) for old, new in zip(white.entries, entries, strict=True)]
    return NoiseErrors(tuple(entries), np.where(np.isfinite(white.weights), weights, white.weights))


def _whitened_errors(fit: Factorization) -> NoiseErrors | None:
    """Return the errors of a fit for the covariances that were given; None without, or if unknowns are too many."""
    covariances = given_covariances(fit)
    linear = None if covariances is None or not fit.noise > 0 else Linearization.of(fit)
    if covariances is None or linear is None or fit.problem is None:
        return None
    white, components = whitened(fit.problem, fit.tensor, covariances)
    ratio = math.sqrt(LeastSquares(white).distance(components)) / (fit.relative_error * fit.norm)
    known = linear.errors_of_whitened([np.linalg.inv(own) for own in covariances])
    return NoiseErrors(tuple(ratio * errors for errors in known.entries), ratio * known.weights)


class Intervals(NamedTuple):
    """Confidence intervals of a fit.

    Attributes
    ----------
    factors : tuple of pairs of arrays of shape (d_m, rank)
        Mode by mode, the lower and the upper ends for the entries of the factors.
    weights : pair of arrays of shape (rank,)
        The same for the weights.
    """

    factors: tuple[tuple[np.ndarray, np.ndarray], ...]
    weights: tuple[np.ndarray, np.ndarray]

    def __repr__(self) -> str:
        ends = ", ".join(f"{low:.4g} to {high:.4g}" for low, high in zip(*self.weights, strict=True))
        sizes = "; ".join(described(low) for low, _ in self.factors)
        return f"Intervals(weights: {ends}; factors, low and high: {sizes})"


def intervals(fit: Factorization, level: float) -> Intervals:
    """Return confidence intervals of a fit.

    Those of entries at a bound end there, and at what they could be if they were free. What is cut off at bounds makes
    weights uncertain, too: they have the larger of their errors with and without bounds.
    """
    if is_complex(fit.factors[0]):
        raise ValueError(
            "intervals are of real factors; those of this fit are complex. fit.entry_standard_errors are the root mean "
            "squared magnitudes of the errors of entries, and fit.weight_standard_errors hold for the weights, which "
            "are real"
        )
    times = NormalDist().inv_cdf((1 + level) / 2)
    weights = to_host(fit.weights)
    found, errors_of_weights, free = [], fit.weight_standard_errors, None
    for mode, (factor, errors) in enumerate(zip(map(to_host, fit.factors), fit.entry_standard_errors, strict=True)):
        low, high = factor - times * errors, factor + times * errors
        rule = None if fit.constraints is None else fit.constraints[mode]
        if rule is not None and rule.is_one_sided:
            free = free or _without_signs(fit)
            low, high = np.maximum(low, 0.0), np.where(factor == 0, times * free.entry_standard_errors[mode], high)
            errors_of_weights = np.maximum(errors_of_weights, free.weight_standard_errors)
        found.append((low, high))
    wide = times * errors_of_weights
    return Intervals(tuple(found), (weights - wide, weights + wide))


def _without_signs(fit: Factorization) -> Factorization:
    """Return a fit as if its factors could have any sign, with the same noise."""
    around = fit._linearization
    if around is None:
        return fit
    rules = tuple(None if rule is None or rule.is_one_sided else rule for rule in around.constraints or ())
    free = replace(fit, constraints=rules if any(rules) else None)
    vars(free).update(_linearization=around.with_constraints(free.constraints), _scatter=fit._scatter, noise=fit.noise)
    return free


@dataclass(frozen=True, eq=False)
class Linearization:
    """A fit to first order: its unknowns, and the inverse of the Gauss-Newton matrix."""

    unknowns: Unknowns
    components: FactoredTensor
    inverse: Inverse

    @classmethod
    def of(cls, fit: Factorization) -> Linearization | None:
        """Return that of a fit; None if unknowns are too many, or components have no weight."""
        components = fit.tensor
        if components.rank * sum(components.shape) > MOST_UNKNOWNS or not np.all(to_host(components.weights)):
            return None
        known = components.changed(lambda factor, _: double(factor), double(components.weights))
        problem = fit._linearization or Problem(known, known.rank, symmetric=bool(known.symmetric))
        unknowns = Unknowns.of(LeastSquares(problem.in_double_precision(), known), known)
        return cls(unknowns, known, inverse_of(unknowns))

    @cached_property
    def model(self) -> np.ndarray:
        """The fit, entry by entry."""
        return np.asarray(to_host(self.components.to_dense()))

    @cached_property
    def factors(self) -> list[np.ndarray]:
        """The factors that the unknowns stand for, mode by mode."""
        return [to_host(factor) for factor in self.unknowns.objective.layout.expanded(self.unknowns.point)]

    @cached_property
    def _weights(self) -> np.ndarray:
        """Weights of entries, one in the mean over those that were observed."""
        problem = self.unknowns.objective.problem
        weights = _weights_of(problem)
        return np.ones(self.model.shape) if weights is None else weights / problem.data.mean_weight

    def _by_modes(self, matrix: np.ndarray) -> list[list[np.ndarray]]:
        """Return a matrix on the free unknowns by pairs of modes, (d_m, k, d_n, k); zero for unknowns not free."""
        whole = np.zeros((self.unknowns.free.size,) * 2)
        index = np.flatnonzero(self.unknowns.free)
        whole[np.ix_(index, index)] = matrix
        numbers = self.unknowns.numbers
        return [[whole[one[:, :, None, None], other[None, None]] for other in numbers] for one in numbers]

    def leverages(self) -> np.ndarray:
        r"""Return how far the fit follows the noise of each entry, :math:`J (J^\top J)^+ J^\top` on its diagonal."""
        blocks, order = self._by_modes(self.inverse.covariance), len(self.factors)
        found = np.zeros(self.model.shape)
        for one in range(order):
            for other in range(one, order):
                found += (1 if one == other else 2) * self._contracted(blocks[one][other], one, other)
        return np.clip(found * self._weights, 0.0, MOST_LEVERAGE)

    def _contracted(self, block: np.ndarray, one: int, other: int) -> np.ndarray:
        """Return the part of two modes in the variance of each entry of the fit: N k^2 operations."""
        order, (r, s) = len(self.factors), (len(self.factors), len(self.factors) + 1)
        operands: list[Any] = []
        for mode, factor in enumerate(self.factors):
            if mode != one:
                operands += [factor, [mode, r]]
            if mode != other:
                operands += [factor, [mode, s]]
        if one == other:
            operands += [np.einsum("iris->irs", block), [one, r, s]]
        else:
            operands += [block, [one, r, other, s]]
        return np.asarray(np.einsum(*operands, list(range(order)), optimize=True))

    def meat(self, scatter: Scatter) -> np.ndarray:
        r"""Return :math:`J^\top \Sigma J` on the free unknowns, for noise of unit variance in the mean, and ridges."""
        index = np.flatnonzero(self.unknowns.free)
        ridges = np.diag(self.unknowns.ridges.ravel()[index])
        return self._products(scatter)[np.ix_(index, index)] + ridges

    def _products(self, scatter: Scatter) -> np.ndarray:
        if not scatter.is_correlated:
            return self._independent(scatter.relative_deviations(self.model) ** 2)
        covariances = scatter.covariances(self.model)
        alone = [np.diag(np.diagonal(covariance)) for covariance in covariances]
        share = np.count_nonzero(self._weights) / self.model.size  # of correlated entries, one may be missing
        variances = reduce(np.multiply.outer, [np.diagonal(covariance) for covariance in covariances])
        together = _separable(self.factors, covariances) - _separable(self.factors, alone)
        return self._independent(variances) + share**2 * together

    def _independent(self, variances: np.ndarray) -> np.ndarray:
        """Return the matrix for independent noise: that of Gauss-Newton, with variances as weights of entries."""
        problem, weights = self.unknowns.objective.problem, self._weights
        variances = variances / np.mean(variances[weights > 0])
        point = self.unknowns.point
        ones = DenseTensor.of(like(np.ones(weights.shape), point), symmetric=problem.tensor.symmetric)
        varied = LeastSquares(problem.with_weights(ones, like(weights * variances, point)), self.components)
        return np.asarray(to_host(varied.curvature(point).matrix()))

    def errors(self, scatter: Scatter) -> tuple[list[np.ndarray], np.ndarray]:
        """Return the standard errors of the entries of unit factors, and of the weights, relative to white noise.

        The residual of correlated noise is smaller than that of white noise, since a fit follows more of it.
        """
        meat = self.meat(scatter)
        covariance = self.inverse.covariance @ meat @ self.inverse.covariance
        n_entries = self.unknowns.objective.problem.n_independent
        taken = min(float(np.sum(self.inverse.covariance * meat)), n_entries / 2)
        scale = math.sqrt((n_entries - self.inverse.n_parameters) / (n_entries - taken))
        relative = relative_weight_errors(self.unknowns, covariance, self.inverse.null)
        entries = entry_errors(self.unknowns, covariance, self.inverse.null)
        return [scale * errors for errors in entries], scale * np.abs(to_host(self.components.weights)) * relative

    def errors_of_whitened(self, precisions: Sequence[np.ndarray]) -> NoiseErrors:
        """Return the errors of a fit that takes the inverse covariance of each mode into account."""
        inverse = inverse_of(self.unknowns, _separable(self.factors, precisions))
        relative = relative_weight_errors(self.unknowns, inverse.covariance, inverse.null)
        entries = entry_errors(self.unknowns, inverse.covariance, inverse.null)
        return NoiseErrors(tuple(entries), np.abs(to_host(self.components.weights)) * relative)

    def with_true_correlations(self, scatter: Scatter) -> Scatter:
        """Correct correlations for what a fit takes away of them, which draws of such noise show."""
        measured = scatter.correlations
        for _ in range(ROUNDS):
            rng = np.random.default_rng(0)
            left = [self._residual(scatter.draw(self.model, rng)) for _ in range(N_DRAWS)]
            deviations = np.sqrt(self._weights > 0) * scatter.product_deviations(self.model)
            better = []
            for mode, (lags, known) in enumerate(zip(measured, scatter.correlations, strict=True)):
                seen = correlations_at(left, deviations, mode, known.size)
                better.append(np.clip(lags + known - seen, 0.0, 1.0))
            scatter = replace(scatter, correlations=tuple(better))
        return scatter

    def _residual(self, noise: np.ndarray) -> np.ndarray:
        """Return what a fit leaves of noise, to first order, zero for missing entries."""
        weights = self._weights
        products = DenseTensor.of(noise * weights, symmetric=False).mttkrps(self.factors)
        gradient = np.zeros(self.unknowns.free.size)
        for numbers, product in zip(self.unknowns.numbers, products, strict=True):
            np.add.at(gradient, numbers, product)
        index, move = np.flatnonzero(self.unknowns.free), np.zeros(self.unknowns.free.size)
        move[index] = self.inverse.covariance @ gradient[index]
        taken = np.zeros(noise.shape)
        for mode, numbers in enumerate(self.unknowns.numbers):
            moved = [move[numbers] if other == mode else factor for other, factor in enumerate(self.factors)]
            taken += FactoredTensor(np.ones(self.components.rank), moved, symmetric=False).to_dense()
        return np.where(weights > 0, noise - taken, 0.0)


def _weights_of(problem: Problem) -> np.ndarray | None:
    """Return the weights of entries as an array, zero for missing ones; None if all count equally."""
    if problem.entries is None:
        return None
    weights = problem.observed_mask() if problem.observed is None else to_host(problem.observed)
    return np.asarray(weights, dtype=np.float64)


def _separable(factors: Sequence[np.ndarray], covariances: Sequence[np.ndarray]) -> np.ndarray:
    r"""Return :math:`J^\top (C_0 \otimes C_1 \otimes \dots) J` for the factors of all modes, row by row."""
    images = [covariance @ factor for covariance, factor in zip(covariances, factors, strict=True)]
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
