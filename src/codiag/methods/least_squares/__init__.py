"""The former name of `codiag.least_squares`."""

from codiag._checks import former_names

NAMES = ("LeastSquares", "Limits", "Outcome", "best_rank_one", "minimize", "unit_components", "with_best_weights")

__getattr__ = former_names(__name__, {name: f"codiag.least_squares.{name}" for name in NAMES})
