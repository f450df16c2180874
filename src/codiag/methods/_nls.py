"""Nonlinear least squares: damped Gauss-Newton steps on all factors at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from codiag._validation import as_number
from codiag.methods._base import Estimate, Init, Log, Method, check_init, is_sized, random_components, start_from
from codiag.methods._reduction import SMALL, Reduction, reduce, whole
from codiag.methods.least_squares._gauss_newton import Limits, Outcome, minimize, polish
from codiag.methods.least_squares._replacement import rescue
from codiag.methods.least_squares._saddles import leave_saddles
from codiag.tensors import DenseTensor, FactoredTensor, Tensor

ROUGH = Limits(max_sweeps=100, tol=1e-6, gain=0.1, rough=True)
"""For a start: to where further steps gain less than noise explains."""

Monitor = Callable[[FactoredTensor, float], bool | None]

POLISH_ENTRIES, LEAST_POLISH = 2**24, 30
"""Entries that all sweeps of a polish may look at together, and sweeps that are allowed whatever the size: from the end
of a fit to the core few are needed, unless the model does not fit."""

PASSES = 3
"""Steps on a tensor too large to work on at leisure."""


@dataclass(frozen=True, kw_only=True)
class NLS(Method):
    r"""Least squares, :math:`\min \|T - \sum_i w_i a_i \otimes b_i \otimes c_i\|^2`, by damped Gauss-Newton steps.

    The steps run on the tensor compressed to the ranges of its components, then on the tensor itself. Where the
    residual shows a component that was missed, it takes the place of one that does little.

    Parameters
    ----------
    init : method, fit, or (weights, factors), optional
        Where to start. By default random.
    n_starts : int
        Random starts, of which the best is kept.
    tol : float
        Stop when a step is smaller than this, relative to the factors.
    max_sweeps : int
        Steps before giving up, on each start; those after a replacement come on top.
    max_replacements : int
        Components that may be replaced, on each start.
    monitor : callable, optional
        Called as ``monitor(components, relative_error)`` after every step on the core; True ends the fit there.
    """

    init: Init = None
    n_starts: int = 1
    tol: float = 1e-9
    max_sweeps: int = 300
    max_replacements: int = 8
    monitor: Monitor | None = None

    def __post_init__(self) -> None:
        check_init(self.init)
        as_number("n_starts", self.n_starts, integer=True)
        as_number("tol", self.tol)
        as_number("max_sweeps", self.max_sweeps, integer=True)
        as_number("max_replacements", self.max_replacements, integer=True, zero=True)
        check_monitor(self.monitor)

    @property
    def sized(self) -> bool:
        return is_sized(self.init) or self.monitor is not None

    def fit(self, tensor: Tensor, rank: int, rng: np.random.Generator) -> Estimate:
        log = Log()
        reduction, starts = self._starts(tensor, rank, rng, log)
        limits = Limits(self.max_sweeps, self.tol, watch=watch(self.monitor, reduction, tensor))
        outcomes = [approach(reduction.core, start, limits, log, self.max_replacements) for start in starts]
        return finish(tensor, reduction, closest(outcomes), limits, log, self.max_replacements)

    def _starts(
        self, tensor: Tensor, rank: int, rng: np.random.Generator, log: Log
    ) -> tuple[Reduction, list[FactoredTensor]]:
        """Return a core and where to start on it; a start that was given is not to be cut to the range of the data."""
        if self.init is None:
            reduction = reduce(tensor, rank, rng)
            return reduction, [random_components(reduction.core, rank, rng) for _ in range(self.n_starts)]
        start = start_from(self.init, tensor, rank, rng)
        log.extend(start.stages)
        reduction = reduce(tensor, rank, rng, including=start.components.factors)
        return reduction, [reduction.lower(start.components)]


def approach(core: DenseTensor, start: FactoredTensor, limits: Limits, log: Log, max_replacements: int) -> Outcome:
    """Fit the components to a core roughly, with components replaced where that helps."""
    rough = replace(ROUGH, max_sweeps=min(ROUGH.max_sweeps, limits.max_sweeps), watch=limits.watch)
    found, n_replaced = minimize(core, start, rough), 0
    n_sweeps = found.n_sweeps
    if max_replacements > 0:
        found, n_replaced = rescue(core, found, rough, max_replacements=max_replacements)
    name = f"least squares, {n_replaced} replaced" if n_replaced > 0 else "rough least squares"
    log.add(name, n_sweeps, relative_error(core, found.objective), step_flops(core, start.rank) * n_sweeps)
    return found._replace(n_sweeps=n_sweeps)


def finish(
    tensor: Tensor, reduction: Reduction, found: Outcome, limits: Limits, log: Log, max_replacements: int
) -> Estimate:
    """Fit the components to the core to the end, lift them to the tensor, and fit them there to what the core lost.

    On a tensor of moderate size a component that noise had hidden in the core is looked for once more.
    """
    left = replace(limits, max_sweeps=max(limits.max_sweeps - found.n_sweeps, 0))
    final = _settled(reduction.core, found.components, left, log, "least squares")
    components = reduction.lift(final.components)
    if reduction.complete or is_stopped(limits):
        return Estimate(components, log.stages, final.converged)
    if math.prod(tensor.shape) <= SMALL:
        n_sweeps = min(limits.max_sweeps, max(LEAST_POLISH, POLISH_ENTRIES // math.prod(tensor.shape)))
        dense, unwatched = whole(tensor).core, replace(limits, watch=None, max_sweeps=n_sweeps)
        outcome = _settled(dense, components, unwatched, log, "polish")
        better, n_replaced = rescue(dense, outcome, ROUGH, max_replacements=max_replacements)
        if n_replaced > 0:
            outcome = _settled(dense, better.components, unwatched, log, f"polish, {n_replaced} replaced")
        return Estimate(outcome.components, log.stages, outcome.converged)
    components, n_passes, converged = polish(tensor, components, max_passes=PASSES, tol=1e-7)
    log.add("polish", n_passes, math.nan, step_flops(tensor, components.rank) * n_passes)
    return Estimate(components, log.stages, converged)


def _settled(dense: DenseTensor, start: FactoredTensor, limits: Limits, log: Log, name: str) -> Outcome:
    """Fit the components to a dense tensor to the end, and past saddle points."""
    outcome = leave_saddles(dense, minimize(dense, start, limits), limits)
    flops = step_flops(dense, start.rank) * outcome.n_sweeps
    log.add(name, outcome.n_sweeps, relative_error(dense, outcome.objective), flops)
    return outcome


def closest(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the outcome with the least objective, one that is not a number last."""
    return min(outcomes, key=lambda outcome: math.inf if math.isnan(outcome.objective) else outcome.objective)


class Watch:
    """What lets a monitor see components of the whole tensor with their relative error, until it says True."""

    def __init__(self, monitor: Monitor, reduction: Reduction, tensor: Tensor) -> None:
        self._monitor, self._reduction = monitor, reduction
        self._total = tensor.squared_norm()
        self._lost = max(self._total - reduction.core.squared_norm(), 0.0)
        self.stopped = False

    def __call__(self, components: FactoredTensor, objective: float) -> bool:
        if not self.stopped:
            error = math.sqrt((self._lost + 2 * objective) / self._total)
            self.stopped = self._monitor(self._reduction.lift(components), error) is True
        return self.stopped


def check_monitor(monitor: object) -> None:
    """Raise unless a monitor, if any, can be called."""
    if monitor is not None and not callable(monitor):
        raise TypeError(f"monitor must be None or a function of components and their relative error; got {monitor!r}")


def watch(monitor: Monitor | None, reduction: Reduction, tensor: Tensor) -> Watch | None:
    """Return a watch for the monitor, if there is one."""
    return None if monitor is None else Watch(monitor, reduction, tensor)


def is_stopped(limits: Limits) -> bool:
    """Tell whether a monitor has asked for the end."""
    return isinstance(limits.watch, Watch) and limits.watch.stopped


def step_flops(tensor: Tensor, rank: int) -> float:
    """Return the operations of a step, leading term: products with the entries, for the model and two for the slope."""
    return (4.0 if tensor.symmetric else 6.0) * math.prod(tensor.shape) * rank


def relative_error(tensor: Tensor, objective: float) -> float:
    """Return the relative error that half a squared distance amounts to."""
    return math.sqrt(2 * objective / tensor.squared_norm()) if tensor.squared_norm() > 0 else 0.0
