"""The command ``demo``: two factorizations by codiag and by other libraries that are installed, with a figure."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from codiag.cli.commands import Force, as_command, table_of, working
from codiag.cli.files import PICTURES

if TYPE_CHECKING:
    from codiag.cli.demo.run import Demo, Spectra

FIGURE = Path("codiag-demo.png")
"""The default figure, which the next run may replace."""


@as_command
def demo(
    figure: Annotated[
        Path | None,
        typer.Option(
            "--figure", help="Where to save the figure; by default codiag-demo.png, which is replaced every time."
        ),
    ] = None,
    size: Annotated[int, typer.Option("--size", min=4, max=100, help="Size of every mode, and the rank.")] = 40,
    noise: Annotated[
        float, typer.Option("--noise", min=1e-12, max=1.0, help="Size of the noise, relative to the tensor.")
    ] = 1e-3,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the random tensor.")] = 0,
    force: Force = False,
) -> None:
    """Find spectra in mixtures, and factorize a harder tensor.

    By codiag and by other libraries, if they are installed; both are drawn.
    """
    from codiag.cli.demo.run import draw_demo, run_demo

    drawn = figure is not None or find_spec("matplotlib") is not None
    outputs = {"--figure": (figure or FIGURE if drawn else None, PICTURES)}
    with working("factorizing ...", outputs, force=force or figure is None) as command:
        result = run_demo(size, noise, seed)
    predicted = float((result.fit.standard_errors**2).mean() ** 0.5)
    measured = float((result.component_errors()[0] ** 2).mean() ** 0.5)
    command.show(
        _spectra_table(result.spectra),
        f"codiag's 95 % bands cover the truth in {result.spectra.coverage():.0%} of the entries of all factors",
        _hard_table(result, f"A symmetric {size} x {size} x {size} tensor of rank {size}, noise {noise:g} of its norm"),
        "[dim]error: mean distance of the unit factors from the truth[/dim]",
        "[dim]ratio: to the oracle, least squares started from the truth, which is the statistical limit[/dim]",
        f"fit.standard_errors predicts {predicted:.2e} without the truth; measured {measured:.2e} (root mean square)",
    )
    command.draw("--figure", partial(draw_demo, result))
    if not drawn:
        command.show("For the picture: pip install 'codiag\\[plot]'")


def _spectra_table(spectra: Spectra) -> Table:
    (samples, *_), rank = spectra.measured.tensor.shape, spectra.fit.rank
    title = f"Spectra of {rank} substances in {samples} mixtures, from {len(spectra.runs[0].errors)} seeds"
    table = table_of(title, ["method"], ["least error", "median", "worst", "seconds"])
    for run in spectra.runs:
        errors = (min(run.errors), median(run.errors), max(run.errors))
        style = "bold" if run is spectra.runs[0] else None
        table.add_row(run.method, *(f"{error:.3f}" for error in errors), f"{run.seconds:.2f}", style=style)
    return table


def _hard_table(result: Demo, title: str) -> Table:
    table = table_of(title, ["method"], ["error", "ratio", "seconds"])
    table.add_row("oracle", f"{result.oracle:.2e}", "1.00", "", style="dim")
    for run in result.runs:
        style = "bold" if run is result.runs[0] else None
        table.add_row(run.method, f"{run.error:.2e}", f"{run.ratio:.2f}", f"{run.seconds:.2f}", style=style)
    return table
