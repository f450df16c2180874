"""An empty figure in codiag's style; matplotlib is imported where one is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

INK, MUTED = "#22303c", "#8d99a6"


@contextmanager
def paper(size: tuple[float, float]) -> Iterator[Any]:
    """Give an empty figure in codiag's style."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    style: Any = {
        "font.size": 10,
        "axes.edgecolor": INK,
        "axes.titlesize": 11,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "svg.fonttype": "none",
        "svg.hashsalt": "codiag",
    }
    with mpl.rc_context(style):
        figure = Figure(figsize=size, layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.08), facecolor="white")
        FigureCanvasAgg(figure)
        yield figure
