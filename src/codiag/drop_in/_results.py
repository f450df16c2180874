"""Components in the form that TensorLy returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from codiag._arrays import Array, like, to_host
from codiag.drop_in._complex_fit import is_complex
from codiag.result import Factorization
from codiag.tensors import as_tensor, khatri_rao


def with_unit_weights(fit: Factorization, *, balanced: bool = False) -> Factorization:
    """Return the fit with its weights in the first factor, as TensorLy leaves them, or shared evenly by all."""
    if bool(array_namespace(fit.weights).all(fit.weights == 1)):
        return fit
    factors = list(fit.factors)
    if balanced:
        xp = array_namespace(fit.weights)
        share = xp.abs(fit.weights) ** (1 / len(factors))
        factors = [factor * share for factor in factors]
        factors[0] = xp.where(fit.weights < 0, -factors[0], factors[0])
    else:
        factors[0] = factors[0] * fit.weights
    return replace(fit, weights=fit.weights * 0 + 1, factors=tuple(factors), symmetric=None)


def with_unit_columns(fit: Factorization) -> Factorization:
    """Return the fit with unit columns and weights beside them, also where some factors came from a start."""
    xp = array_namespace(fit.weights)
    weights, factors = fit.weights, []
    for factor in fit.factors:
        length = xp.linalg.vector_norm(factor, axis=0)
        weights = weights * length
        factors.append(factor / xp.where(length > 0, length, xp.ones_like(length)))
    return replace(fit, weights=weights, factors=tuple(factors), symmetric=None)


def with_sparse(fit: Factorization, tensor: Any, count: int, mask: np.ndarray | None) -> tuple[Any, Array]:
    """Return components, and so many of the largest entries of what they leave where observed, zeros elsewhere."""
    plain = len(np.shape(tensor)) == 2 or is_complex(tensor) or mask is not None
    entries = tensor if plain else as_tensor(tensor, False).to_dense()
    first, *others, last = fit.factors
    xp = array_namespace(last)
    model = khatri_rao([first * fit.weights, *others]) @ xp.matrix_transpose(last)
    rest = to_host(entries) - to_host(xp.reshape(model, np.shape(tensor)))
    if mask is not None:
        rest = np.where(mask > 0, rest, 0)
    kept = np.zeros(rest.size, dtype=rest.dtype)
    largest = np.argpartition(-np.abs(rest), count - 1, axis=None)[:count]
    kept[largest] = rest.ravel()[largest]
    return as_cp(fit), like(kept.reshape(rest.shape), last)


def as_cp(fit: Factorization) -> Any:
    """Return components as TensorLy has them, each mode with memory of its own."""
    try:
        from tensorly.cp_tensor import CPTensor
    except ModuleNotFoundError:
        return fit
    return CPTensor((fit.weights, _apart(fit.factors)))


def _apart(factors: Sequence[Array]) -> list[Array]:
    return [array_namespace(factor).asarray(factor, copy=True) for factor in factors]
