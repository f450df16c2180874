"""Solve a problem with a method, without warnings."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from codiag._arrays import double, few_threads, to_host
from codiag._checks import UndeterminedError, as_generator
from codiag.labels import Labels
from codiag.least_squares import LeastSquares
from codiag.methods import Method, fit_or_refuse
from codiag.problem import Problem
from codiag.result import CANCELLING, Factorization, as_factorization, cancelling_pairs, congruences, whole_norm
from codiag.tensors import DenseTensor, Tensor, is_large, sketch_width

MOST_EMPTY_BYTES = 2**30
"""Memory that rows of zeros may take in the factors of a sparse tensor."""


def with_labels(fit: Factorization, labels: Labels) -> Factorization:
    """Return a fit that knows what its modes and their indices are called."""
    sizes = [len(labels.index(mode, size)) for mode, size in enumerate(fit.shape[: len(labels.values)])]
    if len(labels.values) != len(fit.shape) or sizes != list(fit.shape):
        raise ValueError(f"labels must be for the modes of the tensor, {fit.shape}; got {sizes}")
    return replace(fit, labels=labels)


def solve(problem: Problem, method: Method, seed: Any = None) -> Factorization:
    """Do the work of `factorize`, silently: what is to be said of the fit, `complaint_about` says."""
    with few_threads(float(problem.rank) * math.prod(problem.tensor.shape)):
        return _solved(problem, method, seed)


def _solved(problem: Problem, method: Method, seed: Any) -> Factorization:
    rng = as_generator(seed, apart=True)
    smaller, kept = (problem, None) if method.sized or problem.asks else _without_empty_rows(problem)
    if is_large(smaller.tensor.shape) and smaller.tensor.holds_entries and not problem.asks:
        smaller.tensor.look(sketch_width(problem.rank, smaller.tensor.shape))
    norm = math.sqrt(LeastSquares(smaller).total)
    if not 0 < norm < math.inf:
        raise UndeterminedError(f"tensor must be finite, and not all zero; the norm of {problem.tensor!r} is {norm:g}")
    # What a method was given for this tensor is not scaled with it.
    scale = 1.0 if method.sized or has_safe_powers(problem.tensor, norm) else norm
    estimate = fit_or_refuse(method, in_double_precision(smaller.scaled(1 / scale)), rng)
    if scale != 1:
        found, left = estimate.components, estimate.squared_distance
        estimate = estimate._replace(
            components=found.changed(lambda factor, _: factor, found.weights * scale),
            squared_distance=None if left is None else left * scale**2,
        )
    fit = as_factorization(estimate, smaller)
    return fit if kept is None else _with_empty_rows(fit, kept, problem.tensor)


def has_safe_powers(tensor: Tensor, norm: float) -> bool:
    """Tell whether powers of the entries of a tensor are numbers, too, neither infinite nor zero."""
    safe = 1e40 if tensor.reference.dtype == array_namespace(tensor.reference).float64 else 1e6
    return 1 / safe < norm < safe


def in_double_precision(problem: Problem) -> Problem:
    """Ask the same of an array in double precision where entries count one by one, or constraints must hold exactly."""
    tensor = problem.tensor
    if not problem.asks or not isinstance(tensor, DenseTensor):
        return problem
    entries = tensor.to_dense()
    exact = double(entries)
    return problem if exact is entries else replace(problem, tensor=DenseTensor.of(exact, symmetric=tensor.symmetric))


def complaint_about(fit: Factorization, problem: Problem, method: Method) -> str | None:
    """Return what a user must be told of a fit, in a sentence, or None where there is nothing to tell."""
    largest, norm = float(np.max(np.abs(to_host(fit.weights)))), whole_norm(fit)
    if largest > CANCELLING * norm or (fit.converged and _has_large_cancelling_pair(fit)):
        return (
            f"components cancel each other: the largest weight is {largest:.2g}, the norm of {problem.tensor!r} "
            f"{norm:.2g}; there may be no best fit with rank {fit.rank}, try a lower one"
        )
    if fit.converged:
        return None
    sweeps = sum(stage.sweeps for stage in fit.stages)
    return (
        f"{type(method).__name__} did not converge in {sweeps} sweeps on {problem.tensor!r} with rank {fit.rank}; "
        f"the best fit is returned, relative error {fit.relative_error:.3g}. A lower rank may be easier to find"
    )


def _without_empty_rows(problem: Problem) -> tuple[Problem, list[np.ndarray] | None]:
    """Ask for a sparse tensor on the indices that have entries, where its components are; return those indices, too."""
    tensor, rank = problem.tensor, problem.rank
    if problem.second_moment is not None:
        return problem, None
    smaller, kept = tensor.without_empty_rows(at_least=rank)
    if smaller.shape == tensor.shape:
        return problem, None
    modes = range(1 if tensor.symmetric else tensor.order)
    n_empty = sum(tensor.shape[mode] - smaller.shape[mode] for mode in modes)
    n_bytes = n_empty * rank * tensor.reference.dtype.itemsize
    if n_bytes > MOST_EMPTY_BYTES:
        raise ValueError(
            f"tensor must not have so many indices without entries: {tensor!r} has {n_empty}, whose rows of zeros "
            f"would take {n_bytes / 1e9:.1f} GB in factors of rank {rank}. Number its indices anew, or factorize the "
            "first of smaller, kept = codiag.tensors.SparseTensor(...).without_empty_rows(), where row i of a factor "
            "belongs to index kept[mode][i]"
        )
    return problem.on(smaller), kept


def _with_empty_rows(fit: Factorization, kept: list[np.ndarray], tensor: Tensor) -> Factorization:
    """Return the factors with rows of zeros for indices that have no entries."""
    factors: list[np.ndarray] = []
    for factor, rows, size in zip(fit.factors, kept, tensor.shape, strict=True):
        whole = np.zeros((size, fit.rank), dtype=factor.dtype)
        whole[rows] = factor
        factors.append(whole)
        if tensor.symmetric:
            factors *= tensor.order
            break
    return replace(fit, factors=tuple(factors), n_observed=None)


def _has_large_cancelling_pair(fit: Factorization) -> bool:
    """Tell whether two components with more energy than the tensor nearly cancel each other."""
    weights = np.abs(to_host(fit.weights).astype(np.float64))
    pairs = cancelling_pairs(weights, congruences(fit))
    return any(weights[i] ** 2 + weights[j] ** 2 > whole_norm(fit) ** 2 for i, j, _ in pairs)
