"""The start that a call with ``n_iter_max=0`` returns, as TensorLy does."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from codiag._arrays import asarray_like, to_double, to_host
from codiag._checks import as_generator
from codiag.least_squares import LeastSquares, with_best_weights
from codiag.methods import check_init, start_from
from codiag.problem import Problem
from codiag.result import Factorization
from codiag.tensors import DenseTensor, FactoredTensor


def start_of(problem: Problem, init: Any, rng: Any, mask: np.ndarray | None, n_fills: int) -> Factorization:
    """Return the start of a problem: a given one, random columns, or leading singular vectors of every unfolding."""
    objective = LeastSquares(problem)
    norm = math.sqrt(objective.squared_norm)
    if not 0 < norm < math.inf:
        raise ValueError(f"tensor must be finite, and not all zero; the norm of {objective.tensor!r} is {norm:g}")
    rng = as_generator(rng, "random_state", apart=True)
    if isinstance(init, str) and init == "svd":
        components = _leading_vectors(problem, rng, mask, n_fills)
    else:
        check_init(init, ("svd", "random"))
        components = start_from(init, problem, rng).components
    if problem.required_features:
        components = objective.feasible(components)
    error = objective.relative_error(components)
    return Factorization(components.weights, tuple(components.factors), error, False, _norm=norm)


def _leading_vectors(
    problem: Problem, rng: np.random.Generator, mask: np.ndarray | None, n_fills: int
) -> FactoredTensor:
    """Return leading singular vectors, and random columns if a mode has fewer; weights are those that fit best."""
    entries, rank = to_double(to_host(problem.complete().tensor.to_dense())), problem.rank
    present = np.ones(entries.shape, dtype=bool) if mask is None else mask > 0
    filled, factors = np.where(present, entries, 0.0), []
    for mode, size in enumerate(entries.shape):
        unfolded, known = (np.moveaxis(array, mode, 0).reshape(size, -1) for array in (filled, present))
        for _ in range(0 if known.all() else n_fills):
            left, sizes, right = np.linalg.svd(unfolded, full_matrices=False)
            unfolded = np.where(known, unfolded, (left[:, :rank] * sizes[:rank]) @ right[:rank])
        vectors = np.linalg.svd(unfolded, full_matrices=False)[0][:, :rank]
        others = rng.standard_normal((size, rank - vectors.shape[1]))
        factors.append(np.hstack([vectors, others / np.maximum(np.linalg.norm(others, axis=0), 1e-300)]))
        if mode == 0:
            start = np.moveaxis(unfolded.reshape(size, *entries.shape[1:]), 0, mode)
    best = with_best_weights(DenseTensor(start, symmetric=False), factors)
    reference = problem.tensor.reference
    return FactoredTensor(
        asarray_like(to_host(best.weights), reference),
        [asarray_like(to_host(factor), reference) for factor in best.factors],
    )
