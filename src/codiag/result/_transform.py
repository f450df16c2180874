"""Coefficients of new samples along a mode, with the other factors as they were fitted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from codiag._arrays import (
    Array,
    adjoint,
    array_namespace,
    asarray_like,
    conjugate,
    epsilon,
    identity,
    is_complex,
    to_double,
    to_host,
    to_namespace,
)
from codiag.constraints import Constraint, Fixed, NonNegative, times_gram
from codiag.labels import is_xarray, read_like
from codiag.least_squares import GeneralizedObjective, Limits, hadamard_gram, minimize
from codiag.problem import Problem, absent_as, after_first_look, without_missing
from codiag.result._exports import as_array_of_samples
from codiag.tensors import FactoredTensor, Tensor, as_tensor, multiplied
from codiag.tensors.entries import ObservedEntries

if TYPE_CHECKING:
    from codiag.result._factorization import Factorization


class Samples(NamedTuple):
    """Samples along a mode of a fit: their tensor, and what was observed of it, with its weights, or None for all."""

    tensor: Tensor
    entries: ObservedEntries | None
    weights: Array | None

    @classmethod
    def of(cls, fit: Factorization, new: Any, mode: int, weights: Any) -> Samples:
        """Read what a user gives, or say what is wrong with it."""
        plain = read_like(new, fit.problem.labels, mode, absent_as(fit.problem.loss)).tensor
        entries, known = without_missing(plain, weights)
        if known is None:
            entries, known = after_first_look(entries, None)
        _check_shape(fit, getattr(entries, "shape", None) or np.shape(entries), mode)
        tensor = as_tensor(entries, False)
        weights = None if known is None else tensor.weights_like(known)
        return cls(tensor, tensor.observed_entries(weights), weights)


def transform(fit: Factorization, new: Any, mode: Any, weights: Any) -> Any:
    """Return what `Factorization.transform` does."""
    mode = _as_mode(mode, len(fit.shape))
    samples = Samples.of(fit, new, mode, weights)
    _check_field(fit, samples)
    if fit._deviance is not None:
        found = scored_coefficients(fit, samples, mode)
    else:
        found = coefficients(*_whitened(fit, samples, mode), mode)
    if not is_xarray(new):
        return found
    names = tuple(str(name) for name in new.dims)
    if fit.problem.labels is not None and set(fit.problem.labels.names) == set(names):
        names = fit.problem.labels.names
    return as_array_of_samples(found, new, names[mode])


def _whitened(fit: Factorization, samples: Samples, mode: int) -> tuple[Factorization, Samples]:
    """Return a fit and samples in coordinates of the other modes in which noise is white, if it has covariances."""
    covariances = None if fit.problem.loss is None else fit.problem.loss.covariances(fit.shape)
    if covariances is None:
        return fit, samples
    if samples.entries is not None:
        raise ValueError("new must be complete, and mask and weights left out, for a fit with covariances of the noise")
    roots = [_root(own) for other, own in enumerate(covariances) if other != mode]
    roots.insert(mode, np.eye(samples.tensor.shape[mode]))
    entries = multiplied(to_host(samples.tensor.to_dense()), roots)
    roots[mode] = np.eye(fit.shape[mode])
    factors = tuple(root @ to_host(factor) for root, factor in zip(roots, fit.factors, strict=True))
    return replace(fit, factors=factors), samples._replace(tensor=as_tensor(entries, False))


def _root(covariance: np.ndarray) -> np.ndarray:
    """Return a matrix that makes noise of a covariance white."""
    return np.linalg.inv(np.linalg.cholesky(covariance))


def _check_field(fit: Factorization, samples: Samples) -> None:
    """Raise unless samples are complex if the fit is, and only then."""
    dtype = samples.tensor.reference.dtype
    if is_complex(fit.factors[0]) and not is_complex(samples.tensor.reference):
        raise TypeError(f"new must be complex, as the tensor of the fit is; got {dtype}. Pass new.astype(complex)")
    if is_complex(samples.tensor.reference) and not is_complex(fit.factors[0]):
        raise TypeError(
            f"new must be real, as the tensor of the fit is; got {dtype}. Transform real and imaginary parts"
        )


def coefficients(fit: Factorization, samples: Samples, mode: int) -> Array:
    """Return the coefficients of samples, shape (n, rank)."""
    gram, product = _equations(fit, samples, mode)
    constraint = None if fit.problem.constraints is None else fit.problem.constraints[mode]
    if constraint is not None and constraint.ridge:
        rows = _solution_with_ridge(fit, mode, constraint.ridge, gram, product)
    elif constraint is None or not constraint.is_separable:
        rows = _solution(gram, product)
    else:
        rows = _solution_under(constraint, gram, product)
    return to_namespace(rows, samples.tensor.reference)


def scored_coefficients(fit: Factorization, samples: Samples, mode: int) -> Array:
    """Return the coefficients of samples under the loss of a fit: convex for all losses of codiag but odds."""
    problem, start = _fixed_problem(fit, samples, mode)
    solved = minimize(problem, start, Limits()).components
    return to_namespace(solved.factors[mode] * solved.weights, samples.tensor.reference)


def _fixed_problem(fit: Factorization, samples: Samples, mode: int) -> tuple[Problem, FactoredTensor]:
    """Return the problem whose factors are those of a fit but for one mode, and a start inside the constraints."""
    reference, loss = to_double(samples.tensor.reference), fit.problem.loss
    factors = [asarray_like(to_host(factor).astype(np.float64), reference) for factor in fit._components.factors]
    rule = None if fit.problem.constraints is None else fit.problem.constraints[mode]
    rule = rule if rule is not None and rule.is_separable else None
    is_positive = loss is not None and loss.needs_nonnegative
    rules = [Fixed(factor) for factor in factors]
    constraints = [(NonNegative() if is_positive else rule) if m == mode else known for m, known in enumerate(rules)]
    problem = Problem(
        samples.tensor, fit.rank, constraints=constraints, weights=samples.weights, symmetric=False, loss=loss
    )
    size = problem.tensor.shape[mode]
    factors[mode] = asarray_like(np.zeros((size, fit.rank)), reference)
    if is_positive:  # the mean of the samples, which no entry excludes
        factors[mode] = factors[mode] + 1.0
        ones = asarray_like(np.ones(fit.rank), reference)
        total = float(array_namespace(reference).sum(FactoredTensor(ones, factors, symmetric=False).to_dense()))
        entries = problem.listed_entries
        mean = entries.total(entries.values) / max(entries.size, 1)
        factors[mode] = factors[mode] * (max(mean, 1e-12) * math.prod(problem.tensor.shape) / total)
    return problem, FactoredTensor(asarray_like(np.ones(fit.rank), reference), factors, symmetric=False)


def explained_share(fit: Factorization, new: Any) -> float:
    """Return the share of the squares of new samples along the first mode, as observed, that components explain."""
    if fit._deviance is not None:
        problem, start = _fixed_problem(fit, Samples.of(fit, new, 0, None), 0)
        objective = GeneralizedObjective(problem)
        solved = minimize(problem, start, Limits())
        return 1 - 2 * solved.objective / objective.squared_norm if objective.squared_norm > 0 else 1.0
    tensor, entries, _ = samples = Samples.of(fit, new, 0, None)
    reference = tensor.reference
    others = [asarray_like(to_host(factor), reference) for factor in fit._components.factors[1:]]
    ones = asarray_like(np.ones(fit.rank), reference)
    fitted = FactoredTensor(ones, [coefficients(fit, samples, 0), *others], symmetric=False)
    residual = tensor.squared_distance(ones, fitted.factors) if entries is None else entries.distance(fitted)
    total = tensor.squared_norm() if entries is None else entries.squared_norm()
    return 1 - residual / total if total > 0 else 1.0


def sizes_of_others(fit: Factorization, mode: int) -> np.ndarray | None:
    r"""Return the size that components have in the other modes of a fit under ridges, shape (rank,); None without.

    Under ridges of strengths :math:`\lambda_m` the size :math:`w = \prod_m n_m` of a component is spread over the modes
    such that :math:`\lambda_m n_m^2 = t` is the same in all, which is least; so :math:`t^{M/2} = w \prod_m
    \lambda_m^{1/2}` over the M modes whose sizes are not fixed, and the size in the modes but m is :math:`w / n_m`.
    Where a mode of any size has no ridge it takes all of the size, and nothing is held back.
    """
    constraints = fit.problem.constraints or (None,) * len(fit.factors)
    constraint_of_mode = constraints[mode]
    total = np.abs(to_double(to_host(fit.weights)))
    sizes, strengths = total, []
    for factor, constraint in zip(fit._components.factors, constraints, strict=True):
        if constraint is not None and constraint.is_fixed:
            sizes = sizes / fixed_sizes(to_host(factor), constraint)
        else:
            strengths.append(0.0 if constraint is None else constraint.ridge)
    if constraint_of_mode is None or not constraint_of_mode.ridge or not all(strengths):
        return None
    shared = (sizes * math.sqrt(math.prod(strengths))) ** (2 / len(strengths))
    return np.divide(total, np.sqrt(shared / constraint_of_mode.ridge), out=np.zeros_like(total), where=shared > 0)


def fixed_sizes(factor: np.ndarray, constraint: Constraint) -> np.ndarray:
    """Return the lengths of the columns of a known factor, in the order of the fit's unit columns."""
    known = to_double(to_host(constraint.project(factor)))
    lengths = np.linalg.norm(known, axis=0)
    overlaps = np.abs(adjoint(to_double(factor)) @ (known / np.where(lengths > 0, lengths, 1)))
    return lengths[np.argmax(overlaps, axis=1)]


def _equations(fit: Factorization, samples: Samples, mode: int) -> tuple[Array, Array]:
    """Return the normal equations of the coefficients: one Gram matrix for all samples, or one for each."""
    tensor, entries, _ = samples
    reference = to_double(tensor.reference)
    factors = [asarray_like(to_double(to_host(factor)), reference) for factor in fit._components.factors]
    factors[mode] = asarray_like(np.zeros((tensor.shape[mode], fit.rank)), reference)
    if entries is not None:
        return entries.row_grams(factors, mode), entries.row_products(factors, mode)
    product = tensor.mttkrp([to_namespace(conjugate(factor), tensor.reference) for factor in factors], mode)
    return hadamard_gram(factors, [mode]), to_namespace(product, reference)


def _solution(gram: Array, product: Array) -> Array:
    """Return the least-squares solution, the smallest where there are several."""
    xp = array_namespace(product)
    values, vectors = xp.linalg.eigh(gram)
    nonzero = values > 10 * gram.shape[-1] * epsilon(gram) * values[..., -1:]
    inverse = xp.where(nonzero, 1 / xp.where(nonzero, values, xp.ones_like(values)), xp.zeros_like(values))
    return times_gram(times_gram(product, conjugate(vectors)) * inverse, xp.matrix_transpose(vectors))


def _solution_with_ridge(fit: Factorization, mode: int, strength: float, gram: Array, product: Array) -> Array:
    sizes = sizes_of_others(fit, mode)
    if sizes is None:
        return _solution(gram, product)
    scale = asarray_like(sizes, product)
    ridge = strength * identity(fit.rank, product)
    return scale * _solution(gram * scale[:, None] * scale + ridge, product * scale)


def _solution_under(constraint: Constraint, gram: Array, product: Array) -> Array:
    """Return the minimum over rows that satisfy a constraint, from one solution to the next until they settle."""
    xp = array_namespace(product)
    rows = constraint.project(_solution(gram, product))
    for _ in range(100):
        before, rows = rows, constraint.solve(gram, product, rows)
        change = float(xp.max(xp.abs(rows - before)))
        if change <= 1e-13 * float(xp.max(xp.abs(rows))):
            break
    return rows


def _as_mode(mode: Any, order: int) -> int:
    if isinstance(mode, bool) or not isinstance(mode, int | np.integer):
        raise TypeError(f"mode must be an integer, counted from 0; got {mode!r}")
    if not -order <= mode < order:
        raise ValueError(f"mode must be one of the {order} of the fit, from 0 to {order - 1}; got {mode}")
    return int(mode) % order


def _check_shape(fit: Factorization, shape: Sequence[int], mode: int) -> None:
    wanted, given = list(fit.shape), list(shape)
    if len(given) == len(wanted) and given[mode] > 0:
        wanted[mode] = given[mode]
    if given != wanted:
        sizes = ", ".join("n" if other == mode else str(size) for other, size in enumerate(fit.shape))
        raise ValueError(
            f"new must have shape ({sizes}), n samples along mode {mode} and the other modes as in the fit; "
            f"got {tuple(given)}. A single sample is a tensor with n = 1"
        )
