"""Least squares for the components of a problem: the engine that the methods share.

A method of your own may use it: `LeastSquares` is the objective, `minimize` goes from a start to a minimum.
"""

from codiag.methods.least_squares._components import unit_components, with_best_weights
from codiag.methods.least_squares._gauss_newton import Limits, Outcome, minimize
from codiag.methods.least_squares._objective import LeastSquares
from codiag.methods.least_squares._rank_one import best_rank_one

__all__ = ["LeastSquares", "Limits", "Outcome", "best_rank_one", "minimize", "unit_components", "with_best_weights"]
