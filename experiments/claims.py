"""Claims of the paper, each with a rule that turns records into a verdict, and the probability of that verdict."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.records import Cell, Record, cell_key

ENOUGH = 20
"""Trials below which a place says nothing."""
SURE = 0.9
"""Probability below which a verdict is undecided."""
PART = 1 / 3
"""Share of places, or of parts of a rule, from which on a claim holds in part."""
N_DRAWS = 200
"""Bootstrap draws of a probability."""
VERDICTS = {
    "yes": "holds",
    "partly": "holds in part",
    "no": "does not hold",
    "undecided": "undecided",
    "open": "open",
}
RULES = Path(__file__).parent / "claims.md"


class Rule(NamedTuple):
    """A row of the table of claims: what the paper says, where it is judged, and how."""

    sentence: str
    setup: str
    rule: str


@cache
def rules() -> dict[int, Rule]:
    """Return the table of claims, by number."""
    rows = re.findall(r"^\| (\d+) \| (.+?) \| (.+?) \| (.+?) \|$", RULES.read_text(), re.MULTILINE)
    return {int(number): Rule(*texts) for number, *texts in rows}


class Trials:
    """Values over trials, place by place, which remember how few trials the poorest place had.

    With `counts`, a record stands for so many trials: a bootstrap draw.
    """

    def __init__(self, records: Sequence[Record], counts: np.ndarray | None = None) -> None:
        self.records = records
        self.counts = counts
        self.fewest: float = np.inf
        self._places: dict[tuple[str, ...], dict[tuple[Any, ...], np.ndarray]] = {}
        self._values: dict[tuple[Any, ...], np.ndarray] = {}

    def drawn(self, counts: np.ndarray) -> Trials:
        """Return the same trials with other counts, sharing what was looked up."""
        other = Trials(self.records, counts)
        other._places, other._values = self._places, self._values
        return other

    def at(self, **place: Any) -> list[Record]:
        """Return the records at a place on some axes, each as often as it counts."""
        found = self._found(place)
        if self.counts is not None:
            found = np.repeat(found, self.counts[found])
        return [self.records[index] for index in found]

    def values(self, name: str, **place: Any) -> np.ndarray:
        """Return the finite values of a name at a place, and count them."""
        key = (name, *sorted(place.items()))
        found = self._found(place)
        if key not in self._values:
            self._values[key] = np.array([self.records[index].values.get(name, np.nan) for index in found])
        values = self._values[key]
        if self.counts is not None:
            values = np.repeat(values, self.counts[found])
        values = values[np.isfinite(values)]
        self.fewest = min(self.fewest, values.size)
        return values

    def fact(self, name: str, **place: Any) -> float:
        """Return a value that nothing random is in, and that need not be counted; NaN where there is none."""
        found = (self.records[index].values for index in self._found(place))
        return next((values[name] for values in found if name in values), float("nan"))

    def mean(self, name: str, **place: Any) -> float:
        """Return the mean over trials, as the paper does; NaN where there are none."""
        return over(np.mean, self.values(name, **place))

    def median(self, name: str, **place: Any) -> float:
        """Return the median over trials; NaN where there are none."""
        return over(np.median, self.values(name, **place))

    def least(self, names: Sequence[str], **place: Any) -> float:
        """Return the least mean of those names that at least half of the trials of a place have; NaN where none is."""
        found = self._found(place)
        counts = {name: sum(name in self.records[index].values for index in found) for name in names}
        means = [self.mean(name, **place) for name in names if 2 * counts[name] >= max(len(found), 1)]
        if not means:
            self.fewest = 0
        return min((mean for mean in means if np.isfinite(mean)), default=float("nan"))

    def ratios(self, above: Sequence[str], below: Sequence[str], places: Iterable[Cell]) -> list[float]:
        """Return the least mean of some names over the least of others, place by place."""
        return [self.least(above, **place) / self.least(below, **place) for place in places]

    def _found(self, place: Mapping[str, Any]) -> np.ndarray:
        axes = tuple(sorted(place))
        if axes not in self._places:
            index: dict[tuple[Any, ...], list[int]] = {}
            for number, record in enumerate(self.records):
                if all(axis in record.cell for axis in axes):
                    index.setdefault(tuple(record.cell[axis] for axis in axes), []).append(number)
            self._places[axes] = {key: np.array(found) for key, found in index.items()}
        return self._places[axes].get(tuple(place[axis] for axis in axes), np.zeros(0, dtype=int))


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
        Its row in the table of claims.
    experiment : str
        The name of the experiment whose records decide.
    judge : callable
        The rule, from trials to a ruling.
    enough : int
        Trials that every place must have; 1 where nothing is drawn at random.
    halves : bool
        Whether the probability is over random halves of the trials instead of bootstrap draws, which repeat values.
    reasons : mapping of str to str
        For verdicts: why it came out so.
    """

    number: int
    experiment: str
    judge: Callable[[Trials], Ruling]
    enough: int = ENOUGH
    halves: bool = False
    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """What the paper says."""
        return rules()[self.number].sentence

    @property
    def setup(self) -> str:
        """Where it is judged."""
        return rules()[self.number].setup

    @property
    def rule(self) -> str:
        """How it is judged."""
        return rules()[self.number].rule


@dataclass(frozen=True)
class Judgement:
    """A claim with its verdict, the probability of that verdict with other draws, and why it came out so.

    `likely` is what the rule says, also if the probability is too low to decide; `needed` then says how many trials a
    place would.
    """

    claim: Claim
    measured: str
    verdict: str
    reason: str
    fewest: int
    likely: str = ""
    probability: float = float("nan")
    needed: str = ""


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
        measured = "not run at all places" if "nan" in ruling.measured else ruling.measured
        return Judgement(claim, measured, VERDICTS["open"], reason, fewest)
    reason, likely = claim.reasons.get(ruling.verdict, ""), VERDICTS[ruling.verdict]
    probability = 1.0 if claim.enough == 1 else verdict_probability(claim, trials, ruling.verdict)
    if probability >= SURE:
        return Judgement(claim, ruling.measured, likely, reason, fewest, likely, probability)
    needed = _trials_needed(claim, trials, fewest)
    verdict = f"undecided by {fewest} trials"
    return Judgement(claim, ruling.measured, verdict, reason, fewest, likely, probability, needed)


def verdict_probability(claim: Claim, trials: Trials, verdict: str, times: int = 1, n_draws: int = N_DRAWS) -> float:
    """Return the share of bootstrap draws, of `times` as many trials at every place, with the same verdict."""
    rng = np.random.default_rng(claim.number)
    place_of = _place_numbers(trials.records)
    same = 0
    with np.errstate(all="ignore"):
        for _ in range(n_draws):
            counts = _half(place_of, rng) if claim.halves else _draw(place_of, times, rng)
            same += claim.judge(trials.drawn(counts)).verdict == verdict
    return same / n_draws


def bootstrap_interval(trials: Trials, statistic: Callable[[Trials], float], n_draws: int = 100) -> tuple[float, float]:
    """Return the bounds of 95 % of the values of a statistic over bootstrap draws of the trials."""
    rng, place_of = np.random.default_rng(0), _place_numbers(trials.records)
    values = [statistic(trials.drawn(_draw(place_of, 1, rng))) for _ in range(n_draws)]
    low, high = np.nanpercentile(values, (2.5, 97.5))
    return float(low), float(high)


def _place_numbers(records: Sequence[Record]) -> list[np.ndarray]:
    """Return the records of every place: all that differ in the trial alone."""
    places: dict[str, list[int]] = {}
    for number, record in enumerate(records):
        key = cell_key({axis: value for axis, value in record.cell.items() if axis != "trial"})
        places.setdefault(key, []).append(number)
    return [np.array(found) for found in places.values()]


def _draw(places: Sequence[np.ndarray], times: int, rng: np.random.Generator) -> np.ndarray:
    counts = np.zeros(sum(found.size for found in places), dtype=int)
    for found in places:
        counts[found] = rng.multinomial(times * found.size, np.full(found.size, 1 / found.size))
    return counts


def _half(places: Sequence[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    counts = np.zeros(sum(found.size for found in places), dtype=int)
    for found in places:
        counts[rng.permutation(found)[: -(-found.size // 2)]] = 1
    return counts


def _trials_needed(claim: Claim, trials: Trials, fewest: int) -> str:
    """Return in words how many trials a place would decide a claim: the least multiple whose draws agree."""
    for times in (2, 4, 8, 16, 32):
        for likely in ("yes", "partly", "no"):
            if verdict_probability(claim, trials, likely, times, N_DRAWS // 4) >= SURE:
                return f"about {times * fewest:,} trials a place would decide"
    return f"more than {32 * fewest:,} trials a place would be needed: a threshold of the rule lies at what is measured"


def over(statistic: Callable[[np.ndarray], Any], values: Sequence[float] | np.ndarray) -> float:
    """Return a statistic of the values that are numbers; NaN where there are none."""
    found = np.asarray(values, dtype=float)
    found = found[np.isfinite(found)]
    return float(statistic(found)) if found.size else float("nan")


def share_of(ratios: Sequence[float], low: float, high: float = np.inf) -> float:
    """Return the share of ratios between two bounds, those that are not numbers left out; 0 where there are none."""
    return float(np.nan_to_num(over(lambda found: np.mean((low <= found) & (found <= high)), ratios)))


def graded(share: float) -> str:
    """Return yes where all places, or parts of a rule, agree, partly from a third of them on, and no below."""
    return "yes" if share >= 1 else "partly" if share >= PART else "no"


def of_parts(*parts: bool) -> str:
    """Return yes if all parts of a rule are met, partly if a third of them are, and no otherwise."""
    return graded(sum(parts) / len(parts))


def in_range(ratios: Sequence[float]) -> str:
    """Return the median of some ratios, with the least and the largest."""
    median, least, largest = (over(statistic, ratios) for statistic in (np.median, np.min, np.max))
    return f"{median:.2f} ({least:.2f} to {largest:.2f})" if np.isfinite(median) else "nothing to compare"
