"""Figures of matplotlib as images inside a page, a panel each, so that a phone shows text as large as a desk does."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from io import BytesIO
from typing import Any

import numpy as np

from codiag.plotting import paper
from codiag.reports._page import text

WIDTH, HEIGHT = 3.6, 2.6
"""Inches of a panel, at 96 pixels each: text of eight points is eleven pixels high, and a phone shows it as it is."""
LARGEST = 250_000
"""Letters of SVG above which a figure of many points is an image of pixels instead."""


@contextmanager
def separate_panels(n_columns: int, n_rows: int = 1, height: float = HEIGHT) -> Iterator[np.ndarray]:
    """Give axes in a grid, each column a figure of its own, to be drawn on as if they were of one."""
    with ExitStack() as stack:
        figures = [stack.enter_context(paper((WIDTH, height))) for _ in range(n_columns)]
        yield np.stack([figure.subplots(n_rows, 1, squeeze=False)[:, 0] for figure in figures], axis=1)


def panels(grid: np.ndarray, told: Sequence[str], caption: str) -> str:
    """Return figures, one for each column of a grid of axes, side by side where there is room, as `told` says."""
    images = "".join(image(axes.figure, words) for axes, words in zip(grid[0], told, strict=True))
    kind = "panels even" if len(told) in (2, 4) else "panels"
    return f'<figure><div class="{kind}">{images}</div><figcaption>{text(caption)}</figcaption></figure>'


def image(figure: Any, words: str) -> str:
    """Return a figure as an image within the page, told in words for those who cannot see it."""
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
