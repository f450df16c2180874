"""What all figures share: colors, fonts for labels in any script, and an empty figure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np

from codiag._writing import visible

INK, OURS, THEIRS, MUTED = "#22303c", "#00798c", "#d1495b", "#8d99a6"
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#444444", "#7b3fa0")
"""Colors that people with any color vision tell apart: those of Okabe and Ito, with purple in place of yellow."""
FONTS = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Noto Sans JP", "Source Han Sans SC", "Microsoft YaHei",
    "SimHei", "Yu Gothic", "Meiryo", "Hiragino Sans", "PingFang SC", "Heiti SC", "Arial Unicode MS", "Malgun Gothic",
    "Apple SD Gothic Neo", "Noto Sans KR", "WenQuanYi Zen Hei", "WenQuanYi Micro Hei", "Droid Sans Fallback",
    "IPAexGothic", "IPAGothic", "TakaoGothic", "Unifont", "Noto Sans Arabic", "Noto Sans Devanagari",
)  # fmt: skip
"""Families that have what matplotlib's own font lacks, asked in turn where they are installed."""


@contextmanager
def paper(size: tuple[float, float]) -> Iterator[Any]:
    """Give an empty figure in codiag's style.

    Parameters
    ----------
    size : tuple of two floats
        Width and height in inches.

    Yields
    ------
    matplotlib.figure.Figure
        It belongs to no window; settings of matplotlib are as before afterwards.

    See Also
    --------
    log_axis : Logarithmic axes with few labels.

    Examples
    --------
    >>> from io import BytesIO
    >>> from codiag.plotting import paper
    >>> with paper((4, 3)) as figure:
    ...     _ = figure.subplots().plot([1, 2, 3])
    ...     figure.savefig(BytesIO())
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    from codiag.plotting._picture import Picture

    style: Any = {
        "font.size": 10,
        "font.family": families(),
        "axes.edgecolor": INK,
        "axes.titlesize": 11,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "svg.fonttype": "none",
        "svg.hashsalt": "codiag",
    }
    with mpl.rc_context(style):
        figure = Picture(figsize=size, layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.08), facecolor="white")
        FigureCanvasAgg(figure)
        yield figure


@contextmanager
def grid_of_axes(axes: Any, shape: tuple[int, int], size: tuple[float, float]) -> Iterator[tuple[Any, np.ndarray]]:
    """Give a figure and a grid of axes: those that a user has, if they are as many, or new ones."""
    if axes is None:
        with paper(size) as figure:
            yield figure, figure.subplots(*shape, squeeze=False)
        return
    given = np.asarray(axes, dtype=object)
    if given.size != shape[0] * shape[1] or not all(hasattr(one, "plot") for one in given.flat):
        rows, columns = shape
        raise ValueError(
            f"axes must be {rows} x {columns} axes of matplotlib, as figure.subplots({rows}, {columns}) gives; "
            f"got {given.size}"
        )
    yield given.flat[0].figure, given.reshape(shape)


def plain(axis: Any) -> None:
    """Take away what is not needed of a small panel."""
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(labelsize=8, labelfontfamily=families())
    axis.locator_params(axis="y", nbins=3)


@lru_cache(maxsize=1)
def families() -> list[str]:
    """Return the fonts to ask for a character in turn: matplotlib's own, and those for other scripts that there are."""
    from matplotlib import font_manager

    there = {font.name for font in font_manager.fontManager.ttflist}
    return ["DejaVu Sans", *(name for name in FONTS if name in there)]


@lru_cache(maxsize=1)
def _characters() -> frozenset[int]:
    """Return the characters that these fonts can draw."""
    from matplotlib import font_manager
    from matplotlib.ft2font import FT2Font

    paths = [font_manager.findfont(font_manager.FontProperties(family=[name])) for name in families()]
    return frozenset(code for path in paths for code in FT2Font(path).get_charmap())


def shown(name: Any, length: int) -> str:
    """Return a label as a figure can show it: both ends where it is long, boxes where no font has a character."""
    text = visible(str(name))
    half = length // 2
    text = text if len(text) <= length else f"{text[: length - half]}…{text[-half:]}"
    if not text.isascii():
        text = "".join(letter if ord(letter) in _characters() else "□" for letter in text)
    return text.replace("$", r"\$")  # which begins a formula of matplotlib


def without_font(names: Iterable[object]) -> str:
    """Return a sentence where no font has some character of these names, which figures show as boxes; or nothing."""
    letters = {letter for name in names for letter in visible(str(name)) if not letter.isascii()}
    if all(ord(letter) in _characters() for letter in letters):
        return ""
    return "□: characters that no installed font has; one that has most is Noto Sans CJK"


def tell_without_font(figure: Any, names: Iterable[object]) -> None:
    """Write below a figure that some characters are shown as boxes, where they are."""
    said = without_font(names)
    if said:
        figure.supxlabel(said, fontsize=8, color=INK)


def color_of(place: int) -> str:
    """Return the color of a component."""
    return COLORS[place % len(COLORS)]
