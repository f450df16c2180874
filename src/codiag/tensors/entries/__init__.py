"""The observed entries of a tensor, with weights, and what objectives compute from them."""

from codiag.tensors.entries._chunked import ChunkedEntries, checked_chunk_weights
from codiag.tensors.entries._entries import LISTED_SHARE, DenseEntries, ListedEntries, ObservedEntries, entries_of_array
