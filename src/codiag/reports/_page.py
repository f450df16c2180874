"""Pages of HTML from templates, each one file that needs no other and no network.

Labels of the data are always text, never markup. Every panel of a figure is an image of its own, so that its text has
one size on a phone and on a desk.
"""

from __future__ import annotations

import base64
from collections.abc import Container, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from codiag._text import as_path, escape_control, write_text
from codiag.plotting import paper

WIDTH, HEIGHT = 3.6, 2.6
"""Inches of a panel, with 96 pixels each: text of eight points is eleven pixels high, which a phone can show."""


class Table(NamedTuple):
    """A table of a page: columns in `words` are aligned left, others right; one row may be marked."""

    headings: Sequence[str]
    rows: Sequence[Sequence[object]]
    words: Container[str] = ()
    marked: int | None = None


Panels = list[tuple[str, str]]
"""Images of a page side by side, as pairs of a source and a description."""


def write_page(template: str, path: str | Path | None, **content: Any) -> str:
    """Return the page that a template makes of this content, and write it if a path is given."""
    file = None if path is None else as_path("path", path)
    page: str = _environment().get_template(template).render(version=version("codiag"), **content)
    if file is not None:
        write_text(file, page)
    return page


def _environment() -> Any:
    try:
        import jinja2
    except ImportError as missing:
        raise ModuleNotFoundError("reports need jinja2: pip install 'codiag[report]'", name="jinja2") from missing
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("codiag.reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_without_control_characters,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["anchor"] = lambda name: name.lower().replace(" ", "-")
    return environment


def _without_control_characters(value: Any) -> Any:
    return escape_control(value) if type(value) is str else value


def refuse_path(name: str, value: object, call: str) -> None:
    """Raise if an argument for data is the path of the page, which comes after the data."""
    if isinstance(value, str | Path):
        raise TypeError(
            f"{name} must be data, which the page is about; got {str(value)!r}. The path comes last: {call}"
        )


@contextmanager
def separate_panels(n_columns: int, n_rows: int = 1, height: float = HEIGHT) -> Iterator[np.ndarray]:
    """Yield a grid of axes, each column in a figure of its own, to draw on like the axes of one figure."""
    with ExitStack() as stack:
        figures = [stack.enter_context(paper((WIDTH, height))) for _ in range(n_columns)]
        yield np.stack([figure.subplots(n_rows, 1, squeeze=False)[:, 0] for figure in figures], axis=1)


def panels(grid: np.ndarray, described: Sequence[str]) -> Panels:
    """Return figures, one for each column of a grid of axes, each described in words."""
    return [(_source(axes.figure), words) for axes, words in zip(grid[0], described, strict=True)]


def _source(figure: Any) -> str:
    """Return a figure as the source of an image."""
    kind, data = "svg+xml", _bytes_of(figure, format="svg", metadata={"Date": None})
    data = data[data.index(b"<svg") :]
    # an image of pixels is then smaller
    if len(data) > 250_000:
        kind, data = "png", _bytes_of(figure, format="png", dpi=200)
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def _bytes_of(figure: Any, **options: Any) -> bytes:
    file = BytesIO()
    figure.savefig(file, **options)
    return file.getvalue()
