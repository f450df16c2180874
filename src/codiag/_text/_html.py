"""Tables for notebooks, in the colors of the notebook."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

from codiag._text._writing import visible

MOST_ROWS = 30
"""Largest number of rows that a notebook shows."""


def html_table(title: str, columns: Mapping[str, Iterable[object]]) -> str:
    """Return a title and columns as HTML, with all cells as text."""
    head = "".join(f"<th>{_text(name)}</th>" for name in columns)
    rows = list(zip(*columns.values(), strict=True))
    body = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows[:MOST_ROWS])
    more = f"<p>{len(rows) - MOST_ROWS} more</p>" if len(rows) > MOST_ROWS else ""
    return f"<div><p>{_text(title)}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}</div>"


def _text(cell: object) -> str:
    return escape(visible(str(cell)))
