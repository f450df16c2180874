"""Tensors, which know how data is stored and how to be contracted."""

from codiag.tensors.base import Tensor
from codiag.tensors.combine import ScaledTensor, SumTensor
from codiag.tensors.convert import as_tensor
from codiag.tensors.dense import DenseTensor, symmetrize
from codiag.tensors.factored import FactoredTensor
from codiag.tensors.moments import CrossMomentTensor, MomentTensor, PlacementTensor
from codiag.tensors.sparse import SparseTensor
from codiag.tensors.words import WordMomentTensor, WordPairs, word_frequencies

__all__ = [
    "CrossMomentTensor",
    "DenseTensor",
    "FactoredTensor",
    "MomentTensor",
    "PlacementTensor",
    "ScaledTensor",
    "SparseTensor",
    "SumTensor",
    "Tensor",
    "WordMomentTensor",
    "WordPairs",
    "as_tensor",
    "symmetrize",
    "word_frequencies",
]
