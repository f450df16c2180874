"""The default: joint diagonalization for a start that leads to the right optimum, least squares for the accuracy."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
from array_api_compat import array_namespace

from codiag._array import to_host
from codiag._validation import ConvergenceWarning, as_number
from codiag.diagonalize import UWEDGE, Diagonalizer, TwoSided
from codiag.methods.base import Estimate, Log, Method, random_components, with_best_weights
from codiag.methods.gauss_newton import Limits, Outcome
from codiag.methods.joint import off_diagonal_share
from codiag.methods.nls import Monitor, descend, finish, watch
from codiag.methods.rank_one import best_rank_one
from codiag.methods.slices import Roles, assign_roles, components_from_sides, slices
from codiag.reduction import reduce
from codiag.tensors import DenseTensor, FactoredTensor, Tensor


@dataclass(frozen=True, kw_only=True)
class Auto(Method):
    """Joint diagonalization of the slices of the compressed tensor, then least squares: what `factorize` does unasked.

    One start is enough almost always. The residual tells when it was not: it should look like noise. If it does not,
    others are tried and the best is kept. Where the rank is larger than all modes but one, nothing can be diagonalized
    and least squares starts from random points instead; `Factorization.stages` says so.

    Parameters
    ----------
    max_starts : int
        Starts at most; three times as many where they are random.
    tol : float
        Least squares stops when a step is smaller than this, relative to the factors.
    max_sweeps : int
        Steps of least squares before giving up, on each start; those after a replacement come on top.
    monitor : callable, optional
        Called as ``monitor(components, relative_error)`` after every step of least squares on the core; True ends the
        fit there.
    """

    max_starts: int = 4
    tol: float = 1e-9
    max_sweeps: int = 300
    monitor: Monitor | None = None

    def __post_init__(self) -> None:
        as_number("max_starts", self.max_starts, integer=True)
        as_number("tol", self.tol)
        as_number("max_sweeps", self.max_sweeps, integer=True)

    def fit(self, tensor: Tensor, rank: int, rng: np.random.Generator) -> Estimate:
        log = Log()
        reduction = reduce(tensor, rank, rng)
        core = reduction.core
        limits = Limits(self.max_sweeps, self.tol, watch=watch(self.monitor, reduction, tensor))
        if not reduction.complete:
            held = core.squared_norm() / tensor.squared_norm()
            log.add("compress", 0, math.sqrt(max(1 - held, 0.0)))
        roles = _roles(core, rank)
        outcomes: list[Outcome] = []
        for _ in range(self.max_starts if roles or rank == 1 else 3 * self.max_starts):
            outcomes.append(descend(core, _start(core, roles, rank, rng, log), limits, log, 2 * rank))
            best = min(outcomes, key=lambda outcome: outcome.objective)
            if _is_rounding(core, best) or (roles and _looks_like_noise(core, best)):
                break
        return finish(tensor, reduction, best, limits, log)


def _roles(core: DenseTensor, rank: int) -> Roles | None:
    """Return the modes to diagonalize, or None where there is nothing to."""
    if rank == 1 or (core.symmetric and core.shape[0] < rank):
        return None
    return assign_roles(core.shape, rank)


def _start(core: DenseTensor, roles: Roles | None, rank: int, rng: np.random.Generator, log: Log) -> FactoredTensor:
    """Diagonalize the slices of the core, or draw components where there is nothing to diagonalize."""
    if rank == 1:
        return best_rank_one(core)
    if roles is None:
        log.add("random start: the rank is too large to diagonalize", 0, 1.0)
        return random_components(core, rank, rng)
    stack = slices(core, roles, rank)
    diagonalizer: Diagonalizer = UWEDGE(rank=rank, fallback=False) if core.symmetric else TwoSided(rank=rank)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # least squares goes on from wherever it ends
        fit = diagonalizer(stack, seed=rng)
    flops = fit.n_sweeps * diagonalizer.sweep_flops(stack.shape[0], rank)
    log.add("diagonalize", fit.n_sweeps, off_diagonal_share(fit), flops)
    if core.symmetric:
        return with_best_weights(core, [fit.factor] * core.order)
    return components_from_sides(core, roles, fit.factor, fit.right_factor)


def _is_rounding(core: DenseTensor, found: Outcome) -> bool:
    return 2 * found.objective < 1e-20 * core.squared_norm()


def _looks_like_noise(core: DenseTensor, found: Outcome) -> bool:
    """Tell whether the residual spreads over all directions as noise does."""
    xp = array_namespace(core.reference)
    residual = core.to_dense() - found.components.to_dense()
    mode = int(np.argmax(core.shape))
    side = xp.reshape(xp.moveaxis(residual, mode, 0), (core.shape[mode], -1))
    values = to_host(xp.linalg.eigvalsh(side @ xp.matrix_transpose(side)))
    edge = (1 + math.sqrt(side.shape[0] / side.shape[1])) ** 2  # Marchenko and Pastur, for the largest over the mean
    return bool(values[-1] < 1.5 * edge * values.mean())
