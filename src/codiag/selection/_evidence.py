"""What speaks for a rank, and against it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from codiag._arrays import to_host
from codiag.metrics import consistency_of
from codiag.problem import Problem
from codiag.selection._halves import Halves
from codiag.selection._scan import Scan
from codiag.selection._soundness import flaw_of, is_degenerate, residual_excess
from codiag.tensors import is_large


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
