"""Data in parts, and passes over them in this process or by dask."""

from codiag.parts._dask import FAN_IN, pass_with
from codiag.parts._parts import Parts, as_parts, is_dask, is_matrix, listed
