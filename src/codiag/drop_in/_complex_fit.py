"""Components of complex arrays, by alternating least squares."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace

from codiag._arrays import Array, like, to_host
from codiag._checks import as_generator
from codiag.drop_in._given_starts import columns
from codiag.result import Factorization
from codiag.tensors import components_of, khatri_rao


def is_complex(tensor: Any) -> bool:
    """Tell whether an array holds complex numbers."""
    return "complex" in str(getattr(tensor, "dtype", ""))


class Sweeps(NamedTuple):
    """How long to go on: sweeps, the fall of the relative error below which it ends, and who may end it before."""

    max_sweeps: int
    tol: float
    monitor: Callable[[Factorization, float], bool]


def fit_complex(tensor: Array, rank: int, init: Any, fixed: Sequence[int], seed: Any, sweeps: Sweeps) -> Factorization:
    r"""Fit components to a complex array, :math:`X_{(m)} \approx A_m (\bigodot_{n \ne m} A_n)^\top`, mode by mode.

    Factors of fixed modes stay as they are in the start. Where the start is given, so do the order of the components
    and their scale; else columns have unit norm in all modes but the last, the largest component first.
    """
    xp = array_namespace(tensor)
    norm = float(xp.linalg.vector_norm(xp.reshape(tensor, (-1,))))
    if not 0 < norm < math.inf:
        raise ValueError(f"tensor must be finite, and not all zero; its norm is {norm:g}")
    given = not isinstance(init, str)
    factors = _given(tensor, rank, init) if given else _start(tensor, rank, init, seed)
    free = [mode for mode in range(tensor.ndim) if mode not in fixed]
    weights = xp.real(factors[-1][0, :]) * 0 + 1
    error, converged = math.inf, False
    for _ in range(sweeps.max_sweeps):
        for mode in free:
            factors[mode] = _solved(tensor, factors, mode)
            if mode != free[-1] and not fixed and not given:
                factors[mode] = _unit(factors[mode])
        before, error = error, _distance(tensor, factors) / norm
        converged = before - error < sweeps.tol
        if sweeps.monitor(Factorization(weights, tuple(factors), error, norm, converged), error) or converged:
            break
    if not given:
        order = np.argsort(-to_host(xp.linalg.vector_norm(factors[-1], axis=0)), kind="stable").tolist()
        factors = [columns(factor, order) for factor in factors]
    return Factorization(weights, tuple(factors), error, norm, converged)


def _solved(tensor: Array, factors: Sequence[Array], mode: int) -> Array:
    """Return the factor of a mode that fits best, the least one where several do."""
    xp = array_namespace(tensor)
    others = [factor for other, factor in enumerate(factors) if other != mode]
    gram = xp.matrix_transpose(others[0]) @ xp.conj(others[0])
    for factor in others[1:]:
        gram = gram * (xp.matrix_transpose(factor) @ xp.conj(factor))
    return _unfolded(tensor, mode) @ xp.conj(khatri_rao(others)) @ xp.linalg.pinv(gram)


def _distance(tensor: Array, factors: Sequence[Array]) -> float:
    xp = array_namespace(tensor)
    gap = _unfolded(tensor, 0) - factors[0] @ xp.matrix_transpose(khatri_rao(factors[1:]))
    return float(xp.linalg.vector_norm(xp.reshape(gap, (-1,))))


def _unfolded(tensor: Array, mode: int) -> Array:
    xp = array_namespace(tensor)
    return xp.reshape(xp.moveaxis(tensor, mode, 0), (tensor.shape[mode], -1))


def _unit(factor: Array) -> Array:
    xp = array_namespace(factor)
    length = xp.linalg.vector_norm(factor, axis=0)
    return factor / xp.where(length > 0, length, xp.ones_like(length))


def _start(tensor: Array, rank: int, init: str, seed: Any) -> list[Array]:
    """Return random factors, with "svd" those with the leading singular vectors of every unfolding before them."""
    xp = array_namespace(tensor)
    if init not in ("svd", "random"):
        raise ValueError(f"init must be 'svd', 'random', a CPTensor or a pair (weights, factors); got {init!r}")
    rng = as_generator(seed, "random_state", apart=True)
    drawn = [rng.standard_normal((size, rank)) + 1j * rng.standard_normal((size, rank)) for size in tensor.shape]
    factors = [_unit(like(values, tensor)) for values in drawn]
    if init == "random":
        return factors
    bases = [xp.linalg.svd(_unfolded(tensor, mode), full_matrices=False)[0] for mode in range(tensor.ndim)]
    return [
        xp.concat([basis[:, :rank], random[:, min(rank, basis.shape[1]) :]], axis=1)
        for basis, random in zip(bases, factors, strict=True)
    ]


def _given(tensor: Array, rank: int, init: Any) -> list[Array]:
    """Return factors of a start, its weights in the last of them."""
    components = components_of(init)
    if components is None:
        raise TypeError(f"init must be 'svd', 'random', a CPTensor or a pair (weights, factors); got {init!r}")
    weights, given = components
    arrays = [np.asarray(to_host(factor)) for factor in given]
    wanted = [(size, rank) for size in tensor.shape]
    if [array.shape for array in arrays] != wanted:
        raise ValueError(f"init must have factors of shapes {wanted}; got {[array.shape for array in arrays]}")
    if weights is not None:
        arrays[-1] = arrays[-1] * to_host(weights)
    return [like(array, tensor) for array in arrays]
