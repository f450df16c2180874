"""What is to be known of a large tensor before anything else, from one pass over its entries."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from codiag._arrays import Array, array_namespace, like
from codiag._checks import not_finite
from codiag.tensors._sums import Products, SquaredNorm, Sum, asymmetry, symmetry_probes

if TYPE_CHECKING:
    from codiag.tensors._base import Tensor

SMALL_SIZE = 2**21
"""Entries up to which a tensor is looked at when it is made, made dense, and its ranges found exactly."""

OVERSAMPLING = 10
"""Random directions beyond the rank."""


@dataclass(frozen=True, eq=False)
class Sketch:
    """What a first pass over the entries has shown.

    Attributes
    ----------
    squared_norm : float
        Of the tensor; not finite where an entry is not.
    asymmetry : float, optional
        The share of the tensor that permuting its modes changes, where that was asked for.
    directions : tuple of arrays of shape (d_m, width)
        Random, and the same for every tensor of this shape.
    products : mapping from int to array of shape (d_m, width)
        The tensor times these directions in all modes but one: of all modes, or of the first if they are equal.
    """

    squared_norm: float
    asymmetry: float | None
    directions: tuple[Array, ...]
    products: Mapping[int, Array]

    @property
    def width(self) -> int:
        return int(self.directions[0].shape[1])

    def scaled(self, scale: float) -> Sketch:
        """Return what a multiple of the tensor would have shown."""
        size = scale * math.sqrt(self.squared_norm)
        products = {mode: scale * product for mode, product in self.products.items()}
        return Sketch(size * size, self.asymmetry, self.directions, products)


def make_sketch(tensor: Tensor, width: int, *, one_mode: bool, probe: bool = False) -> Sketch:
    """Read a tensor once: its norm, its products with random directions, and if asked whether it is symmetric."""
    rng = np.random.default_rng(0)  # what is seen depends on the data alone, so that it can be kept
    directions = tuple(like(rng.standard_normal((size, width)), tensor.reference) for size in tensor.shape)
    modes = [0] if one_mode else list(range(tensor.order))
    asked: list[Sum] = [SquaredNorm(), *([Products(directions, [0] if one_mode else None)] if width > 0 else [])]
    probes: Sequence[Sum] = symmetry_probes(tensor) if probe else ()
    total, *found = tensor.read(*asked, *probes)
    share = asymmetry(found[-2], found[-1], total) if probe else None
    products: list[Any] = found[0] if width > 0 else []
    return Sketch(total, share, directions, dict(zip(modes, products, strict=False)))


def is_large(shape: Sequence[int]) -> bool:
    """Tell whether a tensor of this shape is read as seldom as can be."""
    return math.prod(shape) > SMALL_SIZE


def sketch_width(rank: object, shape: Sequence[int]) -> int:
    """Return the number of random directions from which the ranges of a tensor are found; 0 where none are needed."""
    if isinstance(rank, bool) or not isinstance(rank, int | np.integer) or not 0 < rank < max(shape):
        return 0
    return int(range_rank(int(rank))) + OVERSAMPLING if is_large(shape) else 0


def range_rank(rank: int) -> int:
    """Return the directions a mode that are to hold components: a few more than one.

    Where directions tie, one in each mode need not hold any component.
    """
    return rank + OVERSAMPLING if rank == 1 else rank


def check_range(tensor: Tensor, count: Callable[[], EntryCount], way_out: str) -> None:
    """Raise unless entries are finite and their squares neither overflow nor all vanish; count them where it matters.

    Parameters
    ----------
    tensor : Tensor
    count : callable
        Returns what the entries are like, in a pass of its own.
    way_out : str
        What to do about entries that are not finite.
    """
    dtype = tensor.reference.dtype
    limits = array_namespace(tensor.reference).finfo(dtype)
    squared_norm = tensor.squared_norm()
    if max(float(limits.smallest_normal), 1e-290) <= squared_norm < float(limits.max):
        return
    found = count()
    if found.n_bad:
        what = not_finite(found.n_bad, found.n_nan)
        raise ValueError(
            f"tensor must be finite; {found.n_bad} of {math.prod(tensor.shape)} entries are {what}, the first at "
            f"{found.first_bad}. {way_out}"
        )
    if found.n_nonzero:
        raise ValueError(f"tensor must have entries whose squares fit into {dtype}; divide by the largest of them")


class EntryCount(NamedTuple):
    """How many entries are not finite, how many of these NaN, where the first is, and how many are not zero."""

    n_bad: int
    n_nan: int
    first_bad: tuple[int, ...] | None
    n_nonzero: int


def entry_count(entries: np.ndarray) -> EntryCount:
    """Count the entries of an array in memory."""
    bad = ~np.isfinite(entries)
    n_bad = int(np.count_nonzero(bad))
    first = tuple(int(place) for place in np.unravel_index(int(np.argmax(bad)), bad.shape)) if n_bad else None
    n_nan = int(np.count_nonzero(np.isnan(entries))) if n_bad else 0
    return EntryCount(n_bad, n_nan, first, int(np.count_nonzero(entries)))
