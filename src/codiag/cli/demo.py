"""The command ``demo``: spectra of substances in mixtures, by codiag and by TensorLy if it is installed."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from codiag.cli.commands import Run, command, option, shown, table_of

FIGURE = "codiag-demo.png"
"""The default figure, which the next run may replace."""
SHAPE, RANK, NOISE = (8, 60, 40), 6, 0.1
"""Samples, wavelengths of emission and of excitation; substances; noise relative to the tensor."""
STARTS = 5
"""Number of seeds for every method."""


class Found(NamedTuple):
    """What a method finds: factors from several seeds in the order of the truth, errors in words, mean seconds."""

    factors: Sequence[Sequence[Any]]
    errors: str
    seconds: float
    ends: Sequence[Any]  # lower and upper ends (2, d, k) of codiag's 95 % confidence intervals, by mode


@command
def demo(
    figure: Annotated[str | None, option("--figure", f"Where to draw it; by default {FIGURE}.")] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the noise.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace a figure that exists.")] = False,
) -> None:
    """Find spectra in mixtures, by codiag and by TensorLy if it is installed, and draw them."""
    from threadpoolctl import threadpool_limits

    run = Run(seed, force=force or figure is None)
    figure = figure or (FIGURE if find_spec("matplotlib") else None)
    run.check_outputs([], figure=figure)
    with threadpool_limits(1):  # several threads wait for each other longer than they compute on arrays this small
        measured, fits = find_spectra(run.seed)
    columns = {
        "method": list(fits),
        "error": [found.errors for found in fits.values()],
        "seconds": [f"{found.seconds:.2f}" for found in fits.values()],
        "in 95 % intervals": [coverage(found, measured) for found in fits.values()],
    }
    run.show(
        table_of(f"Spectra of {RANK} substances in {SHAPE[0]} mixtures, from {STARTS} seeds", columns),
        "[dim]error: mean distance of the unit factors from the truth; in 95 % intervals: share of the true entries of "
        "each factor that lie in codiag's confidence intervals[/dim]",
        *([] if figure else [shown("For the picture: pip install 'codiag[plot]'")]),
    )
    run.save(figure, lambda file: draw_spectra(measured, fits, file))


def coverage(found: Found, measured: Any) -> str:
    """Return the share of the true entries of each factor that lie in the confidence intervals, in words."""
    entries = zip(found.ends, measured.factors, strict=False)
    return ", ".join(f"{((low <= true) & (true <= high)).mean():.0%}" for (low, high), true in entries)


def find_spectra(seed: int) -> tuple[Any, dict[str, Found]]:
    """Return simulated mixtures, and what every method finds in them."""
    from codiag.synthetic import fluorescence

    measured = fluorescence(SHAPE, RANK, noise=NOISE, rng=seed)
    solvers: dict[str, Callable[..., Any]] = {"codiag": _codiag}
    if find_spec("tensorly"):
        solvers["TensorLy parafac"] = partial(_tensorly, name="parafac")
    else:
        solvers["ALS from random starts (codiag's, for want of TensorLy)"] = partial(_codiag, method="als")
    solvers["codiag, non-negative"] = partial(_codiag, constraints="nonnegative")
    if find_spec("tensorly"):
        solvers["TensorLy non-negative HALS"] = partial(_tensorly, name="non_negative_parafac_hals")
    _codiag(measured.tensor, RANK)  # the first call also loads libraries, whose time does not count
    has_ends = {name: name.startswith("codiag") for name in solvers}
    return measured, {name: _found(solve, measured, has_ends=has_ends[name]) for name, solve in solvers.items()}


def _found(solve: Callable[..., Any], measured: Any, *, has_ends: bool) -> Found:
    import numpy as np

    from codiag.metrics import factor_error, match_components

    begin = time.process_time()
    fits = [solve(measured.tensor, RANK, seed) for seed in range(STARTS)]
    seconds = (time.process_time() - begin) / STARTS
    matches = [match_components(fit, measured) for fit in fits]
    errors = sorted(factor_error(match.factors, measured) for match in matches)
    ends = []
    if has_ends:
        order, signs = matches[0].permutation, matches[0].signs
        pairs = zip(fits[0].conf_int().factors, signs, strict=True)
        ends = [np.sort(np.stack(pair)[:, :, order] * sign, axis=0) for pair, sign in pairs]
    least, most = f"{errors[0]:.2g}", f"{errors[-1]:.2g}"
    return Found([match.factors for match in matches], least if least == most else f"{least} to {most}", seconds, ends)


def _codiag(tensor: Any, rank: int, seed: int = 0, **options: Any) -> Any:
    import codiag

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", codiag.ConvergenceWarning)
        return codiag.factorize(tensor, rank, rng=seed, progress=False, **options)


def _tensorly(tensor: Any, rank: int, seed: int, *, name: str) -> Sequence[Any]:
    from tensorly import decomposition

    solve = getattr(decomposition, name)
    return list(solve(tensor, rank, n_iter_max=1000, init="random", tol=1e-10, random_state=seed)[1])


def draw_spectra(measured: Any, fits: Mapping[str, Found], path: Path) -> None:
    """Draw the spectra from several seeds, a column for each method."""
    from codiag.plotting import COLORS, INK, paper

    with paper((3.2 * len(fits) + 0.6, 5.6)) as figure:
        figure.suptitle(
            f"Spectra of {RANK} substances in {SHAPE[0]} samples, {100 * NOISE:.0f} % noise: the truth (dashed), "
            f"estimates from {STARTS} seeds, and 95 % confidence intervals",
            color=INK,
        )
        waves = (("emission, nm", measured.emission), ("excitation, nm", measured.excitation))
        grid = figure.subplots(2, len(fits), sharey="row", squeeze=False)
        for column, (method, found) in zip(grid.T, fits.items(), strict=True):
            column[0].set_title(f"{method}\nerror {found.errors}", fontsize=10)
            for axis, mode, (name, wave) in zip(column, (1, 2), waves, strict=True):
                axis.set_xlabel(name)
                for component, color in zip(range(RANK), COLORS * RANK, strict=False):
                    for factors in found.factors:
                        axis.plot(wave, factors[mode][:, component], color=color, linewidth=1.2, alpha=0.8)
                    if found.ends:
                        low, high = found.ends[mode][:, :, component]
                        axis.fill_between(wave, low, high, color=color, alpha=0.3, linewidth=0)
                    true = measured.factors[mode][:, component]
                    axis.plot(wave, true, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=4)
        figure.savefig(path, dpi=130)
