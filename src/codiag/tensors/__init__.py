"""Tensors, which know how data is stored and how to be contracted."""

from codiag.tensors._base import Tensor
from codiag.tensors._combine import ScaledTensor, SumTensor
from codiag.tensors._convert import as_tensor
from codiag.tensors._dask import DaskTensor
from codiag.tensors._dense import DenseTensor, symmetrize
from codiag.tensors._factored import FactoredTensor
from codiag.tensors._moments import CrossMomentTensor, MomentTensor
from codiag.tensors._sparse import SparseTensor
from codiag.tensors._symmetric_outer import SymmetricOuterTensor
from codiag.tensors._words import WordMomentTensor, WordPairs, word_frequencies

__all__ = [
    "CrossMomentTensor",
    "DaskTensor",
    "DenseTensor",
    "FactoredTensor",
    "MomentTensor",
    "ScaledTensor",
    "SparseTensor",
    "SumTensor",
    "SymmetricOuterTensor",
    "Tensor",
    "WordMomentTensor",
    "WordPairs",
    "as_tensor",
    "symmetrize",
    "word_frequencies",
]
