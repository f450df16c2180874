"""The little that array libraries do not share: host copies and the precision of a dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_numpy_array, is_torch_array

Array = Any
"""An array of any library that follows the array API standard."""


def like(values: np.ndarray, reference: Array) -> Array:
    """Copy host values to the library, the device and the precision of the reference."""
    xp = array_namespace(reference)
    return xp.asarray(np.array(values), dtype=reference.dtype, device=device(reference))


def to_host(array: Array) -> np.ndarray:
    """Copy an array of any library to NumPy."""
    if is_torch_array(array):
        return array.detach().cpu().numpy()
    if hasattr(array, "get"):  # CuPy refuses implicit copies to the host
        return array.get()
    return np.asarray(array)


def identity(size: int, reference: Array) -> Array:
    """Return the identity matrix in the library, on the device and in the precision of the reference."""
    return array_namespace(reference).eye(size, dtype=reference.dtype, device=device(reference))


def largest_signs(columns: Array) -> Array:
    """Return the sign of the largest entry of each column, one of +1 and -1."""
    xp = array_namespace(columns)
    extremes = xp.max(columns, axis=0) + xp.min(columns, axis=0)
    return xp.where(extremes < 0, -xp.ones_like(extremes), xp.ones_like(extremes))


def epsilon(array: Array) -> float:
    """Return the machine precision of the array's dtype."""
    return float(array_namespace(array).finfo(array.dtype).eps)


def on_host(array: Array) -> bool:
    """Tell whether the array lives in the memory of the processor that runs Python."""
    return is_numpy_array(array) or str(device(array)) == "cpu"
