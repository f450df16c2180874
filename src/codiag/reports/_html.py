"""Pages of HTML that need no other file, no network and no script.

Labels of the data are always text, never markup. Every panel of a figure is an image of its own, so that its text has
one size on a phone and on a desk.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from codiag._text import as_path, visible, write_text
from codiag.plotting import paper

STYLE = """
:root { color-scheme: light dark; --ink: #1d2a35; --soft: #55646f; --line: #cfd7dd; --paper: #ffffff; --card: #f6f8f9;
  --link: #00687a; --yes: #1a7f37; --partly: #8a5a00; --no: #b3261e; --open: #55646f; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --soft: #a7b4bf; --line: #3a4652; --paper: #12181e; --card: #1a222a; --link: #62cbd9;
    --yes: #57c274; --partly: #e0ab4a; --no: #ff8a80; --open: #a7b4bf; }
}
* { box-sizing: border-box; }
html { scroll-behavior: smooth; } @media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
body { margin: 0 auto; max-width: 72rem; padding: 1rem; font: 1rem/1.55 system-ui, sans-serif; color: var(--ink);
  background: var(--paper); overflow-wrap: break-word; }
h1 { font-size: 1.6rem; line-height: 1.25; } h2 { font-size: 1.3rem; } h3 { font-size: 1.05rem; }
a { color: var(--link); }
a:focus-visible, summary:focus-visible, [tabindex]:focus-visible { outline: 3px solid var(--link);
  outline-offset: 2px; }
.skip { position: absolute; left: -999px; } .skip:focus { left: 1rem; top: .5rem; background: var(--paper); }
nav ul { display: flex; flex-wrap: wrap; gap: .4rem 1rem; padding: 0; list-style: none; }
section { border-top: 1px solid var(--line); margin-top: 2rem; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .6rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
.scroll { overflow-x: auto; } .scroll td, .scroll th { white-space: nowrap; }
.badge { font-weight: 700; white-space: nowrap; }
.yes { color: var(--yes); } .partly { color: var(--partly); } .no { color: var(--no); } .open { color: var(--open); }
.counts { display: flex; flex-wrap: wrap; gap: .5rem 1.5rem; padding: 0; list-style: none; }
.counts b { font-size: 1.5rem; margin-right: .3rem; }
figure { margin: 1rem 0; }
.panels { display: grid; gap: .75rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, 20rem), 1fr)); }
.panels img { width: 100%; max-width: 30rem; height: auto; background: #fff; border-radius: 4px; display: block; }
figcaption, .note { color: var(--soft); font-size: .92rem; }
details { margin: .75rem 0; } summary { cursor: pointer; }
@media (prefers-color-scheme: dark) { .panels img { filter: invert(1) hue-rotate(180deg);
  mix-blend-mode: screen; } }
"""
"""The style of all pages: light and dark colors, tables that scroll sideways, and panels that wrap."""

SHEETS = """
th.number, td.number { text-align: right; }
tr.marked td { background: var(--card); font-weight: 700; }
.panels { align-items: start; } .panels.even { max-width: 61rem; }
.grids { display: flex; flex-wrap: wrap; gap: 1rem; }
.grids figure { margin: 0; max-width: 100%; } .grids figcaption { margin-bottom: .25rem; }
.shade td, .shade th { padding: .3rem .45rem; } .shade th[scope=col] { text-align: right; }
.shade td { text-align: right; background: color-mix(in srgb, var(--link) calc(var(--share) * 55%), transparent); }
.shade th { font-weight: 400; color: var(--soft); max-width: 10rem; overflow: hidden; text-overflow: ellipsis; }
"""
"""The style that only reports of results need."""


def text(value: object) -> str:
    """Return a value as text of a page, with control characters and markup escaped."""
    return html.escape(visible(str(value)))


def document(title: str, style: str, skip: str, header: str, main: str) -> str:
    """Return a page; the style, header and main part are HTML, the title and the words of the link `skip` text."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{text(title)}</title><style>{style}</style></head><body>"
        f'<a class="skip" href="#main">{text(skip)}</a><header>{header}</header>'
        f'<main id="main">{main}</main></body></html>'
    )


def refuse_path(name: str, value: object, call: str) -> None:
    """Raise if an argument for data is the path of the page, which comes after the data."""
    if isinstance(value, str | Path):
        raise TypeError(
            f"{name} must be data, which the page is about; got {str(value)!r}. The path comes last: {call}"
        )


def report(
    title: str, lead: str, facts: Mapping[str, object], sections: Mapping[str, str], path: str | Path | None = None
) -> str:
    """Return the page of a result: a sentence, the most important numbers, links, and sections of HTML by title.

    If a path is given, the page is also written to it.
    """
    counts = "".join(f"<li><b>{text(value)}</b>{text(name)}</li>" for name, value in facts.items())
    names = {name: name.lower().replace(" ", "-") for name in sections}
    links = "".join(f'<li><a href="#{name}">{text(heading)}</a></li>' for heading, name in names.items())
    body = "".join(
        f'<section aria-labelledby="{name}"><h2 id="{name}">{text(heading)}</h2>{sections[heading]}</section>'
        for heading, name in names.items()
    )
    header = f'<h1>{text(title)}</h1><p>{text(lead)}</p><ul class="counts">{counts}</ul>'
    nav = f'<nav aria-label="Sections"><ul>{links}</ul></nav>'
    page = document(title, STYLE + SHEETS, "Skip to the result", header, nav + body)
    if path is not None:
        write_text(as_path("path", path), page)
    return page


def sentences(lines: Iterable[object], otherwise: str = "") -> str:
    """Return sentences as a list, a single one as a paragraph, and `otherwise` if there is none."""
    items = list(lines) or [otherwise]
    if len(items) == 1:
        return f"<p>{text(items[0])}</p>"
    return f"<ul>{''.join(f'<li>{text(item)}</li>' for item in items)}</ul>"


def note(words: object) -> str:
    """Return a note that explains a table or a figure."""
    return f'<p class="note">{text(words)}</p>'


def table(
    title: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    words: Container[str],
    marked: int | None = None,
) -> str:
    """Return a table that scrolls sideways; columns in `words` are aligned left, others right; one row is marked."""
    kinds = ["" if name in words else ' class="number"' for name in headings]
    head = "".join(f'<th scope="col"{kind}>{text(name)}</th>' for name, kind in zip(headings, kinds, strict=True))
    body = ""
    for number, row in enumerate(rows):
        cells = "".join(f"<td{kind}>{text(cell)}</td>" for cell, kind in zip(row, kinds, strict=True))
        body += f'<tr class="marked">{cells}</tr>' if number == marked else f"<tr>{cells}</tr>"
    return scrolling(title, f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")


def scrolling(title: str, inner: str) -> str:
    """Return HTML in a region that scrolls sideways, also by keys."""
    return f'<div class="scroll" role="region" aria-label="{text(title)}" tabindex="0">{inner}</div>'


def shaded(
    title: str,
    rows: Sequence[object],
    columns: Sequence[object],
    cells: Iterable[Sequence[float]],
    *,
    most: float = 1.0,
    form: str = ".2f",
) -> str:
    """Return a matrix of numbers from 0 to `most` as a table whose cells are darker the larger they are."""
    head = "".join(f'<th scope="col" title="{text(name)}">{text(name)}</th>' for name in columns)
    body = "".join(
        f'<tr><th scope="row" title="{text(name)}">{text(name)}</th>'
        + "".join(f'<td style="--share: {cell / (most or 1.0):.3f}">{cell:{form}}</td>' for cell in row)
        + "</tr>"
        for name, row in zip(rows, cells, strict=True)
    )
    inner = f'<table class="shade"><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f"<figure><figcaption>{text(title)}</figcaption>{scrolling(title, inner)}</figure>"


def side_by_side(parts: Iterable[str]) -> str:
    """Return shaded tables in lines, as many in each as fit."""
    return f'<div class="grids">{"".join(parts)}</div>'


def folded(summary: str, inner: str) -> str:
    """Return HTML that is shown once a reader opens it."""
    return f"<details><summary>{text(summary)}</summary>{inner}</details>"


WIDTH, HEIGHT = 3.6, 2.6
"""Inches of a panel, with 96 pixels each: text of eight points is eleven pixels high, which a phone can show."""
LARGEST = 250_000
"""Letters of SVG above which a figure becomes an image of pixels, which is smaller; chosen by experience."""


@contextmanager
def separate_panels(n_columns: int, n_rows: int = 1, height: float = HEIGHT) -> Iterator[np.ndarray]:
    """Yield a grid of axes, each column in a figure of its own, to draw on like the axes of one figure."""
    with ExitStack() as stack:
        figures = [stack.enter_context(paper((WIDTH, height))) for _ in range(n_columns)]
        yield np.stack([figure.subplots(n_rows, 1, squeeze=False)[:, 0] for figure in figures], axis=1)


def panels(grid: np.ndarray, described: Sequence[str], caption: str) -> str:
    """Return figures, one for each column of a grid of axes, side by side if they fit, each described in words."""
    images = "".join(image(axes.figure, words) for axes, words in zip(grid[0], described, strict=True))
    kind = "panels even" if len(described) in (2, 4) else "panels"
    return f'<figure><div class="{kind}">{images}</div><figcaption>{text(caption)}</figcaption></figure>'


def image(figure: Any, words: str) -> str:
    """Return a figure as an image within the page, with a description for people who cannot see it."""
    drawn = as_svg(figure)
    if len(drawn) <= LARGEST:
        return svg_image(drawn, words)
    file = BytesIO()
    figure.savefig(file, format="png", dpi=200)
    return _image("png", file.getvalue(), words)


def as_svg(figure: Any) -> str:
    """Return a figure as SVG."""
    file = BytesIO()
    figure.savefig(file, format="svg", metadata={"Date": None})
    drawn = file.getvalue().decode()
    return drawn[drawn.index("<svg") :]


def svg_image(drawn: str, words: str) -> str:
    """Return SVG as an image within the page."""
    return _image("svg+xml", drawn.encode(), words)


def _image(kind: str, data: bytes, words: str) -> str:
    source = f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
    return f'<img src="{source}" alt="{text(words)}" loading="lazy">'
