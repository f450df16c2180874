"""Sketches of tensors: the norm and products with random vectors, from the first pass over the entries."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from codiag._arrays import Array, adjoint, array_namespace, asarray_like
from codiag._checks import not_finite
from codiag.tensors._sums import Core, Products, SquaredNorm, contract_pairwise, scaled_square

if TYPE_CHECKING:
    from codiag.tensors._base import Tensor

SMALL_SIZE = 2**21
"""Largest number of entries of a small tensor (16 MB): it is checked when it is made, formed as a dense array, and
decomposed exactly. Passes over larger tensors are few, and counted in tests."""

OVERSAMPLING = 10
"""Number of random directions beyond the rank: 5 to 10 suffice (Halko, Martinsson & Tropp, SIAM Review 53, 2011)."""


@dataclass(frozen=True, eq=False)
class Sketch:
    """The results of the first pass over the entries of a tensor.

    Attributes
    ----------
    squared_norm : float
        The squared norm of the tensor; not finite if an entry is not.
    directions : tuple of arrays of shape (d_m, width)
        Random vectors, the same for every tensor of this shape.
    products : mapping from int to array of shape (d_m, width)
        `Tensor.mttkrp` of the directions by mode: for all modes, or for the first if the tensor is symmetric.
    spans_ranges : bool
        Whether the products are of all modes but the last, after a power iteration on the tensor times the directions
        of that mode: their columns span the dominant ranges.
    """

    squared_norm: float
    directions: tuple[Array, ...]
    products: Mapping[int, Array]
    spans_ranges: bool = False

    @property
    def width(self) -> int:
        return int(self.directions[0].shape[1])

    def scaled(self, scale: float) -> Sketch:
        """Return the sketch of a multiple of the tensor."""
        products = {mode: scale * product for mode, product in self.products.items()}
        return Sketch(scaled_square(self.squared_norm, scale), self.directions, products, self.spans_ranges)


def make_sketch(tensor: Tensor, width: int) -> Sketch:
    """Return the sketch of a tensor, from one pass over its entries.

    On an accelerator the tensor is multiplied in its last mode only, if it becomes four times smaller by that: what is
    left shows the ranges of the other modes better than vectors do, for half of the operations.
    """
    rng = np.random.default_rng(0)  # a fixed seed, so that the sketch depends on the data alone and can be stored
    # Uniform numbers, which take a fifth of the time of normal ones.
    directions = tuple(asarray_like(rng.random((size, width)) - 0.5, tensor.reference) for size in tensor.shape)
    if tensor.is_on_accelerator and not tensor.symmetric and 0 < 4 * width <= min(tensor.shape):
        squared_norm, part = tensor.read(SquaredNorm(), Core((*[None] * (tensor.order - 1), directions[-1])))
        found = {mode: _range_columns(part.to_dense(), directions, mode) for mode in range(tensor.order - 1)}
        return Sketch(squared_norm, directions, found, spans_ranges=True)
    modes = [0] if tensor.symmetric else list(range(tensor.order))
    products = [Products(directions, [0] if tensor.symmetric else None)] if width > 0 else []
    squared_norm, *results = tensor.read(SquaredNorm(), *products)
    by_mode = dict(zip(modes, results[0], strict=True)) if width > 0 else {}
    return Sketch(squared_norm, directions, by_mode)


def _range_columns(part: Array, directions: Sequence[Array], mode: int) -> Array:
    """Return columns in the dominant range of a mode of a tensor that is multiplied in its last mode."""
    with np.errstate(all="ignore"):  # entries may not be finite
        return power_iteration(part, contract_pairwise(part, directions, mode), mode)


def power_iteration(entries: Array, columns: Array, mode: int) -> Array:
    """Return columns multiplied by an unfolding and its adjoint, after they have been made orthonormal."""
    xp = array_namespace(entries)
    side = xp.reshape(xp.moveaxis(entries, mode, 0), (entries.shape[mode], -1))
    return side @ (adjoint(side) @ xp.linalg.qr(columns)[0])


def is_large(shape: Sequence[int]) -> bool:
    """Return whether a tensor of this shape has more than `SMALL_SIZE` entries, so that few passes are made over it."""
    return math.prod(shape) > SMALL_SIZE


def sketch_width(rank: object, shape: Sequence[int]) -> int:
    """Return the number of random directions that the ranges of a tensor are estimated from; 0 if none are needed."""
    if isinstance(rank, bool) or not isinstance(rank, int | float | np.number) or not 0 < rank < max(shape):
        return 0
    return int(range_rank(int(rank))) + OVERSAMPLING if is_large(shape) else 0


def range_rank(rank: int) -> int:
    """Return the dimension of the subspace of each mode that must contain the components.

    For rank one it is larger: if singular values tie, the leading vectors of the modes may belong to different terms.
    """
    return rank + OVERSAMPLING if rank == 1 else rank


def check_range(tensor: Tensor, count: Callable[[], EntryCount], way_out: str) -> None:
    """Raise a ``ValueError`` unless all entries are finite and their squares neither overflow nor all underflow.

    Parameters
    ----------
    tensor : Tensor
        The tensor to check, by its squared norm.
    count : callable
        Counts the entries in another pass, which is needed for the message only.
    way_out : str
        Advice if entries are not finite, for the message.
    """
    dtype = tensor.reference.dtype
    limits = array_namespace(tensor.reference).finfo(dtype)
    squared_norm = tensor.squared_norm()  # below 1e-302, squares of residuals would lose digits to underflow
    if max(float(limits.smallest_normal), 1e-302) <= squared_norm < float(limits.max):
        return
    counts = count()
    if counts.n_bad:
        what = not_finite(counts.n_bad, counts.n_nan)
        raise ValueError(
            f"tensor must be finite; {counts.n_bad} of {math.prod(tensor.shape)} entries are {what}, the first at "
            f"{counts.first_bad}. {way_out}"
        )
    if counts.n_nonzero:
        raise ValueError(
            f"tensor must have entries whose squares fit into {dtype} with all their digits; divide by the largest"
        )


class EntryCount(NamedTuple):
    """Numbers of entries that are not finite, NaN, and not zero; and the index of the first that is not finite."""

    n_bad: int
    n_nan: int
    first_bad: tuple[int, ...] | None
    n_nonzero: int


def entry_count(entries: np.ndarray) -> EntryCount:
    """Count the entries of an array in memory."""
    bad = ~np.isfinite(entries)
    n_bad = int(np.count_nonzero(bad))
    first = tuple(int(index) for index in np.unravel_index(int(np.argmax(bad)), bad.shape)) if n_bad else None
    n_nan = int(np.count_nonzero(np.isnan(entries))) if n_bad else 0
    return EntryCount(n_bad, n_nan, first, int(np.count_nonzero(entries)))
