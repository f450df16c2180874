"""Parts of an HTML page: the page itself, tables, folded parts, and figures as images."""

from __future__ import annotations

import base64
import html
from collections.abc import Container, Iterable, Sequence
from importlib import resources
from io import BytesIO
from typing import Any

STYLE = (resources.files("codiag.reports") / "templates" / "style.css").read_text(encoding="utf-8")
"""The style of the library's own pages."""


def document(title: str, style: str, skip: str, header: str, main: str) -> str:
    """Return a page; the style, header and main part are HTML, the title and the words of the link `skip` text."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{style}</style></head><body>"
        f'<a class="skip" href="#main">{html.escape(skip)}</a><header>{header}</header>'
        f'<main id="main">{main}</main></body></html>'
    )


def table(title: str, headings: Sequence[str], rows: Iterable[Sequence[object]], *, words: Container[str]) -> str:
    """Return a table that scrolls sideways; columns in `words` are aligned left, others right."""
    kinds = ["" if name in words else ' class="number"' for name in headings]
    head = "".join(
        f'<th scope="col"{kind}>{html.escape(name)}</th>' for name, kind in zip(headings, kinds, strict=True)
    )
    body = ""
    for row in rows:
        cells = (f"<td{kind}>{html.escape(str(cell))}</td>" for cell, kind in zip(row, kinds, strict=True))
        body += f"<tr>{''.join(cells)}</tr>"
    return (
        f'<div class="scroll" role="region" aria-label="{html.escape(title)}" tabindex="0">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def folded(summary: str, inner: str) -> str:
    """Return HTML that is shown once a reader opens it."""
    return f"<details><summary>{html.escape(summary)}</summary>{inner}</details>"


def as_svg(figure: Any) -> str:
    """Return a figure as SVG."""
    file = BytesIO()
    figure.savefig(file, format="svg", metadata={"Date": None})
    drawn = file.getvalue().decode()
    return drawn[drawn.index("<svg") :]


def svg_image(drawn: str, words: str) -> str:
    """Return SVG as an image within the page, with a description."""
    source = f"data:image/svg+xml;base64,{base64.b64encode(drawn.encode()).decode()}"
    return f'<img src="{source}" alt="{html.escape(words)}" loading="lazy">'
