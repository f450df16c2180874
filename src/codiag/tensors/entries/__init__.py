"""The observed entries of a tensor, with weights, and what least squares computes from them."""

from codiag.tensors.entries._cells import Cells, DenseCells, ListedCells
from codiag.tensors.entries._chunked import ChunkedEntries, checked_chunk_weights
from codiag.tensors.entries._entries import LISTED_SHARE, DenseEntries, Entries, ListedEntries, entries_of_array
