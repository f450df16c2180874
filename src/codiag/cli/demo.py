"""The command ``demo``: spectra of substances in mixtures, by codiag and by TensorLy if it is installed."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from codiag.cli.commands import Run, command, option, shown, table_of

FIGURE = "codiag-demo.png"
"""The default figure, which the next run may replace."""
SHAPE, RANK, NOISE = (8, 60, 40), 6, 0.1
"""Samples, wavelengths of emission and of excitation; substances; noise relative to the tensor."""
STARTS = 5
"""Number of seeds for every method."""


Fits = tuple[Sequence[Sequence[Any]], str, float]
"""The fits of a method from several seeds: factors matched to the truth, their errors in words, and mean seconds."""


@command
def demo(
    figure: Annotated[str | None, option("--figure", f"Where to draw it; by default {FIGURE}.")] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the noise.")] = 0,
) -> None:
    """Find spectra in mixtures, by codiag and by TensorLy if it is installed, and draw them."""
    from threadpoolctl import threadpool_limits

    run = Run(seed, force=figure is None)
    figure = figure or (FIGURE if find_spec("matplotlib") else None)
    run.check_outputs([], figure=figure)
    with threadpool_limits(1):  # several threads wait for each other longer than they compute on arrays this small
        measured, bands, fits = find_spectra(run.seed)
    rows = [(name, errors, f"{seconds:.2f}") for name, (_, errors, seconds) in fits.items()]
    columns = dict(zip(("method", "error", "seconds"), zip(*rows, strict=True), strict=True))
    entries = zip(fits["codiag"][0][0], measured.factors, bands, strict=True)
    covered = [(abs(estimate - true) <= band).mean() for estimate, true, band in entries]
    run.show(
        table_of(f"Spectra of {RANK} substances in {SHAPE[0]} mixtures, from {STARTS} seeds", columns),
        "[dim]error: mean distance of the unit factors from the truth[/dim]",
        f"codiag's 95 % confidence intervals cover the truth in {min(covered):.0%} of the entries of every factor",
        *([] if figure else [shown("For the picture: pip install 'codiag[plot]'")]),
    )
    run.save(figure, lambda file: draw_spectra(measured, bands, fits, file))


def find_spectra(seed: int) -> tuple[Any, list[Any], dict[str, Fits]]:
    """Return simulated mixtures, half-widths of codiag's 95 % intervals, and the fits of every method."""
    from codiag.metrics import match_components
    from codiag.synthetic import fluorescence

    measured = fluorescence(SHAPE, RANK, noise=NOISE, rng=seed)
    solvers: dict[str, Callable[..., object]] = {"codiag": _codiag}
    if find_spec("tensorly"):
        solvers["TensorLy parafac"] = _tensorly
    else:
        solvers["ALS from random starts (codiag's, for want of TensorLy)"] = partial(_codiag, method="als")
    fit = _codiag(measured.tensor, RANK)  # the first call also loads libraries, whose time does not count
    order = match_components(fit, measured).permutation
    bands = [1.96 * errors[:, order] for errors in fit.entry_standard_errors]
    return measured, bands, {name: _fits(solve, measured) for name, solve in solvers.items()}


def _fits(solve: Callable[..., object], measured: Any) -> Fits:
    from codiag.metrics import factor_error, match_components

    begin = time.perf_counter()
    results = [solve(measured.tensor, RANK, seed) for seed in range(STARTS)]
    seconds = (time.perf_counter() - begin) / STARTS
    factors = [match_components(result, measured).factors for result in results]
    errors = sorted(factor_error(matched, measured) for matched in factors)
    return factors, f"{errors[0]:.2g} to {errors[-1]:.2g}", seconds


def _codiag(tensor: Any, rank: int, seed: int = 0, method: str | None = None) -> Any:
    import codiag

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", codiag.ConvergenceWarning)
        return codiag.factorize(tensor, rank, method=method, rng=seed, progress=False)


def _tensorly(tensor: Any, rank: int, seed: int) -> Sequence[Any]:
    from tensorly.decomposition import parafac

    return list(parafac(tensor, rank, n_iter_max=1000, init="random", tol=1e-10, random_state=seed)[1])


def draw_spectra(measured: Any, bands: Sequence[Any], fits: Mapping[str, Fits], path: Path) -> None:
    """Draw the spectra from several seeds, a column for each method."""
    from codiag.plotting import COLORS, INK, paper

    with paper((12.5, 5.6)) as figure:
        figure.suptitle(
            f"Spectra of {RANK} substances in {SHAPE[0]} samples, {100 * NOISE:.0f} % noise: the truth (dashed), "
            f"estimates from {STARTS} seeds, and 95 % confidence intervals",
            color=INK,
        )
        waves = (("emission, nm", measured.emission), ("excitation, nm", measured.excitation))
        grid = figure.subplots(2, len(fits), sharey="row", squeeze=False)
        for column, (method, (estimates, errors, _)) in zip(grid.T, fits.items(), strict=True):
            column[0].set_title(f"{method}\nerror {errors}")
            for axis, mode, (name, wave) in zip(column, (1, 2), waves, strict=True):
                axis.set_xlabel(name)
                for component, color in zip(range(RANK), COLORS * RANK, strict=False):
                    curves = [factors[mode][:, component] for factors in estimates]
                    for curve in curves:
                        axis.plot(wave, curve, color=color, linewidth=1.2, alpha=0.8)
                    if method == "codiag":
                        ends = (curves[0] + sign * bands[mode][:, component] for sign in (-1, 1))
                        axis.fill_between(wave, *ends, color=color, alpha=0.3, linewidth=0)
                    true = measured.factors[mode][:, component]
                    axis.plot(wave, true, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=4)
        figure.savefig(path, dpi=150)
