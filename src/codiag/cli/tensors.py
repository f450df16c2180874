"""Commands for tensors."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.table import Table

import codiag
from codiag.cli.commands import Command, Force, Report, Seed, as_command, named, table_of, working
from codiag.cli.fits import about_fit, factor_table
from codiag.cli.outputs import ARRAYS, PAGES, PICTURES, TABLES
from codiag.cli.terminal import fail, remark, shown
from codiag.labels import Labelled, Labels
from codiag.methods import as_method
from codiag.tensors import SparseTensor

if TYPE_CHECKING:
    from codiag.cli.comparison import Comparison

TensorFile = Annotated[
    Path,
    typer.Argument(
        metavar="TENSOR",
        parser=named,
        help="A .npy(.gz), .npz, .mat, .tns(.gz), .zarr or .h5 file, x.h5:/name for one array of several; a .csv, .tsv "
        "(also .gz) or .parquet table with a row for each entry; or - for the standard input.",
        show_default=False,
    ),
]
Rank = Annotated[int, typer.Option("--rank", "-k", "-r", help="Number of components.", show_default=False)]
RankOrAuto = Annotated[
    str,
    typer.Option(
        "--rank", "-k", "-r", help="Number of components, or auto to choose it.", metavar="N", show_default=False
    ),
]
Symmetric = Annotated[
    bool | None, typer.Option("--symmetric/--not-symmetric", help="Whether all modes share one factor.")
]
Variable = Annotated[
    str | None,
    typer.Option("--variable", metavar="NAME", help="Which array, where the file holds several.", show_default=False),
]
Nonnegative = Annotated[bool, typer.Option("--nonnegative", help="Factors have no negative entries.")]
NonnegativeModes = Annotated[
    str | None,
    typer.Option(
        "--nn-modes", metavar="MODES", help="Modes without negative entries, counted from 0: 0,2.", show_default=False
    ),
]


class Missing(StrEnum):
    """Which entries of a file were not observed."""

    NONE = "none"
    NAN = "nan"
    ZERO = "zero"


Modes = Annotated[
    str | None,
    typer.Option(
        "--modes",
        metavar="COLUMNS",
        help="Columns of a table that hold labels: a,b,c; by default all others.",
        show_default=False,
    ),
]
Value = Annotated[
    str | None,
    typer.Option(
        "--value", metavar="COLUMN", help="Column that holds the entries; by default the last.", show_default=False
    ),
]
MissingEntries = Annotated[
    Missing,
    typer.Option(
        "--missing",
        help="Entries that were not observed: nan, or zero, and of a sparse file all that it does not list. "
        "By default NaN are refused.",
    ),
]


class Absent(StrEnum):
    """What combinations of labels that a table does not list are."""

    MISSING = "missing"
    ZERO = "zero"


AbsentEntries = Annotated[Absent, typer.Option("--absent", help="What a table does not list.")]


class Read(NamedTuple):
    """What is asked of a file, its entries, which of them were observed, and the labels where there are any."""

    problem: codiag.Problem
    data: Any
    observed: Any
    labels: Labels | None


@dataclass(frozen=True)
class Asked:
    """Which tensor the options of a command name, and what they say about it."""

    path: Path
    variable: str | None
    symmetric: bool | None
    nonnegative: bool
    nn_modes: str | None
    missing: Missing
    modes: str | None
    value: str | None
    absent: Absent

    def read(self, rank: int, command: Command) -> Read:
        """Read the file."""
        from codiag.io import read_labelled_entries

        columns = None if self.modes is None else [name.strip() for name in self.modes.split(",")]
        source = command.source(self.path, ".tns")
        loaded = read_labelled_entries(source, self.variable, modes=columns, value=self.value, absent=self.absent)
        shape = loaded.tensor.shape
        command.passes.over(shape)
        data, observed = _observed(loaded, self.missing)
        constraints = _constraints(self.nonnegative, self.nn_modes, len(shape))
        problem = codiag.Problem(data, rank, constraints, observed, symmetric=self.symmetric)
        if loaded.labels is None:
            _refuse_missing(problem, self.missing)
        elif columns is None:
            _tell_constant(loaded.labels, shape)
        return Read(problem, data, observed, loaded.labels)


@as_command
def factorize(
    path: TensorFile,
    rank: RankOrAuto,
    method: Annotated[
        str | None,
        typer.Option(
            "--method", help="ojd0, ojd1, nojd0, nojd1, nls, als, tpm, lathauwer, sd2, givens; by default, the best."
        ),
    ] = None,
    symmetric: Symmetric = None,
    nonnegative: Nonnegative = False,
    nn_modes: NonnegativeModes = None,
    missing: MissingEntries = Missing.NONE,
    modes: Modes = None,
    value: Value = None,
    absent: AbsentEntries = Absent.MISSING,
    max_rank: Annotated[int, typer.Option("--max-rank", min=1, help="The largest rank that auto tries.")] = 10,
    result: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Where to save weights and factors: .npz, or a .csv or .tsv table with labels and standard errors; "
            "- writes that table to the standard output.",
            show_default=False,
        ),
    ] = None,
    figure: Annotated[
        Path | None, typer.Option("--figure", help="Where to draw the components.", show_default=False)
    ] = None,
    report: Report = None,
    seed: Seed = 0,
    variable: Variable = None,
    force: Force = False,
) -> None:
    """Write a tensor as a sum of components.

    Their weights and standard errors are printed, and how far they can be trusted.
    """
    from codiag.reports import factorization_report
    from codiag.result import with_labels

    outputs = {"--out": (result, ARRAYS | TABLES), "--figure": (figure, PICTURES), "--report": (report, PAGES)}
    asked = Asked(path, variable, symmetric, nonnegative, nn_modes, missing, modes, value, absent)
    with working("reading ...", outputs, [path], force=force) as command:
        start = time.perf_counter()
        problem, data, observed, labels = asked.read(1 if rank == "auto" else _as_rank(rank), command)
        reading = time.perf_counter() - start
        choice = None
        if rank == "auto":
            command.passes.doing("choosing the rank ...")
            choice = _chosen(problem, max_rank, seed, command)
            problem = replace(problem, rank=choice.fit.rank)
        command.passes.doing("factorizing ...")
        fit = codiag.factorize(problem, method=method, seed=seed)
        fit = fit if labels is None else with_labels(fit, labels)
        command.save("--out", lambda path: _save(path, fit), "" if _is_table(result) else LOADED)
        command.passes.doing("diagnosing ...")
        about = about_fit(fit)
        command.report(lambda: factorization_report(fit, data, choice, observed=observed, title=command.title(path)))
    shape, error = problem.tensor.shape, f"relative error [bold]{fit.relative_error:.3e}[/bold]"
    if problem.n_entries < math.prod(shape):
        error += f" over the {problem.n_entries:,} entries observed, of {math.prod(shape):,}"
    command.show(shown(repr(fit)), _stage_table(fit, reading), *about[:-1], error, about[-1])
    command.draw("--figure", lambda path: fit.plot().savefig(path))


LOADED = "; read it with codiag.Factorization.load"


def _as_rank(rank: str) -> int:
    try:
        return int(rank)
    except ValueError:
        fail(f"--rank must be an integer, or auto; got {rank}")


def _chosen(problem: codiag.Problem, largest: int, seed: int, command: Command) -> codiag.RankChoice:
    """Choose the rank that the tensor supports, and print why; exit where there is none."""
    from codiag._checks import as_generator
    from codiag.selection import LEGEND, choose

    choice = choose(problem, range(1, largest + 1), as_generator(seed, apart=True))
    command.show("\n".join(shown(line) for line in str(choice).splitlines()), f"[dim]{shown(LEGEND)}[/dim]")
    if choice.rank is None:
        fail(f"--rank auto finds none: {choice.reason} Give --rank a number to fit it all the same")
    return choice


def _is_table(path: Path | None) -> bool:
    return path is not None and path.suffix.lower() != ".npz"


def _save(path: Path, fit: codiag.Factorization) -> None:
    if not _is_table(path):
        fit.save(path)
        return
    from codiag.io import write_table

    write_table(path, factor_table(fit))


@as_command
def compare(
    path: TensorFile,
    rank: Rank,
    symmetric: Symmetric = None,
    nonnegative: Nonnegative = False,
    nn_modes: NonnegativeModes = None,
    missing: MissingEntries = Missing.NONE,
    modes: Modes = None,
    value: Value = None,
    absent: AbsentEntries = Absent.MISSING,
    seed: Seed = 0,
    variable: Variable = None,
) -> None:
    """Factorize a tensor by every method that applies.

    How close they come, and whether they agree, is printed.
    """
    from codiag.cli.comparison import compare as compare_methods

    asked = Asked(path, variable, symmetric, nonnegative, nn_modes, missing, modes, value, absent)
    with working("comparing ...", sources=[path]) as command:
        results = compare_methods(asked.read(rank, command).problem, seed=seed)
    command.show(
        _comparison_table(results, f"{command.title(path)}, rank {rank}"),
        "[dim]distance: mean distance of the unit factors from those of the closest fit, after matching[/dim]",
        *(f"[dim]{shown(line)}[/dim]" for line in _not_applied(results)),
    )


def _not_applied(results: list[Comparison]) -> list[str]:
    """Return which methods do not apply, and why, a line for each reason."""
    by_reason: dict[str, list[Comparison]] = {}
    for one in results:
        if one.fit is None:
            own_name = type(as_method(one.method)).__name__
            by_reason.setdefault(one.reason.replace(own_name, "they", 1), []).append(one)
    return [
        f"{same[0].method} does not apply: {same[0].reason}"
        if len(same) == 1
        else f"{', '.join(one.method for one in same)} do not apply: {reason}"
        for reason, same in by_reason.items()
    ]


def _constraints(nonnegative: bool, modes: str | None, order: int) -> list[str | None] | str | None:
    """Return what the options say about the factors: of all modes, or of each."""
    if modes is None:
        return "nonnegative" if nonnegative else None
    named = [part.strip() for part in modes.split(",")]
    if any(part not in map(str, range(order)) for part in named):
        raise ValueError(f"--nn-modes must be modes from 0 to {order - 1}, as in 0,{order - 1}; got {modes}")
    return ["nonnegative" if str(mode) in named else None for mode in range(order)]


def _observed(loaded: Labelled, missing: Missing) -> tuple[Any, Any]:
    """Return the tensor, and which of its entries were observed, as the option says."""
    entries = loaded.tensor
    if loaded.labels is not None:
        if missing is Missing.ZERO:
            raise ValueError("--missing zero is for arrays; --absent says what combinations a table does not list are")
        return entries, None
    if isinstance(entries, SparseTensor):
        if missing is Missing.NAN:
            raise ValueError("--missing nan is for arrays; --missing zero takes what a sparse file does not list")
        listed = SparseTensor(entries.coords, entries.values, entries.shape, absent="missing")
        return (listed if missing is Missing.ZERO else entries), None
    return entries, entries != 0 if missing is Missing.ZERO else None


def _refuse_missing(problem: codiag.Problem, missing: Missing) -> None:
    """Raise where entries are missing that were not said to be."""
    if missing is Missing.NONE and problem.entries is not None:
        n_entries = math.prod(problem.tensor.shape)
        n_missing = n_entries - int(problem.entries.counts()[0].sum())
        raise ValueError(
            f"the tensor must not hold NaN unless these are missing, and {n_missing} of its {n_entries} entries are "
            "NaN; add --missing nan to fit the others"
        )


def _tell_constant(labels: Labels, shape: Sequence[int]) -> None:
    """Say which columns were taken for modes although they hold one label alone."""
    constant = [name for name, size in zip(labels.names, shape, strict=True) if size == 1]
    others = [name for name in labels.names if name not in constant]
    if constant and len(others) >= 3:
        listed = " and ".join(constant)
        remark(
            f"{listed} has one label in all rows, and makes a mode of size 1; --modes {','.join(others)} leaves it out"
        )


def _stage_table(fit: codiag.Factorization, reading: float) -> Table:
    table = table_of("", ["stage"], ["sweeps", "objective", "seconds"])
    table.add_row("read", "", "", f"{reading:.3f}")
    for stage in fit.stages:
        objective = "" if math.isnan(stage.objective) else f"{stage.objective:.3e}"
        table.add_row(stage.name, str(stage.sweeps), objective, f"{stage.seconds:.3f}")
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
