"""Names of modes and of their indices, and tables and labelled arrays that bring them."""

from codiag.labels._labels import Labelled, Labels
from codiag.labels._read import of_table, read_labelled, read_like, zeros_and
