"""The options that say which tensor to read and how, and the problem that they pose."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

import codiag
from codiag._text import TABLES, ending_of
from codiag.cli.commands import Command, argument, option

if TYPE_CHECKING:
    from codiag.labels import Labels

TensorFile = Annotated[
    Path,
    argument(
        "TENSOR",
        "A .npy(.gz), .npz, .mat, .tns(.gz), .zarr, .h5 or .nc file, x.h5:/name for one array of several; a .csv, "
        ".tsv (also .gz), .parquet or .xlsx table with a row for each entry; or - for the standard input.",
    ),
]
Rank = Annotated[int, option("--rank", "-k", "-r", words="Number of components.")]
RankOrAuto = Annotated[
    str, option("--rank", "-k", "-r", metavar="N", words="Number of components, or auto to choose it.")
]
Symmetric = Annotated[
    bool | None, typer.Option("--symmetric/--not-symmetric", help="Whether all modes share one factor.")
]
Variable = Annotated[
    str | None, option("--variable", metavar="NAME", words="Name of the array, if the file has several.")
]
Nonnegative = Annotated[bool, typer.Option("--nonnegative", help="Factors have no negative entries.")]
NonnegativeModes = Annotated[
    str | None, option("--nn-modes", metavar="MODES", words="Modes without negative entries, counted from 0: 0,2.")
]
Modes = Annotated[
    str | None,
    option("--modes", metavar="COLUMNS", words="Columns of a table with labels: a,b,c; by default all others."),
]
LossName = Annotated[
    str | None,
    option(
        "--loss",
        metavar="NAME",
        words="How entries scatter: gaussian, poisson, negative_binomial, bernoulli, huber; by default least squares.",
    ),
]
Counts = Annotated[
    bool,
    typer.Option(
        "--counts",
        help="Entries are counts: --loss poisson. Rows of a table are events, which are counted, unless it has a "
        "column of counts.",
    ),
]
SortLabels = Annotated[
    bool,
    typer.Option("--sort-labels", help="Sort labels of a table that are text; by default they keep the table's order."),
]
Value = Annotated[
    str | None, option("--value", metavar="COLUMN", words="Column with the entries; by default the last.")
]


class Missing(StrEnum):
    """How a file marks entries that were not observed."""

    NAN = "nan"
    ZERO = "zero"
    NONE = "none"


class Absent(StrEnum):
    """What combinations of labels that a table does not list are."""

    MISSING = "missing"
    ZERO = "zero"


MissingEntries = Annotated[
    Missing,
    typer.Option(
        "--missing",
        help="What counts as missing: nan = NaN entries; zero = zeros, and everything that a sparse file does not "
        "list; none = nothing, and NaN is an error.",
    ),
]
AbsentEntries = Annotated[
    Absent | None,
    typer.Option(
        "--absent",
        help="Combinations of labels that a table does not list: not observed, or zero. By default missing, and zero "
        "with --counts.",
    ),
]


class Read(NamedTuple):
    """The problem that a file and the options pose, its entries, which of them were observed, and any labels."""

    problem: codiag.Problem
    data: Any
    observed: Any
    labels: Labels | None


@dataclass(frozen=True)
class TensorOptions:
    """The options of a command that name a tensor and describe it."""

    path: Path
    variable: str | None
    symmetric: bool | None
    nonnegative: bool
    nn_modes: str | None
    missing: Missing
    modes: str | None
    value: str | None
    absent: Absent | None
    loss: str | None = None
    counts: bool = False
    sort_labels: bool = False

    def read(self, rank: int, command: Command) -> Read:
        """Read the file."""
        from codiag.io import read_labelled_entries

        columns = None if self.modes is None else [name.strip() for name in self.modes.split(",")]
        source = command.source(self.path, ".tns")
        are_events = self.counts and self.value is None
        absent = self.absent or (Absent.ZERO if self.counts else Absent.MISSING)
        loaded = read_labelled_entries(
            source,
            self.variable,
            modes=columns,
            value=self.value,
            absent=absent,
            counts=are_events,
            sort=self.sort_labels,
        )
        shape = loaded.tensor.shape
        command.passes.over(shape)
        is_table = ending_of(source) in TABLES
        data, observed = _observed(loaded.tensor, self.missing, is_table=is_table)
        constraints = _constraints(self.nonnegative, self.nn_modes, len(shape))
        problem = codiag.Problem(
            data,
            rank,
            constraints=constraints,
            observed=observed,
            symmetric=bool(self.symmetric),
            labels=loaded.labels,
            loss=self.loss or ("poisson" if self.counts else None),
        )
        if self.missing is Missing.NONE:
            _refuse_missing(problem)
        if loaded.labels is not None and is_table and columns is None:
            command.note(_constant_columns(loaded.labels, shape))
        if is_table and self.absent is None and not are_events:
            command.note(_about_absent(loaded.tensor, absent))
        return Read(problem, data, observed, loaded.labels)


def _constraints(nonnegative: bool, modes: str | None, order: int) -> list[str | None] | str | None:
    """Return the constraint of all modes, or of each."""
    if modes is None:
        return "nonnegative" if nonnegative else None
    chosen = [part.strip() for part in modes.split(",")]
    if any(part not in map(str, range(order)) for part in chosen):
        raise ValueError(f"--nn-modes must be modes from 0 to {order - 1}, as in 0,{order - 1}; got {modes}")
    return ["nonnegative" if str(mode) in chosen else None for mode in range(order)]


def _observed(entries: Any, missing: Missing, *, is_table: bool) -> tuple[Any, Any]:
    """Return the tensor, and which of its entries were observed; None if NaN alone are missing."""
    if missing is not Missing.ZERO:
        return entries, None
    if is_table:
        raise ValueError("--missing zero is for arrays; --absent says what combinations a table does not list are")
    if hasattr(entries, "coords"):  # a list of entries
        from codiag.tensors import SparseTensor

        return SparseTensor(entries.coords, entries.values, entries.shape, absent="missing"), None
    return entries, entries != 0


def _refuse_missing(problem: codiag.Problem) -> None:
    """Raise if entries are missing."""
    if problem.entries is not None:
        n_entries = math.prod(problem.tensor.shape)
        n_missing = n_entries - int(problem.entries.counts()[0].sum())
        raise ValueError(
            f"--missing none refuses tensors with missing entries, and {n_missing:,} of the {n_entries:,} entries are "
            "missing; leave it out to fit the others"
        )


def _about_absent(tensor: Any, absent: Absent) -> str:
    """Return a sentence about counts that a table does not list; empty if there are none, or entries are no counts."""
    entries = tensor.values if hasattr(tensor, "coords") else tensor
    size = math.prod(tensor.shape)
    if absent is Absent.ZERO:
        n_listed = int((entries != 0).sum())
        taken, other = "zero", "If they were not observed, say --absent missing"
    else:
        listed = entries[entries == entries]
        n_listed = listed.size
        if n_listed == 0 or bool((listed < 1).any()) or bool((listed % 1 != 0).any()):
            return ""
        taken, other = "missing", "If nothing was counted there, say --absent zero, or --counts"
    if n_listed == size:
        return ""
    return (
        f"{size - n_listed:,} of {size:,} combinations of labels have no count in the table, and are {taken}. {other}"
    )


def _constant_columns(labels: Labels, shape: Sequence[int]) -> str:
    """Return a sentence about columns that became modes of size 1, since they hold one label alone; empty if none."""
    constant = [name for name, size in zip(labels.names, shape, strict=True) if size == 1]
    others = [name for name in labels.names if name not in constant]
    if not constant or len(others) < 3:
        return ""
    listed = " and ".join(constant)
    return f"{listed} has one label in all rows, and makes a mode of size 1; --modes {','.join(others)} leaves it out"
