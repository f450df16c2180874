"""Numbers that several parts of least squares, of starts and of the search share, each with its unit and its reason."""

import math
import sys

import numpy as np

TINY = math.sqrt(sys.float_info.min)
"""Added to what is divided by: far below all data, and far enough from zero that quotients do not overflow."""

ROUNDING = 100 * float(np.finfo(np.float64).eps)
"""Relative error of a squared distance by rounding in double precision, a sum of many products."""

TOLERANCE = 1e-9
"""Relative size of the last step of a minimization, relative error below which a fit is exact, and damping that is
small against everything but rounding. The equations of every factor are then solved to 1e-8, as `transform` promises.
"""

NEGLIGIBLE = 1e-6
"""Share of the objective, or of the largest component, that does not matter: differences of that size are smaller than
any noise."""

INSIGNIFICANT = 1e-3
"""Decrease of the objective, in noise variances, that a further step may promise at a minimum. The estimate is then
within 3 % of a standard error of the minimum."""

SLOW = 1e-3
"""Share of the objective below which the gain of a step is slow: a trial ends, other steps are extrapolated, and it is
tested whether components run off to infinity. A trial must gain as much, or a noise variance."""

ROUGHEST = 0.1
"""Largest relative error of a step, far from a minimum, and gain in noise variances at which a rough minimization ends.
Near a minimum, the error of a step is the relative size of the gradient, so that steps converge superlinearly (Dembo,
Eisenstat and Steihaug, "Inexact Newton methods", 1982)."""

FIRST_DAMPING = 1e-3
"""Damping of the first step, relative to the diagonal of the matrix (Madsen, Nielsen and Tingleff, "Methods for
non-linear least squares problems", 2004, for a good start). A less damped step is not trusted to replace a component.
"""

DEGENERATE_RATIO = 10
"""Weight of a component, relative to the norm of the tensor, above which a fit is degenerate: at 10, they
take back all but a hundredth of each other's energy."""

MAX_SWEEPS = 300
"""Steps of a minimization, at most."""

BRIEF_SWEEPS = 30
"""Steps of a trial, at most, products in each of them, power iterations from a vector, and steps that follow a minimum
in any case: what has not come near its end by then is slow."""

BRIEF_STEP = 1e-4
"""Relative size of the last step of a trial, and relative error of the worth of a component, which is a small
difference of large numbers."""

PER_UNKNOWN = 100
"""Entries per unknown from which the Gauss-Newton matrix of observed entries is within a fifth of its expectation
(2 / sqrt(100), the edge of the Marchenko-Pastur law)."""

MOST_PRODUCTS = 200
"""Products with the Gauss-Newton matrix in one step, at most. Steps that would need more are poorly determined; the
damping grows, and the next ones need fewer."""
