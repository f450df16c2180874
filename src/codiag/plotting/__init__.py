"""Figures of fits and models. matplotlib is imported where a figure is drawn, and nowhere else."""

from codiag.plotting._components import components
from codiag.plotting._crowd import draw_confusions
from codiag.plotting._leverage import leverage
from codiag.plotting._residuals import residuals
from codiag.plotting._style import COLORS, INK, MUTED, OURS, THEIRS, paper
from codiag.plotting._ticks import log_axis

__all__ = [
    "COLORS",
    "INK",
    "MUTED",
    "OURS",
    "THEIRS",
    "components",
    "draw_confusions",
    "leverage",
    "log_axis",
    "paper",
    "residuals",
]
