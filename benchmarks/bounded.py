"""Data that fits no model, and data with holes: what a fit costs, as a multiple of one run of a baseline.

``python -m benchmarks.bounded`` runs all parts, with their names some of them. One thread, CPU seconds. A baseline
ends after 100 iterations, or later where it has not come within 0.1 % of our relative error by then. It needs TensorLy,
pyttb and, for one part, the folder of real data in ``CODIAG_DATA_DIR``.
"""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import codiag
from benchmarks.measure import run_parts, table, timed
from codiag.synthetic import noisy_tensor
from codiag.tensors import FactoredTensor, SparseTensor

ITERATIONS, LATEST = 100, 800
"""Iterations of a baseline's run, and of the longest."""

WITHIN = 1e-3
RUNS = 10
"""Runs of a baseline from random starts, the lowest of which our error is held against."""

HEADINGS = (
    "data",
    "rank",
    "s",
    "s, baseline",
    "times",
    "error",
    "baseline's run",
    "its best of ten",
    "above it",
    "ended by",
)

Baseline = Callable[[Any, int, int, int], float]
"""From data, rank, iterations and seed to the relative error."""


def recording(shape: tuple[int, int, int] = (80, 150, 100), missing: float = 0.2, seed: int = 0) -> np.ndarray:
    """Draw neurons x time x trials: four components, noise of 80 % of their deviation, and lost neuron-trial pairs."""
    rng = np.random.default_rng(seed)
    time_course = np.arange(shape[1])[:, None]
    width = rng.uniform(0.04, 0.12, 4) * shape[1]
    courses = np.exp(-(((time_course - rng.uniform(0, shape[1], 4)) / width) ** 2) / 2)
    drift = np.abs(1 + np.cumsum(rng.standard_normal((shape[2], 4)), axis=0) / (2 * math.sqrt(shape[2])))
    clean = np.einsum("ir,jr,kr->ijk", rng.gamma(1.0, 1.0, (shape[0], 4)), courses, drift)
    noisy = clean + 0.8 * clean.std() * rng.standard_normal(shape)
    lost = rng.random((shape[0], shape[2])) < missing
    return np.where(lost[:, None, :], np.nan, noisy)


def one_hole(tensor: np.ndarray) -> np.ndarray:
    """Return a tensor with one entry missing."""
    holed = tensor.copy()
    holed[3, 4, 5] = np.nan
    return holed


def ones(size: int = 4000, count: int = 10**6, seed: int = 0) -> SparseTensor:
    """Draw ones, half of them in a corner."""
    rng = np.random.default_rng(seed)
    corner, rest = rng.integers(0, size // 10, (3, count // 2)), rng.integers(0, size, (3, count - count // 2))
    indices = np.unique(np.concatenate([corner, rest], axis=1), axis=1)
    return SparseTensor(indices, np.ones(indices.shape[1]), (size,) * 3)


def counts(total: int, seed: int = 0) -> SparseTensor:
    """Draw events of people, things and hours of the week: half of them from eight groups, half from popularity."""
    rng, shape, n_groups = np.random.default_rng(seed), (20_000, 5_000, 168), 8

    def popularity(size: int) -> np.ndarray:
        shares = np.arange(1, size + 1) ** -0.8
        return rng.permutation(shares / shares.sum())

    group = np.minimum(rng.integers(0, 2 * n_groups, total), n_groups)
    places = np.empty((3, total), dtype=np.int64)
    for mode, size in enumerate(shape):
        for number in range(n_groups + 1):
            shares = popularity(size) * (1.0 if number == n_groups else rng.gamma(0.3, 1.0, size))
            chosen = group == number
            places[mode, chosen] = rng.choice(size, np.count_nonzero(chosen), p=shares / shares.sum())
    flat, values = np.unique(np.ravel_multi_index(places, shape), return_counts=True)
    return SparseTensor(np.stack(np.unravel_index(flat, shape)), values.astype(np.float64), shape)


def eem() -> np.ndarray:
    """Read the emission-excitation matrices of staRdom, scatter set to missing as is usual."""
    stored = np.load(Path(os.environ["CODIAG_DATA_DIR"]) / "eem" / "stardom.npz")
    emission, excitation = stored["emission"][:, None], stored["excitation"][None, :]
    raman = 1e7 / (1e7 / excitation - 3400)
    gone = (np.abs(emission - excitation) < 20) | (emission < excitation - 5)
    gone |= (np.abs(emission - 2 * excitation) < 20) | (np.abs(emission - raman) < 12)
    samples = stored["X"].astype(np.float64)
    samples[:, gone] = np.nan
    return samples


def _interleukin() -> np.ndarray:
    from tensorly import datasets

    return np.asarray(datasets.load_IL2data().tensor, dtype=np.float64)


def _error(tensor: np.ndarray, factors: Any) -> float:
    from tensorly import cp_to_tensor

    return float(np.sqrt(np.nansum((tensor - cp_to_tensor(factors)) ** 2) / np.nansum(tensor**2)))


def masked_als(tensor: np.ndarray, rank: int, n_iterations: int, seed: int) -> float:
    """Run TensorLy's alternating least squares, with a mask where entries are missing."""
    from tensorly.decomposition import parafac

    known = ~np.isnan(tensor)
    options = {} if known.all() else {"mask": known}
    filled = np.where(known, tensor, 0.0)
    found = parafac(
        filled,
        rank,
        n_iter_max=n_iterations,
        tol=0,
        init="random",
        random_state=seed,
        normalize_factors=False,
        **options,
    )
    return _error(tensor, found)


def hals(tensor: np.ndarray, rank: int, n_iterations: int, seed: int) -> float:
    """Run TensorLy's hierarchical alternating least squares with non-negative factors, zeros for what is missing."""
    from tensorly.decomposition import non_negative_parafac_hals

    filled = np.nan_to_num(tensor)
    found = non_negative_parafac_hals(filled, rank, n_iter_max=n_iterations, tol=0, init="random", random_state=seed)
    return _error(filled, found)


def sparse_als(tensor: SparseTensor, rank: int, n_iterations: int, seed: int) -> float:
    """Run pyttb's alternating least squares on a sparse tensor."""
    import pyttb

    np.random.seed(seed)  # noqa: NPY002  # pyttb draws its start from the global generator
    theirs = pyttb.sptensor(np.asarray(tensor.coords).T, np.asarray(tensor.values)[:, None], tensor.shape)
    found, _, _ = pyttb.cp_als(theirs, rank, maxiters=n_iterations, stoptol=0, printitn=0)
    return math.sqrt(tensor.squared_distance(found.weights, found.factor_matrices) / tensor.squared_norm())


def _fitted(tensor: Any, rank: int, **stated: Any) -> codiag.Factorization:
    """Fit a tensor; what it would warn of is in the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", codiag.ConvergenceWarning)
        return codiag.factorize(tensor, rank, rng=0, **stated)


def _row(name: str, data: Any, rank: int, baseline: Baseline, runs: int = RUNS, **stated: Any) -> tuple[str, ...]:
    """Fit data, let the baseline run as long as it takes, and the best of its runs."""
    fit, seconds = timed(lambda: _fitted(data, rank, **stated), time.thread_time)
    n_iterations = ITERATIONS
    while True:
        theirs, their_seconds = timed(partial(baseline, data, rank, n_iterations, 0), time.thread_time)
        if theirs <= (1 + WITHIN) * fit.relative_error or n_iterations >= LATEST:
            break
        n_iterations *= 2
    best = min([theirs, *(baseline(data, rank, ITERATIONS, seed) for seed in range(1, runs))])
    ended = next((stage.name for stage in fit.history if "out of" in stage.name), "its own rule")
    numbers = (f"{seconds:.2f}", f"{their_seconds:.2f}", f"{seconds / their_seconds:.2f}")
    errors = (f"{fit.relative_error:.5f}", f"{theirs:.5f} ({n_iterations})", f"{best:.5f}")
    return name, str(rank), *numbers, *errors, f"{fit.relative_error / best - 1:+.1e}", ended


def _shown(title: str, rows: Iterator[tuple[str, ...]]) -> str:
    listed = []
    for row in rows:
        print(*row, sep=" | ", flush=True)
        listed.append(row)
    return f"## {title}\n" + table(HEADINGS, listed)


def recordings() -> str:
    whole, lost = recording(missing=0.0), recording()
    rows: list[tuple[str, np.ndarray, Baseline, dict[str, Any]]] = [
        ("neurons 80 x 150 x 100, a fifth of the pairs missing", lost, masked_als, {}),
        ("the same complete", whole, masked_als, {}),
        ("with one entry missing", one_hole(whole), masked_als, {}),
        ("complete, non-negative", whole, hals, {"constraints": "nonnegative"}),
        ("a fifth missing, 40 x 80 x 60", recording((40, 80, 60)), masked_als, {}),
    ]
    return _shown(
        "Recordings: neurons, time and trials",
        (_row(name, data, 4, baseline, 3, **stated) for name, data, baseline, stated in rows),
    )


def receptors() -> str:
    whole = np.nan_to_num(_interleukin())
    return _shown(
        "IL-2 signals, zeros for what is missing, non-negative",
        (_row("IL-2", whole, rank, hals, constraints="nonnegative") for rank in range(2, 9)),
    )


def sparse() -> str:
    def rows() -> Iterator[tuple[str, ...]]:
        yield _row("50,000 counts, 20,000 x 5,000 x 168", counts(50_000), 8, sparse_als, 2)
        yield _row("a million ones, 4000^3", ones(), 10, sparse_als, 1)
        yield _row("2.3 million counts, 20,000 x 5,000 x 168", counts(2_300_000), 8, sparse_als, 1)

    return _shown("Sparse tensors that components hardly explain", rows())


def misfits() -> str:
    def rows() -> Iterator[tuple[str, ...]]:
        noise = np.random.default_rng(0).standard_normal((100, 100, 100))
        yield _row("noise, 100^3", noise, 20, masked_als, 1)
        planted = noisy_tensor((60, 10, 12), 3, noise=0.05, rng=0).tensor
        yield _row("60 x 10 x 12, three components", planted, 40, masked_als, 3)
        holed = noisy_tensor((20, 15, 12), 5, noise=0.05, rng=0).tensor.copy()
        holed[np.random.default_rng(0).random(holed.shape) < 0.3] = np.nan
        yield _row("20 x 15 x 12, five components, 30 % missing", holed, 3, masked_als)

    return _shown("Ranks that do not fit", rows())


def growth() -> str:
    """Compare tensors with a fifth of the entries missing with complete ones."""
    rows = []
    for size in (50, 100, 200):
        whole = noisy_tensor((size,) * 3, 5, noise=0.1, rng=0).tensor
        holed = np.where(np.random.default_rng(0).random(whole.shape) < 0.2, np.nan, whole)
        _fitted(whole, 5)
        times = [timed(partial(_fitted, one, 5), time.thread_time)[1] for one in (whole, holed)]
        rows.append((f"{size}^3", *(f"{seconds:.2f}" for seconds in times), f"{times[1] / times[0]:.1f}"))
    headings = ("tensor, rank 5", "s, complete", "s, a fifth missing", "times")
    return "## A fifth of the entries missing\n" + table(headings, rows)


def ranks() -> str:
    """Choose ranks of matrices of fluorescence, and of a recording."""
    rows = []
    tried: list[tuple[str, np.ndarray, range, dict[str, Any]]] = [
        ("EEM 15 x 99 x 46, 29 % missing, non-negative", eem(), range(1, 7), {"constraints": "nonnegative"}),
        ("neurons 80 x 150 x 100, a fifth of the pairs missing", recording(), range(1, 8), {}),
    ]
    for name, data, wanted, stated in tried:
        choose = partial(codiag.choose_rank, data, wanted, rng=0, **stated)
        choice, seconds = timed(choose, time.thread_time)
        rows.append((name, f"{wanted[0]}-{wanted[-1]}", f"{seconds:.1f}", str(choice.rank)))
    return "## Choosing the rank\n" + table(("data", "ranks", "s", "chosen"), rows)


KINDS = ("low rank", "low rank, positive", "counts", "binary", "Gaussian", "half zeros")


def small_tensor(kind: str, seed: int) -> tuple[np.ndarray, int]:
    """Draw a small tensor of order three or four, and a rank from one to five."""
    rng = np.random.default_rng([seed, 7])
    order = int(rng.choice([3, 3, 4]))
    shape = tuple(rng.integers(2, 9 if order == 3 else 6, order).tolist())
    rank = int(rng.integers(1, min(math.prod(sorted(shape)[:-1]), 5) + 1))
    if kind.startswith("low rank"):
        draw, noise = (rng.random, 0.05) if "positive" in kind else (rng.standard_normal, 0.1)
        n_true = int(rng.integers(1, 6))
        entries = FactoredTensor(np.ones(n_true), [draw((size, n_true)) for size in shape]).to_dense()
        return entries + noise * entries.std() * rng.standard_normal(shape), rank
    drawn: dict[str, Callable[[], np.ndarray]] = {
        "counts": lambda: rng.poisson(rng.gamma(1, 1, shape)).astype(float),
        "binary": lambda: (rng.random(shape) < 0.4).astype(float),
        "Gaussian": lambda: rng.standard_normal(shape),
        "half zeros": lambda: rng.standard_normal(shape) * rng.integers(0, 2, shape),
    }
    return drawn[kind](), rank


def plain_als(tensor: np.ndarray, rank: int, seed: int, *, nonnegative: bool, n_sweeps: int = 300) -> float:
    """Return the lowest relative error of three runs of plain alternating least squares."""
    errors = []
    for run in range(3):
        rng = np.random.default_rng([seed, run])
        draw = rng.random if nonnegative else rng.standard_normal
        factors = [draw((size, rank)) for size in tensor.shape]
        for _ in range(n_sweeps):
            for mode in range(tensor.ndim):
                others = [factor for other, factor in enumerate(factors) if other != mode]
                gram = np.prod([factor.T @ factor for factor in others], axis=0)
                columns = others[0]
                for factor in others[1:]:
                    columns = (columns[:, None, :] * factor[None]).reshape(-1, rank)
                product = np.moveaxis(tensor, mode, 0).reshape(tensor.shape[mode], -1) @ columns
                if not nonnegative:
                    factors[mode] = np.linalg.lstsq(gram, product.T, rcond=1e-12)[0].T
                    continue
                for _ in range(3):
                    for i in np.flatnonzero(np.diag(gram) > 1e-14):
                        step = (product[:, i] - factors[mode] @ gram[:, i]) / gram[i, i]
                        factors[mode][:, i] = np.maximum(0, factors[mode][:, i] + step)
        model = FactoredTensor(np.ones(rank), factors).to_dense()
        errors.append(float(np.linalg.norm(tensor - model) / np.linalg.norm(tensor)))
    return min(errors)


def small(n_seeds: int = 420, first: int = 10_000) -> str:
    """Hold fits of small tensors against the best of three runs of plain alternating least squares."""
    import joblib

    cells = [(kind, sign, seed) for kind in KINDS for sign in (False, True) for seed in range(first, first + n_seeds)]
    found = joblib.Parallel(n_jobs=-1)(joblib.delayed(_small_fit)(*cell) for cell in cells)
    rows = []
    for kind in (*KINDS, "all"):
        for sign in (False, True):
            here = [record for record in found if kind in (record[0], "all") and record[1] == sign]
            above = [record for record in here if record[2] > 1.001 * record[3] + 1e-7]
            far = [record for record in here if record[2] > 1.05 * record[3] + 1e-7]
            sure = [record for record in above if record[4]]
            seconds = [record[5] for record in here]
            rows.append(
                (kind, "non-negative" if sign else "free", len(here), len(above), len(far), len(sure),
                 f"{np.median(seconds):.3f}", f"{max(seconds):.2f}")
            )  # fmt: skip
    headings = ("kind", "factors", "fits", "above by .1 %", "by 5 %", "converged, no doubt", "s, median", "most")
    return f"## Small tensors, seeds {first} to {first + n_seeds - 1}\n" + table(headings, rows)


def _small_fit(kind: str, sign: bool, seed: int) -> tuple[str, bool, float, float, bool, float]:
    from threadpoolctl import threadpool_limits

    tensor, rank = small_tensor(kind, seed)
    if not tensor.any():
        tensor.flat[0] = 1.0
    with threadpool_limits(1):
        stated = {"constraints": "nonnegative" if sign else None}
        fit, seconds = timed(lambda: _fitted(tensor, rank, **stated), time.thread_time)
        best = plain_als(tensor, rank, seed, nonnegative=sign)
    is_sure = fit.converged and not any(stage.in_doubt for stage in fit.history)
    return kind, sign, fit.relative_error, best, is_sure, seconds


PARTS = {
    "recordings": recordings,
    "receptors": receptors,
    "misfits": misfits,
    "growth": growth,
    "sparse": sparse,
    "ranks": ranks,
    "small": small,
}

if __name__ == "__main__":
    run_parts("bounded", PARTS)
