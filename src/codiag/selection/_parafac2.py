"""How many components of PARAFAC2: ranks upward, until the next component is noise, or differs between halves."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from codiag._checks import RNGLike, as_generator, as_number
from codiag._parafac2 import Parafac2Fit, Slices, fitted
from codiag._progress import tell
from codiag._text import listed
from codiag.constraints import ConstraintsLike
from codiag.diagnosis import FAIR
from codiag.metrics import match_components
from codiag.selection._choice import RankChoice


@dataclass(frozen=True, eq=False)
class TriedSlices:
    """A rank that was tried, with what `RankChoice` shows of one."""

    rank: int
    fit: Parafac2Fit
    congruence: float
    significance: float
    held_out_error: float = math.nan

    @property
    def flaw(self) -> str:
        if self.significance <= 1:
            return "not significant"
        return "not determined" if 1 - float(np.max(self.facts.errors)) ** 2 / 2 < FAIR else ""

    @property
    def is_supported(self) -> bool:
        return not self.flaw and not self.congruence < FAIR

    @property
    def facts(self) -> Any:
        errors = np.maximum(self.fit.standard_errors[0], self.fit.standard_errors[2])
        significances = np.array([self.significance])
        return SimpleNamespace(core_consistency=math.nan, significances=significances, errors=errors)


def choose_slices(
    raw: Any, ranks: Iterable[int] | None, constraints: ConstraintsLike, mask: Any, rng: RNGLike
) -> RankChoice:
    """Return the largest rank whose components are significant, determined, and found in both halves of the slices."""
    slices, generator = Slices.of(raw, mask), as_generator(rng, apart=True)
    most = slices.check_rank(min(int(slices.sizes.max()), slices.width))
    wanted = list(range(1, most + 1)) if ranks is None else sorted(set(ranks))
    for rank in wanted:
        as_number("ranks", rank, integer=True)
    tried: list[TriedSlices] = []
    below = slices.squared_norm
    for rank in wanted:
        tell("rank %d", rank)
        fit = fitted(slices, slices.check_rank(rank), constraints, generator)
        now = fit.relative_error**2 * slices.squared_norm
        significance = math.sqrt(max(below - now, 0.0) / max(_largest_of_noise(slices, fit, generator), 1e-300))
        tried.append(TriedSlices(rank, fit, _replication(slices, fit, constraints, generator), significance))
        below = now
        if ranks is None and len(tried) > 1 and not any(one.is_supported for one in tried[-2:]):
            break
    chosen = next((one for one in reversed(tried) if one.is_supported), None)
    fits: Any = {one.rank: one.fit for one in tried}
    evidence: Any = tuple(tried)
    return RankChoice(None if chosen is None else chosen.rank, _reason(chosen, tried), fits, evidence)


def _largest_of_noise(slices: Slices, fit: Parafac2Fit, rng: np.random.Generator) -> float:
    """Return the most that one component explains of noise like the residual: of this with random signs, 20 times.

    The residual is scaled up by its degrees of freedom, of which bases take many.
    """
    if slices.is_sparse:
        return 0.0
    residual = np.nan_to_num(slices.matrix - np.concatenate(fit.to_slices()))
    flipped = (residual * rng.choice([-1.0, 1.0], residual.shape) for _ in range(20))
    largest = max(float(np.linalg.eigvalsh(one.T @ one)[-1]) for one in flipped)
    left = fit.noise_variance * slices.n_observed
    return largest if math.isnan(left) else largest * left / max(float(np.vdot(residual, residual)), 1e-300)


def _replication(slices: Slices, fit: Parafac2Fit, constraints: ConstraintsLike, rng: np.random.Generator) -> float:
    """Return the least congruence of columns of C in two halves of the slices.

    NaN if these are fewer than four, or if a half does not determine its components by itself.
    """
    n = slices.sizes.size
    if n < 8:
        return math.nan
    halves = [fitted(slices.subset(np.arange(first, n, 2)), fit.rank, constraints, rng) for first in (0, 1)]
    if any(1 - np.max(half.standard_errors[2]) ** 2 / 2 < FAIR for half in halves):
        return math.nan
    matched = [match_components([half.factors[2]], [fit.factors[2]]).factors[0] for half in halves]
    return float(np.min(np.abs(np.sum(matched[0] * matched[1], axis=0))))


def _reason(chosen: TriedSlices | None, tried: list[TriedSlices]) -> str:
    ranks = f"Ranks {listed([one.rank for one in tried])} were tried."
    if chosen is None:
        return f"No rank of PARAFAC2 is supported. {ranks}"
    said = "the last component is significant, and all are determined"
    if not math.isnan(chosen.congruence):
        said += f" and found in both halves of the slices (congruence {chosen.congruence:.2f})"
    after = next((one for one in tried if one.rank > chosen.rank), None)
    why = "" if after is None else f"; at rank {after.rank}, components are {after.flaw or 'not the same in halves'}"
    return f"Rank {chosen.rank}: {said}{why}. {ranks}"
