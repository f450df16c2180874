"""The command line: the only part of codiag that prints."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

import codiag

if TYPE_CHECKING:
    from codiag.experiments.demo import Demo

app = typer.Typer(
    help="Factorize tensors by jointly diagonalizing matrices.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    add_completion=False,
)
out = Console()
err = Console(stderr=True)


def _show_version(wanted: bool) -> None:
    if wanted:
        out.print(f"codiag {codiag.__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Factorize tensors by jointly diagonalizing matrices."""


@app.command()
def demo(
    figure: Annotated[Path, typer.Option("--figure", help="Where to save the figure.")] = Path("codiag-demo.png"),
    size: Annotated[int, typer.Option("--size", min=4, max=200, help="Rows of the matrices.")] = 40,
    noise: Annotated[
        float, typer.Option("--noise", min=1e-12, max=1.0, help="Standard deviation of the noise in each entry.")
    ] = 0.01,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the random problem.")] = 0,
) -> None:
    """Diagonalize noisy matrices that share their factors, by six methods, and draw the result."""
    from codiag.experiments.demo import run_demo

    if not figure.resolve().parent.is_dir():
        _fail(f"--figure must lie in a folder that exists; {figure.resolve().parent} does not")
    if figure.suffix.lower() not in {".png", ".svg", ".pdf"}:
        _fail(f"--figure must end in .png, .svg or .pdf; got {figure.name}")
    if figure.is_dir() or not os.access(figure if figure.exists() else figure.resolve().parent, os.W_OK):
        _fail(f"--figure must be a file that can be written; {figure} is not")
    with err.status("diagonalizing ..."):
        result = run_demo(size, noise, seed)
    out.print(_demo_table(result, f"{size} matrices of {size} x {size}, noise {noise:g} in every entry"))
    out.print(
        "error: mean distance of the unit factors from the truth\n"
        "predicted: what fit.standard_errors says without knowing the truth",
        style="dim",
    )
    _draw(result, figure)


def _demo_table(result: Demo, title: str) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("method")
    for heading in ("off-diagonal", "error", "predicted", "sweeps", "ms"):
        table.add_column(heading, justify="right")
    for problem in result.stacks:
        table.add_row(f"[bold]{problem}[/bold]")
        runs = [run for run in result.runs if run.problem == problem]
        for run in runs:
            table.add_row(
                "  " + run.method + ("" if run.fit.converged else " (not converged)"),
                f"{run.fit.off_diagonal:.3e}",
                f"{run.error:.2e}",
                f"{run.predicted:.2e}",
                str(run.fit.n_sweeps),
                f"{1e3 * run.seconds:.1f}",
                end_section=run is runs[-1],
            )
    return table


def _draw(result: Demo, figure: Path) -> None:
    from codiag.plotting import draw_demo

    try:
        draw_demo(result, figure)
    except ModuleNotFoundError as error:
        err.print(f"No figure: {error.name} is not installed. Get it with: pip install 'codiag\\[plot]'")
    except OSError as error:
        _fail(f"the figure could not be written: {error}")
    else:
        out.print(f"Figure saved to [bold]{figure}[/bold]")


def _fail(message: str) -> None:
    err.print(f"[red]Error:[/red] {message}")
    raise typer.Exit(2)
