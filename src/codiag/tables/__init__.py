"""The former name of `codiag.io`."""

from codiag import io
from codiag._checks import former_names

__getattr__ = former_names(__name__, {name: f"codiag.io.{name}" for name in (*io.__all__, "Labelled")})
