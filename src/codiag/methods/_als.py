"""Alternating least squares: one factor at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from array_api_compat import array_namespace

from codiag._array import Array, moved
from codiag._validation import as_flag, as_number
from codiag.methods._base import (
    Estimate,
    Init,
    Log,
    Method,
    check_init,
    hadamard_gram,
    is_sized,
    merged_modes,
    random_components,
    solve_semidefinite,
    start_from,
    unit_components,
    with_best_weights,
)
from codiag.methods._reduction import range_bases
from codiag.tensors import FactoredTensor, Tensor


@dataclass(frozen=True, kw_only=True)
class ALS(Method):
    r"""Alternating least squares: solve for the factor of one mode with the others fixed, in turns.

    The workhorse of other libraries, here as a rival and as a cheap polish. For a symmetric tensor the modes are fitted
    apart and brought together at the end.

    *Needs* contractions of the tensor and nothing else. *Costs* :math:`2 N k \prod_m d_m` flops a sweep, N passes over
    the tensor. *Guarantees* a stationary point, and the right one only from a start near it (local convergence, for
    factors of incoherence below :math:`\mathrm{polylog}(d) / \sqrt d`). *Fails* by getting stuck in local optima, or by
    creeping through swamps where components are collinear.

    Parameters
    ----------
    init : {"random", "svd"}, method, fit, or (weights, factors)
        Where to start. "svd" takes the leading singular vectors of every unfolding, and random columns beyond their
        number.
    orthogonalise : int
        Sweeps, at the beginning, before each of which the factors are made orthonormal: what keeps them from running
        after the same component (Sharan and Valiant, 2017).
    line_search : bool
        Whether to try, every sweep, to go on in the direction of the last (Bro, 1998).
    tol : float
        Stop when the relative error falls by less than this in a sweep.
    max_sweeps : int
        Sweeps before giving up.
    """

    init: Init = "random"
    orthogonalise: int = 0
    line_search: bool = False
    tol: float = 1e-8
    max_sweeps: int = 1000

    def __post_init__(self) -> None:
        if not isinstance(self.init, str):
            check_init(self.init)
        elif self.init not in ("random", "svd"):
            raise ValueError(f"init must be 'random', 'svd', a method, a fit or a pair; got {self.init!r}")
        as_number("orthogonalise", self.orthogonalise, integer=True, zero=True)
        as_flag("line_search", self.line_search)
        as_number("tol", self.tol)
        as_number("max_sweeps", self.max_sweeps, integer=True)

    @property
    def sized(self) -> bool:
        return is_sized(self.init)

    def fit(self, tensor: Tensor, rank: int, rng: np.random.Generator) -> Estimate:
        start = self._start(tensor, rank, rng)
        log = Log()
        log.extend(start.stages)
        current = unit_components(start.components)
        error, converged, n_sweeps = math.inf, False, 0
        while n_sweeps < self.max_sweeps and not converged:
            factors = current.factors
            if n_sweeps < self.orthogonalise:
                factors = tuple(_orthonormal(factor) for factor in factors)
            before, last = error, current
            current = _sweep(tensor, factors)
            error = _error(tensor, current)
            n_sweeps += 1
            if self.line_search and n_sweeps > max(self.orthogonalise, 2):
                current, error = _further(tensor, last, current, error, n_sweeps)
            converged = n_sweeps > self.orthogonalise and abs(before - error) < self.tol
        flops = 2.0 * n_sweeps * tensor.order * rank * math.prod(tensor.shape)
        log.add("alternating least squares", n_sweeps, error, flops)
        if tensor.symmetric:
            current = with_best_weights(tensor, merged_modes(current).factors)
        return Estimate(current, log.stages, converged)

    def _start(self, tensor: Tensor, rank: int, rng: np.random.Generator) -> Estimate:
        if self.init == "random":
            return start_from(None, tensor, rank, rng)
        if self.init != "svd":
            return start_from(self.init, tensor, rank, rng)
        random = random_components(tensor, rank, rng).factors
        factors = [
            _padded(basis, columns) for basis, columns in zip(range_bases(tensor, rank, rng), random, strict=True)
        ]
        return Estimate(with_best_weights(tensor, factors), (), False)


def _padded(basis: Array, columns: Array) -> Array:
    """Return a basis, with random columns where it has fewer than there are components."""
    xp = array_namespace(columns)
    return xp.concat([moved(basis, columns), columns[:, basis.shape[1] :]], axis=1)


def _error(tensor: Tensor, components: FactoredTensor) -> float:
    return math.sqrt(tensor.squared_distance(components.weights, components.factors) / tensor.squared_norm())


def _further(
    tensor: Tensor, last: FactoredTensor, current: FactoredTensor, error: float, n_sweeps: int
) -> tuple[FactoredTensor, float]:
    """Go on from the last point through the current one, by a factor that grows with the sweeps, if that is closer."""
    jump = n_sweeps ** (1 / 3) - 1
    factors = [now + jump * (now - then) for now, then in zip(current.factors, last.factors, strict=True)]
    trial = unit_components(FactoredTensor(current.weights + jump * (current.weights - last.weights), factors))
    reached = _error(tensor, trial)
    return (trial, reached) if reached < error else (current, error)


def _sweep(tensor: Tensor, start: Sequence[Array]) -> FactoredTensor:
    """Solve for every factor in turn; return unit factors and the weights of the last."""
    xp = array_namespace(start[0])
    factors = list(start)
    for mode in range(tensor.order):
        product = tensor.mttkrp(factors, mode)
        solved = xp.matrix_transpose(solve_semidefinite(hadamard_gram(factors, [mode]), xp.matrix_transpose(product)))
        weights = xp.linalg.vector_norm(solved, axis=0)
        factors[mode] = solved / xp.where(weights > 0, weights, xp.ones_like(weights))
    return FactoredTensor(weights, factors)


def _orthonormal(factor: Array) -> Array:
    xp = array_namespace(factor)
    return factor if factor.shape[0] < factor.shape[1] else xp.linalg.qr(factor)[0]
