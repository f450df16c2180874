"""Read votes and graphs from files, turn long tables into tensors, and write tables to files.

==================== ====================================================================================
`labelled_tensor`    A long table, one row for each entry, as a tensor with labels.
`Labels`             The names of the modes of a tensor, and the labels of their indices.
`set_aside_invalid`  Votes without errors, refusals and other labels that hardly occur.
`preference_votes`   Choices between two answers as votes, and how much the side matters to a judge.
`read_edges`         The edges of a network.
`read_graph`         A network with the weights of its edges.
`write_table`        Columns, to a file that spreadsheets read.
==================== ====================================================================================

Examples
--------
>>> import pandas as pd
>>> from codiag.io import labelled_tensor
>>> table = pd.DataFrame({"who": list("aabb"), "what": list("xyxy"), "year": [1, 1, 2, 2], "count": range(4)})
>>> labelled_tensor(table).labels.names
('who', 'what', 'year')
"""

from codiag._checks import public_names
from codiag.io._tables import labelled_tensor, write_table
from codiag.io._tensors import read_entries, read_labelled_entries, read_tensor, split_dataset
from codiag.labels import Labelled, Labels
from codiag.models.communities import read_edges, read_graph
from codiag.models.crowd import set_aside_invalid
from codiag.models.jury import Preferences, preference_votes

__all__ = [
    "Labels",
    "labelled_tensor",
    "preference_votes",
    "read_edges",
    "read_graph",
    "set_aside_invalid",
    "write_table",
]

__dir__ = public_names(__all__)
