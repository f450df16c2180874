"""Tables and a figure from the records of a grid."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments.records import Cell, Record, select
from experiments.reports import Figure, Panel, Report, Series, Table

HEADINGS = ("method", "error", "nearest", "of the oracle", "worst", "success", "at the optimum", "CPU s", "MB")
COLUMNS = (
    "Error: mean over seeds of the mean distance of unit factors from the truth after one-to-one matching, its ratio "
    "to the oracle's (least squares started from the truth), median and worst over seeds; nearest: the authors' "
    "many-to-one measure; success: error at most max(1e-3, twice the oracle's); at the optimum: objective within 1 % "
    "of the oracle's, or below it. CPU: median, one thread; MB: the most held at once."
)


def report(records: Sequence[Record]) -> Report:
    """Return a table and a panel for every place: accuracy against the oracle, and cost."""
    tables, panels = [], []
    for place in _places(records):
        here = select(records, **place)
        methods = list(dict.fromkeys(record.cell["method"] for record in here))
        oracle = float(np.mean(_column([one for one in here if not one.refused], "oracle")))
        name = ", ".join(f"{axis} {value}" for axis, value in place.items())
        rows = [_row(method, select(here, method=method)) for method in methods]
        tables.append(Table(f"{name} (oracle {oracle:.2e})", HEADINGS, rows))
        panels.append(_panel(name, oracle, {method: select(here, method=method) for method in methods}))
    return Report([Figure("Error against time", "Error against time, run by run.", panels)], tables)


def _places(records: Sequence[Record]) -> list[Cell]:
    """Return all combinations of the axes other than seed and method, in order of appearance."""
    places = [{axis: one.cell[axis] for axis in one.cell if axis not in ("seed", "method")} for one in records]
    return [place for index, place in enumerate(places) if place not in places[:index]]


def _row(method: str, records: Sequence[Record]) -> tuple[str, ...]:
    kept = [record for record in records if not record.refused]
    if not kept:
        return (method, f"refuses: {records[0].refused.split(';')[0]}", *[""] * 7)
    errors, oracles = _column(kept, "error"), _column(kept, "oracle")
    ratios = errors / np.maximum(oracles, 1e-12)
    noiseless = bool(np.max(oracles) < 1e-12)
    share = np.mean((_column(kept, "objective") < 1.01) | (errors < 1e-8))
    return (
        method,
        f"{np.mean(errors):.2e}",
        f"{np.mean(_column(kept, 'nearest')):.2e}",
        "" if noiseless else f"{np.median(ratios):.3f}",
        f"{np.max(errors):.1e}" if noiseless else f"{np.max(ratios):.2f}",
        f"{np.mean(_column(kept, 'success')):.0%}",
        f"{share:.0%}",
        f"{np.median(_column(kept, 'cpu')):.3f}",
        f"{next(record.values['megabytes'] for record in kept if 'megabytes' in record.values):.1f}",
    )


def _column(records: Sequence[Record], name: str) -> np.ndarray:
    return np.array([record.values[name] for record in records])


def _panel(title: str, oracle: float, by_method: dict[str, list[Record]]) -> Panel:
    """Return error against time, a point a run."""
    kept = {method: [one for one in own if not one.refused] for method, own in by_method.items()}
    series = [
        Series(method, _column(own, "cpu").tolist(), np.maximum(_column(own, "error"), 1e-16).tolist(), kind="points")
        for method, own in kept.items()
        if own
    ]
    times = [time for one in series for time in one.x]
    level = max(oracle, 1e-16)
    series.append(Series("oracle", [min(times), max(times)], [level, level]))
    return Panel(title, "CPU seconds", "error", series, x_log=True)
