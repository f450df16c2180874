"""Tables and pictures from the records of a grid."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.grid import Grid
from benchmarks.measure import table

HEADINGS = ("method", "error", "nearest", "of the oracle", "worst", "success", "at the optimum", "CPU s", "MB")
Records = Sequence[dict[str, Any]]


def tables(grid: Grid, records: Records) -> str:
    """Return a table for every cell: accuracy against the oracle, and cost."""
    parts = [
        f"## {grid.name.capitalize()}\n{grid.title}. {grid.n_seeds} seeds. Error: mean over seeds of the mean distance "
        "of unit factors from the truth after one-to-one matching, its ratio to the oracle's (least squares "
        "started from the truth), median and worst over seeds; nearest: the authors' many-to-one measure; success: "
        "error at most max(1e-3, twice the oracle's); at the optimum: objective within 1 % of the oracle's, or below "
        "it. CPU: median, one thread; MB: the most held at once."
    ]
    for cell in grid.cells():
        here = [record for record in records if record["cell"] == cell]
        oracle = np.mean([record["oracle"] for record in here])
        name = ", ".join(f"{axis} {value}" for axis, value in cell.items())
        rows = [_row(method, [record for record in here if record["method"] == method]) for method in _methods(here)]
        parts.append(f"**{name}** (oracle {oracle:.2e})\n\n" + table(HEADINGS, rows))
    return "\n\n".join(parts)


def _methods(records: Records) -> list[str]:
    return list(dict.fromkeys(record["method"] for record in records))


def _row(method: str, records: Records) -> tuple[str, ...]:
    kept = [record for record in records if "refused" not in record]
    if not kept:
        return (method, f"refuses: {records[0]['refused'].split(';')[0]}", *[""] * 7)
    errors, ratios = _column(kept, "error"), _column(kept, "error") / np.maximum(_column(kept, "oracle"), 1e-12)
    noiseless = bool(np.max(_column(kept, "oracle")) < 1e-12)
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
        f"{next(record['megabytes'] for record in kept if 'megabytes' in record):.1f}",
    )


def _column(records: Records, field: str) -> np.ndarray:
    return np.array([record[field] for record in records], dtype=float)


def draw(grid: Grid, records: Records, path: Path) -> None:
    """Save error against time, one panel per cell, one point per run."""
    from matplotlib import colormaps
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    cells = list(grid.cells())
    columns = min(3, len(cells))
    rows = -(-len(cells) // columns)
    figure = Figure(figsize=(4.6 * columns, 3.9 * rows + 0.8), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis in axes.ravel()[len(cells) :]:
        axis.set_axis_off()
    colours = dict(zip(_methods(records), map(colormaps["tab20"], range(20)), strict=False))
    for axis, cell in zip(axes.ravel(), cells, strict=False):
        for method in _methods(records):
            kept = [r for r in records if r["cell"] == cell and r["method"] == method and "refused" not in r]
            style = {
                "s": 34,
                "alpha": 0.75,
                "linewidths": 0,
                "marker": "o" if method == "auto" else "s",
                "color": colours[method],
            }
            errors = np.maximum(_column(kept, "error"), 1e-16)
            axis.scatter(_column(kept, "cpu"), errors, label=method, **style)
        oracle = max(float(np.mean([r["oracle"] for r in records if r["cell"] == cell])), 1e-16)
        axis.axhline(oracle, color="#8d99a6", linewidth=1, linestyle="--")
        axis.set(xscale="log", yscale="log", xlabel="CPU seconds", ylabel="error")
        axis.set_title(json.dumps(cell).strip("{}").replace('"', ""), fontsize=9)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)
