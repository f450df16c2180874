"""Registries of array libraries and of kinds of tensors, so that every law of tensors runs on all of them."""

from __future__ import annotations

import itertools
import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from codiag._arrays import asarray_like
from codiag.tensors import (
    CrossMomentTensor,
    DaskTensor,
    DenseTensor,
    FactoredTensor,
    MomentTensor,
    SparseTensor,
    Tensor,
    symmetrize,
)
from extending import example


class Plain(Tensor):
    """A tensor that can do no more than it must; all else comes from the base class."""

    def __init__(self, entries: np.ndarray, *, symmetric: bool = False) -> None:
        self.entries, self.shape, self.symmetric = entries, entries.shape, symmetric

    def project(self, *directions):
        letters = "abcdefgh"[: self.order]
        terms = ",".join(f"n{letter}" for letter in letters[2:])
        return np.einsum(f"{letters},{terms}->nab", self.entries, *directions, optimize=True)

    def permute(self, axes):
        return Plain(self.entries.transpose(axes), symmetric=self.symmetric)


def _sparse(entries: np.ndarray, symmetric: bool) -> Tensor:
    places = np.nonzero(entries)
    return SparseTensor(np.array(places), entries[places], entries.shape, symmetric=symmetric)


def _sum(entries: np.ndarray, symmetric: bool) -> Tensor:
    first = np.where(np.arange(entries.size).reshape(entries.shape) % 2, entries, 0)
    first = symmetrize(first) if symmetric else first
    return DenseTensor(first, symmetric=symmetric) + Plain(entries - first, symmetric=symmetric)


Library = Callable[[np.ndarray], Any]


def _dense(to: Library, entries: np.ndarray, symmetric: bool) -> Tensor:
    return DenseTensor(to(entries), symmetric=symmetric)


def _mapped(entries: np.ndarray, symmetric: bool) -> Tensor:
    with tempfile.NamedTemporaryFile(suffix=".npy", delete=False) as file:
        np.save(file, entries)
    mapped = np.load(file.name, mmap_mode="r")
    Path(file.name).unlink()
    return DenseTensor(mapped, symmetric=symmetric)


def _dask(entries: np.ndarray, symmetric: bool) -> Tensor:
    """Return a tensor in unequal chunks, along the first mode and the last."""
    array = pytest.importorskip("dask.array", reason="dask is not installed; it is the extra 'dask'")
    import dask

    dask.config.set(scheduler="synchronous")  # for good: the laws are not about threads, and these take time to start
    cut = [(1, size - 1) if size > 1 else (1,) for size in entries.shape]
    chunks = (cut[0], *entries.shape[1:-1], cut[-1])
    return DaskTensor(array.from_array(entries, chunks=chunks), symmetric=symmetric)


def _torch(values: np.ndarray) -> Any:
    torch = pytest.importorskip("torch", reason="torch is not installed; it is the extra 'torch'")
    return torch.asarray(values)


def _jax(values: np.ndarray) -> Any:
    jax = pytest.importorskip("jax", reason="jax is not installed")
    jax.config.update("jax_enable_x64", True)
    return jax.numpy.asarray(values)


def _strict(values: np.ndarray) -> Any:
    array_api_strict = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    return array_api_strict.asarray(values)


LIBRARIES: dict[str, Library] = {"torch": _torch, "jax": _jax, "strict": _strict}
"""Every array library but NumPy, by what makes an array of it; `strict` can do what the standard says and no more."""


def _fibers(entries: np.ndarray) -> list[np.ndarray]:
    """Return factors (d_m, r) whose components are the fibers along the first mode."""
    places = np.indices(entries.shape[1:]).reshape(entries.ndim - 1, -1)
    units = [np.eye(size, dtype=entries.dtype)[:, row] for size, row in zip(entries.shape[1:], places, strict=True)]
    return [entries.reshape(entries.shape[0], -1), *units]


def _powers(entries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Return weights (r,) and a factor (d, r) of a symmetric tensor of order n, as a sum of powers of vectors.

    By polarization, the mean of :math:`e_{i_1} \otimes \dots \otimes e_{i_n}` over permutations of the modes is
    :math:`\frac{1}{2^n n!} \sum_\varepsilon \prod_m \varepsilon_m (\sum_m \varepsilon_m e_{i_m})^{\otimes n}`.
    """
    order, size = entries.ndim, entries.shape[0]
    signs = np.array(list(itertools.product((1, -1), repeat=order)))
    vectors, weights = [], []
    for places in itertools.combinations_with_replacement(range(size), order):
        vectors.append(signs @ np.eye(size)[list(places)])
        n_places = math.factorial(order) / math.prod(math.factorial(places.count(place)) for place in set(places))
        weights.append(entries[places] * n_places * np.prod(signs, axis=1) / (2**order * math.factorial(order)))
    return np.concatenate(weights), np.concatenate(vectors).T


def _components(entries: np.ndarray, symmetric: bool) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return weights and factors, equal copies if symmetric, whose components add up to the entries."""
    if symmetric:
        weights, factor = _powers(entries)
        return weights, [factor.copy() for _ in range(entries.ndim)]
    factors = _fibers(entries)
    return np.ones(factors[0].shape[1], entries.dtype), factors


def _factored(to: Library, entries: np.ndarray, symmetric: bool) -> Tensor:
    weights, factors = _components(entries, symmetric)
    return FactoredTensor(to(weights), [to(factor) for factor in factors])


def _views(to_view: Library, to: Library, entries: np.ndarray, symmetric: bool) -> Tensor:
    weights, factors = _components(entries, symmetric)
    return CrossMomentTensor(*(to_view(np.ascontiguousarray(factor.T)) for factor in factors), weights=to(weights))


NUMPY_AND_LIBRARIES: dict[str, Library] = {"": np.asarray, " torch": _torch, " strict": _strict}
"""Where tensors that are not stored as one array live, too; JAX compiles their operations for seconds."""


def _tucker(entries: np.ndarray, symmetric: bool) -> Tensor:
    """Return a core with all modes reversed, bases that reverse them again, and a column that belongs to zeros."""
    core = np.pad(np.flip(entries) / 2**entries.ndim, [(0, 1)] * entries.ndim)
    bases = [np.hstack([2 * np.eye(size)[::-1], np.ones((size, 1))]) for size in entries.shape]
    return example("tensor").TuckerTensor(core, bases, symmetric=symmetric)


TENSORS: dict[str, Callable[[np.ndarray, bool], Tensor]] = {
    "dense": lambda entries, symmetric: DenseTensor(entries, symmetric=symmetric),
    "columns first": lambda entries, symmetric: DenseTensor(np.asfortranarray(entries), symmetric=symmetric),
    "mapped": _mapped,
    "dask": _dask,
    **{name: partial(_dense, library) for name, library in LIBRARIES.items()},
    "sparse": _sparse,
    "sum": _sum,
    "scaled": lambda entries, symmetric: -2 * DenseTensor(entries / -2, symmetric=symmetric),
    "plain": lambda entries, symmetric: Plain(entries, symmetric=symmetric),
    **{f"factored{name}": partial(_factored, library) for name, library in NUMPY_AND_LIBRARIES.items()},
    **{f"views{name}": partial(_views, library, library) for name, library in NUMPY_AND_LIBRARIES.items()},
    "sparse views": partial(_views, sparse.csr_array, np.asarray),
    "tucker": _tucker,
}
"""Every kind of tensor that can hold given entries."""

Held = tuple[Tensor, np.ndarray]


def _samples(to: Library, shape: tuple[int, ...]) -> Held:
    samples = np.random.default_rng(shape).standard_normal((30, shape[0]))
    terms = ",".join(f"s{letter}" for letter in "abcdefgh"[: len(shape)])
    entries = np.einsum(f"{terms}->{terms.replace('s', '').replace(',', '')}", *[samples] * len(shape)) / 30
    return MomentTensor(to(samples), order=len(shape)), entries


@dataclass(frozen=True)
class SymmetricKind:
    """A kind of tensor that is symmetric by what it is, with entries of its own."""

    make: Callable[[tuple[int, ...]], Held]
    orders: tuple[int, ...] = (3,)


SYMMETRIC_TENSORS: dict[str, SymmetricKind] = {
    **{
        f"samples{name}": SymmetricKind(partial(_samples, library), (3, 4))
        for name, library in NUMPY_AND_LIBRARIES.items()
    },
    "sparse samples": SymmetricKind(partial(_samples, sparse.csr_array), (3, 4)),
}
"""Every kind of tensor that is symmetric by what it is. Counts of words are sparse matrices of SciPy."""


SHAPES = [(1, 3, 2), (3, 4, 2, 5)]
CUBES = {3: (4, 4, 4), 4: (3, 3, 3, 3)}
SYMMETRIC = [(kind, CUBES[order]) for kind, known in SYMMETRIC_TENSORS.items() for order in known.orders]
EVERY = pytest.mark.parametrize("kind", [*TENSORS, *SYMMETRIC_TENSORS])
FEW_SHAPES = {"jax": [(3, 4, 2, 5)]}  # it compiles every operation for every shape
FEW_CUBES = {"jax": [(4, 4, 4)]}
EVERY_SHAPE = pytest.mark.parametrize(
    ("kind", "shape"),
    [*((kind, shape) for kind in TENSORS for shape in FEW_SHAPES.get(kind, SHAPES)), *SYMMETRIC],
    ids=str,
)
EVERY_CUBE = pytest.mark.parametrize(
    ("kind", "shape"),
    [*((kind, shape) for kind in TENSORS for shape in FEW_CUBES.get(kind, CUBES.values())), *SYMMETRIC],
    ids=str,
)


def entries_of(shape, seed=0):
    rng = np.random.default_rng([*shape, seed])
    return rng.standard_normal(shape) * (rng.random(shape) < 0.5)


def made(kind, shape, *, symmetric=False):
    """Return a tensor of the kind and its entries; a symmetric one also where the kind allows no other."""
    if kind in SYMMETRIC_TENSORS:
        return SYMMETRIC_TENSORS[kind].make(shape)
    entries = symmetrize(entries_of(shape)) if symmetric else entries_of(shape)
    return TENSORS[kind](entries, symmetric), entries


def moved(tensor, *arrays):
    return [asarray_like(array, tensor.reference) for array in arrays]
