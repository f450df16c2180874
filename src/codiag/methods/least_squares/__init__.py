"""The former name of `codiag.least_squares`."""

from codiag._checks import former_names

PUBLIC = ("LeastSquares", "Limits", "Outcome", "best_rank_one", "minimize")

__getattr__ = former_names(
    __name__,
    {name: f"codiag.extending.{name}" for name in PUBLIC}
    | {name: f"codiag.least_squares.{name}" for name in ("unit_components", "with_best_weights")},
)
