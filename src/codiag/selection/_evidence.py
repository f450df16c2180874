"""The evidence for each rank, from fits of the tensor and of its halves, and the rule that chooses a rank by it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from array_api_compat import array_namespace

from codiag._arrays import Array, like, pick, to_host
from codiag.least_squares import LeastSquares
from codiag.metrics import consistency_of, match_components
from codiag.problem import Problem, most_components
from codiag.result import Factorization
from codiag.selection._scan import Scan, flaw_of, is_degenerate, residual_excess
from codiag.tensors import DenseTensor, FactoredTensor, is_large
from codiag.theory import REPLICATES, part_of


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is known about one rank.

    Attributes
    ----------
    rank : int
    relative_error : float
    core_consistency : float
        In percent; NaN where the tensor is too large.
    held_out : array of shape (n_blocks,), or None
        Squared errors of blocks that were left out, relative to the squared norm of all.
    congruence : float
        Of the components of two halves, the least; NaN where there are no halves.
    smallest_ratio : float
        The least over components of a weight over its standard error.
    residual_excess : float
        As in `Factorization`; NaN where it is not known.
    degenerate : bool
        Whether components cancel each other.
    flaw : str
        Why the rank is not supported, or empty.
    open_rows : tuple of pairs of int
        Mode and index of the rows of factors for which too little was observed.
    replication : float
        Likeness of the strongest terms of the residual in two halves of the data; NaN if it passes for white noise, or
        was not examined.
    noise_model : str
        The noise that the residual shows, in words.
    is_explained : bool
        Whether noise of that kind leaves such a residual.
    """

    rank: int
    relative_error: float
    core_consistency: float
    held_out: np.ndarray | None
    congruence: float
    smallest_ratio: float
    residual_excess: float
    degenerate: bool
    flaw: str
    open_rows: tuple[tuple[int, int], ...] = ()
    replication: float = math.nan
    noise_model: str = ""
    is_explained: bool = False

    @property
    def leaves_noise(self) -> bool:
        """Whether nothing but noise is left, white or not, so that no further component would replicate."""
        return self.residual_excess <= 1 or (self.is_explained and self.replication < REPLICATES)

    @property
    def held_out_error(self) -> float:
        """Relative error of what was left out."""
        return math.nan if self.held_out is None else math.sqrt(float(np.sum(self.held_out)))


def evidence_for(scanned: Scan, rank: int, halves: Halves) -> Evidence:
    """Return all that is known about one of the ranks of a scan."""
    fit, problem = scanned.fits[rank], scanned.problem.with_rank(rank)
    below = scanned.fits.get(max((other for other in scanned.fits if other < rank), default=0))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.abs(to_host(fit.weights)) / fit.weight_standard_errors
    return Evidence(
        rank,
        fit.relative_error,
        _consistency(scanned, rank, problem),
        halves.errors.get(rank),
        halves.congruence.get(rank, math.nan),
        float(np.min(ratios)),
        residual_excess(fit, problem),
        is_degenerate(fit),
        flaw_of(fit, below),
        tuple((mode, row) for mode, rows in enumerate(fit._sensitivity.undetermined) for row in rows),
        fit._residual_replication,
        fit.noise_model,
        fit._scatter is not None and fit._scatter.explains_residual,
    )


def _consistency(scanned: Scan, rank: int, problem: Problem) -> float:
    if not scanned.space.is_complete and scanned.space.dense is None:  # the core has the same consistency
        return consistency_of(scanned.ends[rank].outcome.components, scanned.space.problem.with_rank(rank))
    return math.nan if is_large(problem.tensor.shape) else consistency_of(scanned.fits[rank].tensor, problem)


def decide(table: Sequence[Evidence]) -> tuple[int | None, str]:
    """Return the rank that is supported, or None, and why; `choose_rank` states the rule."""
    sound = [evidence for evidence in table if not evidence.flaw]
    if not sound:
        return None, _nothing(table)
    largest = sound[-1]
    if largest.leaves_noise:
        return largest.rank, _of_noise(largest, table) + _open(largest)
    alike = [evidence for evidence in sound if not evidence.congruence < REPLICATES]
    if not alike:
        best = max(sound, key=lambda evidence: evidence.congruence)
        return None, (
            f"No rank is supported: {_residual(largest)}, and the components of two halves of the data "
            f"differ at every rank (the best, {best.rank}, has a congruence of {best.congruence:.2f})."
        )
    chosen = _predicting(alike)
    return chosen.rank, _of_prediction(chosen, largest, alike, table) + _open(chosen)


def is_settled(table: Sequence[Evidence], rank: int | None) -> bool:
    """Tell whether no higher rank need be tried: the last two predict no better than a lower one, and are not chosen.

    Where nothing could be left out, the last two have flaws.
    """
    lower, last = table[:-2], table[-2:]
    known = [evidence for evidence in lower if evidence.held_out is not None]
    if not lower or (rank is not None and rank >= last[0].rank):
        return False
    if not known or any(evidence.held_out is None for evidence in last):
        return all(evidence.flaw for evidence in last)
    best = min(known, key=lambda evidence: evidence.held_out_error)
    return all(_is_as_good(best.held_out, evidence.held_out) for evidence in last)


def ranks_tried(ranks: Sequence[int]) -> str:
    """Return a sentence on the ranks that were fitted."""
    if len(ranks) == 1:
        return f"Only rank {ranks[0]} was tried."
    is_range = len(ranks) > 2 and ranks[-1] - ranks[0] == len(ranks) - 1
    words = f"{ranks[0]} to {ranks[-1]}" if is_range else f"{', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"
    return f"Ranks {words} were tried."


def _predicting(candidates: Sequence[Evidence]) -> Evidence:
    """Return the smallest rank that predicts as well as the best, within one standard error of the difference."""
    known = [evidence for evidence in candidates if evidence.held_out is not None]
    if not known:
        return candidates[-1]
    best = min(known, key=lambda evidence: evidence.held_out_error)
    return next(evidence for evidence in known if _is_as_good(evidence.held_out, best.held_out))


def _is_as_good(errors: np.ndarray | None, best: np.ndarray | None) -> bool:
    """Return whether errors of blocks exceed the best by at most one standard error of their differences."""
    if errors is None or best is None:
        return False
    gaps = errors - best
    spread = math.sqrt(gaps.size) * float(np.std(gaps, ddof=1)) if gaps.size > 1 else 0.0
    return float(np.sum(gaps)) <= spread


def _nothing(table: Sequence[Evidence]) -> str:
    flaws = {evidence.flaw for evidence in table}
    return f"No rank is supported: every rank that was tried has a flaw ({', '.join(sorted(flaws))})."


def _of_noise(chosen: Evidence, table: Sequence[Evidence]) -> str:
    if chosen.residual_excess == 0:
        return f"Rank {chosen.rank}: it explains the tensor up to rounding, and {_beyond(chosen, table)}."
    # Rows that too little was observed of may take any length, and the weights with them.
    ratio = (
        f" (the smallest weight is {chosen.smallest_ratio:.3g} standard errors)" if chosen.smallest_ratio > 0 else ""
    )
    rest = "the residual passes for white noise"
    if not chosen.residual_excess <= 1:
        rest = f"two halves of the data do not agree on what is left, noise that is not white ({chosen.noise_model})"
    return f"Rank {chosen.rank}: all components stand out from the noise{ratio}, {rest}, and {_beyond(chosen, table)}."


def _beyond(chosen: Evidence, table: Sequence[Evidence]) -> str:
    """Return why the next higher rank was not chosen."""
    after = next((evidence for evidence in table if evidence.rank > chosen.rank), None)
    if after is None:
        return "no higher rank was tried"
    return f"rank {after.rank} is not supported ({after.flaw})" if after.flaw else f"rank {after.rank} is not needed"


def _residual(largest: Evidence) -> str:
    """Return a clause on a residual that is not known to be white noise."""
    if math.isnan(largest.residual_excess):
        return "whether the residual is noise is not known"
    return f"the residual of rank {largest.rank}, the highest whose components stand out of noise, is not white noise"


def _open(chosen: Evidence) -> str:
    """Return a sentence on the rows of the factors that are not determined, or an empty string."""
    rows = [f"{row} of mode {mode}" for mode, row in chosen.open_rows]
    shown = ", ".join(rows[:3]) + (f" and {len(rows) - 3} more" if len(rows) > 3 else "")
    return f" Too little was observed to determine what the factors have at index {shown}." if rows else ""


def _of_prediction(chosen: Evidence, largest: Evidence, alike: Sequence[Evidence], table: Sequence[Evidence]) -> str:
    reasons = _residual(largest)
    if chosen.held_out is None:
        reasons += (
            ", and the data cannot be halved; this is the highest rank whose components stand out from the noise: "
            f"{_beyond(chosen, table)}"
        )
    else:
        numbers = f"error {chosen.held_out_error:.3g}, congruence {chosen.congruence:.2f}"
        names = ", ".join(str(evidence.rank) for evidence in alike)
        reasons += (
            ", so that prediction and replication decide: of the ranks whose components are found in both halves of "
            f"the data ({names}), it is the lowest that predicts what was left out as well as the best of them, within "
            f"a standard error ({numbers})"
        )
    better = min(table, key=lambda evidence: evidence.held_out_error if evidence.held_out is not None else math.inf)
    if chosen.held_out is not None and not _is_as_good(chosen.held_out, better.held_out):
        reasons += (
            f"; rank {better.rank} predicts better (error {better.held_out_error:.3g}), but "
            f"{better.flaw or 'its components differ between the halves'}"
        )
    more = "" if is_settled(table, chosen.rank) else " Higher ranks may predict better: try them."
    return f"Rank {chosen.rank}: {reasons}.{more}"


GROUPS = 4
"""Groups of columns; each is left out in turn and predicted from the others. Chosen by experience."""

ENOUGH_ROWS = 8
"""Samples from which the first mode is split into halves: of fewer, a half may lack a component that the other has, and
the largest mode is split instead."""


@dataclass(frozen=True, eq=False)
class Split:
    """Two halves of a tensor along a mode.

    Attributes
    ----------
    mode : int
        The mode whose rows they share out.
    parts : sequence of Problem
        Both halves; none if there is nothing to be halved.
    ranks : sequence of int
        Those that the halves allow.
    """

    mode: int = 0
    parts: Sequence[Problem] = ()
    ranks: Sequence[int] = ()


@dataclass(frozen=True, eq=False)
class Halves:
    """Agreement of the fits of both halves of a tensor, and errors of prediction, by rank.

    Attributes
    ----------
    congruence : dict of int to float
        The least over components of the mean cosine between what the two halves find, in the modes they share.
    errors : dict of int to array of shape (n_blocks,)
        Squared errors of the blocks that were left out, relative to the squared norm of all blocks.
    """

    congruence: dict[int, float]
    errors: dict[int, np.ndarray]


def split_halves(scanned: Scan, ranks: Sequence[int], rng: np.random.Generator) -> Split:
    """Halve a tensor at random along its first mode, or its largest if the first has few samples.

    A tensor too large for that is represented by its core, turned at random, which leaves white noise white and spreads
    every component evenly over all rows.
    """
    problem = _formed(scanned, rng)
    if problem is None or max(problem.tensor.shape) < 4:  # each half has two rows
        return Split()
    shape = problem.tensor.shape
    mode = 0 if shape[0] >= ENOUGH_ROWS else int(np.argmax(shape))
    order = rng.permutation(shape[mode])
    rows = [np.sort(order[: order.size // 2]), np.sort(order[order.size // 2 :])]
    parts = [part for half in rows if (part := part_of(problem, {mode: half})) is not None]
    allowed = [rank for rank in ranks if all(rank <= most_components(part.tensor.shape) for part in parts)]
    return (
        Split(mode, [part.with_rank(max(allowed)) for part in parts], allowed)
        if len(parts) == 2 and allowed
        else Split()
    )


def compare_halves(split: Split, scans: Sequence[Scan], rng: np.random.Generator) -> Halves:
    """Compare the fits of both halves of a tensor, and predict blocks of each from the other.

    Factors of all modes but that of the halves are taken from one half. Rows of the other half get their scores by
    least squares from some of their columns, and what these predict for the other columns is held against the data:
    nothing of a block that is left out was used, neither for its rows nor for its columns.

    References
    ----------
    A. B. Owen and P. O. Perry, "Bi-cross-validation of the SVD and the nonnegative matrix factorization", Ann. Appl.
    Stat. 3(2), 2009. R. A. Harshman and M. E. Lundy, "The PARAFAC model for three-way factor analysis and
    multidimensional scaling", in Research Methods for Multimode Data Analysis, 1984.
    """
    if not split.parts:
        return Halves({}, {})
    fits = [scanned.fits for scanned in scans]
    congruence = {rank: _congruence(fits[0][rank], fits[1][rank], split.mode) for rank in split.ranks}
    return Halves(congruence, _held_out(split.parts, fits, split.mode, rng))


def _formed(scanned: Scan, rng: np.random.Generator) -> Problem | None:
    """Return the problem with its entries as an array, or with those of the core; None if both are too large."""
    problem = scanned.problem
    if not scanned.space.is_complete and scanned.space.dense is None:
        core = scanned.space.core
        turns = [np.linalg.qr(rng.standard_normal((size, size)))[0] for size in core.shape]
        turned = core.compress(*[like(turn, core.reference) for turn in turns])
        return problem.with_tensor(turned)
    if is_large(problem.tensor.shape):
        return None
    entries, observed = problem.tensor.to_dense(), problem.observed
    if problem.entries is not None and observed is None:
        observed = like(problem.observed_mask().astype(np.float64), entries)
    return problem.with_part(DenseTensor.of(entries, symmetric=False), observed, problem.constraints)


def _congruence(first_fit: Factorization, second_fit: Factorization, mode: int) -> float:
    """Return the geometric mean over modes of the cosines between components, for the pair that differs most."""
    shared = [other for other in range(len(first_fit.factors)) if other != mode]
    first, second = ([to_host(fit.tensor.factors[other]) for other in shared] for fit in (first_fit, second_fit))
    matched = match_components(first, second).factors
    cosines = [np.abs(np.sum(to_host(a).conj() * to_host(b), axis=0)) for a, b in zip(matched, second, strict=True)]
    return float(np.min(np.prod(cosines, axis=0)) ** (1 / len(shared)))


def _held_out(
    parts: Sequence[Problem], fits: Sequence[Mapping[int, Factorization]], mode: int, rng: np.random.Generator
) -> dict[int, np.ndarray]:
    """Return the errors of blocks of each half as the other predicts them, by rank."""
    sizes = [size if number != mode else 0 for number, size in enumerate(parts[0].tensor.shape)]
    other = int(np.argmax(sizes))
    if sizes[other] < 2:
        return {}
    columns = rng.permutation(sizes[other])
    groups = [np.sort(group) for group in np.array_split(columns, min(GROUPS, sizes[other]))]
    errors: dict[int, list[float]] = {rank: [] for rank in fits[0]}
    total = 0.0
    for half, known in zip(reversed(parts), fits, strict=True):
        for group in groups:
            others = np.setdiff1d(columns, group)
            seen, block = part_of(half, {other: others}), part_of(half, {other: group})
            if seen is None or block is None:
                continue
            total += LeastSquares(block).squared_norm
            for rank, fit in known.items():
                errors[rank].append(_prediction_error(fit, seen, block, (mode, other), (others, group)))
    return {rank: np.array(values) / total for rank, values in errors.items() if total > 0}


def _prediction_error(
    fit: Factorization, seen: Problem, block: Problem, modes: tuple[int, int], columns: tuple[np.ndarray, np.ndarray]
) -> float:
    """Return the squared distance of a block from what factors predict, with the scores of its rows from others."""
    mode, other = modes
    factors: list[Array] = list(fit.tensor.factors)
    inside, outside = (pick(factors[other], chosen, 0) for chosen in columns)
    xp = array_namespace(inside)
    factors[mode] = xp.ones((seen.tensor.shape[mode], fit.rank), dtype=inside.dtype)
    factors[other] = inside
    factors[mode] = LeastSquares(seen).solve_mode(factors, mode)
    factors[other] = outside
    predicted = FactoredTensor(xp.ones_like(fit.weights), factors, symmetric=False)
    return LeastSquares(block).distance(predicted)
