"""Figures. matplotlib is imported where a figure is drawn, and nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from codiag.experiments.demo import component_errors

if TYPE_CHECKING:
    from codiag.experiments.demo import Demo

INK, ACCENT, MUTED = "#22303c", "#d1495b", "#8d99a6"
COLOURS = {"orthogonal": "#00798c", "non-orthogonal": "#d1495b"}


def draw_demo(demo: Demo, path: Path) -> None:
    """Save the picture of the demo: a matrix before and after, errors against their prediction, and time."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    style: Any = {
        "font.size": 10,
        "axes.edgecolor": INK,
        "axes.titlesize": 11,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    with mpl.rc_context(style):
        figure = Figure(figsize=(12.5, 7.4), layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.08), facecolor="white")
        FigureCanvasAgg(figure)
        top, bottom = np.asarray(figure.subfigures(2, 1, height_ratios=(1, 1.05)))
        _draw_matrices(demo, top)
        errors, times = bottom.subplots(1, 2, width_ratios=(1, 1.25))
        _draw_errors(demo, errors)
        _draw_times(demo, times)
        figure.savefig(path, dpi=150)


def _draw_matrices(demo: Demo, figure: Any) -> None:
    stack, fit = demo.stacks["non-orthogonal"], demo.best("non-orthogonal").fit
    figure.suptitle("\nThree matrices with free factors, and what the inverse factors make of them", color=INK)
    axes = figure.subplots(1, 6)
    for index in range(3):
        after = fit.inverse @ stack.matrices[index] @ fit.inverse.T
        for axis, matrix, title in (
            (axes[index], stack.matrices[index], f"$M_{index + 1}$"),
            (axes[index + 3], after, rf"$U^{{-1}} M_{index + 1} U^{{-\top}}$"),
        ):
            limit = np.abs(matrix).max()
            axis.imshow(matrix, cmap="RdBu", vmin=-limit, vmax=limit, interpolation="nearest")
            axis.set(title=title, xticks=[], yticks=[])


def _draw_errors(demo: Demo, axis: Any) -> None:
    """Plot the measured error of every component against its standard error, which needs no truth."""
    largest = 0.0
    for problem, stack in demo.stacks.items():
        errors, predicted = component_errors(demo.best(problem).fit, stack)
        axis.scatter(predicted, errors, s=22, alpha=0.8, color=COLOURS[problem], label=problem, linewidths=0)
        largest = max(largest, errors.max(), predicted.max())
    axis.plot([0, 1.05 * largest], [0, 1.05 * largest], color=MUTED, linewidth=1, zorder=0)
    axis.set(
        xlabel="standard error predicted from the data alone",
        ylabel="measured error of the component",
        title="Every component: measured and predicted error",
        xlim=(0, 1.05 * largest),
        ylim=(0, 1.05 * largest),
    )
    axis.legend(frameon=False, loc="upper left")


def _draw_times(demo: Demo, axis: Any) -> None:
    runs = list(reversed(demo.runs))
    milliseconds = [1e3 * run.seconds for run in runs]
    bars = axis.barh([run.method for run in runs], milliseconds, color=[COLOURS[run.problem] for run in runs])
    axis.bar_label(
        bars, [f"{value:,.0f} ms" if value > 100 else f"{value:.1f} ms" for value in milliseconds], padding=4, color=INK
    )
    axis.set(xscale="log", xlabel="time, milliseconds", title="Time of each method")
    axis.set_xlim(min(1.0, *milliseconds) / 2, 6 * max(milliseconds))
    axis.tick_params(axis="y", length=0)
