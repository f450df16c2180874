"""What an experiment shows, before anything is drawn or printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Series:
    """Points of one method: medians, and the quartiles around them.

    `kind` is ``"line"``, ``"points"`` or ``"paper"``, for values the paper prints.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    kind: str = "line"


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    x_log: bool = False
    y_log: bool = True
    x_ticks: Sequence[str] | None = None  # names of the places 0, 1, ..., where x is not a number


@dataclass(frozen=True)
class Finding:
    """A claim of the paper, what was measured, and whether it holds: yes, no, partly or open."""

    claim: str
    measured: str
    holds: str


@dataclass(frozen=True)
class Report:
    """A table, a figure and findings."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    panels: Sequence[Panel]
    findings: Sequence[Finding]
    notes: Sequence[str] = field(default_factory=tuple)


def spread(label: str, points: dict[Any, list[float]], kind: str = "line") -> Series:
    """Return medians with quartiles over trials, for points by their place on the x axis."""
    places = [place for place, values in points.items() if np.any(np.isfinite(values))]
    columns = [[value for value in points[place] if np.isfinite(value)] for place in places]
    low, middle, high = ([float(np.quantile(column, share)) for column in columns] for share in (0.25, 0.5, 0.75))
    return Series(label, [float(place) for place in places], middle, low, high, kind)


def markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])
