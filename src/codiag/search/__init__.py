"""The search for the best fit: the loop over starts, swaps of components, and the finish."""

from codiag.search._end import DOUBTFUL, End
from codiag.search._finish import bounded, finish, last_steps
from codiag.search._finish_large import polish
from codiag.search._least_rises import least_rises
from codiag.search._loop import Monitor, Search, Watch, explore, is_enough, local_minimum, lowest
from codiag.search._saddles import leave_saddles, lowest_curvature
from codiag.search._scored import explore_scored, extended
from codiag.search._surplus import regrown
from codiag.search._swaps import swapped
from codiag.search._worth import most_superfluous, objectives_without, removal_bounds
