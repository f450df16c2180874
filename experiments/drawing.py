"""Figures of experiments: a picture for documents, and panels that a page can lay out for itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from codiag.plotting import INK, MUTED, log_axis, paper
from experiments.markup import as_svg
from experiments.reports import Figure, Panel, Series

STYLES: dict[str, tuple[str, str]] = {
    "OJD0": ("#56b4e9", "o"),
    "OJD1": ("#0072b2", "o"),
    "OJD1 (k rows)": ("#1b3a57", "h"),
    "OJD1 (doubled)": ("#1b3a57", "p"),
    "NOJD0": ("#8fd18f", "s"),
    "NOJD1": ("#009e73", "s"),
    "NOJD1 (factors)": ("#00563f", "D"),
    "NOJD1 (doubled)": ("#5c7a00", "p"),
    "NOJD1 (UWEDGE)": ("#5c7a00", "*"),
    "NOJD1 (factors, UWEDGE)": ("#5c7a00", "*"),
    "TPM (transpose)": ("#d55e00", "^"),
    "TPM (polar)": ("#8a3b00", "<"),
    "TPM (polar, model)": ("#b8860b", ">"),
    "OJD1 (model)": ("#1b3a57", "h"),
    "TPM": ("#d55e00", "^"),
    "TPM, not whitened": ("#f0a070", "<"),
    "Lathauwer": ("#e6a800", "d"),
    "Lathauwer (Gram)": ("#9a7000", ">"),
    "ALS": ("#cc79a7", "v"),
    "NLS": ("#7b3fa0", "P"),
    "Auto": ("#111111", "X"),
    "MV + EM": ("#a52a2a", "H"),
    "oracle": ("#777777", "."),
    "orthogonal oracle": ("#444444", "+"),
    "the paper": ("#000000", "*"),
}
"""A color and a mark for every method, the same in all figures."""
OTHERS = (
    ("#0072b2", "o"),
    ("#d55e00", "^"),
    ("#009e73", "s"),
    ("#cc79a7", "v"),
    ("#e6a800", "d"),
    ("#7b3fa0", "P"),
    ("#56b4e9", "X"),
    ("#5c7a00", "<"),
    ("#a52a2a", "H"),
    ("#444444", "p"),
)
"""For what has none of its own, in order of appearance."""
DASHED = {"oracle": ":", "orthogonal oracle": "--"}
WIDTH, HEIGHT = 3.6, 2.9
"""Inches of a panel, at 96 pixels each: text of nine points is twelve pixels high, and a phone shows it as it is."""


def styles_of(labels: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return a color and a mark for every label, no two alike in both."""
    names = {label: label.removesuffix(", paper") for label in labels}  # a printed value has the color of its method
    known = {label: STYLES[name] for label, name in names.items() if name in STYLES}
    free = iter([style for style in OTHERS if style not in known.values()])
    own = {label: next(free, OTHERS[place % len(OTHERS)]) for place, label in enumerate(labels) if label not in known}
    return known | own


def labels_of(figure: Figure) -> list[str]:
    """Return what a figure's legend holds, in order of appearance."""
    return list(dict.fromkeys(series.label for panel in figure.panels for series in panel.series))


def draw_figure(figure: Figure, path: Path) -> None:
    """Save all panels of a figure with one legend, as a picture."""
    columns = 2 if len(figure.panels) == 4 else min(len(figure.panels), 3)
    rows = -(-len(figure.panels) // columns)
    styles = styles_of(labels_of(figure))
    with paper((4.1 * columns, 3.3 * rows + 0.9)) as canvas:
        axes = canvas.subplots(rows, columns, squeeze=False).ravel()
        for axis, panel in zip(axes, figure.panels, strict=False):
            _draw_panel(axis, panel, styles)
        for axis in axes[len(figure.panels) :]:
            axis.set_axis_off()
        handles = _handles(figure, styles)
        canvas.legend(handles=handles, loc="outside lower center", ncols=min(2 * columns, 4), frameon=False, fontsize=9)
        canvas.savefig(path, dpi=120)


def panel_svg(figure: Figure, place: int) -> str:
    """Return one panel as an SVG image of its own."""
    styles = styles_of(labels_of(figure))
    with paper((WIDTH, HEIGHT)) as canvas:
        _draw_panel(canvas.subplots(), figure.panels[place], styles)
        return as_svg(canvas)


def legend_svg(figure: Figure) -> str:
    """Return the legend of a figure as an SVG image, as wide as a panel."""
    styles = styles_of(labels_of(figure))
    handles = _handles(figure, styles)
    longest = max(len(handle.get_label()) for handle in handles)
    columns = 1 if longest > 24 else 2
    with paper((WIDTH, 0.25 + 0.22 * -(-len(handles) // columns))) as canvas:
        canvas.legend(handles=handles, loc="center", ncols=columns, frameon=False, fontsize=9)
        return as_svg(canvas)


def _handles(figure: Figure, styles: dict[str, tuple[str, str]]) -> list[Any]:
    from matplotlib.lines import Line2D

    kinds = {series.label: series.kind for panel in figure.panels for series in panel.series}
    return [
        Line2D(
            [],
            [],
            color=color,
            marker="*" if kinds[label] == "paper" else mark,
            markerfacecolor="none" if kinds[label] == "paper" else color,
            markersize=9 if kinds[label] == "paper" else 6,
            linestyle=DASHED.get(label, "-") if kinds[label] == "line" else "",
            label=label,
        )
        for label, (color, mark) in ((label, styles[label]) for label in labels_of(figure))
    ]


def _draw_panel(axis: Any, panel: Panel, styles: dict[str, tuple[str, str]]) -> None:
    crowded = len(panel.series) > 4
    for series in panel.series:
        _draw_series(axis, series, styles[series.label], crowded=crowded)
    axis.set_title(panel.title, fontsize=10, color=INK)
    axis.set_xlabel(panel.x_label, fontsize=9)
    axis.set_ylabel(panel.y_label, fontsize=9)
    axis.tick_params(labelsize=8.5)
    axis.grid(color=MUTED, alpha=0.2, linewidth=0.6)
    points = [(x, y) for series in panel.series for x, y in zip(series.x, series.y, strict=True) if math.isfinite(y)]
    if panel.x_log and points:
        log_axis(axis.xaxis, [x for x, _ in points])
    if panel.y_log and points and all(y > 0 for _, y in points):
        log_axis(axis.yaxis, [y for _, y in points])
    places = sorted({x for x, _ in points})
    if not panel.x_log and len(places) <= 4 and all(x == round(x) for x in places):
        axis.set_xticks(places, [f"{x:.0f}" for x in places])
    if panel.x_ticks is not None:
        many = len(panel.x_ticks) > 4
        axis.set_xticks(
            range(len(panel.x_ticks)), panel.x_ticks, rotation=35 if many else 0, ha="right" if many else "center"
        )


def _draw_series(axis: Any, series: Series, style: tuple[str, str], *, crowded: bool) -> None:
    """Draw one series; what it may vary by is a band, or thin bars where bands would hide each other."""
    color, mark = style
    if series.kind == "paper":
        axis.plot(
            series.x,
            series.y,
            linestyle="",
            marker="*",
            markersize=11,
            markerfacecolor="none",
            markeredgecolor=color,
            zorder=4,
        )
    elif series.kind == "points":
        few = len(series.x) < 20
        if series.low is not None and series.high is not None:
            axis.vlines(series.x, series.low, series.high, color=color, linewidth=1.2, alpha=0.7)
        axis.plot(series.x, series.y, linestyle="", marker=mark, markersize=6 if few else 2, color=color, zorder=3)
    else:
        line = DASHED.get(series.label, "-")
        axis.plot(series.x, series.y, line, marker=mark, markersize=4.5, color=color, linewidth=1.4)
        if series.low is None or series.high is None:
            return
        if crowded:
            axis.vlines(series.x, series.low, series.high, color=color, linewidth=0.8, alpha=0.5)
        else:
            axis.fill_between(series.x, series.low, series.high, color=color, alpha=0.12, linewidth=0)
