"""The evidence for each rank, and the rule that chooses a rank by it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from codiag._arrays import to_host
from codiag.metrics import consistency_of
from codiag.problem import Problem
from codiag.selection._halves import Halves
from codiag.selection._scan import Scan
from codiag.selection._soundness import flaw_of, is_degenerate, residual_excess
from codiag.tensors import is_large

ALIKE = 0.85
"""Cosine from which two factors count as similar: Lorenzo-Seva and ten Berge, Methodology 2, 2006."""


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

    @property
    def held_out_error(self) -> float:
        """Relative error of what was left out."""
        return math.nan if self.held_out is None else math.sqrt(float(np.sum(self.held_out)))


def evidence_for(found: Scan, rank: int, halves: Halves) -> Evidence:
    """Return all that is known about one of the ranks of a scan."""
    fit, asked = found.fits[rank], found.problem.with_rank(rank)
    below = found.fits.get(max((other for other in found.fits if other < rank), default=0))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.abs(to_host(fit.weights)) / fit.weight_standard_errors
    return Evidence(
        rank,
        fit.relative_error,
        _consistency(found, rank, asked),
        halves.errors.get(rank),
        halves.congruence.get(rank, math.nan),
        float(np.min(ratios)),
        residual_excess(fit, asked),
        is_degenerate(fit),
        flaw_of(fit, below),
        tuple((mode, row) for mode, rows in enumerate(fit.sensitivity.undetermined) for row in rows),
    )


def _consistency(found: Scan, rank: int, asked: Problem) -> float:
    if not found.space.is_complete and found.space.dense is None:  # the core has the same consistency
        return consistency_of(found.ends[rank].outcome.components, found.space.problem.with_rank(rank))
    return math.nan if is_large(asked.tensor.shape) else consistency_of(found.fits[rank].tensor, asked)


def decide(table: Sequence[Evidence]) -> tuple[int | None, str]:
    """Return the rank that is supported, or None, and why; `choose_rank` states the rule."""
    sound = [one for one in table if not one.flaw]
    if not sound:
        return None, _nothing(table)
    largest = sound[-1]
    if largest.residual_excess <= 1:
        return largest.rank, _of_white_noise(largest, table) + _open(largest)
    alike = [one for one in sound if not one.congruence < ALIKE]
    if not alike:
        best = max(sound, key=lambda one: one.congruence)
        return None, (
            f"No rank is supported: {_residual(largest)}, and the components of two halves of the data "
            f"differ at every rank (the best, {best.rank}, has a congruence of {best.congruence:.2f})."
        )
    chosen = _predicting(alike)
    return chosen.rank, _of_prediction(chosen, largest, table) + _open(chosen)


def _predicting(candidates: Sequence[Evidence]) -> Evidence:
    """Return the smallest rank that predicts as well as the best, within one standard error of the difference."""
    known = [one for one in candidates if one.held_out is not None]
    if not known:
        return candidates[-1]
    best = min(known, key=lambda one: one.held_out_error)
    return next(one for one in known if _is_as_good(one.held_out, best.held_out))


def _is_as_good(errors: np.ndarray | None, best: np.ndarray | None) -> bool:
    """Tell whether errors of blocks exceed the best by no more than one standard error of their differences."""
    if errors is None or best is None:
        return False
    gaps = errors - best
    spread = math.sqrt(gaps.size) * float(np.std(gaps, ddof=1)) if gaps.size > 1 else 0.0
    return float(np.sum(gaps)) <= spread


def _nothing(table: Sequence[Evidence]) -> str:
    reasons = {
        "fits noise": "at every rank that was tried some component is no larger than what noise alone would bring",
        "components cancel": "at every rank that was tried components cancel each other",
    }
    flaws = {one.flaw for one in table}
    default = "every rank that was tried has a flaw, which the table names"
    return f"No rank is supported: {reasons.get(min(flaws), default) if len(flaws) == 1 else default}."


def _of_white_noise(chosen: Evidence, table: Sequence[Evidence]) -> str:
    if chosen.residual_excess == 0:
        return f"Rank {chosen.rank}: it explains the tensor up to rounding, and {_beyond(chosen, table)}."
    # Rows that too little was observed of may take any length, and the weights with them.
    ratio = (
        f" (the smallest weight is {chosen.smallest_ratio:.3g} standard errors)" if chosen.smallest_ratio > 0 else ""
    )
    return (
        f"Rank {chosen.rank}: all components stand out from the noise{ratio}, the residual passes for white noise, and "
        f"{_beyond(chosen, table)}."
    )


def _beyond(chosen: Evidence, table: Sequence[Evidence]) -> str:
    """Return what keeps the rank from being higher."""
    after = next((one for one in table if one.rank > chosen.rank), None)
    if after is None:
        return "no higher rank was tried"
    words = {
        "fits noise": "fits a component to noise",
        "components cancel": "has components that cancel each other",
        "no entries to spare": "has as many parameters as there are entries",
        "not determined": "has components that the data leaves open",
    }
    return f"rank {after.rank} {words.get(after.flaw, 'is not needed')}"


def _residual(largest: Evidence) -> str:
    """Return what is known about the residual where it does not pass for white noise."""
    if math.isnan(largest.residual_excess):
        return "whether the residual is noise is not known"
    return f"the residual of rank {largest.rank}, the highest whose components stand out of noise, is not white noise"


def _open(chosen: Evidence) -> str:
    """Return which rows of the factors the data leaves open, as a sentence, or nothing."""
    rows = [f"{row} of mode {mode}" for mode, row in chosen.open_rows]
    shown = ", ".join(rows[:3]) + (f" and {len(rows) - 3} more" if len(rows) > 3 else "")
    return f" Too little was observed to determine what the factors have at index {shown}." if rows else ""


def _of_prediction(chosen: Evidence, largest: Evidence, table: Sequence[Evidence]) -> str:
    said = _residual(largest)
    if chosen.held_out is None:
        said += (
            ", and the data cannot be halved; this is the highest rank whose components stand out from the noise: "
            f"{_beyond(chosen, table)}"
        )
    else:
        said += (
            f", so that prediction and replication decide: it predicts what was left out as well as any (error "
            f"{chosen.held_out_error:.3g}), and both halves of the data have its components (congruence "
            f"{chosen.congruence:.2f})"
        )
    more = " Higher ranks may fit better: try them." if chosen.rank == table[-1].rank else ""
    return f"Rank {chosen.rank}: {said}.{more}"
