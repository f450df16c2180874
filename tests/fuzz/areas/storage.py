"""Tensors: every storage agrees with the array of its entries, whatever is contracted."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy import sparse

from codiag.tensors import (
    CrossMomentTensor,
    DaskTensor,
    DenseTensor,
    FactoredTensor,
    MomentTensor,
    ScaledTensor,
    SparseTensor,
    SumTensor,
    SymmetricOuterTensor,
    as_tensor,
    symmetrize,
)

from ..arrays import choose, is_moderate, random_array, random_shape, random_tensor
from ..case import Case, Check, covers
from ..invariants import Problems, finite
from ..reference import composed, khatri_rao, unfolded


def about_tensor(dense: np.ndarray, precision: str, seed: int) -> Check:
    """Return the check that all contractions agree with those of the entries."""
    close = 1e-4 if precision == "float32" else 1e-9

    def check(tensor: Any, given: dict[str, Any]) -> Problems:
        rng = np.random.default_rng(seed)
        if tuple(tensor.shape) != dense.shape:
            yield "shape", f"{tensor.shape} instead of {dense.shape}"
            return
        factors = [rng.standard_normal((size, 2)).astype(precision) for size in dense.shape]
        weights = np.ones(2, dtype=precision)
        mode = int(rng.integers(dense.ndim))
        others = khatri_rao([factor for place, factor in enumerate(factors) if place != mode])
        letters = "abcdefgh"[: dense.ndim]
        projected = np.einsum(
            f"{letters},{','.join(f'{letter}n' for letter in letters[2:])}->nab", dense, *factors[2:], optimize=True
        )
        norm = float(np.sum(dense**2))
        distance = float(np.sum((dense - composed(weights, factors)) ** 2))
        size = norm + float(np.sum(composed(weights, factors) ** 2))
        wanted: dict[str, tuple[Callable[[], Any], Any, float]] = {
            "to_dense": (tensor.to_dense, dense, 1.0),
            "mttkrp": (lambda: tensor.mttkrp(factors, mode), unfolded(dense, mode) @ others, np.abs(others).sum()),
            "project": (lambda: tensor.project(*(f.T for f in factors[2:])), projected, np.abs(others).sum()),
            "squared_norm": (tensor.squared_norm, norm, 1.0),
            "squared_distance": (lambda: tensor.squared_distance(weights, factors), distance, size),
            "permute": (lambda: tensor.permute(range(dense.ndim)[::-1]).to_dense(), dense.T, 1.0),
            "compress": (
                lambda: tensor.compress(*factors).to_dense(),
                _compressed(dense, factors),
                np.abs(others).sum(),
            ),
        }
        for name, (compute, true, scale) in wanted.items():
            found = np.asarray(compute(), dtype=np.float64)
            allowed = close * (np.max(np.abs(true)) + scale * np.max(np.abs(dense)) + 1e-300)
            if found.shape != np.shape(true) or not np.max(np.abs(found - true), initial=0) <= allowed:
                worst = np.max(np.abs(found - true), initial=0) if found.shape == np.shape(true) else found.shape
                yield "contraction", f"{name} differs from that of the entries by {worst} (allowed {allowed:.2g})"
        if np.asarray(tensor.reference).dtype != precision:
            yield "dtype", f"{precision} in, {np.asarray(tensor.reference).dtype} out"

    return check


def _compressed(dense: np.ndarray, factors: list[np.ndarray]) -> np.ndarray:
    for mode, factor in enumerate(factors):
        dense = np.moveaxis(np.tensordot(dense, factor, (mode, 0)), -1, mode)
    return dense


@covers("codiag.tensors.DenseTensor", "codiag.tensors.Tensor", weight=1.5)
def dense_tensor(rng: np.random.Generator) -> Case:
    """Arrays of every layout."""
    held = random_array(rng, extreme=False)
    check = about_tensor(held.dense, held.precision, int(rng.integers(2**31)))
    return Case("codiag.tensors.DenseTensor", DenseTensor, {"array": held.data}, True, (check,), named=("tensor",))


@covers("codiag.tensors.as_tensor", weight=1.5)
def anything_as_tensor(rng: np.random.Generator) -> Case:
    """What users hold, of codiag's kinds and of others."""
    held = random_tensor(rng) if rng.random() < 0.7 else random_array(rng)
    check = about_tensor(held.dense * held.scale, held.precision, int(rng.integers(2**31)))
    arguments = {"raw": held.data, "symmetric": choose(rng, None, None, False)}
    checks = (check,) if held.scale == 1 else ()
    return Case(
        "codiag.tensors.as_tensor", as_tensor, arguments, True if is_moderate(held) else None, checks, ("tensor",)
    )


@covers("codiag.tensors.DaskTensor", weight=1)
def dask_tensor(rng: np.random.Generator) -> Case:
    """Arrays in chunks of any sizes; where dask is not installed, arrays that are not in chunks, and are refused."""
    shape = random_shape(rng)
    precision = choose(rng, "float64", "float32")
    entries = rng.standard_normal(shape).astype(precision)
    chunks = tuple(int(rng.integers(1, size + 1)) for size in shape)
    installed = find_spec("dask") is not None

    def build(array: Any) -> Any:
        if installed and isinstance(array, np.ndarray):
            import dask
            import dask.array

            dask.config.set(scheduler="synchronous")  # in a process of its own
            array = dask.array.from_array(array, chunks=chunks if array.shape == shape else -1)
        tensor = DaskTensor(array)
        tensor.check()
        return tensor

    check = about_tensor(entries.astype(np.float64), precision, int(rng.integers(2**31)))
    return Case("codiag.tensors.DaskTensor", build, {"array": entries}, installed, (check,), named=("tensor",))


@covers("codiag.tensors.SparseTensor", weight=2)
def sparse_tensor(rng: np.random.Generator) -> Case:
    """Coordinates in any order, some twice, of every precision and type."""
    shape = random_shape(rng)
    n = int(rng.integers(1, 20))
    coords = np.array([rng.integers(0, size, n) for size in shape]).astype(choose(rng, np.int64, np.int32, np.uint8))
    precision = choose(rng, "float64", "float32", "float64")
    values = rng.standard_normal(n).astype(precision)
    dense = np.zeros(shape)
    np.add.at(dense, tuple(coords), values.astype(np.float64))
    arguments = {"coords": coords, "values": values, "shape": shape, "symmetric": False}
    check = about_tensor(dense, precision, int(rng.integers(2**31)))
    if rng.random() < 0.3:
        at_least = int(rng.integers(1, 4))

        def smaller(at_least: Any) -> Any:
            return SparseTensor(**arguments).without_empty_rows(at_least)

        checks = (without_rows(dense, at_least),)
        return Case("codiag.tensors.SparseTensor", smaller, {"at_least": at_least}, True, checks, named=("tensor",))
    return Case("codiag.tensors.SparseTensor", SparseTensor, arguments, True, (check,), named=("tensor",))


def without_rows(dense: np.ndarray, at_least: int) -> Check:
    """Return the check that a tensor without its empty rows holds all the entries, and rows enough."""

    def check(found: Any, given: dict[str, Any]) -> Problems:
        small, kept = found
        if not np.allclose(small.to_dense(), dense[np.ix_(*kept)], rtol=1e-6):
            yield "contraction", "the smaller tensor holds other entries"
        if abs(small.squared_norm() - np.sum(dense**2)) > 1e-5 * np.sum(dense**2):
            yield "contraction", "entries were lost with empty rows"
        sizes = [min(at_least, size) for size in dense.shape]
        if any(rows.size < size for rows, size in zip(kept, sizes, strict=True)):
            yield "shape", f"rows {[rows.size for rows in kept]} where {sizes} were to be kept"

    return check


@covers("codiag.tensors.SparseTensor", weight=0.7)
def wide_sparse_tensor(rng: np.random.Generator) -> Case:
    """Few entries in a huge shape: memory follows the entries."""
    import codiag

    shape = tuple(int(10.0 ** rng.uniform(1, 9.3)) for _ in range(3))
    n = int(rng.integers(2, 15))
    coords = np.array([rng.integers(0, size, n) for size in shape])
    values = rng.standard_normal(n)

    def build_and_fit(**given: Any) -> Any:
        fit = codiag.factorize(SparseTensor(**given), 2, seed=0)
        return [np.asarray(fit.weights), fit.relative_error]

    arguments = {"coords": coords, "values": values, "shape": shape}
    small = max(shape) <= 10**6
    return Case(
        "codiag.tensors.SparseTensor", build_and_fit, arguments, True if small else None, (finite,), ("tensor",)
    )


@covers("codiag.tensors.FactoredTensor", weight=1)
def factored_tensor(rng: np.random.Generator) -> Case:
    """Tensors given by components."""
    shape, k, precision = random_shape(rng), int(rng.integers(1, 5)), choose(rng, "float64", "float32")
    weights = rng.standard_normal(k).astype(precision)
    factors = [rng.standard_normal((size, k)).astype(precision) for size in shape]
    check = about_tensor(composed(weights, factors), precision, int(rng.integers(2**31)))
    arguments = {"weights": weights, "factors": factors}
    return Case("codiag.tensors.FactoredTensor", FactoredTensor, arguments, True, (check,), named=("tensor",))


@covers("codiag.tensors.SumTensor", "codiag.tensors.ScaledTensor", weight=1.5)
def combined_tensor(rng: np.random.Generator) -> Case:
    """Sums and multiples."""
    held = random_tensor(rng)
    first = as_tensor(held.data)
    check_seed = int(rng.integers(2**31))
    if rng.random() < 0.5:
        scale = choose(rng, 2.0, -0.5, 1e-6, 3, 1e100)
        check = about_tensor(held.dense * scale, held.precision, check_seed)
        arguments: dict[str, Any] = {"tensor": first, "scale": scale}
        valid = None if held.precision == "float32" and scale == 1e100 else True
        return Case("codiag.tensors.ScaledTensor", ScaledTensor, arguments, valid, (check,) if valid else ())
    other = rng.standard_normal(held.dense.shape).astype(held.precision)
    check = about_tensor(held.dense + other, held.precision, check_seed)
    arguments = {"terms": [first, DenseTensor(other)]}
    return Case("codiag.tensors.SumTensor", SumTensor, arguments, True, (check,), named=("tensor",))


@covers("codiag.tensors.CrossMomentTensor", "codiag.tensors.MomentTensor", weight=1.5)
def moments(rng: np.random.Generator) -> Case:
    """Moments of samples, dense and sparse, weighted and not."""
    n, precision = int(rng.integers(1, 20)), choose(rng, "float64", "float32")
    shape = [int(rng.integers(1, 6)) for _ in range(3)]
    weights = rng.uniform(0.1, 1, n) if rng.random() < 0.5 else None
    shares = np.full(n, 1 / n) if weights is None else weights
    seed = int(rng.integers(2**31))
    if rng.random() < 0.5:
        samples = rng.standard_normal((n, shape[0])).astype(precision)
        order = int(choose(rng, 3, 4))
        check = about_tensor(composed(shares, [samples.T] * order), precision, seed)
        given: dict[str, Any] = {"samples": samples, "order": order, "weights": weights}
        return Case("codiag.tensors.MomentTensor", MomentTensor, given, True, (check,), ("views", "tensor"))
    views = [rng.poisson(1, (n, size)).astype(precision) for size in shape]
    kept = [sparse.csr_array(view) if rng.random() < 0.3 else view for view in views]
    if all(map(sparse.issparse, kept)):
        precision = "float64"  # which sparse views are kept in
    check = about_tensor(composed(shares, [view.T for view in views]), precision, seed)

    def build(first: Any, second: Any, third: Any, weights: Any) -> Any:
        return CrossMomentTensor(first, second, third, weights=weights)

    arguments = dict(zip(("first", "second", "third", "weights"), (*kept, weights), strict=True))
    return Case("codiag.tensors.CrossMomentTensor", build, arguments, True, (check,), named=("views", "tensor"))


@covers("codiag.tensors.SymmetricOuterTensor", "codiag.tensors.symmetrize", weight=1)
def placed(rng: np.random.Generator) -> Case:
    """Symmetrised outer products, and symmetric parts."""
    size = int(rng.integers(1, 6))
    if rng.random() < 0.5:
        array = rng.standard_normal((size,) * int(choose(rng, 3, 3, 4)))

        def unchanged(found: Any, given: dict[str, Any]) -> Problems:
            if np.max(np.abs(found - np.swapaxes(found, 0, found.ndim - 1))) > 1e-12 * np.max(np.abs(array)):
                yield "contraction", "the symmetric part is not symmetric"

        return Case("codiag.tensors.symmetrize", symmetrize, {"array": array}, True, (unchanged,), ("tensor",))
    matrix, vector = rng.standard_normal((size, size)), rng.standard_normal(size)
    matrix = matrix + matrix.T
    dense = sum(np.moveaxis(np.multiply.outer(matrix, vector), 2, place) for place in range(3))
    check = about_tensor(dense, "float64", int(rng.integers(2**31)))
    arguments = {"matrix": matrix, "vector": vector}
    return Case(
        "codiag.tensors.SymmetricOuterTensor", SymmetricOuterTensor, arguments, True, (check,), named=("tensor",)
    )
