"""Labels of the modes of a tensor and of their indices, and reading them from tables and labelled arrays."""

from codiag.labels._labels import Labelled, Labels, as_vector, sorted_names
from codiag.labels._read import count_rows, is_xarray, of_table, read_labelled, read_like, zeros_and
