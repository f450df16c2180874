"""Tables of files, read by pandas: the options that are passed on to it, and what is wrong with a table."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from codiag._text import as_file, ending_of, installed, readable
from codiag.cli.commands import NUMBER, option

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": r"\s+"}
KINDS = (*SEPARATORS, ".xlsx", ".parquet", ".json", ".jsonl")
"""Endings of tables."""


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
            cells = column(frame, path, "--dates", name)
            frame[name] = pandas.to_datetime(cells, format=form or None, errors="coerce")
            bad = cells[frame[name].isna() & cells.notna()]
            if len(bad):
                raise ValueError(
                    f"--dates {text} must be a column and the format of its dates, as {name}:%d.%m.%Y; "
                    f"{str(bad.iloc[0])!r:.40} has another"
                )
        if frame.empty:
            raise ValueError(f"{path.name} must have rows below the names of its columns; it has none")
        return frame

    def _frame(self, pandas: Any, path: Path, wide: bool) -> Any:
        ending = ending_of(path)
        if ending == ".parquet":
            return pandas.read_parquet(path)
        if ending in (".json", ".jsonl"):
            return pandas.read_json(path, lines=ending == ".jsonl")
        options: dict[str, Any] = {"decimal": self.decimal, "thousands": self.thousands, "na_values": self.na}
        has_groups = self.thousands and ending != ".xlsx"
        if has_groups:  # pandas would take points out of dates, too
            options = {"dtype": str, "na_values": self.na}
        options |= {"header": 0, "skiprows": self.header - 1} if self.header else {"header": None}
        try:
            if ending == ".xlsx":
                frame = pandas.read_excel(path, **options).dropna(how="all")
            else:
                frame = pandas.read_csv(path, sep=self._separator(path), encoding=self.encoding, **options)
        except pandas.errors.ParserError as error:
            raise self._bad_names(path, str(error)) from error
        if has_groups:
            frame = frame.apply(self._numbers)
        if not self.header:
            return frame.set_axis(range(1, frame.shape[1] + 1), axis=1)
        names = [str(name) for name in frame.columns]
        # pandas names columns without a name so, and makes an index of cells for which there is none
        are_joined = len(names) == 1 and any(sign in names[0] for sign in ";\t|,")
        are_missing = are_joined or any(name.startswith("Unnamed: ") for name in names[1:])
        has_index = ending != ".xlsx" and not isinstance(frame.index, pandas.RangeIndex)
        if are_missing or has_index or (NUMBER.fullmatch(names[-1]) and not wide):
            raise self._bad_names(path, ", ".join(names)[:80])
        return frame

    def _numbers(self, cells: Any) -> Any:
        """Return the numbers of a column of text in which thousands are separated; the column if it has others."""
        sign, point = re.escape(self.thousands or ""), re.escape(self.decimal)
        form = rf"\s*[-+]?(\d+|\d{{1,3}}({sign}\d{{3}})+)({point}\d+)?\s*"
        if not cells.dropna().str.fullmatch(form).all():
            return cells
        plain = cells.str.replace(self.thousands, "", regex=False).str.replace(self.decimal, ".", regex=False)
        return plain.astype(float)

    def _bad_names(self, path: Path, found: str) -> ValueError:
        return ValueError(
            f"line {self.header} of {path.name} must name all columns; found {found}. --header N names another line, "
            "--header 0 calls them 1, 2, ..., --sep ';' is for another separator, and --encoding for another encoding"
        )

    def _separator(self, path: Path) -> str:
        return {r"\t": "\t", "tab": "\t"}.get(self.sep or "", self.sep or SEPARATORS[ending_of(path)])


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
    """Raise if a column has text in place of numbers, and name the options for it."""
    import pandas as pd

    bad = frame[name][pd.to_numeric(frame[name], errors="coerce").isna() & frame[name].notna()]
    if bad.empty:
        return
    text = str(bad.iloc[0])
    raise ValueError(
        f"column {name} of {path.name} must have numbers; {len(bad)} of {len(frame)} cells are text, the first in row "
        f"{int(bad.index[0]) + 1}: {text!r:.40}. --na '{text}' makes it missing, --decimal , and --thousands . "
        "read other signs, and --value names another column"
    )
