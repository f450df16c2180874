"""Data in parts, and passes over them in this process or by dask."""

from codiag.parts._parts import FAN_IN, Parts, as_parts, is_dask, is_matrix, listed, pass_with
