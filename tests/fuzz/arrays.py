"""Arrays of all kinds, in all layouts and storages, with the entries they hold known."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from codiag.tensors import (
    CrossMomentTensor,
    DenseTensor,
    FactoredTensor,
    MomentTensor,
    ScaledTensor,
    SparseTensor,
    SumTensor,
    Tensor,
    symmetrize,
)

from .reference import composed


@dataclass(frozen=True, eq=False)
class Held:
    """Entries, and the object that holds them.

    Attributes
    ----------
    data : object
        What is passed to codiag.
    dense : array
        The entries in double precision, divided by `scale` where they are extreme.
    kind, storage : str
        How they were drawn, and how they are kept.
    precision : str
        What results are to be in.
    entrywise : bool
        Whether the storage can subtract entry by entry, so that small errors are exact.
    """

    data: Any
    dense: np.ndarray
    kind: str
    storage: str = "array"
    precision: str = "float64"
    scale: float = 1.0
    entrywise: bool = True

    def describe(self) -> str:
        """Return all that in a few words."""
        scale = f" times {self.scale:g}" if self.scale != 1 else ""
        return f"{self.kind} {'x'.join(map(str, self.dense.shape))}{scale}, {self.precision} {self.storage}"


def folder() -> Path:
    """Return where the files of this input may lie."""
    home = Path(os.environ.get("CODIAG_FUZZ_FOLDER", tempfile.gettempdir()))
    return Path(tempfile.mkdtemp(dir=home))


def choose(rng: np.random.Generator, *options: Any) -> Any:
    """Return one of several things."""
    return options[int(rng.integers(len(options)))]


def random_shape(rng: np.random.Generator, limit: int = 400) -> tuple[int, ...]:
    """Return a shape of order three to five with few entries; some modes of size one."""
    order = int(rng.choice([3, 4, 5], p=[0.75, 0.17, 0.08]))
    while True:
        sizes = rng.integers(2, 8 if order == 3 else 5, order)
        if rng.random() < 0.1:
            sizes[int(rng.integers(order))] = 1
        if np.prod(sizes) <= limit:
            return tuple(int(size) for size in sizes)


def largest_rank(shape: tuple[int, ...]) -> int:
    """Return a rank that is enough for every tensor of this shape."""
    return int(np.prod(sorted(shape)[:-1]))


def random_rank(rng: np.random.Generator, shape: tuple[int, ...]) -> int:
    """Return a rank, mostly a small one."""
    return min(int(rng.choice([1, 2, 3, 4, 5], p=[0.3, 0.3, 0.2, 0.1, 0.1])), largest_rank(shape))


def _zero_one(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return (rng.random(shape) < choose(rng, 0.1, 0.3, 0.5)).astype(float)


def _ties(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    entries = np.zeros(shape)
    for place in range(min(min(shape), int(rng.integers(1, 5)))):
        entries[(place,) * len(shape)] = choose(rng, 1.0, 1.0, 2.0)
    return entries


def _spikes(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    entries = np.zeros(shape)
    for _ in range(int(rng.integers(1, 5))):
        entries[tuple(int(rng.integers(size)) for size in shape)] = choose(rng, 1.0, 1.0, -1.0, 3.0)
    return entries


def _repeated_slices(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    slices = rng.integers(0, 2, (2, *shape[1:])).astype(float)
    return slices[rng.integers(0, 2, shape[0])]


def low_rank(rng: np.random.Generator, shape: tuple[int, ...], rank: int | None = None) -> np.ndarray:
    """Return a sum of a few components."""
    k = rank or int(rng.integers(1, 5))
    return composed(rng.uniform(0.5, 2, k), [rng.standard_normal((size, k)) for size in shape])


def _noisy(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    clean, errors = low_rank(rng, shape), rng.standard_normal(shape)
    return clean + choose(rng, 1e-6, 1e-3, 1e-1, 1.0) * errors * np.linalg.norm(clean) / np.linalg.norm(errors)


def _border(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    first, second = ([rng.standard_normal((size, 1)) for size in shape] for _ in range(2))
    terms = [composed(np.ones(1), [*first[:m], second[m], *first[m + 1 :]]) for m in range(len(shape))]
    return sum(terms) + choose(rng, 0.0, 1e-3) * rng.standard_normal(shape)


def _symmetric(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    size, order, k = min(max(shape), 5 if len(shape) == 3 else 3), len(shape), int(rng.integers(1, 4))
    factor = rng.standard_normal((size, k))
    weights = rng.uniform(0.5, 2, k) * (choose(rng, -1.0, 1.0) if order % 2 == 0 else 1.0)
    noise = symmetrize(rng.standard_normal((size,) * order)) * choose(rng, 0.0, 1e-3, 0.1)
    return symmetrize(composed(weights, [factor] * order) + noise)


def _symmetric_spikes(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    entries = np.zeros((min(max(shape), 4),) * 3)
    for _ in range(int(rng.integers(1, 4))):
        place = rng.integers(0, entries.shape[0], 3)
        for order in itertools.permutations(range(3)):
            entries[tuple(place[list(order)])] = 1.0
    return entries


KINDS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]] = {
    "zero-one": _zero_one,
    "ties": _ties,
    "spikes": _spikes,
    "integers": lambda rng, shape: rng.integers(-3, 4, shape).astype(float),
    "counts": lambda rng, shape: rng.poisson(0.5, shape).astype(float),
    "repeated slices": _repeated_slices,
    "constant": lambda rng, shape: np.full(shape, choose(rng, 1.0, -2.0, 0.1)),
    "low rank": low_rank,
    "noisy": _noisy,
    "border rank": _border,
    "gaussian": lambda rng, shape: rng.standard_normal(shape),
    "symmetric": _symmetric,
    "symmetric spikes": _symmetric_spikes,
}
WHOLE = {"zero-one", "ties", "spikes", "integers", "counts", "repeated slices", "symmetric spikes"}

HARD = ("zero-one", "ties", "spikes", "integers", "repeated slices", "border rank", "symmetric spikes")
"""Kinds with ties and degenerate directions, drawn twice as often."""


def random_entries(rng: np.random.Generator) -> tuple[np.ndarray, str]:
    """Return an array that is not all zero, and how it was drawn."""
    while True:
        kind = choose(rng, *KINDS, *HARD)
        entries = KINDS[kind](rng, random_shape(rng))
        if np.any(entries):
            return entries, kind


def random_array(rng: np.random.Generator, *, extreme: bool = True) -> Held:
    """Return a NumPy array of some precision, scale and layout."""
    entries, kind = random_entries(rng)
    dtype = choose(rng, *("float64",) * 5, "float32", "float32", *(("int64", "uint8", "bool") if kind in WHOLE else ()))
    if dtype in ("uint8", "bool"):
        entries = np.abs(entries) if dtype == "uint8" else (entries != 0).astype(float)
    scale = 1.0
    if extreme and dtype.startswith("float") and rng.random() < 0.12:
        span = 36 if dtype == "float32" else 300
        scale = 10.0 ** int(rng.integers(-span, span + 1))
    array = (entries * scale).astype(dtype)
    dense = array.astype(np.float64) / scale
    precision = "float32" if dtype == "float32" else "float64"
    held = Held(array, dense, kind, "array" if dtype.startswith("float") else f"{dtype} array", precision, scale)
    return _laid_out(held, rng)


def is_moderate(held: Held) -> bool:
    """Tell whether squares of the entries are numbers in the precision they are in."""
    limit = 1e130 if held.precision == "float64" else 1e13
    return 1 / limit < held.scale < limit


def _laid_out(held: Held, rng: np.random.Generator) -> Held:
    array = held.data
    layout = choose(rng, "", "", "Fortran", "negative strides", "read-only", "mapped", "every second", "transposed")
    if layout == "Fortran":
        array = np.asfortranarray(array)
    elif layout == "negative strides":
        array = np.ascontiguousarray(array[..., ::-1])[..., ::-1]
    elif layout == "read-only":
        array = array.copy()
        array.flags.writeable = False
    elif layout == "mapped":
        path = folder() / "tensor.npy"
        np.save(path, array)
        array = np.load(path, mmap_mode="r")
    elif layout == "every second":
        wide = np.repeat(array, 2, axis=0)
        array = wide[::2]
    elif layout == "transposed":
        array = np.ascontiguousarray(array.T).T
    return replace(held, data=array, storage=f"{layout} {held.storage}".strip())


class Coo:
    """A COO tensor of another library, known by what it carries."""

    def __init__(self, coords: np.ndarray, data: np.ndarray, shape: tuple[int, ...]) -> None:
        self.coords, self.data, self.shape = coords, data, shape


class Plain(Tensor):
    """A tensor that can do no more than it must."""

    def __init__(self, entries: np.ndarray, symmetric: bool = False) -> None:
        self.entries, self.shape, self.symmetric = entries, entries.shape, symmetric

    def project(self, *directions: np.ndarray) -> np.ndarray:
        letters = "abcdefgh"[: self.order]
        terms = ",".join(f"n{letter}" for letter in letters[2:])
        return np.einsum(f"{letters},{terms}->nab", self.entries, *directions, optimize=True)

    def permute(self, axes: Any) -> Plain:
        return Plain(self.entries.transpose(axes), self.symmetric)


def random_tensor(rng: np.random.Generator, *, torch: bool = False) -> Held:
    """Return entries in some storage of codiag, or of another library: torch, if it may be and is installed."""
    storage = choose(
        rng, "factored", "sparse", "sparse", "coo", "sum", "scaled", "dense", "moment", "cross", "plain", "torch"
    )
    if storage in ("factored", "moment", "cross"):
        return _from_parts(rng, storage)
    held = random_array(rng, extreme=False)
    array = np.asarray(held.data)
    floating = array if array.dtype.kind == "f" else array.astype(np.float64)
    places = np.nonzero(array)
    if storage == "sparse":
        data: Any = SparseTensor(np.array(places), array[places], array.shape)
    elif storage == "coo":
        data = Coo(np.array(places), floating[places], array.shape)
    elif storage == "sum":
        first = np.where(np.arange(array.size).reshape(array.shape) % 2, floating, 0)
        data = SumTensor([DenseTensor(first, symmetric=False), DenseTensor(floating - first, symmetric=False)])
    elif storage == "scaled":
        data = ScaledTensor(DenseTensor(floating), choose(rng, 2.0, -0.5, 1e-3))
        held = replace(held, dense=held.dense * data.scale)
    elif storage == "torch" and torch and find_spec("torch"):
        data = _of_torch(floating)
    elif storage == "plain":
        data, held = Plain(floating.astype(np.float64)), replace(held, precision="float64")
    else:
        data = DenseTensor(array)
    exact = storage in ("dense", "scaled", "torch")
    return replace(held, data=data, storage=f"{storage} of {held.storage}", entrywise=exact)


def _of_torch(array: np.ndarray) -> Any:
    import torch

    return torch.from_numpy(np.ascontiguousarray(array))


def _from_parts(rng: np.random.Generator, storage: str) -> Held:
    precision = choose(rng, "float64", "float64", "float32")
    shape = random_shape(rng)
    if storage == "factored":
        k = int(rng.integers(1, 5))
        weights = rng.uniform(-2, 2, k).astype(precision)
        factors = [rng.standard_normal((size, k)).astype(precision) for size in shape]
        if rng.random() < 0.3:
            factors = [factors[0]] * len(shape)
        dense = composed(weights, factors)
        return Held(FactoredTensor(weights, factors), dense, "low rank", storage, precision, entrywise=False)
    n = int(rng.integers(1, 30))
    if storage == "moment":
        samples = rng.standard_normal((n, int(rng.integers(2, 6)))).astype(precision)
        dense = composed(np.full(n, 1 / n), [samples.T] * 3)
        return Held(MomentTensor(samples), dense, "samples", storage, precision, entrywise=False)
    views = [rng.standard_normal((n, size)).astype(precision) for size in shape[:3]]
    dense = composed(np.full(n, 1 / n), [view.T for view in views])
    return Held(CrossMomentTensor(*views), dense, "samples", storage, precision, entrywise=False)
