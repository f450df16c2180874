"""Turn long tables and single cells into tensors with labels, prepare votes, and read FROSTT's sparse tensors.

Other files are read by the libraries that know them: tables by pandas or polars, arrays by NumPy, SciPy, zarr, h5py or
xarray, graphs by networkx. All of these are taken as they are.

===================== ===================================================================================
`labelled_tensor`     A long table, one row for each entry, as a tensor with labels.
`Labels`              The names of the modes of a tensor, and the labels of their indices.
`read_tns`            A sparse tensor in FROSTT's format.
`from_anndata`        Means of groups of single cells as a tensor, with weights.
`slices_from_anndata` Single cells as slices for PARAFAC2.
`set_aside_invalid`   Votes without refusals and other labels that hardly occur.
`preference_votes`    Choices between two answers as votes, and how much the side matters to a judge.
`to_tensorly`         A fit as a CPTensor of TensorLy.
`to_pyttb`            A fit as a ktensor of pyttb.
`to_anndata`          Factors and standard errors beside the cells.
===================== ===================================================================================

Examples
--------
>>> import pandas as pd
>>> from codiag.io import labelled_tensor
>>> table = pd.DataFrame({"who": list("aabb"), "what": list("xyxy"), "year": [1, 1, 2, 2], "count": range(4)})
>>> labelled_tensor(table, absent="zero").labels.names
('who', 'what', 'year')
"""

from codiag._checks import public_names
from codiag.io._anndata import from_anndata, slices_from_anndata, to_anndata
from codiag.io._arrays import READERS, read_array, read_tns
from codiag.io._exports import to_pyttb, to_tensorly
from codiag.io._model_data import GRAPHS, count_words, graph_of_table, read_counts, read_graph
from codiag.labels import Labelled, Labels, labelled_tensor
from codiag.models.crowd import set_aside_invalid
from codiag.models.jury import Preferences, preference_votes

__all__ = [
    "Labels",
    "from_anndata",
    "labelled_tensor",
    "preference_votes",
    "read_tns",
    "set_aside_invalid",
    "slices_from_anndata",
    "to_anndata",
    "to_pyttb",
    "to_tensorly",
]

__dir__ = public_names(__all__)
