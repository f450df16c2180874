"""Alternating least squares: one factor at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from array_api_compat import array_namespace

from codiag._array import Array
from codiag._validation import as_number
from codiag.methods.base import (
    Estimate,
    Init,
    Log,
    Method,
    check_init,
    hadamard_gram,
    solve_semidefinite,
    start_from,
    unit_components,
    with_best_weights,
)
from codiag.tensors import FactoredTensor, Tensor


@dataclass(frozen=True, kw_only=True)
class ALS(Method):
    """Alternating least squares: solve for the factor of one mode with the others fixed, in turns.

    The workhorse of other libraries, here as a rival and as a cheap polish. Every sweep passes over the whole tensor
    once per mode. For a symmetric tensor the modes are fitted apart and brought together at the end.

    Parameters
    ----------
    init : method, fit, or (weights, factors), optional
        Where to start. By default random.
    orthogonalise : int
        Sweeps, at the beginning, before each of which the factors are made orthonormal: what keeps them from running
        after the same component (Sharan and Valiant, 2017).
    tol : float
        Stop when the relative error falls by less than this in a sweep.
    max_sweeps : int
        Sweeps before giving up.
    """

    init: Init = None
    orthogonalise: int = 0
    tol: float = 1e-8
    max_sweeps: int = 1000

    def __post_init__(self) -> None:
        check_init(self.init)
        as_number("orthogonalise", self.orthogonalise, integer=True, zero=True)
        as_number("tol", self.tol)
        as_number("max_sweeps", self.max_sweeps, integer=True)

    def fit(self, tensor: Tensor, rank: int, rng: np.random.Generator) -> Estimate:
        start = start_from(self.init, tensor, rank, rng)
        log = Log()
        log.extend(start.stages)
        unit = unit_components(start.components)
        weights, factors = unit.weights, list(unit.factors)
        norm = math.sqrt(tensor.squared_norm())
        before, error, converged, n_sweeps = math.inf, math.inf, False, 0
        while n_sweeps < self.max_sweeps and not converged:
            if n_sweeps < self.orthogonalise:
                factors = [_orthonormal(factor) for factor in factors]
            weights, factors = _sweep(tensor, factors)
            before, error = error, math.sqrt(tensor.squared_distance(weights, factors)) / norm
            n_sweeps += 1
            converged = n_sweeps > self.orthogonalise and abs(before - error) < self.tol
        log.add("alternating least squares", n_sweeps, error)
        components = FactoredTensor(weights, factors)
        if tensor.symmetric:
            components = _brought_together(tensor, components)
        return Estimate(components, log.stages, converged)


def _sweep(tensor: Tensor, factors: list[Array]) -> tuple[Array, list[Array]]:
    """Solve for every factor in turn; return unit factors and the weights of the last."""
    xp = array_namespace(factors[0])
    factors = list(factors)
    for mode in range(tensor.order):
        product = tensor.mttkrp(factors, mode)
        solved = xp.matrix_transpose(solve_semidefinite(hadamard_gram(factors, [mode]), xp.matrix_transpose(product)))
        weights = xp.linalg.vector_norm(solved, axis=0)
        factors[mode] = solved / xp.where(weights > 0, weights, xp.ones_like(weights))
    return weights, factors


def _orthonormal(factor: Array) -> Array:
    xp = array_namespace(factor)
    return factor if factor.shape[0] < factor.shape[1] else xp.linalg.qr(factor)[0]


def _brought_together(tensor: Tensor, components: FactoredTensor) -> FactoredTensor:
    """Return one factor for all modes: the mean of theirs, once their signs agree."""
    xp = array_namespace(components.weights)
    first = components.factors[0]
    total = first
    for factor in components.factors[1:]:
        total = total + factor * xp.sign(xp.sum(first * factor, axis=0))
    lengths = xp.linalg.vector_norm(total, axis=0)
    return with_best_weights(tensor, [total / xp.where(lengths > 0, lengths, xp.ones_like(lengths))] * tensor.order)
