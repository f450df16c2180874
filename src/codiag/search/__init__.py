"""The search for the best fit: the loop over starts, exchange steps, and the finish."""

from codiag.search._approach import approach
from codiag.search._contributions import least_contributing, objectives_without, removal_bounds
from codiag.search._exchange import exchange_steps, refit_surplus
from codiag.search._finish import bounded, finish, last_steps
from codiag.search._finish_large import polish
from codiag.search._local_minimum import WEAK_RATIO, LocalMinimum
from codiag.search._loop import Callback, CallbackRunner, Search, chance_missed, local_minimum, lowest, should_stop
from codiag.search._saddles import leave_saddles, lowest_curvature
from codiag.search._together import joins, one_sided_modes, search_together
