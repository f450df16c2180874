"""The search for the best fit: the loop over starts, swaps of components, and the finish."""

from codiag.search._finish import (
    ROUGH,
    Monitor,
    approach,
    bounded,
    check_monitor,
    closest,
    finish,
    is_stopped,
    leave_saddles,
    lowest_curvature,
    relative_error,
    watch,
)
from codiag.search._finish_large import polish
from codiag.search._loop import SWAPS, fit_from, fit_known, improved, is_settled, leaves_noise, search, starts_for
from codiag.search._swaps import swap_components
from codiag.search._worth import Standing, has_superfluous, objectives_without, regrown
