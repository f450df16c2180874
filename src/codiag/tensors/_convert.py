"""Conversion of arrays, COO tensors and components to `Tensor`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np
from array_api_compat import is_dask_array

from codiag._arrays import TensorLike
from codiag._checks import as_flag
from codiag.tensors._base import Tensor, check_shape, check_symmetric_shape
from codiag.tensors._dense import DenseTensor, mean_over_permutations
from codiag.tensors._factored import FactoredTensor
from codiag.tensors._sparse import SparseTensor
from codiag.tensors.chunked import DaskTensor, cubed, of_stored


def as_tensor(raw: TensorLike, symmetric: bool = False) -> Tensor:
    """Return an array, a COO tensor, a fit or a `Tensor` as a `Tensor`.

    COO tensors are recognized by their attributes: ``coords``, ``data``, ``shape`` (pydata/sparse) or ``subs``,
    ``vals``, ``shape`` (pyttb); fits by ``weights`` and ``factors``.

    Parameters
    ----------
    raw : array of shape (d_0, d_1, d_2, ...), COO tensor, (weights, factors), or Tensor
        The data.
    symmetric : bool
        With True, an array that is symmetric up to noise is replaced by its mean over permutations of the modes, which
        does not change the components and reduces noise. Symmetry is never detected; a `Tensor` may declare it.

    Returns
    -------
    Tensor
        The argument itself if it is a `Tensor`.

    See Also
    --------
    DenseTensor : The class for arrays.
    SparseTensor : The class for COO tensors.
    codiag.factorize : Converts its argument in this way.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.tensors import as_tensor
    >>> as_tensor(np.ones((2, 2, 2)))
    DenseTensor(2 x 2 x 2)
    >>> as_tensor(np.ones((2, 2, 2)), symmetric=True)
    DenseTensor(symmetric 2 x 2 x 2)
    >>> as_tensor((np.ones(4), [np.ones((5, 4)), np.ones((6, 4)), np.ones((7, 4))]))
    FactoredTensor(5 x 6 x 7)
    """
    as_flag("symmetric", symmetric)
    tensor = _wrap(raw)
    return symmetric_part(tensor, range(tensor.order)) if symmetric and not tensor.symmetric else tensor


def symmetric_part(tensor: Tensor, modes: Sequence[int]) -> Tensor:
    """Return an array's mean over permutations of modes that share a factor, or raise if it is far from that.

    Least squares asks for no more than that mean. The change by permutations is about 1.4 for pure noise.
    """
    check_symmetric_shape([tensor.shape[mode] for mode in modes])
    entries = array_of(tensor)
    if entries is None:
        raise ValueError(
            f"symmetric=True contradicts {tensor!r}, which is not declared symmetric. Build it with symmetric=True or, "
            "if it is given by components, with equal factors for all modes; or leave symmetric out"
        )
    chunks = cubed(entries, modes) if is_dask_array(entries) else entries
    mean = tensor_of_array(mean_over_permutations(chunks, modes), symmetric=len(modes) == tensor.order)
    n_turns, kept = math.factorial(len(modes)), mean.sketch(tensor.sketch().width).squared_norm
    share = math.sqrt(2 * n_turns / (n_turns - 1) * max(0.0, 1 - kept / max(tensor.squared_norm(), 1e-300)))
    if share > 0.5:
        raise ValueError(
            f"symmetric needs a tensor that permuting the modes {tuple(modes)} leaves as it is, up to noise; that "
            f"changes {share:.0%} of this one. Leave symmetric out to give every mode its own factor"
        )
    return mean


def array_of(tensor: Tensor) -> Any:
    """Return the array of a tensor that is stored as one, in memory or in chunks; None for other kinds of storage."""
    if isinstance(tensor, DaskTensor):
        return tensor.array
    return tensor.to_dense() if isinstance(tensor, DenseTensor) else None


def tensor_of_array(array: Any, *, symmetric: bool) -> DenseTensor | DaskTensor:
    """Return the tensor of an array, in memory or in chunks, without checking its entries."""
    kind = DaskTensor if is_dask_array(array) else DenseTensor.of
    return kind(array, symmetric=symmetric)


def components_of(raw: Any) -> tuple[Any, list[Any]] | None:
    """Return the weights and factors of a fit, a CPTensor, a ktensor or a pair; None for other objects.

    Weights that are all one may be None.
    """
    if hasattr(raw, "weights"):
        for name in ("factors", "factor_matrices"):  # fits of codiag and CPTensors of TensorLy; ktensors of pyttb
            if hasattr(raw, name):
                return raw.weights, list(getattr(raw, name))
    if not isinstance(raw, tuple | list) or len(raw) != 2:
        return None
    weights, factors = raw
    if not isinstance(factors, tuple | list) or not factors or n_axes(factors[0]) != 2:
        return None
    return (weights, list(factors)) if weights is None or n_axes(weights) == 1 else None


def n_axes(raw: Any) -> int:
    """Return the number of axes of an object as an array, or -1 if it cannot become one."""
    try:
        return int(np.ndim(raw))
    except ValueError:  # ragged lists
        return -1


def _wrap(raw: Any) -> Tensor:
    if isinstance(raw, Tensor):
        return raw
    if isinstance(raw, str | bytes | PathLike):
        raise TypeError(
            f"tensor must be an array or a codiag.tensors.Tensor; got {raw!r}. Open the file first: a table by "
            "pandas.read_csv, an array by numpy.load, zarr.open or h5py.File"
        )
    raw = of_stored(raw)
    if is_dask_array(raw):
        return DaskTensor(raw)
    if hasattr(raw, "tocoo") and hasattr(raw, "fill_value"):
        raw = raw.tocoo()
    if all(hasattr(raw, name) for name in ("coords", "data", "shape")) and hasattr(raw.coords, "shape"):
        if np.any(getattr(raw, "fill_value", 0) != 0):
            raise ValueError(f"tensor must be zero where it has no entries; its fill_value is {raw.fill_value}")
        return SparseTensor(raw.coords, raw.data, raw.shape)
    if all(hasattr(raw, name) for name in ("subs", "vals", "shape")):
        return SparseTensor(np.asarray(raw.subs).T, np.asarray(raw.vals).ravel(), raw.shape)
    components = components_of(raw)
    if components is not None:
        weights, factors = components
        return FactoredTensor(np.ones(np.shape(factors[0])[1]) if weights is None else weights, factors)
    if hasattr(raw, "double") and isinstance(getattr(raw, "data", None), np.ndarray):  # a tensor of pyttb
        raw = raw.data
    if getattr(raw, "is_sparse", False):
        raise TypeError(
            "tensor must be dense if it is one of torch; use codiag.tensors.SparseTensor(coords, values, shape)"
        )
    if len(getattr(raw, "shape", (0, 0, 0))) < 3:
        check_shape(raw.shape)
    return DenseTensor(raw)
