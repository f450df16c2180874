"""Data that comes in parts, and passes over them in threads or on a dask cluster."""

from codiag.parts._dask import FAN_IN, pass_with
from codiag.parts._parts import Parts, as_parts, is_dask, is_matrix, listed
