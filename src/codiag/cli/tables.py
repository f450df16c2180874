"""Tables of files, read by pandas: the options that are passed on to it, and what is wrong with a table."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from codiag._text import as_file, ending_of, installed, open_text, readable
from codiag.cli.commands import NUMBER, option

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": r"\s+"}
KINDS = (*SEPARATORS, ".xlsx", ".parquet", ".json", ".jsonl")
"""Endings of tables."""
FIRST = 20
"""Number of lines in which the names of columns are looked for, to propose a line."""


@dataclass(frozen=True)
class Tables:
    """How pandas reads a table."""

    header: Annotated[int, typer.Option("--header", min=0, help="Line with the names of columns; 0 for none.")] = 1
    sep: Annotated[str | None, option("--sep", "Separator of columns.", "TEXT")] = None
    decimal: Annotated[str, option("--decimal", "Decimal sign, if it is not a point.", "TEXT")] = "."
    thousands: Annotated[str | None, option("--thousands", "Sign between thousands.", "TEXT")] = None
    na: Annotated[list[str] | None, option("--na", "Text that marks a missing cell.", "TEXT")] = None
    dates: Annotated[list[str] | None, option("--dates", "Dates, as in day:%d.%m.%Y.", "COLUMN:FORMAT")] = None
    fill_down: Annotated[list[str] | None, option("--fill-down", "Fill empty cells from above.", "COLUMN")] = None
    encoding: Annotated[str | None, option("--encoding", "Encoding, if not UTF-8.", "NAME")] = None

    def read(self, given: str, *, wide: bool = False) -> Any:
        """Return the table in a file as a pandas.DataFrame, with texts stripped; names of a wide one may be numbers."""
        path = as_file("path", given)
        if ending_of(path) not in KINDS:
            raise ValueError(f"path must end in one of {', '.join(KINDS)}, which tables are read from; got {given}")
        pandas = installed("pandas", path)
        with readable(path):
            try:
                frame = self._frame(pandas, path, wide)
            except UnicodeDecodeError as error:
                raise ValueError(f"{path.name} is not UTF-8: {error}. Name its --encoding, as latin-1") from error
            frame.columns = [str(name).strip() for name in frame.columns]
            for name in frame.select_dtypes(["object", "string"]):
                frame[name] = frame[name].map(lambda cell: cell.strip() if isinstance(cell, str) else cell)
            for name in self.fill_down or ():
                frame[name] = column(frame, path, "--fill-down", name).ffill()
            for text in self.dates or ():
                name, _, form = text.partition(":")
                frame[name] = pandas.to_datetime(column(frame, path, "--dates", name), format=form or None)
        if frame.empty:
            raise ValueError(f"{path.name} must have rows below the names of its columns; it has none")
        return frame

    def _frame(self, pandas: Any, path: Path, wide: bool) -> Any:
        ending = ending_of(path)
        if ending == ".parquet":
            return pandas.read_parquet(path)
        if ending in (".json", ".jsonl"):
            return pandas.read_json(path, lines=ending == ".jsonl")
        rows = self._first_rows(pandas, path)
        options: dict[str, Any] = {"decimal": self.decimal, "thousands": self.thousands, "na_values": self.na}
        options |= {"header": None, "names": list(range(1, len(rows[0]) + 1))}
        if self.header:
            self._check_names(path, rows, wide)
            options |= {"header": 0, "names": None, "skiprows": self.header - 1}
        if ending == ".xlsx":
            return pandas.read_excel(path, **options).dropna(how="all")
        return pandas.read_csv(path, sep=self._separator(path), encoding=self.encoding, index_col=False, **options)

    def _separator(self, path: Path) -> str:
        return {r"\t": "\t", "tab": "\t"}.get(self.sep or "", self.sep or SEPARATORS[ending_of(path)])

    def _first_rows(self, pandas: Any, path: Path) -> list[list[str]]:
        """Return the cells of the first lines."""
        if ending_of(path) == ".xlsx":
            cells = pandas.read_excel(path, header=None, nrows=FIRST, dtype=str, na_filter=False)
            return [[str(cell) for cell in row] for row in cells.to_numpy()]
        separator = self._separator(path)
        with open_text(path, self.encoding) as file:
            lines = [line.rstrip("\r\n") for line in islice(file, FIRST)]
        if "\0" in "".join(lines):
            raise ValueError(f"{path.name} must be text; it has zero bytes")
        if len(separator) > 1:
            return [line.split() for line in lines]
        return [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=separator)]

    def _check_names(self, path: Path, rows: list[list[str]], wide: bool) -> None:
        """Raise if the line of names does not name all columns, and propose the option that helps."""
        names = rows[self.header - 1] if len(rows) >= self.header else []
        width = max(map(len, rows))
        complete = [number for number, row in enumerate(rows, 1) if len(row) == width and all(row[1:])]
        signs = [sign for sign in ";\t|," if len(names) == 1 and sign in names[0]]
        if signs:
            way_out = f"If columns are separated by {signs[0]!r}, add --sep '{signs[0]}'"
        elif len(names) < width or not all(names[1:]):
            way_out = f"If line {complete[0]} does, add --header {complete[0]}" if complete else "Write them there"
        elif NUMBER.fullmatch(names[-1]) and not wide:
            way_out = "If no line names them, add --header 0, which calls them 1, 2, ..."
        else:
            return
        line = ", ".join(names)[:80] or "nothing"
        raise ValueError(f"line {self.header} of {path.name} must name all columns; it reads {line}. {way_out}")


def column(frame: Any, path: Path, option: str, name: str) -> Any:
    """Return a column of a table; raise and list the columns if it is none."""
    if name not in frame.columns:
        found = ", ".join(map(str, frame.columns))
        raise ValueError(f"{option} must name a column of {path.name}, one of {found[:200]}; got {name}")
    return frame[name]


def labels_in(frame: Any, path: Path, name: str) -> None:
    """Raise if a column of labels has empty cells."""
    n_empty = int(frame[name].isna().sum())
    if n_empty:
        raise ValueError(
            f"column {name} of {path.name} must have a label in every row; {n_empty} are empty. If cells were merged, "
            f"add --fill-down {name}, which repeats the cell above"
        )


def numbers_in(frame: Any, path: Path, name: str) -> None:
    """Raise if a column has text in place of numbers, and propose the option that reads it."""
    import pandas as pd

    bad = frame[name][pd.to_numeric(frame[name], errors="coerce").isna() & frame[name].notna()]
    if bad.empty:
        return
    text = str(bad.iloc[0])
    way_out = f"--na '{text}' makes it missing, --value names another column"
    if NUMBER.fullmatch(text.replace(".", "")):
        way_out = "--decimal , reads decimal commas" + (", and --thousands . points" if "." in text else "")
    elif NUMBER.fullmatch(text.replace(",", "")):
        way_out = "--thousands , reads it"
    raise ValueError(
        f"column {name} of {path.name} must have numbers; {len(bad)} of {len(frame)} cells are text, the first in row "
        f"{int(bad.index[0]) + 1}: {text!r:.40}. {way_out}"
    )
