"""The former name of `codiag.least_squares`."""

from codiag import least_squares
from codiag._checks import former_names

__getattr__ = former_names(__name__, {name: f"codiag.least_squares.{name}" for name in least_squares.__all__})
