"""What all figures share: colors, fonts for labels in any script, an empty figure, and logarithmic axes.

matplotlib is optional and slow to import, so it is imported inside the functions that draw.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from io import BytesIO
from typing import Any

import numpy as np

from codiag._text import escape_control

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
PIXELS, MAX_LETTERS = 1000, 18
"""Largest numbers of pixels of an image along a side, about what a screen shows, and of letters of a name."""


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


def shown(name: Any, length: int) -> str:
    """Return a label for a figure: both ends if it is long."""
    text = escape_control(str(name))
    half = length // 2
    text = text if len(text) <= length else f"{text[: length - half]}…{text[-half:]}"
    return text.replace("$", r"\$")  # a dollar begins a formula in matplotlib


def color_of(component: int) -> str:
    """Return the color of a component."""
    return COLORS[component % len(COLORS)]


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
    >>> axes.get_xscale()
    'log'
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    decades = math.log10(max(values) / min(values))
    steps = (1.0, 2.0, 5.0) if decades < 1.5 else (1.0, 3.0) if decades < 2.5 else (1.0,)
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_major_locator(MaxNLocator(4) if decades < 0.5 else LogLocator(subs=steps, numticks=5))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())
