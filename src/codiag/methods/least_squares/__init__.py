"""Least squares for the components of a problem: the engine that the methods share.

A method of your own may use it.

======================= ======================================================================
`LeastSquares`          The objective: values, derivatives, solutions mode by mode, constraints.
`minimize`              From a start to a minimum, within `Limits`; returns an `Outcome`.
`best_rank_one`         The best single component, a start for more.
`unit_components`       The same components with unit columns.
`with_best_weights`     The weights that fit best to given factors.
======================= ======================================================================
"""

from codiag.methods.least_squares._components import unit_components, with_best_weights
from codiag.methods.least_squares._gauss_newton import Limits, Outcome, minimize
from codiag.methods.least_squares._objective import LeastSquares
from codiag.methods.least_squares._rank_one import best_rank_one

__all__ = ["LeastSquares", "Limits", "Outcome", "best_rank_one", "minimize", "unit_components", "with_best_weights"]
