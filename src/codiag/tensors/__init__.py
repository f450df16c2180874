"""Tensors, which know how data is stored and how to be contracted.

`codiag.factorize` converts arrays by itself (`as_tensor`). Use a class of this package where the data is not an array,
or to say more about it.

======================= ================================================================================
Class                   Data
======================= ================================================================================
`DenseTensor`           An array of NumPy, torch, CuPy or JAX.
`SparseTensor`          Coordinates and values; the other entries are zero, or missing.
`DaskTensor`            A dask array that stays in its chunks, larger than memory.
`FactoredTensor`        Weights and factors: a sum of rank-one tensors that is never formed.
`MomentTensor`          The third moment of samples, without forming it.
`CrossMomentTensor`     The same of several views of the samples.
`WordMomentTensor`      The third moment of words in documents.
`SymmetricOuterTensor`  A matrix and a vector, symmetrized.
`SumTensor`             The sum of tensors of any kind, ``first + second``.
`ScaledTensor`          A multiple of a tensor, ``2 * tensor``.
======================= ================================================================================

`WordPairs` and `word_frequencies` are the second and the first moment of words; `symmetrize` averages an array over
permutations of its modes. To store data in a way of your own, derive from `Tensor`: ``project`` and ``permute`` are
enough.

Examples
--------
>>> import numpy as np
>>> from codiag.tensors import SparseTensor
>>> tensor = SparseTensor(np.array([[0, 1], [2, 3], [4, 4]]), np.array([5.0, 6.0]), (3, 4, 5))
>>> tensor.n_stored, tensor.squared_norm()
(2, 61.0)
"""

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
