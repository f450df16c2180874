"""The figure of the demo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from codiag.cli.demo.run import NOISE, RANK
from codiag.plotting import COLORS, INK, MUTED, OURS, THEIRS, log_axis, paper

if TYPE_CHECKING:
    from codiag.cli.demo.run import Demo, Spectra, Starts


def draw_demo(demo: Demo, path: Path) -> None:
    """Save the figure: spectra by every method, errors and times, and measured against predicted errors."""
    with paper((12.5, 9.6)) as figure:
        top, bottom = np.asarray(figure.subfigures(2, 1, height_ratios=(1.35, 1)))
        draw_spectra(demo.spectra, top)
        times, errors = bottom.subplots(1, 2, width_ratios=(1.2, 1))
        _draw_times(demo, times)
        _draw_errors(demo, errors)
        figure.savefig(path, dpi=150)


def draw_spectra(spectra: Spectra, figure: Any) -> None:
    """Draw the spectra from several seeds, a column for each method."""
    (samples, *_), noise = spectra.measured.tensor.shape, 100 * NOISE
    figure.suptitle(
        f"Spectra of {RANK} substances in {samples} samples, {noise:.0f} % noise: the truth (dashed), and estimates "
        f"from {len(spectra.runs[0].errors)} seeds; bands are 95 % confidence intervals",
        color=INK,
    )
    waves = (("emission, nm", spectra.measured.emission), ("excitation, nm", spectra.measured.excitation))
    grid = figure.subplots(2, len(spectra.runs), sharey="row", squeeze=False)
    for column, run in zip(grid.T, spectra.runs, strict=True):
        span = " to ".join(dict.fromkeys(f"{edge(run.errors):.2g}" for edge in (min, max)))
        column[0].set_title(f"{run.method}\nerror {span}")
        for axis, mode, (name, wave) in zip(column, (1, 2), waves, strict=True):
            _draw_curves(axis, wave, spectra, run, mode)
            axis.set_xlabel(name)


def _draw_curves(axis: Any, wave: np.ndarray, spectra: Spectra, run: Starts, mode: int) -> None:
    band = spectra.bands()[mode] if run is spectra.runs[0] else None
    for component, true in enumerate(spectra.measured.factors[mode].T):
        curves = [factors[mode][:, component] for factors in run.factors]
        for curve in curves:
            axis.plot(wave, curve, color=COLORS[component % len(COLORS)], linewidth=1.2, alpha=0.8)
        if band is not None:
            low, high = curves[0] - band[:, component], curves[0] + band[:, component]
            axis.fill_between(wave, low, high, color=COLORS[component % len(COLORS)], alpha=0.3, linewidth=0)
        axis.plot(wave, true, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=4)


def _draw_times(demo: Demo, axis: Any) -> None:
    runs = sorted(demo.runs, key=lambda run: -run.error)
    errors = [run.error for run in runs]
    axis.axvline(demo.oracle, color=MUTED, linewidth=1, linestyle="--")
    axis.hlines(range(len(runs)), demo.oracle, errors, color=MUTED, linewidth=0.8)
    axis.scatter(errors, range(len(runs)), s=70, color=[OURS if run.ours else THEIRS for run in runs], zorder=3)
    for row, run in enumerate(runs):
        axis.annotate(f"{run.seconds:.2f} s", (run.error, row), xytext=(9, -4), textcoords="offset points", color=INK)
    axis.set_yticks(range(len(runs)), [run.method for run in runs])
    axis.tick_params(axis="y", length=0)
    log_axis(axis.xaxis, [demo.oracle, *errors])
    axis.set(
        xlim=(demo.oracle / 1.5, 3 * max(errors)),
        xlabel="mean distance of unit factors from the truth (dashed: oracle)",
        title="A harder one, of full rank: error of every method, and its time",
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
