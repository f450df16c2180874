"""What an experiment shows, before anything is drawn or printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Series:
    """Points of one method.

    `kind` is ``"line"``, ``"points"`` or ``"paper"``, for values the paper prints. `low` and `high` bound a band.
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
class Figure:
    """At most six panels that tell one story, and that story in a sentence for those who cannot see them."""

    title: str
    story: str
    panels: Sequence[Panel]
    file: str = ""  # the name of its picture, without an ending; by default made from the title


@dataclass(frozen=True)
class Table:
    """Rows of text."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Report:
    """Figures, tables and notes."""

    figures: Sequence[Figure]
    tables: Sequence[Table]
    notes: Sequence[str] = field(default_factory=tuple)


def sections(report: Report, pictures: Sequence[str]) -> list[str]:
    """Return a report in paragraphs of Markdown: its figures, whose files are `pictures`, its tables, its notes."""
    figures = [f"![{figure.story}]({path})" for figure, path in zip(report.figures, pictures, strict=True)]
    tables = [f"**{table.title}**\n\n{markdown(table.headings, table.rows)}" for table in report.tables]
    return [*figures, *tables, *report.notes]


def markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    return "\n".join([*lines, *("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)])
