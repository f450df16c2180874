"""Few observed entries of a large tensor: seconds and memory of a fit to the list.

``python -m benchmarks.observed_scale --size 1000 --entries 10000000 --rank 10``, with ``OMP_NUM_THREADS=1`` for one
core. The error of least squares from the true factors is printed beside that of the fit.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

import codiag
from codiag.tensors import SparseTensor


def observed_list(
    size: int, count: int, rank: int, noise: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Return coordinates, values with noise relative to their root mean square, and the factors behind them."""
    factors = [rng.standard_normal((size, rank)) for _ in range(3)]
    keys = np.unique(rng.integers(0, size**3, count + count // 50))
    keys = rng.permutation(keys)[:count]
    coords = np.stack(np.unravel_index(keys, (size,) * 3))
    values = np.empty(coords.shape[1])
    for start in range(0, values.size, 2**18):
        part = slice(start, start + 2**18)
        rows = [factor[places[part]] for factor, places in zip(factors, coords, strict=True)]
        values[part] = np.sum(rows[0] * rows[1] * rows[2], axis=1)
    values += noise * np.sqrt(np.mean(values**2)) * rng.standard_normal(values.size)
    return coords, values, factors


def peak() -> float:
    """Return the largest memory the process has had so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def main() -> None:
    """Fit one list and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--entries", type=int, default=10**7)
    parser.add_argument("--rank", type=int, default=10)
    parser.add_argument("--noise", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    data = observed_list(given.size, given.entries, given.rank, given.noise, np.random.default_rng(given.seed))
    coords, values, factors = data
    before = peak()
    wall, processor = time.perf_counter(), time.process_time()
    tensor = SparseTensor(coords, values, (given.size,) * 3, absent="missing")
    fit = codiag.factorize(tensor, given.rank, seed=0)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    for stage in fit.stages:
        print(stage)
    list_size = (coords.nbytes + values.nbytes) / 1e9
    print(f"{wall:.1f} s, {processor:.1f} s of processor time")
    print(f"peak {peak():.2f} GB, {before:.2f} GB before the fit; the list takes {list_size:.2f} GB")
    print(f"relative error {fit.relative_error:.6g}, factor error {codiag.factor_error(fit, factors):.3g}")
    print(f"converged: {fit.converged}")


if __name__ == "__main__":
    main()
