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
======================= ================================================================================

``first + second`` and ``2 * tensor`` are tensors, too, whatever the classes. `symmetrize` averages an array over
permutations of its modes. For another kind of storage, derive a class from `Tensor` that implements ``project`` and
``permute``.

Examples
--------
>>> import numpy as np
>>> from codiag.tensors import SparseTensor
>>> tensor = SparseTensor(np.array([[0, 1], [2, 3], [4, 4]]), np.array([5.0, 6.0]), (3, 4, 5))
>>> tensor.n_stored, tensor.squared_norm()
(2, 61.0)
"""

from codiag._checks import public_names
from codiag.tensors._absent import AbsentTensor
from codiag.tensors._base import CANCELLATION_LIMIT, Tensor, check_shape, check_symmetric_shape
from codiag.tensors._combine import ScaledTensor, SumTensor
from codiag.tensors._convert import array_of, as_tensor, components_of, n_axes, symmetric_part, tensor_of_array
from codiag.tensors._dense import DenseTensor, array_in_double_precision, mean_over_permutations, symmetrize
from codiag.tensors._factored import FactoredTensor, scaled_factors
from codiag.tensors._moments import CrossMomentTensor, MomentTensor, weighted_product
from codiag.tensors._sketch import OVERSAMPLING, SMALL_SIZE, Sketch, is_large, power_iteration, range_rank, sketch_width
from codiag.tensors._sparse import SparseTensor
from codiag.tensors._spectra import leading_eigenpairs, shows_ranges, thinned, with_random_signs
from codiag.tensors._sums import (
    Core,
    Products,
    SquaredDistance,
    SquaredNorm,
    added,
    khatri_rao,
    multiplied,
)
from codiag.tensors.chunked import DaskTensor, of_stored

__all__ = [
    "CrossMomentTensor",
    "DaskTensor",
    "DenseTensor",
    "FactoredTensor",
    "MomentTensor",
    "SparseTensor",
    "Tensor",
    "as_tensor",
    "symmetrize",
]

__dir__ = public_names(__all__)
