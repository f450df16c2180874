"""Arguments of TensorLy's functions, checked."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj

from codiag._arrays import to_host
from codiag._checks import as_number


def check_hints(svd: Any, cvg_criterion: Any, **switches: Any) -> None:
    """Raise unless hints are of their kinds, and switches true, false or a number of times."""
    if not isinstance(svd, str) and not callable(svd):
        raise TypeError(f"svd must be the name of a function of TensorLy; got {svd!r}")
    if cvg_criterion not in ("abs_rec_error", "rec_error"):
        raise ValueError(f"cvg_criterion must be 'abs_rec_error' or 'rec_error'; got {cvg_criterion!r}")
    for name, value in switches.items():
        if not isinstance(value, int | np.bool_ | np.integer):
            raise TypeError(f"{name} must be True, False or a number of times; got {value!r}")


def as_rank(rank: Any, shape: tuple[int, ...]) -> int:
    """Return the number of components; from a share of the entries, that which has so many parameters."""
    if isinstance(rank, str):
        if rank != "same":
            raise ValueError(f"rank must be an integer, a share of the entries or 'same'; got {rank!r}")
        rank = 1.0
    if isinstance(rank, float | np.floating):
        as_number("rank", float(rank))
        return max(round(math.prod(shape) * float(rank) / sum(shape)), 1)
    as_number("rank", rank, integer=True)
    return int(rank)


def as_count(sparsity: Any, size: int) -> int:
    """Return how many entries a sparse component has: a share of them, or their number."""
    if sparsity is None:
        return 0
    as_number("sparsity", sparsity, zero=True)
    return min(int(sparsity * size) if isinstance(sparsity, float | np.floating) else int(sparsity), size)


def as_mask(mask: Any, shape: tuple[int, ...]) -> np.ndarray | None:
    """Return which entries were observed, or their weights; None where all were."""
    if mask is None:
        return None
    mask = mask.todense() if hasattr(mask, "todense") else mask
    given = np.asarray(to_host(mask) if is_array_api_obj(mask) else mask)
    if given.dtype.kind not in "buif":
        raise TypeError(f"mask must be boolean, or hold ones and zeros; got an array of {given.dtype}")
    if given.shape != shape:
        raise ValueError(f"mask must have the shape of the tensor, {shape}; got {given.shape}")
    if not np.all(np.isfinite(given)) or np.any(given < 0) or not np.any(given):
        raise ValueError("mask must be one where entries were observed, zero where not, and not zero everywhere")
    return None if np.all(given == 1) else given


def as_modes(name: str, modes: Any, order: int) -> list[int]:
    """Return modes that a tensor of this order has."""
    given = list(modes)
    last = order - 1
    if any(isinstance(mode, bool) or not isinstance(mode, int | np.integer) or not 0 <= mode <= last for mode in given):
        raise ValueError(f"{name} must hold modes from 0 to {last}; got {given}")
    return [int(mode) for mode in given]


def shape_of(tensor: Any) -> tuple[int, ...]:
    """Return the shape of what is to be factorized, or say that it has none."""
    try:
        return tuple(np.shape(tensor))
    except ValueError as error:
        raise ValueError("tensor must be one array; its parts have different shapes") from error
