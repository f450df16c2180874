"""Tensors in the chunks of a dask array. dask itself is imported where an array of it is worked on."""

from codiag.tensors.chunked._tensor import DaskTensor, cubed, entries_of_chunk, of_stored, without_missing_entries
