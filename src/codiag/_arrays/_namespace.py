"""Functions that array libraries do not share: copies between them, precision, blocks, and selected slices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import array_api_compat
import numpy as np
import scipy
from array_api_compat import device, is_cupy_array, is_jax_array, is_numpy_array, is_torch_array

Array: TypeAlias = Any
"""An array of any library that follows the array API standard, which has no static type yet."""

TensorLike: TypeAlias = Any
"""A tensor for `codiag.factorize`: an array of any library, a COO tensor, a labelled table, or a `Tensor`."""

SMALL_MATRIX = 200
"""Rows of a matrix up to which the host finds eigenvectors faster than an accelerator, which launches many kernels."""

BLOCK = 2**22
"""Entries of intermediate results that are formed at a time: 32 MB in double precision."""

_NUMPY, _HOST_TYPES = array_api_compat.array_namespace(np.zeros(0)), {np.ndarray}

_NAMESPACES: dict[frozenset[type], Any] = {}
"""The namespaces of arrays of one type that were asked for: fits ask for them thousands of times."""


def array_namespace(*arrays: Array) -> Any:
    """Return the namespace of the library of arrays, with a shortcut for NumPy, which speeds up small problems."""
    kinds = {*map(type, arrays)}
    if kinds == _HOST_TYPES:
        return _NUMPY
    key = frozenset(kinds)
    if key in _NAMESPACES:
        return _NAMESPACES[key]
    found = array_api_compat.array_namespace(*arrays)
    return _NAMESPACES.setdefault(key, found) if len(key) == 1 else found


def asarray_like(values: np.ndarray, reference: Array) -> Array:
    """Copy host values to the library, the device and the precision of the reference."""
    xp = array_namespace(reference)
    is_single = values.dtype == np.float64 and reference.dtype == xp.float32
    rounded = values.astype(np.float32) if is_single else np.array(values)  # torch takes milliseconds to round
    return xp.asarray(rounded, dtype=reference.dtype, device=device(reference))


def to_namespace(array: Array, reference: Array) -> Array:
    """Return an array in the library and the precision of the reference, without a copy if it has them already."""
    if type(array) is type(reference) is np.ndarray and array.dtype == reference.dtype:
        return array  # small problems spend their time in calls like this
    xp = array_namespace(reference)
    if array_namespace(array) is not xp:
        return asarray_like(to_host(array), reference)
    return array if array.dtype == reference.dtype else xp.astype(array, reference.dtype)


def to_double(array: Array) -> Array:
    """Return an array in double precision, on its device if possible and on the host otherwise.

    The host is used for accelerators that have single precision only, and for JAX, which by default has no double
    precision and compiles every operation for every shape, which is slow for small problems.
    """
    if is_jax_array(array) or not _has_double(array):
        return to_host(array).astype(_double_dtype(array, np))
    return _as_double(array)


def to_double_if_cheap(array: Array) -> Array:
    """Return an array in double precision for accurate sums, unless that needs a copy from an accelerator."""
    if _has_double(array):
        return _as_double(array)
    return to_host(array).astype(_double_dtype(array, np)) if on_host(array) else array


def _as_double(array: Array) -> Array:
    xp = array_namespace(array)
    wanted = _double_dtype(array, xp)
    return array if array.dtype == wanted else xp.astype(array, wanted)


def _double_dtype(array: Array, xp: Any) -> Any:
    return xp.complex128 if is_complex(array) else xp.float64


def _has_double(array: Array) -> bool:
    xp = array_namespace(array)
    return bool(widest(array) in (xp.float64, xp.complex128))


def squares(array: Array) -> float:
    """Return the sum of the squares of all entries, in double precision; infinite if it overflows."""
    array = to_double_if_cheap(array)
    xp = array_namespace(array)
    flat = xp.reshape(array, (-1,))
    with np.errstate(all="ignore"):
        return float(inner_product_of(flat, flat))


def inner_product_of(first: Array, second: Array) -> Array:
    """Return the real inner product of two vectors; libraries differ in which of complex ones they conjugate."""
    xp = array_namespace(first)
    if not is_complex(first):
        return xp.vecdot(first, second)
    return xp.vecdot(xp.real(first), xp.real(second)) + xp.vecdot(xp.imag(first), xp.imag(second))


def widest(array: Array) -> Any:
    """Return the dtype of double precision if the device of the array has it, and of single precision otherwise."""
    xp = array_namespace(array)
    wanted = _double_dtype(array, xp)
    if array.dtype == wanted or "float64" in xp.__array_namespace_info__().dtypes(device=device(array)):
        return wanted
    return xp.complex64 if is_complex(array) else xp.float32


def is_complex(array: Array) -> bool:
    """Return whether an array holds complex numbers."""
    if type(array) is np.ndarray:
        return array.dtype.kind == "c"
    return bool(array_namespace(array).isdtype(array.dtype, "complex floating"))


def to_host(array: Array) -> np.ndarray:
    """Copy an array of any library to NumPy."""
    if is_torch_array(array):
        array = array.detach().resolve_conj()
        if array.is_cuda:  # to pages that are locked, which large copies take a tenth of the time to
            array = array.new_empty(array.shape, device="cpu", pin_memory=True).copy_(array)
        array = array.cpu().numpy()
    elif is_cupy_array(array):  # CuPy refuses implicit copies to the host
        array = array.get()
    return np.asarray(array)


def take(array: Array, indices: Sequence[int] | np.ndarray, axis: int) -> Array:
    """Return the slices with these indices along an axis, in the given order."""
    xp = array_namespace(array)
    index = xp.asarray(np.asarray(indices, dtype=np.int64), device=device(array))
    if is_mutable(array):
        return array[(slice(None),) * axis + (index,)]  # NumPy's take copies all of an array that is not contiguous
    return xp.take(array, index, axis=axis)


def matrix_transpose(array: Array) -> Array:
    """Return matrices, or stacks of them, transposed: `matrix_transpose` with a shortcut for NumPy."""
    return array.swapaxes(-1, -2) if type(array) is np.ndarray else array_namespace(array).matrix_transpose(array)


def sum_along(array: Array, axis: int) -> Array:
    """Return sums along an axis: `sum` with a shortcut for NumPy."""
    return array.sum(axis=axis) if type(array) is np.ndarray else array_namespace(array).sum(array, axis=axis)


def is_mutable(array: Array) -> bool:
    """Return whether the library can change arrays in place and write products into existing arrays."""
    return bool(is_numpy_array(array) or is_torch_array(array) or is_cupy_array(array))


def blocks(count: int, width: int, scale: int = 1) -> Iterator[slice]:
    """Split `count` rows of `width` entries into parts of at most `scale * BLOCK` entries, or of one row.

    Without rows there is one empty part, so that concatenated results have the right shape.
    """
    size = max(1, scale * BLOCK // max(width, 1))
    for start in range(0, max(count, 1), size):
        yield slice(start, min(start + size, count))


def fits_block(count: int) -> bool:
    """Return whether this number of entries may be formed at a time."""
    return count <= BLOCK


def identity(size: int, reference: Array) -> Array:
    """Return the identity matrix in the library, on the device and in the precision of the reference."""
    return array_namespace(reference).eye(size, dtype=reference.dtype, device=device(reference))


def eigenpairs(matrix: Array) -> tuple[Array, Array]:
    """Return the eigenvalues of a Hermitian matrix, ascending, and eigenvectors: of a small one, by the host."""
    xp = array_namespace(matrix)
    if on_host(matrix) or matrix.shape[0] > SMALL_MATRIX:
        return tuple(xp.linalg.eigh(matrix))
    values, vectors = np.linalg.eigh(to_host(matrix))
    return xp.asarray(values, device=device(matrix)), asarray_like(vectors, matrix)


def epsilon(array: Array) -> float:
    """Return the machine precision of the array's dtype."""
    return float(array_namespace(array).finfo(array.dtype).eps)


def on_host(array: Array) -> bool:
    """Return whether the array is in the memory of the CPU."""
    return is_numpy_array(array) or "cpu" in str(device(array)).lower()


def all_equal(arrays: Sequence[Array | None]) -> bool:
    """Return whether all matrices have the same shape and entries, or all are None."""
    return all(_equal(arrays[0], array) for array in arrays[1:])


def _equal(first: Array | None, second: Array | None) -> bool:
    if first is second:
        return True
    if first is None or second is None or first.shape != second.shape:
        return False
    are_sparse = [scipy.sparse.issparse(array) for array in (first, second)]
    if any(are_sparse):
        return all(are_sparse) and (first != second).nnz == 0
    xp = array_namespace(first, second)
    return bool(xp.all(first == second))
