"""Figures of fits and models. matplotlib is imported once a figure is drawn.

==================== ======================================================================
`components`         The components of a fit, mode by mode, with bands of standard errors.
`residuals`          The residuals of a fit, and whether they are white noise.
`leverage`           Which indices determine a fit.
`confusions`         The confusion matrices of a crowd, and the accuracy of its workers.
`dependence`         Which judges of a jury are correlated.
==================== ======================================================================

Figures belong to no window: ``figure.savefig("components.png")`` writes one, and notebooks show it.

Examples
--------
>>> import codiag
>>> tensor = codiag.synthetic.noisy_tensor((9, 8, 7), 2, noise=0.01, rng=0).tensor
>>> figure = codiag.plotting.components(codiag.factorize(tensor, 2, rng=0))
>>> len(figure.axes)
6
"""

from codiag._checks import public_names
from codiag.plotting._components import HEIGHT, components, name_component, pixel_means
from codiag.plotting._diagnostics import (
    LARGE,
    draw_choice,
    draw_residuals,
    leverage,
    residual_entries,
    residuals,
    root_mean_squares,
)
from codiag.plotting._models import confusions, dependence, dependence_height
from codiag.plotting._modes import (
    different_modes,
    draw_bars,
    extremes,
    is_line,
    is_ordered,
    name_along,
)
from codiag.plotting._parafac2 import draw_parafac2
from codiag.plotting._style import (
    COLORS,
    INK,
    MUTED,
    OURS,
    THEIRS,
    families,
    log_axis,
    name_axes,
    paper,
    plain,
    shown,
)

__all__ = ["components", "confusions", "dependence", "leverage", "residuals"]

__dir__ = public_names(__all__)
