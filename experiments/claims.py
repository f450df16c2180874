"""Claims of the paper, each with a rule that turns records into a verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from experiments.records import Cell, Record

ENOUGH = 20
"""Trials below which a place says nothing."""
VERDICTS = {"yes": "holds", "partly": "holds in part", "no": "does not hold", "open": "open"}


class Trials:
    """Means over trials, place by place, which remember how few trials the poorest place had."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = records
        self.fewest: float = np.inf
        self._index: dict[tuple[str, ...], dict[tuple[Any, ...], list[Record]]] = {}

    def at(self, **place: Any) -> list[Record]:
        """Return the records at a place on some axes."""
        axes = tuple(sorted(place))
        if axes not in self._index:
            index: dict[tuple[Any, ...], list[Record]] = {}
            for record in self.records:
                if all(axis in record.cell for axis in axes):
                    index.setdefault(tuple(record.cell[axis] for axis in axes), []).append(record)
            self._index[axes] = index
        return self._index[axes].get(tuple(place[axis] for axis in axes), [])

    def values(self, name: str, **place: Any) -> np.ndarray:
        """Return the finite values of a name at a place, and count them."""
        found = np.array([record.values[name] for record in self.at(**place) if name in record.values])
        found = found[np.isfinite(found)]
        self.fewest = min(self.fewest, found.size)
        return np.asarray(found)

    def fact(self, name: str, **place: Any) -> float:
        """Return a value that nothing random is in, and that need not be counted; NaN where there is none."""
        return next((record.values[name] for record in self.at(**place) if name in record.values), float("nan"))

    def mean(self, name: str, **place: Any) -> float:
        """Return the mean over trials, as the paper does; NaN where there are none."""
        return over(np.mean, self.values(name, **place))

    def least(self, names: Sequence[str], **place: Any) -> float:
        """Return the least mean of those names that were measured at a place; NaN where none was."""
        known = {name for record in self.at(**place) for name in record.values}
        means = [self.mean(name, **place) for name in names if name in known]
        if not means:
            self.fewest = 0
        return min((mean for mean in means if np.isfinite(mean)), default=float("nan"))

    def ratios(self, above: Sequence[str], below: Sequence[str], places: Iterable[Cell]) -> list[float]:
        """Return the least mean of some names over the least of others, place by place."""
        return [self.least(above, **place) / self.least(below, **place) for place in places]


@dataclass(frozen=True)
class Ruling:
    """What a rule found: numbers in words, and yes, partly or no."""

    measured: str
    verdict: str


@dataclass(frozen=True)
class Claim:
    """One claim of the paper.

    Attributes
    ----------
    number : int
    sentence : str
        What the paper says.
    experiment : str
        The name of the experiment whose records decide.
    setup, rule : str
        Where it is judged, and how, in words.
    judge : callable
        The rule, from trials to a ruling.
    enough : int
        Trials that every place must have; 1 where nothing is drawn at random.
    reasons : mapping of str to str
        For verdicts: why it came out so.
    """

    number: int
    sentence: str
    experiment: str
    setup: str
    rule: str
    judge: Callable[[Trials], Ruling]
    enough: int = ENOUGH
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Judgement:
    """A claim with its verdict: holds, holds in part, does not hold, or open."""

    claim: Claim
    measured: str
    verdict: str
    reason: str
    fewest: int


def judge(claim: Claim, records: Sequence[Record]) -> Judgement:
    """Apply the rule of a claim; where a place has too few trials the claim is open, whatever was measured."""
    if not records:
        return Judgement(claim, "not run", VERDICTS["open"], "There are no records yet.", 0)
    trials = Trials(records)
    with np.errstate(all="ignore"):  # places may still be empty, and their means NaN
        ruling = claim.judge(trials)
    fewest = 0 if trials.fewest == np.inf else int(trials.fewest)
    if fewest < claim.enough:
        reason = f"A place that counts has {fewest} trials; {claim.enough} are needed."
        return Judgement(claim, ruling.measured, VERDICTS["open"], reason, fewest)
    return Judgement(claim, ruling.measured, VERDICTS[ruling.verdict], claim.reasons.get(ruling.verdict, ""), fewest)


def over(statistic: Callable[[np.ndarray], Any], values: Sequence[float] | np.ndarray) -> float:
    """Return a statistic of the values that are numbers; NaN where there are none."""
    found = np.asarray(values, dtype=float)
    found = found[np.isfinite(found)]
    return float(statistic(found)) if found.size else float("nan")


def share_of(ratios: Sequence[float], low: float, high: float = np.inf) -> float:
    """Return the share of ratios between two bounds, those that are not numbers left out; 0 where there are none."""
    return float(np.nan_to_num(over(lambda found: np.mean((low <= found) & (found <= high)), ratios)))


def graded(share: float, *, partly: float) -> str:
    """Return yes where all places agree, partly from a share of them on, and no below."""
    return "yes" if share >= 1 else "partly" if share >= partly else "no"


def in_range(ratios: Sequence[float]) -> str:
    """Return the median of some ratios, with the least and the largest."""
    median, least, largest = (over(statistic, ratios) for statistic in (np.median, np.min, np.max))
    return f"{median:.2f} ({least:.2f} to {largest:.2f})" if np.isfinite(median) else "nothing to compare"
