"""Read votes, turn long tables into tensors, and write columns to files."""

from __future__ import annotations

import csv
import io
import itertools
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from codiag._checks import as_flag
from codiag._text import (
    SEPARATORS,
    as_frame,
    as_path,
    checked_ending,
    column_of,
    inert,
    values_of,
    written_at_once,
)
from codiag.labels import Labelled, of_table

logger = logging.getLogger("codiag.reading")


def labelled_tensor(
    table: Any, *, modes: Any = None, value: Any = None, absent: str = "missing", sort: bool = False
) -> Labelled:
    """Turn a long table, a row for each entry, into a tensor with labels.

    Parameters
    ----------
    table : data frame, or pandas Series whose index has a level for each mode
        A frame of any library that narwhals knows: pandas, polars, pyarrow, dask, DuckDB and others, with one value
        for each combination of labels. Labels that are numbers or dates are sorted, and categories are in their order.
        Other text is in the order of its first appearance, as Jan, Feb, Mar; labels that differ in one number alone
        are in the order of that number, as store2, store10.
    modes : sequence of str, optional
        The columns with labels, one for each mode; by default all but that of the values, and but a first column
        without a name, or called "Unnamed: 0", that numbers the rows.
    value : str, optional
        The column with the entries; by default the last.
    absent : {"missing", "zero"}
        The value of combinations of labels that are not listed: not observed, as in measurements and ratings, or zero,
        as in counts. Entries whose value is NaN, or an empty cell, are missing in either case.
    sort : bool
        Whether to sort all text labels but categories, numbers within them by their size.

    Returns
    -------
    Labelled
        A named tuple ``(tensor, labels)``, which `codiag.factorize` takes as it is: an array, or a
        `codiag.tensors.SparseTensor` if few combinations are listed; and the `Labels` of its modes.

    See Also
    --------
    codiag.factorize : Takes the result, or the table.
    codiag.tensors.SparseTensor : Entries by their coordinates, without labels.

    Examples
    --------
    >>> import codiag
    >>> from codiag.io import labelled_tensor
    >>> import pandas as pd
    >>> dishes = {"rice": 2.0, "fish soup": 4.0}
    >>> rows = [(person, dish, day, dishes[dish]) for person in "ab" for dish in dishes for day in (1, 2)]
    >>> table = pd.DataFrame(rows, columns=["person", "dish", "day", "rating"])
    >>> tensor, labels = labelled_tensor(table.iloc[:-1])
    >>> tensor.shape, labels.names, labels.values[1].tolist()
    ((2, 2, 2), ('person', 'dish', 'day'), ['rice', 'fish soup'])
    >>> labelled_tensor(table, sort=True).labels.values[1].tolist()
    ['fish soup', 'rice']
    >>> fit = codiag.factorize(table, 1, seed=0)
    >>> fit.to_frames()["dish"][0].round(2).to_dict()
    {'rice': 0.45, 'fish soup': 0.89}
    """
    as_flag("sort", sort)
    return of_table(table, modes, value, absent, sort=sort)


def write_table(path: str | Path, columns: Any) -> None:
    r"""Write columns to a ``.csv`` or ``.tsv`` file, completely or not at all.

    Text that a spreadsheet would run as a formula gets a single quote before it, as OWASP advises; numbers do not.

    Parameters
    ----------
    path : str or Path
        The file to write.
    columns : mapping of str to iterable, or data frame
        Columns of one length, by name; or a data frame of any library that narwhals knows, without its index.

    See Also
    --------
    codiag.models.DawidSkene.label_table : Columns to write.
    codiag.models.MixedMembershipCommunities.membership_table : Columns to write.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from codiag.io import write_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_table(Path(folder) / "labels.csv", {"task": [1, 2], "label": ["yes", "=1+1"]})
    ...     (Path(folder) / "labels.csv").read_text()
    "task,label\n1,yes\n2,'=1+1\n"
    """
    path = as_path("path", path)
    separator = SEPARATORS[checked_ending(path, tuple(SEPARATORS), must_exist=False)]
    columns = _as_columns(columns)
    rows = _checked_rows(columns)
    with written_at_once(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        writers = [
            csv.writer(text, delimiter=separator, lineterminator="\n", quoting=quoting)
            for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL)
        ]
        for row in itertools.chain([columns], rows):
            cells = [inert(cell) for cell in row]
            # csv does not quote a carriage return by itself
            has_return = any(isinstance(cell, str) and "\r" in cell for cell in cells)
            writers[has_return].writerow(cells)
        text.detach()


def _as_columns(table: Any) -> Any:
    """Return the columns of a data frame as lists, by name; other objects as they are."""
    frame = None if isinstance(table, Mapping) else as_frame(table)
    return table if frame is None else {name: values_of(column_of(frame, name)).tolist() for name in frame.columns}


def _checked_rows(columns: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Return the rows of a table; raise if its columns differ in length."""
    if not isinstance(columns, Mapping):
        raise TypeError(f"columns must be a mapping from names to columns; got {type(columns).__name__}")
    for name, column in columns.items():
        if not isinstance(column, Iterable) or getattr(column, "ndim", 1) == 0:
            raise TypeError(f"columns must contain sequences; {name!r} is {type(column).__name__}")
    cells = {name: list(column) for name, column in columns.items()}
    if len({len(column) for column in cells.values()}) > 1:
        lengths = ", ".join(f"{name} {len(column)}" for name, column in cells.items())
        raise ValueError(f"columns must be of one length; got {lengths}")
    return list(zip(*cells.values(), strict=True))
