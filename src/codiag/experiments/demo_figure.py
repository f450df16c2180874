"""The picture of the demo. matplotlib is imported where a figure is drawn, and nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from codiag.plotting import INK, MUTED, OURS, THEIRS, log_axis, paper

if TYPE_CHECKING:
    from codiag.experiments.demo import Demo, Run


def draw_demo(demo: Demo, path: Path) -> None:
    """Save the picture of the demo: who found the components, accuracy against time, errors and their prediction."""
    with paper((12.5, 8.2)) as figure:
        top, bottom = np.asarray(figure.subfigures(2, 1, height_ratios=(1, 1.15)))
        _draw_matches(demo, top)
        times, errors = bottom.subplots(1, 2, width_ratios=(1.2, 1))
        _draw_times(demo, times)
        _draw_errors(demo, errors)
        figure.savefig(path, dpi=150)


def _draw_matches(demo: Demo, figure: Any) -> None:
    """Show how like each estimated component is to each true one: a diagonal where all were found."""
    figure.suptitle("\nLikeness of found components (columns) and true ones (rows)", color=INK)
    others = [run for run in demo.runs[1:] if not run.ours] or demo.runs[1:]
    shown = [demo.runs[0], *sorted(others, key=lambda run: run.error)[:3]]
    for axis, run in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown, strict=True):
        image = axis.imshow(_likeness(demo, run), cmap="magma_r", vmin=0, vmax=1, interpolation="nearest")
        axis.set(title=run.method, xticks=[], yticks=[])
    figure.colorbar(image, ax=axis, shrink=0.8, label="product of cosines")


def _likeness(demo: Demo, run: Run) -> np.ndarray:
    cosines = [true.T @ found for found, true in zip(run.factors, demo.problem.factors, strict=True)]
    return np.asarray(np.abs(np.prod(cosines, axis=0)))


def _draw_times(demo: Demo, axis: Any) -> None:
    runs = sorted(demo.runs, key=lambda run: -run.error)
    errors = [run.error for run in runs]
    axis.axvline(demo.oracle, color=MUTED, linewidth=1, linestyle="--")
    axis.hlines(range(len(runs)), demo.oracle, errors, color=MUTED, linewidth=0.8)
    axis.scatter(errors, range(len(runs)), s=70, color=[OURS if run.ours else THEIRS for run in runs], zorder=3)
    for place, run in enumerate(runs):
        axis.annotate(f"{run.seconds:.2f} s", (run.error, place), xytext=(9, -4), textcoords="offset points", color=INK)
    axis.set_yticks(range(len(runs)), [run.method for run in runs])
    axis.tick_params(axis="y", length=0)
    log_axis(axis.xaxis, [demo.oracle, *errors])
    axis.set(
        xlim=(demo.oracle / 1.5, 3 * max(errors)),
        xlabel="mean distance of unit factors from the truth (dashed: oracle)",
        title="Error of every method, and its time",
    )


def _draw_errors(demo: Demo, axis: Any) -> None:
    """Plot the measured error of every factor against its standard error, which needs no truth."""
    errors, predicted = demo.component_errors()
    axis.scatter(predicted.ravel(), errors.ravel(), s=16, alpha=0.7, color=OURS, linewidths=0)
    limits = [0.7 * min(errors.min(), predicted.min()), 1.4 * max(errors.max(), predicted.max())]
    axis.plot(limits, limits, color=MUTED, linewidth=1, zorder=0)
    log_axis(axis.xaxis, limits)
    log_axis(axis.yaxis, limits)
    axis.set(
        xlabel="standard error predicted from the data alone",
        ylabel="measured error of the factor",
        title="Every factor: measured and predicted error",
    )
