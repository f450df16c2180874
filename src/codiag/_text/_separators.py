"""What separates the fields of a text file, and which mark its decimals have."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from codiag._text._encoding import open_text
from codiag._text._files import ending_of

SEPARATORS = {".csv": ",", ".tsv": "\t"}
"""What usually separates fields, by the ending of the file."""
OTHERS = (";", "\t", ",", "|")
"""What may separate fields in place of it: spreadsheets write semicolons if decimals have commas."""
COMMENTS = ("#", "%")
"""What comments begin with in lists of edges."""
SAMPLED = 20
"""Number of lines that are looked at."""


def first_lines(path: Path, number: int = SAMPLED) -> list[str]:
    """Return the first lines of a text file that are not empty."""
    with open_text(path) as file:
        return list(islice((line for line in file if line.strip()), number))


def separator_of(path: Path) -> str:
    """Return what separates the fields of a ``.csv`` or ``.tsv`` file.

    It is what splits all of the first lines into equally many fields, into most if several do, and what the ending says
    if there is a tie. If the lines differ in every case, it is the most frequent separator of the first line.
    """
    usual, lines = SEPARATORS[ending_of(path)], first_lines(path)
    candidates = [usual, *(other for other in OTHERS if other != usual)]
    counts = {separator: _n_fields(lines, separator) for separator in candidates}
    even = [separator for separator in candidates if len(set(counts[separator])) == 1 and counts[separator][0] > 1]
    return max(even or candidates, key=lambda separator: counts[separator][0])


def _n_fields(lines: Sequence[str], separator: str) -> list[int]:
    """Return the number of fields of each line, without comments and a last line that may be cut; 0 if there is none.

    Lines within a quoted field are part of it.
    """
    try:
        rows = [row for row in csv.reader(lines, delimiter=separator) if row and not row[0].startswith(COMMENTS)]
    except csv.Error:
        return [0]
    return [len(row) for row in (rows[:-1] if len(lines) == SAMPLED else rows)] or [0]


def has_decimal_comma(field: str) -> bool:
    """Return whether a field is a number with a comma before its decimals."""
    return "." not in field and field.count(",") == 1 and is_number(field.replace(",", "."))


def is_number(field: str) -> bool:
    """Return whether a field is a number."""
    try:
        float(field)
    except ValueError:
        return False
    return True
