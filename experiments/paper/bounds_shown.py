"""What the records of the theorems show: figures, tables and rules (claims 29 to 31)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from experiments.claims import Ruling, Trials, bootstrap_interval, graded, in_range, of_parts, over
from experiments.paper.trials import axis, curve, n_trials, shown
from experiments.records import Record, select
from experiments.reports import Figure, Panel, Report, Series, Table

D = 8
EPS = (1e-5, 1e-4, 1e-3)
RANKS = (8, 4)
MU = {"orthogonal": (0.0,), "free": (0.0, 0.3, 0.6)}
GAPS = (1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3)
GAP_METHODS = ("one matrix", "SD2", "OJD0", "OJD1")
NUMBERS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
WORST_RANKS = (4, 8, 16, 32)
PAIR_RANKS = (4, 8, 16, 32, 64, 128, 256)
PAIR_NUMBERS = (1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48)
SHAPES = ((5, 5), (10, 10), (20, 20), (40, 40), (40, 20), (40, 10), (40, 5))
"""Sizes and ranks for the number of projections."""


def needed(trials: Trials, d: int, k: int) -> float:
    """Return the number of projections at which the mean error is 1.1 of the limit, between those that were run."""
    limit = 1.1 * trials.mean("limit", what="number", d=d, k=k)
    means = [trials.mean(f"L = {number}", what="number", d=d, k=k) for number in NUMBERS]
    return crossing(NUMBERS, means, limit)


def bounds_report(records: Sequence[Record]) -> Report:
    bound, gap, number, pairs, worst = (
        select(records, what=what) for what in ("bound", "gap", "number", "pairs", "worst")
    )
    figures, tables = [], []
    if bound:
        panels = [_bound_panel(select(bound, kind=kind, pi_min=0.3), kind) for kind in MU]
        story = (
            f"Mean errors beside the bounds of the theorems, {n_trials(bound)} trials a place, bars of two standard "
            "errors; random projections in the number that each theorem asks for."
        )
        figures.append(Figure("Errors and bounds", story, panels, "sections-4-and-5-errors-and-bounds"))
        tables += [_table_1(), _bound_table(bound), _worst_table(worst)]
    if gap:
        story = (
            "Median error of the two components whose eigenvalues approach each other, all others kept apart; "
            f"{n_trials(gap)} draws a gap, bars from the first to the third quartile."
        )
        panels = [_gap_panel(gap)]
        figures.append(Figure("A closing eigengap", story, panels, "section-4-eigengap"))
        tables.append(_gap_table(gap))
    if number and pairs:
        story = (
            f"Projections for 1.1 of the limiting error ({n_trials(number)} trials a place) and projections at which "
            "the closest pair of eigenvalues errs at most twice as much as the average pair "
            f"({n_trials(pairs)} trials); bands hold 95 % of bootstrap draws."
        )
        panels = [*_number_panels(number), _pair_panel(pairs)]
        figures.append(Figure("Projections needed", story, panels, "section-4-projections-needed"))
        tables.append(_number_table(number))
    notes = [
        "Symmetric noise of unit operator norm (bounds, gaps), Gaussian noise (numbers). For random projections only "
        "numbers at which the theorems hold are run, by directions that stand for so many. The proofs of both free "
        "theorems divide by a norm that is zero for k < d; the bounds are tried there all the same."
    ]
    return Report(figures, tables, notes)


def _table_1() -> Table:
    """Return the paper's Table 1, with what codiag has of it."""
    rows = [
        ["TPM", "0", "eps / pi_min", "global", "TPM"],
        ["Givens", "0", "?", "global", "Givens"],
        ["ALS", "polylog(d) / sqrt(d)", "eps / pi_min + sqrt(k / d^(p-1)) / pi_min", "local", "ALS"],
        ["SD2", "0", "k^5 eps / (pi_min min |pi_i - pi_j|)", "global", "SD2"],
        ["This paper", "1", "|U^-T|^2 eps / ((1 - mu^2) pi_min^2)", "local / global", "OJD, NOJD"],
    ]
    headings = ["method", "incoherence below", "error below", "convergence", "in codiag.methods"]
    return Table("Table 1 of the paper: guarantees", headings, rows)


def _worst_table(records: Sequence[Record]) -> Table:
    rows = [[str(r.cell["k"]), shown(r.values["measured"]), shown(1 / r.values["share of bound"])] for r in records]
    return Table("The worst noise known, plug-in", ["k", "largest error over eps", "bound over error"], rows)


def _gap_panel(records: Sequence[Record]) -> Panel:
    trials, series = Trials(records), []
    places = axis(records, "gap")
    for name in GAP_METHODS:
        found = [trials.values(name, gap=gap) for gap in places]
        quartiles = [np.percentile(one, (25, 50, 75)) for one in found]
        low, middle, high = (list(map(float, column)) for column in zip(*quartiles, strict=True))
        series.append(Series(name, places, middle, low, high))
    return Panel("eigengap", "gap between two eigenvalues", "median error", series, x_log=True)


def _gap_table(records: Sequence[Record]) -> Table:
    trials = Trials(records)
    rows = [
        [f"{gap:g}", str(len(trials.at(gap=gap))), *(shown(trials.median(name, gap=gap)) for name in GAP_METHODS)]
        for gap in axis(records, "gap")
    ]
    return Table("Median error as two eigenvalues meet", ["gap", "draws", *GAP_METHODS], rows)


def _bound_panel(records: Sequence[Record], kind: str) -> Panel:
    series = [
        curve(records, f"{name} {what}", "eps", f"{name}, {what}")
        for name in ("random", "plug-in")
        for what in ("measured", "bound")
    ]
    title = "orthogonal" if kind == "orthogonal" else "not orthogonal"
    return Panel(f"bounds, {title}", "noise eps", "mean error of factors", series, x_log=True)


def _bound_table(records: Sequence[Record]) -> Table:
    rows, trials = [], Trials(records)
    for kind, values in MU.items():
        for mu in values:
            for k in RANKS:
                here = trials.at(kind=kind, mu=mu, k=k)
                for name in ("random", "plug-in") if here else ():
                    shares = [record.values[f"{name} share of bound"] for record in here]
                    theory = [r.values[f"{name} measured"] / r.values[f"{name} first order"] for r in here]
                    number = f"{here[0].values['L']:,.0f}" if name == "random" else str(k)
                    row = [
                        kind,
                        f"{mu:g}",
                        str(k),
                        name,
                        number,
                        str(len(here)),
                        shown(max(shares)),
                        shown(float(np.mean(theory)), 4),
                    ]
                    rows.append(row)
    headings = ["factors", "mu", "k", "projections", "L", "runs", "largest share of the bound", "over first order"]
    return Table("Errors beside the bounds", headings, rows)


def _number_panels(records: Sequence[Record]) -> list[Panel]:
    panels = []
    trials = Trials(records)
    for title, shapes in (
        ("k = d", [(d, k) for d, k in SHAPES if d == k]),
        ("d = 40", [(d, k) for d, k in SHAPES if d == 40]),
    ):
        found = [(float(k), needed(trials, d, k), law(d)) for d, k in sorted(shapes)]
        found = [one for one in found if np.isfinite(one[1])]
        xs, measured, exact = ([one[place] for one in found] for place in range(3))
        shapes = [shape for shape in sorted(shapes) if np.isfinite(needed(trials, *shape))]
        ends = [bootstrap_interval(trials, partial(needed, d=d, k=k)) for d, k in shapes]
        low, high = ([end[side] for end in ends] for side in (0, 1))
        series = [Series("measured", xs, measured, low, high), Series("2 + 2.38 d", xs, exact)]
        panels.append(Panel(f"projections, {title}", "rank k", "L for 1.1 of the limit", series, y_log=False))
    return panels


def _number_table(records: Sequence[Record]) -> Table:
    trials = Trials(records)
    rows = []
    for d, k in SHAPES:
        here = trials.at(d=d, k=k)
        if here:
            limit = trials.mean("limit", d=d, k=k)
            ratios = [shown(trials.mean(f"L = {n}", d=d, k=k) / limit) for n in NUMBERS]
            rows.append([str(d), str(k), str(len(here)), shown(needed(trials, d, k)), *ratios])
    headings = ["d", "k", "trials", "L for 1.1", *(f"L = {n}" for n in NUMBERS)]
    return Table("Mean error over its limit", headings, rows)


def bounds_hold(trials: Trials) -> Ruling:
    shares: dict[str, list[float]] = {"random": [], "plug-in": []}
    worst, held = 0.0, []
    for kind, values in MU.items():
        for mu in values:
            for k in RANKS:
                for eps in EPS:
                    for pi_min in (1.0, 0.3):
                        for name, found in shares.items():
                            place = {"what": "bound", "kind": kind, "mu": mu, "k": k, "eps": eps, "pi_min": pi_min}
                            ratios = trials.values(f"{name} share of bound", **place)
                            found += ratios.tolist()
                            held.append(over(np.mean, ratios <= 1) >= (0.95 if name == "random" else 1.0))
                            worst = max(worst, ratios.max(initial=0.0))
    text = "error over bound: " + ", ".join(f"{name} {in_range(found)}" for name, found in shares.items())
    text += f"; under random noise the bounds are at least {1 / worst:.0f} times too large" if 0 < worst < 1 else ""
    tight = max(trials.fact("share of bound", what="worst", k=k) for k in WORST_RANKS)
    text += f", under the worst noise known {1 / tight:.1f} times"
    return Ruling(text, graded(float(np.mean(held))))


def no_gap(trials: Trials) -> Ruling:
    slopes = {}
    for name in GAP_METHODS:
        medians = [trials.median(name, what="gap", gap=gap) for gap in GAPS]
        slopes[name] = float(np.polyfit(np.log(GAPS), np.log(medians), 1)[0])
    flat = [abs(slopes[name]) < 0.1 for name in ("OJD0", "OJD1")]
    grow = [slopes[name] < -0.5 for name in ("one matrix", "SD2")]
    text = "error grows like the gap to the power " + ", ".join(f"{name} {slope:.2f}" for name, slope in slopes.items())
    return Ruling(text, of_parts(*flat, *grow))


def law(d: int) -> float:
    """Return the number of random projections for 1.1 of the limit: the error is sqrt(1 + d / (2 (L - 2))) of it."""
    return 2 + d / (2 * (1.1**2 - 1))


def pairs_needed(trials: Trials, k: int) -> float:
    """Return the number of projections at which the closest pair errs twice as much as the average, by medians."""
    medians = [trials.median(f"L = {number}", what="pairs", k=k) for number in PAIR_NUMBERS]
    return crossing(PAIR_NUMBERS, medians, 2.0)


def crossing(numbers: Sequence[int], values: Sequence[float], level: float) -> float:
    """Return where values come down to a level, between the numbers at which they are known; NaN if nowhere."""
    place = next((place for place, value in enumerate(values) if value <= level), None)
    if place is None:
        return float("nan")
    if place == 0:
        return float(numbers[0])
    share = np.log(values[place - 1] / level) / np.log(values[place - 1] / values[place])
    return float(np.exp((1 - share) * np.log(numbers[place - 1]) + share * np.log(numbers[place])))


def _pair_panel(records: Sequence[Record]) -> Panel:
    trials = Trials(records)
    found = [pairs_needed(trials, k) for k in PAIR_RANKS]
    ends = [bootstrap_interval(trials, partial(pairs_needed, k=k)) for k in PAIR_RANKS]
    low, high = ([end[side] for end in ends] for side in (0, 1))
    series = [Series("closest pair", list(PAIR_RANKS), found, low, high)]
    return Panel("eigengap removed", "rank k", "L for twice the average", series, x_log=True, y_log=False)


def few_projections(trials: Trials) -> Ruling:
    found = {(d, k): needed(trials, d, k) for d, k in SHAPES}
    sizes = np.array([d for d, k in SHAPES if d == k], dtype=float)
    square = np.array([found[d, d] for d in sizes])
    power = float(np.polyfit(np.log(sizes), np.log(square), 1)[0])
    wide = [number for (d, _), number in found.items() if d == 40]
    linear = abs(power - 1) <= 0.2 and bool(max(wide) <= 1.2 * min(wide))
    pairs = [pairs_needed(trials, k) for k in PAIR_RANKS]
    steps = np.diff(pairs)
    logarithmic = bool(steps[-1] <= 1.5 * np.mean(steps[:3]))
    numbers = ", ".join(f"{number:.0f} at d = {d}, k = {k}" for (d, k), number in found.items())
    text = (
        f"L for 1.1 of the limit: {numbers} (law: {', '.join(f'{law(d):.0f} at {d}' for d in (5, 10, 20, 40))}), "
        f"power of d {power:.2f}; "
        "L that removes the eigengap: "
        + ", ".join(f"{n:.0f} at k = {k}" for n, k in zip(pairs, PAIR_RANKS, strict=True))
    )
    return Ruling(text, of_parts(linear, logarithmic))
