"""Commands for tensors."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table

import codiag
from codiag.cli.shared import (
    Force,
    Seed,
    app,
    check_outputs,
    mistakes_in_one_sentence,
    out,
    progress,
    show_warnings,
    shown,
)

if TYPE_CHECKING:
    from codiag.experiments.compare import Comparison

SHOWN = 30
"""Components that fit on a screen."""
TensorFile = Annotated[Path, typer.Argument(help="A .npy, .npz, .mat or .tns(.gz) file.", show_default=False)]
Rank = Annotated[int, typer.Option("--rank", "-r", help="Number of components.", show_default=False)]
Symmetric = Annotated[
    bool | None, typer.Option("--symmetric/--not-symmetric", help="Whether all modes share one factor.")
]
Variable = Annotated[
    str | None, typer.Option("--variable", help="Which array, where the file holds several.", show_default=False)
]


@app.command()
def factorize(
    tensor: TensorFile,
    rank: Rank,
    method: Annotated[
        str | None,
        typer.Option(
            "--method", help="ojd0, ojd1, nojd0, nojd1, nls, als, tpm, lathauwer, sd2, givens; unasked, the best."
        ),
    ] = None,
    symmetric: Symmetric = None,
    result: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to save weights and factors, as .npz.", show_default=False)
    ] = None,
    seed: Seed = 0,
    variable: Variable = None,
    force: Force = False,
) -> None:
    """Write a tensor as a sum of components, and print their weights."""
    from codiag._files import read_tensor

    check_outputs({"--out": (result, {".npz"})}, [tensor], force=force)
    with mistakes_in_one_sentence(), progress("reading ..."):
        start = time.perf_counter()
        loaded = read_tensor(tensor, variable)
        reading = time.perf_counter() - start
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", codiag.ConvergenceWarning)
            fit = codiag.factorize(loaded, rank, method=method, symmetric=symmetric, seed=seed)
        if result is not None:
            fit.save(result)
    out.print(_stage_table(fit, reading))
    out.print(_weight_table(fit))
    out.print(f"relative error [bold]{fit.relative_error:.3e}[/bold]", highlight=False)
    show_warnings(caught)
    if result is not None:
        out.print(f"Saved to [bold]{shown(result)}[/bold]; read it with codiag.Factorization.load")


@app.command()
def compare(
    tensor: TensorFile, rank: Rank, symmetric: Symmetric = None, seed: Seed = 0, variable: Variable = None
) -> None:
    """Factorize a tensor by every method that applies, and print how close they come and whether they agree."""
    from codiag._files import read_tensor
    from codiag.experiments.compare import compare as compare_methods

    with mistakes_in_one_sentence(), progress("comparing ..."):
        results = compare_methods(read_tensor(tensor, variable), rank, symmetric=symmetric, seed=seed)
    out.print(_comparison_table(results, f"{tensor.name}, rank {rank}"))
    out.print("distance: mean distance of the unit factors from those of the closest fit, after matching", style="dim")
    for result in results:
        if result.fit is None:
            out.print(f"{result.method} does not apply: {shown(result.reason)}", style="dim", soft_wrap=True)


def _stage_table(fit: codiag.Factorization, reading: float) -> Table:
    table = Table(title=shown(repr(fit)), title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("stage")
    for heading in ("sweeps", "objective", "seconds"):
        table.add_column(heading, justify="right")
    table.add_row("read", "", "", f"{reading:.3f}")
    for stage in fit.stages:
        objective = "" if stage.objective != stage.objective else f"{stage.objective:.3e}"
        table.add_row(stage.name, str(stage.sweeps), objective, f"{stage.seconds:.3f}")
    return table


def _weight_table(fit: codiag.Factorization) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("component", "weight"):
        table.add_column(heading, justify="right")
    weights = [float(weight) for weight in fit.weights]
    for index, weight in enumerate(weights[:SHOWN]):
        table.add_row(str(index), f"{weight:.6g}")
    if len(weights) > SHOWN:
        table.add_row("...", f"{len(weights) - SHOWN} more, down to {weights[-1]:.6g}")
    return table


def _comparison_table(results: list[Comparison], title: str) -> Table:
    table = Table(title=shown(title), title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("method")
    for heading in ("relative error", "distance", "sweeps", "seconds"):
        table.add_column(heading, justify="right")
    for result in results:
        if result.fit is not None:
            sweeps = sum(stage.sweeps for stage in result.fit.stages)
            table.add_row(
                result.method + ("" if result.fit.converged else " (not converged)"),
                f"{result.fit.relative_error:.6e}",
                f"{result.distance:.1e}",
                str(sweeps),
                f"{result.seconds:.3f}",
            )
    return table
