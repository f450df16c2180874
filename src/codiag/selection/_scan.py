"""Fits of several ranks to one tensor, which share one compression and start from each other, and their flaws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from codiag._arrays import double, to_host
from codiag._progress import tell
from codiag.least_squares import (
    BRIEF_SWEEPS,
    CANCELLING,
    N_FLIPS,
    NORMAL_QUANTILE,
    ROUGH,
    LeastSquares,
    Limits,
    minimize,
)
from codiag.problem import Budget, Estimate, Log, Problem
from codiag.reduction import Reduction, reduce
from codiag.result import Factorization, as_factorization, cancelling_pairs, canonical, congruences, whole_norm
from codiag.search import End, explore, finish
from codiag.starts import Extended, Random, Start, default_starts
from codiag.tensors import DenseTensor, FactoredTensor, is_large, symmetrize
from codiag.theory import Unknowns, largest_noise_term, outliers_of

EFFORT = 3.0
"""Work of the search of a rank, relative to that for its first local minimum, as in a fit."""

SCAN = replace(ROUGH, max_products=BRIEF_SWEEPS)
"""Limits for a rank: the next ones start from its end, and the rank that is chosen is fitted to the end."""

BRIEF = replace(SCAN, max_sweeps=4)
"""Limits for ranks above the supported one: surplus components converge slowly, and to noise."""

CERTAIN = 2.0
"""Standard errors that weights of components exceed if noise is not white."""

MAX_STARTS, MAX_SWAPS = 2, 20
"""Starts of each rank: by diagonalization, and from the rank below; and swaps from each."""


@dataclass
class Scan:
    """Fits of one problem by rank.

    Attributes
    ----------
    problem : Problem
        For the largest of the ranks, in double precision.
    space : Reduction
        The core on which all fits begin; the whole problem if it cannot be compressed.
    fits : dict of int to Factorization
    ends : dict of int to End
        The fits on the core.
    """

    problem: Problem
    space: Reduction
    fits: dict[int, Factorization] = field(default_factory=dict)
    ends: dict[int, End] = field(default_factory=dict)

    @classmethod
    def begun(cls, problem: Problem, rng: np.random.Generator) -> Scan:
        """Compress a problem, for the largest of the ranks, and fit none yet."""
        problem = problem.in_double_precision()
        return cls(problem, reduce(problem, rng))

    def space_of(self, rank: int) -> Reduction:
        """Return the space with the problem of one of the ranks."""
        return replace(self.space, problem=self.space.problem.with_rank(rank))

    def finish(self, rank: int) -> None:
        """Bring the fit of one rank to its minimum, on all of the tensor."""
        problem, limits = self.problem.with_rank(rank), Limits(max_sweeps=300)
        estimate = finish(problem, self.space_of(rank), self.ends[rank], limits, Log(), MAX_SWAPS)
        self.fits[rank] = as_factorization(estimate, problem)


def scan(scanned: Scan, ranks: Sequence[int], rng: np.random.Generator, *, polish: bool = True) -> Scan:
    """Fit components of every rank to what a scan has begun with, in ascending order, roughly.

    A free and complete tensor is compressed once, for the largest rank, and all fits begin on that core: from its
    diagonalization, and from the components of the rank below joined by the strongest terms of their residual. Once the
    residual is noise, and one more component is not sound, further ranks get a few steps from the rank below. Without
    `polish`, fits stay on the core, without swaps. Constraints and missing entries are fitted on all of the tensor.
    """
    problem = scanned.problem
    is_noise = is_over = False
    below: Factorization | None = None
    for rank in ranks:
        tell("rank %d%s", rank, "" if polish else ", half of the data", is_place=True)
        space = scanned.space_of(rank)
        lower = scanned.ends.get(max(scanned.ends, default=0))
        starts, limits = _starts(space.problem, lower, is_over), BRIEF if is_over else SCAN
        limits = replace(limits, budget=Budget(EFFORT))
        n_swaps = MAX_SWAPS if polish and not is_noise else 0  # only noise is left to be swapped for
        end = explore(space.problem, starts, rng, max_starts=MAX_STARTS, max_swaps=n_swaps, limits=limits)
        scanned.ends[rank] = end
        fit = _on_tensor(problem.with_rank(rank), space, end, limits if polish else None)
        scanned.fits[rank] = fit
        is_over = is_over or (is_noise and not is_sound(fit, below))
        is_noise = is_noise or end.is_noise
        below = fit
    return scanned


def _starts(problem: Problem, lower: End | None, is_over: bool) -> Sequence[Start]:
    """Return the starts of a rank, given the end of a lower one."""
    extended = () if lower is None else (Extended(components=lower.outcome.components),)
    if is_over and extended:
        return extended
    return (*default_starts(problem)[:1], *extended, Random())


def _on_tensor(problem: Problem, space: Reduction, end: End, limits: Limits | None) -> Factorization:
    """Return a fit to the core as one to the tensor: improved there, or without another pass over a large one."""
    components = space.to_tensor(end.outcome.components)
    if not space.is_complete and space.dense is None:
        final, total = canonical(components, problem), problem.tensor.squared_norm()
        rest = max(total - space.core.squared_norm(), 0.0) + 2 * end.objective
        return Factorization(final.weights, final.factors, math.sqrt(rest / total), math.sqrt(total), False)
    if not space.is_complete and limits is not None:
        whole = space.uncompressed()
        outcome = minimize(whole.problem, whole.to_core(components), limits)
        components = whole.to_tensor(outcome.components)
    return as_factorization(Estimate(components, (), False), problem)


MOST_NUMBERS = 2**22
"""Of the derivative of the model by its unknowns, entries times unknowns, up to which it is formed: a second."""


def excess_over_draws(components: FactoredTensor, problem: Problem) -> float:
    r"""Return how many times the strongest direction of a residual exceeds what white noise would leave in any.

    To first order a fit takes of noise its part in the range of the derivative J of the model, and leaves the rest:
    noise is drawn, projected, and its largest squared singular value, relative to its energy, held against that of the
    residual: the mean over draws plus 3.1 standard deviations, which one of a thousand exceeds. This holds however few
    degrees of freedom are left. Unknowns that constraints do not leave free take nothing. NaN where J is too large.
    """
    known = components.changed(lambda factor, _: double(factor), double(components.weights))
    n_unknowns = known.rank * sum(known.shape)
    if n_unknowns * math.prod(known.shape) > MOST_NUMBERS:
        return math.nan
    roots = problem.observed_mask().astype(np.float64)
    if problem.observed is not None:
        roots = np.sqrt(to_host(problem.observed).astype(np.float64) * roots)
    range_of, rng = _range(known, problem, roots), np.random.default_rng(0)
    drawn = []
    for _ in range(N_FLIPS):
        noise = rng.standard_normal(known.shape)
        noise = (symmetrize(noise) if problem.symmetric is True else noise) * (roots > 0)
        residual = noise.ravel() - range_of @ (range_of.T @ noise.ravel())
        drawn.append(_share(roots * residual.reshape(known.shape)))
    residual = to_host(LeastSquares(problem).residual(components).to_dense())
    bound = float(np.mean(drawn) + NORMAL_QUANTILE * np.std(drawn, ddof=1))
    return _share(residual) / bound if bound > 0 else 0.0


def _share(residual: np.ndarray) -> float:
    """Return the square of the largest singular value of an unfolding, relative to the energy."""
    energy, mode = float(np.sum(residual**2)), int(np.argmax(residual.shape))
    return (
        float(DenseTensor.of(residual, symmetric=False).leading_eigenpairs(mode, 1)[0][0]) / energy
        if energy > 0
        else 0.0
    )


def _range(components: FactoredTensor, problem: Problem, roots: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis, (n, p), of how entries times roots of their weights move with the free unknowns."""
    unknowns = Unknowns.of(LeastSquares(problem, components), components)
    factors = [to_host(factor) for factor in components.factors]
    factors[0] = factors[0] * to_host(components.weights)
    order, columns = components.order, []
    for mode, places in enumerate(unknowns.numbers):
        parts = [factor[(None,) * other + (slice(None),) + (None,) * (order - 1 - other)]
                 for other, factor in enumerate(factors) if other != mode]  # fmt: skip
        rest = math.prod(parts[1:], start=parts[0])  # the mode itself has length one
        unit = np.eye(places.shape[0]).reshape((1,) * mode + (-1,) + (1,) * (order - 1 - mode) + (places.shape[0], 1))
        moves = (roots[..., None, None] * unit * rest[..., None, :]).reshape(roots.size, -1)
        columns.append(moves[:, unknowns.free.ravel()[places].ravel()])
    jacobian = np.concatenate(columns, axis=1)
    left, values, _ = np.linalg.svd(
        jacobian / np.maximum(np.linalg.norm(jacobian, axis=0), 1e-300), full_matrices=False
    )
    return left[:, values > 1e-10 * np.max(values, initial=0.0)]


def flaw_of(fit: Factorization, below: Factorization | None = None) -> str:
    """Return what is wrong with the components of a fit, in a few words, or nothing.

    What the least of them is worth, all others having moved to make up for it, is known to first order from the fit
    alone, and exactly from one of a lower rank, where that is given: it leaves so much more.
    """
    if is_degenerate(fit):
        return "components cancel"
    if not math.isfinite(fit.noise):
        return "no entries to spare"
    if not _is_determined(fit):
        return "not determined"
    if outliers_of(fit):
        return "fits outliers"
    is_coloured = fit._residual_excess is not None and fit._residual_excess > 1
    if is_coloured and np.any(np.abs(to_host(fit.weights)) < CERTAIN * fit.weight_standard_errors):
        return "not determined"
    least, worth = largest_noise_term(fit) ** 2, fit._sensitivity.worth
    # What is worth NaN was not computed, and is not held against the rank.
    if np.any(worth <= least) or (below is not None and _mean_gain(fit, below) <= least):
        return "fits noise"
    return ""


def _is_determined(fit: Factorization) -> bool:
    """Tell whether the data determines all components, but for rows of which too little was observed."""
    for errors, rows in zip(fit._sensitivity.entries, fit._sensitivity.undetermined, strict=True):
        others = np.delete(errors, rows, axis=0)
        if others.size == 0 or np.any(np.isinf(others)):
            return False
    return True


def _mean_gain(fit: Factorization, below: Factorization) -> float:
    """Return by how much each further component lowers the squared distance."""
    squares = [(one.relative_error * one.norm) ** 2 for one in (fit, below)]
    return (squares[1] - squares[0]) / (fit.rank - below.rank)


def is_degenerate(fit: Factorization) -> bool:
    """Tell whether some components of a fit cancel each other."""
    weights = np.abs(to_host(fit.weights).astype(np.float64))
    return bool(weights.max() > CANCELLING * whole_norm(fit) or cancelling_pairs(weights, congruences(fit)))


def is_sound(fit: Factorization, below: Factorization | None = None) -> bool:
    """Tell whether nothing is wrong with the components of a fit."""
    return not flaw_of(fit, below)


def residual_excess(fit: Factorization, problem: Problem) -> float:
    """Return how far a residual stands out of noise, also if few degrees of freedom remain; NaN if not computed."""
    if fit._residual_excess is not None:
        return fit._residual_excess
    return math.nan if is_large(problem.tensor.shape) else excess_over_draws(fit.tensor, problem)
