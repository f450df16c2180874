"""Figures of fits and models. matplotlib is imported where a figure is drawn, and nowhere else.

==================== ======================================================================
`components`         The components of a fit, mode by mode, with bands of standard errors.
`residuals`          What a fit leaves of the data, and whether it looks like noise.
`leverage`           Which indices determine a fit.
`confusions`         The confusion matrices of a crowd, and the accuracy of its workers.
`communities`        Sizes, memberships and links of communities.
`topics`             The words of topics.
`paper`              An empty figure in the style of these.
`log_axis`           A logarithmic axis with few labels.
==================== ======================================================================

`COLORS`, `INK`, `MUTED`, `OURS` and `THEIRS` are the colors of that style. Figures belong to no window:
``figure.savefig("components.png")`` writes one, and notebooks show it.

Examples
--------
>>> import codiag
>>> tensor = codiag.synthetic.noisy_tensor((9, 8, 7), 2, noise=0.01, seed=0).tensor
>>> figure = codiag.plotting.components(codiag.factorize(tensor, 2, seed=0))
>>> len(figure.axes)
6
"""

from codiag.plotting._communities import communities
from codiag.plotting._components import HEIGHT, _reduced, components
from codiag.plotting._crowd import confusions, draw_confusions
from codiag.plotting._leverage import LARGE, leverage, leverages
from codiag.plotting._modes import different_modes, draw_bars, extremes, is_ordered, labels_of, name_along, texts_of
from codiag.plotting._rank_choice import draw_choice
from codiag.plotting._residuals import residual_entries, residuals
from codiag.plotting._style import (
    COLORS,
    INK,
    MUTED,
    OURS,
    THEIRS,
    families,
    log_axis,
    log_ticks,
    paper,
    plain,
    short,
    shown,
    without_font,
)
from codiag.plotting._topics import topics

__all__ = [
    "COLORS",
    "INK",
    "MUTED",
    "OURS",
    "THEIRS",
    "communities",
    "components",
    "confusions",
    "leverage",
    "log_axis",
    "paper",
    "residuals",
    "topics",
]
