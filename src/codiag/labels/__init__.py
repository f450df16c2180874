"""Labels of the modes of a tensor and of their indices, and reading them from tables and labelled arrays."""

from codiag.labels._labels import Labelled, Labels, LabelsLike, as_vector, encoded, sorted_names
from codiag.labels._read import is_table, is_xarray, labelled_tensor, read_labelled, read_like
