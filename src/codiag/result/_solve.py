"""Solve a problem with a method, without warnings."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from codiag._arrays import few_threads, to_host
from codiag._checks import UndeterminedError, as_generator
from codiag.least_squares import CANCELLING
from codiag.methods import Method, fit_or_refuse
from codiag.problem import Problem
from codiag.result._canonical import as_factorization, cancelling_pairs, congruences, whole_norm
from codiag.result._factorization import Factorization
from codiag.tensors import Tensor, is_large, sketch_width

MOST_EMPTY_BYTES = 2**30
"""Memory that rows of zeros may take in the factors of a sparse tensor."""


def solve(problem: Problem, method: Method, seed: Any = None) -> Factorization:
    """Run `factorize` without issuing warnings; `complaint_about` returns the text of the warning."""
    with few_threads(float(problem.rank) * math.prod(problem.tensor.shape)):
        return _solved(problem, method, seed)


def _solved(problem: Problem, method: Method, seed: Any) -> Factorization:
    rng = as_generator(seed, apart=True)
    keeps_rows = method.has_per_index_options or problem.required_features
    smaller, rows = (problem, None) if keeps_rows else _without_empty_rows(problem)
    if is_large(smaller.tensor.shape) and smaller.tensor.holds_entries and not problem.required_features:
        smaller.tensor.sketch(sketch_width(problem.rank, smaller.tensor.shape))
    scale = 1.0 if method.has_per_index_options else safe_scale(smaller)  # options are not scaled with the tensor
    estimate = fit_or_refuse(method, smaller.scaled(1 / scale).in_double_precision(), rng)
    if scale != 1:
        components, distance = estimate.components, estimate.squared_distance
        estimate = estimate._replace(
            components=components.changed(lambda factor, _: factor, components.weights * scale),
            squared_distance=None if distance is None else distance * scale**2,
        )
    fit = as_factorization(estimate, smaller)
    return fit if rows is None else _with_empty_rows(fit, rows, problem)


def safe_scale(problem: Problem) -> float:
    """Return the norm of the observed entries if powers of entries would overflow or underflow, else one."""
    tensor, norm = problem.tensor, math.sqrt(problem.data.squared_norm)
    if not 0 < norm < math.inf:
        raise UndeterminedError(f"tensor must be finite, and not all zero; the norm of {tensor!r} is {norm:g}")
    safe = 1e40 if tensor.reference.dtype == array_namespace(tensor.reference).float64 else 1e6
    return 1.0 if 1 / safe < norm < safe else norm


def complaint_about(fit: Factorization, method: Method) -> str | None:
    """Return the text of the warning about a fit, or None if there is nothing to warn of."""
    largest, norm = float(np.max(np.abs(to_host(fit.weights)))), whole_norm(fit)
    tensor = f"a tensor of {' x '.join(map(str, fit.shape))}"
    if largest > CANCELLING * norm or (fit.converged and _has_large_cancelling_pair(fit)):
        return (
            f"components cancel each other: the largest weight is {largest:.2g}, the norm of {tensor} {norm:.2g}; "
            f"there may be no best fit with rank {fit.rank}, try a lower one"
        )
    if fit.converged:
        return None
    sweeps = sum(stage.sweeps for stage in fit.stages)
    return (
        f"{type(method).__name__} did not converge in {sweeps} sweeps on {tensor} with rank {fit.rank}; the best fit "
        f"is returned, relative error {fit.relative_error:.3g}. A lower rank may be easier to find"
    )


def _without_empty_rows(problem: Problem) -> tuple[Problem, list[np.ndarray] | None]:
    """Drop the indices of a sparse tensor that have no entries; return the indices that are kept, too."""
    tensor, rank = problem.tensor, problem.rank
    if problem.second_moment is not None:
        return problem, None
    smaller, rows = tensor.without_empty_rows(at_least=rank)
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
    return problem.with_tensor(smaller), rows


def _with_empty_rows(fit: Factorization, rows: list[np.ndarray], problem: Problem) -> Factorization:
    """Return the factors with rows of zeros for indices that have no entries."""
    factors: list[np.ndarray] = []
    tensor: Tensor = problem.tensor
    for factor, kept, size in zip(fit.factors, rows, tensor.shape, strict=True):
        whole = np.zeros((size, fit.rank), dtype=factor.dtype)
        whole[kept] = factor
        factors.append(whole)
        if tensor.symmetric:
            factors *= tensor.order
            break
    return replace(fit, factors=tuple(factors), n_observed=None, labels=problem.labels)


def _has_large_cancelling_pair(fit: Factorization) -> bool:
    """Return whether two components with more energy than the tensor nearly cancel each other."""
    weights = np.abs(to_host(fit.weights).astype(np.float64))
    pairs = cancelling_pairs(weights, congruences(fit))
    return any(weights[i] ** 2 + weights[j] ** 2 > whole_norm(fit) ** 2 for i, j, _ in pairs)
