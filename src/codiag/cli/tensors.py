"""Commands for tensors."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

import codiag
from codiag.cli.commands import Force, Seed, app, table_of, working
from codiag.cli.outputs import ARRAYS
from codiag.cli.terminal import shown

if TYPE_CHECKING:
    from codiag.experiments.compare import Comparison

SHOWN = 30
"""Components that fit on a screen."""
TensorFile = Annotated[Path, typer.Argument(help="A .npy, .npz, .mat or .tns(.gz) file.", show_default=False)]
Rank = Annotated[int, typer.Option("--rank", "-k", "-r", help="Number of components.", show_default=False)]
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
            "--method", help="ojd0, ojd1, nojd0, nojd1, nls, als, tpm, lathauwer, sd2, givens; by default, the best."
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

    with working("reading ...", {"--out": (result, ARRAYS)}, [tensor], force=force) as command:
        start = time.perf_counter()
        loaded = read_tensor(tensor, variable)
        reading = time.perf_counter() - start
        fit = codiag.factorize(loaded, rank, method=method, symmetric=symmetric, seed=seed)
        command.save("--out", fit.save, "; read it with codiag.Factorization.load")
    error = f"relative error [bold]{fit.relative_error:.3e}[/bold]"
    command.show(_stage_table(fit, reading), _weight_table(fit), error)


@app.command()
def compare(
    tensor: TensorFile, rank: Rank, symmetric: Symmetric = None, seed: Seed = 0, variable: Variable = None
) -> None:
    """Factorize a tensor by every method that applies, and print how close they come and whether they agree."""
    from codiag._files import read_tensor
    from codiag.experiments.compare import compare as compare_methods

    with working("comparing ...") as command:
        results = compare_methods(read_tensor(tensor, variable), rank, symmetric=symmetric, seed=seed)
    command.show(
        _comparison_table(results, f"{tensor.name}, rank {rank}"),
        "[dim]distance: mean distance of the unit factors from those of the closest fit, after matching[/dim]",
        *(f"[dim]{one.method} does not apply: {shown(one.reason)}[/dim]" for one in results if one.fit is None),
    )


def _stage_table(fit: codiag.Factorization, reading: float) -> Table:
    table = table_of(repr(fit), ["stage"], ["sweeps", "objective", "seconds"])
    table.add_row("read", "", "", f"{reading:.3f}")
    for stage in fit.stages:
        objective = "" if math.isnan(stage.objective) else f"{stage.objective:.3e}"
        table.add_row(stage.name, str(stage.sweeps), objective, f"{stage.seconds:.3f}")
    return table


def _weight_table(fit: codiag.Factorization) -> Table:
    table = table_of("", [], ["component", "weight"])
    weights = [float(weight) for weight in fit.weights]
    for index, weight in enumerate(weights[:SHOWN]):
        table.add_row(str(index), f"{weight:.6g}")
    if len(weights) > SHOWN:
        table.add_row("...", f"{len(weights) - SHOWN} more, down to {weights[-1]:.6g}")
    return table


def _comparison_table(results: list[Comparison], title: str) -> Table:
    table = table_of(title, ["method"], ["relative error", "distance", "sweeps", "seconds"])
    for result in results:
        if result.fit is not None:
            table.add_row(
                result.method + ("" if result.fit.converged else " (not converged)"),
                f"{result.fit.relative_error:.6e}",
                f"{result.distance:.1e}",
                str(sum(stage.sweeps for stage in result.fit.stages)),
                f"{result.seconds:.3f}",
            )
    return table
