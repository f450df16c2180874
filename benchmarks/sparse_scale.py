"""Sparse tensors of millions of entries: what a fit costs, in plain products, seconds and memory; and against pyttb.

``python -m benchmarks.sparse_scale`` runs all parts, each of the large ones in a process of its own, so that its memory
is that of one fit. A plain product is one MTTKRP of one mode with as many columns as components: rows of the two other
factors are gathered and multiplied for all entries at once, and added up by one sparse matrix of SciPy. Of the
straightforward ways it is the fastest (columns one by one through ``numpy.bincount`` take twice as long, and
``numpy.add.at`` five times).
"""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import codiag
from benchmarks.measure import megabytes, run_parts, table, timed
from codiag.tensors import SparseTensor

RANK = 10


class Entries(NamedTuple):
    """A list of entries in random order, with the factors behind them where there are some."""

    coords: np.ndarray
    values: np.ndarray
    size: int
    factors: list[np.ndarray] | None = None


def components(size: int, count: float, noise: float = 0.01, seed: int = 0, *, rank: int = RANK) -> Entries:
    """Return components with random supports, together with about so many entries, and noise on these."""
    rng = np.random.default_rng(seed)
    width = round((count / rank) ** (1 / 3))
    n = rank * width**3
    coords, values = np.empty((3, n), dtype=np.int32), np.zeros(n)
    factors = [np.zeros((size, rank)) for _ in range(3)]
    for component in range(rank):
        part = slice(component * width**3, (component + 1) * width**3)
        rows = [rng.choice(size, width, replace=False) for _ in range(3)]
        columns = [rng.standard_normal(width) for _ in range(3)]
        for factor, row, column in zip(factors, rows, columns, strict=True):
            factor[row, component] = column
        coords[:, part] = [grid.ravel() for grid in np.meshgrid(*rows, indexing="ij")]
        values[part] = np.einsum("i,j,k->ijk", *columns).ravel()
    noisy = values + noise * np.sqrt(np.mean(values**2)) * rng.standard_normal(n)
    order = rng.permutation(n)
    for row in coords:
        row[:] = row[order]
    return Entries(coords, noisy[order], size, factors)


def corner(size: int, count: int, inner: int = 400, seed: int = 0) -> Entries:
    """Return entries at random places, half of them in a corner: nothing that ten components explain."""
    rng = np.random.default_rng(seed)
    halves = [rng.integers(0, limit, (3, count // 2), dtype=np.int32) for limit in (inner, size)]
    coords = np.concatenate(halves, axis=1)
    return Entries(coords, rng.uniform(0.5, 1.5, (coords.shape[1],)), size)


def mixture(size: int, count: int, seed: int = 0) -> Entries:
    """Return counts drawn from a mixture of ten products of distributions, of which components explain little."""
    rng = np.random.default_rng(seed)
    factors = [rng.gamma(0.1, size=(size, RANK)) for _ in range(3)]
    coords = np.empty((3, count), dtype=np.int32)
    for factor, row in zip(factors, coords, strict=True):
        factor /= np.sum(factor, axis=0)
        for part, column in zip(np.array_split(row, RANK), factor.T, strict=True):
            part[:] = rng.choice(size, part.size, p=column)
    return Entries(coords, np.ones(count), size, factors)


def plain_product(tensor: SparseTensor, factors: list[np.ndarray]) -> np.ndarray:
    """Return one MTTKRP, of the first mode."""
    (rows, *others), n = tensor.coords, tensor.values.size
    gather = sparse.csr_array((tensor.values, (rows, np.arange(n, dtype=rows.dtype))), shape=(tensor.shape[0], n))
    products: np.ndarray = gather @ (factors[1][others[0]] * factors[2][others[1]])
    return products


def both_clocks(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return what a call returns, its seconds, and its seconds of processor time."""
    processor = time.process_time()
    result, wall = timed(work)
    return result, wall, time.process_time() - processor


def cost(entries: Entries) -> str:
    """Build the tensor, fit it, and say what that took, on one thread as all parts are published."""
    shape, before = (entries.size,) * 3, megabytes()
    listed = (entries.coords.nbytes + entries.values.nbytes) / 2**20
    tensor, wall, processor = both_clocks(partial(SparseTensor, entries.coords, entries.values, shape))
    rows = [("building the tensor", f"{processor:.1f}", f"{wall:.1f}", "")]
    fit, wall, processor = both_clocks(partial(codiag.factorize, tensor, RANK, rng=0))
    peak = megabytes()
    random = [np.random.default_rng(0).standard_normal((size, RANK)) for size in shape]
    plain = sorted(both_clocks(partial(plain_product, tensor, random))[2:0:-1] for _ in range(5))[2]
    rows.append(("fit", f"{processor:.1f}", f"{wall:.1f}", f"{processor / plain[0]:.1f}"))
    rows.append(("one plain product", f"{plain[0]:.2f}", f"{plain[1]:.2f}", "1"))
    error = "" if entries.factors is None else f", factor error {codiag.factor_error(fit, entries.factors):.2g}"
    return (
        f"{tensor.values.size} entries in {entries.size}^3, rank {RANK}; relative error {fit.relative_error:.4g}"
        f"{error}; peak memory {peak:.0f} MB, of which {before:.0f} MB before the tensor was built: the list takes "
        f"{listed:.0f} MB. One thread.\n\n" + table(("", "s of CPU", "s", "plain products"), rows)
    )


def pyttb_until(tensor: SparseTensor, start: Sequence[np.ndarray], enough: float, max_sweeps: int = 20) -> list[float]:
    """Return the relative errors of the sweeps of pyttb's alternating least squares, until one is small enough."""
    import pyttb

    theirs = pyttb.sptensor(tensor.coords.T.astype(np.int64), tensor.values[:, None], tensor.shape)
    found, errors = pyttb.ktensor(list(start)), list[float]()
    while len(errors) < max_sweeps and not (errors and errors[-1] <= enough):
        found = pyttb.cp_als(theirs, RANK, init=found, maxiters=1, printitn=0)[0]
        distance = tensor.squared_distance(found.weights, found.factor_matrices)
        errors.append(math.sqrt(distance / tensor.squared_norm()))
    return errors


def against_pyttb() -> str:
    """Time both to the error that codiag ends at, on one thread each; pyttb stops there, or after 20 sweeps."""
    rows: list[tuple[object, ...]] = []
    for count in (1e5, 1e6):
        entries, rng = components(1000, count), np.random.default_rng(1)
        tensor = SparseTensor(entries.coords, entries.values, (entries.size,) * 3)
        fit, _, ours = both_clocks(partial(codiag.factorize, tensor, RANK, rng=0))
        rows.append((tensor.values.size, "codiag", f"{ours:.2f}", 1, "", f"{fit.relative_error:.5f}"))
        starts = {
            "random": [rng.random((entries.size, RANK)) for _ in range(3)],
            "truth and noise": [
                factor + 0.1 * np.std(factor) * rng.standard_normal(factor.shape) for factor in entries.factors or ()
            ],
        }
        for name, start in starts.items():
            errors, _, theirs = both_clocks(partial(pyttb_until, tensor, start, fit.relative_error * (1 + 1e-4)))
            cells = f"{theirs:.1f}", f"{theirs / ours:.0f}", len(errors), f"{errors[-1]:.5f}"
            rows.append((tensor.values.size, f"pyttb, from {name}", *cells))
    return (
        "## Sparse, against pyttb\n`pyttb.cp_als` of an `sptensor`; 1000^3, ten components with supports, 1 % noise. "
        "pyttb stops at codiag's error to one part in ten thousand, or after 20 sweeps. Its second start is the true "
        "factors with 10 % noise, which no user has.\n\n"
        + table(("entries", "", "s of CPU", "ratio", "sweeps", "relative error"), rows)
    )


LARGE: dict[str, tuple[str, Callable[[], Entries]]] = {
    "components": ("Four million entries of ten components with supports", lambda: components(5000, 4e6)),
    "corner": ("A million entries, half of them in a corner", lambda: corner(4000, 10**6)),
    "twenty": ("Twenty million entries of ten components with supports", lambda: components(5000, 2e7)),
    "mixture": ("Twenty million counts from a mixture", lambda: mixture(5000, 2 * 10**7)),
}
PARTS: dict[str, Callable[[], str]] = {
    name: lambda title=title, make=make: f"## {title}\n{cost(make())}" for name, (title, make) in LARGE.items()
} | {"pyttb": against_pyttb}


if __name__ == "__main__":
    if sys.argv[1:]:
        run_parts("sparse_scale", PARTS)
    else:
        for part in PARTS:
            subprocess.run([sys.executable, "-m", "benchmarks.sparse_scale", part], check=True)
