"""What all figures share: colors, fonts for labels in any script, an empty figure, and logarithmic axes.

matplotlib is optional and slow to import, so it is imported inside the functions that draw.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from io import BytesIO
from typing import Any

import numpy as np

from codiag._text import visible

INK, OURS, THEIRS, MUTED = "#22303c", "#00798c", "#d1495b", "#8d99a6"
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#444444", "#7b3fa0")
"""Colors that differ for people with any color vision: those of Okabe and Ito (2008), with purple for yellow."""
FONTS = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Noto Sans JP", "Source Han Sans SC", "Microsoft YaHei",
    "SimHei", "Yu Gothic", "Meiryo", "Hiragino Sans", "PingFang SC", "Heiti SC", "Arial Unicode MS", "Malgun Gothic",
    "Apple SD Gothic Neo", "Noto Sans KR", "WenQuanYi Zen Hei", "WenQuanYi Micro Hei", "Droid Sans Fallback",
    "IPAexGothic", "IPAGothic", "TakaoGothic", "Unifont", "Noto Sans Arabic", "Noto Sans Devanagari",
)  # fmt: skip
"""Families with characters that the default font of matplotlib lacks, in order of preference."""


@contextmanager
def paper(size: tuple[float, float]) -> Iterator[Any]:
    """Yield an empty figure in codiag's style.

    Parameters
    ----------
    size : tuple of two floats
        Width and height in inches.

    Yields
    ------
    matplotlib.figure.Figure
        It belongs to no window; the settings of matplotlib are restored afterwards.

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
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

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
        figure: Any = Figure(figsize=size, layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.08), facecolor="white")
        FigureCanvasAgg(figure)
        figure._repr_png_ = partial(_as_png, figure)  # notebooks show it, whether or not pyplot was imported
        yield figure


def _as_png(figure: Any) -> bytes:
    file = BytesIO()
    figure.savefig(file, format="png", dpi=figure.dpi)
    return file.getvalue()


@contextmanager
def grid_of_axes(
    axes: Any, shape: tuple[int, int], size: tuple[float, float], **options: Any
) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield a figure and a grid of axes: those of the user, if their number is right, or new ones."""
    if axes is None:
        with paper(size) as figure:
            yield figure, figure.subplots(*shape, squeeze=False, **options)
        return
    given = np.asarray(axes, dtype=object)
    if given.size != shape[0] * shape[1] or not all(hasattr(axis, "plot") for axis in given.flat):
        rows, columns = shape
        raise ValueError(
            f"axes must be {rows} x {columns} axes of matplotlib, as figure.subplots({rows}, {columns}) gives; "
            f"got {given.size}"
        )
    yield given.flat[0].figure, given.reshape(shape)


def plain(axis: Any) -> None:
    """Remove the frame of a small panel, and most of its ticks."""
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(labelsize=8, labelfontfamily=families())
    axis.locator_params(axis="y", nbins=3)


def name_axes(axes: Any, x: str, y: str) -> None:
    """Name both axes of a panel, and remove its frame."""
    axes.set_xlabel(x, fontsize=9)
    axes.set_ylabel(y, fontsize=9)
    plain(axes)


@lru_cache(maxsize=1)
def families() -> list[str]:
    """Return the installed font families in order of preference: the default of matplotlib, then other scripts."""
    from matplotlib import font_manager

    installed = {font.name for font in font_manager.fontManager.ttflist}
    return ["DejaVu Sans", *(name for name in FONTS if name in installed)]


@lru_cache(maxsize=1)
def _characters() -> frozenset[int]:
    """Return the characters that these fonts can draw."""
    from matplotlib import font_manager
    from matplotlib.ft2font import FT2Font

    paths = [font_manager.findfont(font_manager.FontProperties(family=[name])) for name in families()]
    return frozenset(code for path in paths for code in FT2Font(path).get_charmap())


def shown(name: Any, length: int) -> str:
    """Return a label for a figure: both ends if it is long, and a box for each character that no font has."""
    text = visible(str(name))
    half = length // 2
    text = text if len(text) <= length else f"{text[: length - half]}…{text[-half:]}"
    if not text.isascii():
        text = "".join(letter if ord(letter) in _characters() else "□" for letter in text)
    return text.replace("$", r"\$")  # a dollar begins a formula in matplotlib


def without_font(names: Iterable[object]) -> str:
    """Return a sentence about boxes if no font has some character of these names, otherwise nothing."""
    letters = {letter for name in names for letter in visible(str(name)) if not letter.isascii()}
    if all(ord(letter) in _characters() for letter in letters):
        return ""
    return "□: characters that no installed font has; one that has most is Noto Sans CJK"


def tell_without_font(figure: Any, names: Iterable[object]) -> None:
    """Write a sentence about boxes below a figure, if it has any."""
    sentence = without_font(names)
    if sentence:
        figure.supxlabel(sentence, fontsize=8, color=INK)


def color_of(component: int) -> str:
    """Return the color of a component."""
    return COLORS[component % len(COLORS)]


MOST = 6
"""Largest number of labels beside a small axis."""
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def log_axis(axis: Any, values: Sequence[float]) -> None:
    """Make an axis logarithmic, with few labels that are plain numbers.

    Parameters
    ----------
    axis : matplotlib.axis.Axis
        Such as ``axes.xaxis``.
    values : sequence of float
        The positive numbers that are shown along it.

    See Also
    --------
    paper : A figure in the same style.

    Examples
    --------
    >>> from codiag.plotting import log_axis, paper
    >>> with paper((4, 3)) as figure:
    ...     axes = figure.subplots()
    ...     log_axis(axes.xaxis, [20, 150])
    >>> [label.get_text() for label in axes.get_xticklabels()]
    ['20', '50', '100', '200']
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_major_locator(FixedLocator(log_ticks(min(values), max(values))))
    axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


def log_ticks(least: float, most: float) -> list[float]:
    """Return at most six positions of ticks between two positive numbers, or slightly beyond."""
    low, high = math.log10(least), math.log10(most)
    width = high - low
    if width < 0.02:
        return [least]
    for steps in ((1, 2, 5) if width < 1.2 else (1, 3) if width < 2.5 else (1,), range(1, 10)):
        decades = range(math.floor(low) - 1, math.ceil(high) + 2)
        ticks = [step * 10.0**decade for decade in decades for step in steps]
        inside = [tick for tick in ticks if low - 0.15 <= math.log10(tick) <= high + 0.15]
        if len(inside) >= 2:
            break
    while len(inside) > MOST:
        inside = inside[::2]
    return inside


def short(value: float) -> str:
    """Return a number in decimal or scientific notation: 0.03, 200, or 5·10⁻⁷."""
    if value <= 0 or 1e-3 <= value < 1e4:
        return f"{value:g}"
    exponent = math.floor(math.log10(value) + 1e-9)
    step = round(value / 10.0**exponent)
    return f"{'' if step == 1 else f'{step}·'}10{str(exponent).translate(RAISED)}"
