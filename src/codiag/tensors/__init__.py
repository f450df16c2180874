"""Tensors, which know how data is stored and how to be contracted."""

from codiag.tensors.base import Tensor
from codiag.tensors.combine import ScaledTensor, SumTensor
from codiag.tensors.convert import as_tensor
from codiag.tensors.dense import DenseTensor, symmetrize
from codiag.tensors.factored import FactoredTensor
from codiag.tensors.sparse import SparseTensor

__all__ = [
    "DenseTensor",
    "FactoredTensor",
    "ScaledTensor",
    "SparseTensor",
    "SumTensor",
    "Tensor",
    "as_tensor",
    "symmetrize",
]
