"""Whether one run is at the best fit known, and whether it says so: ``python -m benchmarks.optima``.

Real tensors of ranks 2-8, free and non-negative, with their missing entries; and with ``simulated`` hard tensors of
known components. The best fit known is the lowest of all runs, of searches that are ten times as long, and of TensorLy
from random starts. ``--seeds`` runs of codiag a problem, ``--peers`` of TensorLy, ``--jobs`` at a time. ``--out`` keeps
the runs, so that other code is compared with the best of all.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import codiag
from codiag.methods import Auto

RANKS = range(2, 9)
SAME = 1e-3
"""Relative excess of the squared error over the best one that is known, up to which a run is at the best."""


def _centred_log(counts: np.ndarray) -> np.ndarray:
    """Return the centred log-ratio over taxa, centred over replicates."""
    logs = np.log1p(counts)
    logs = logs - logs.mean(axis=1, keepdims=True)
    logs = logs - logs.mean(axis=0, keepdims=True)
    return logs / np.maximum(logs.std(axis=(0, 2), keepdims=True), 1e-12)


def _without_scatter() -> np.ndarray:
    stored = np.load(Path(os.environ["CODIAG_DATA_DIR"]) / "eem" / "stardom.npz")
    tensor = stored["X"].astype(float)
    em, ex = stored["emission"][:, None].astype(float), stored["excitation"][None, :].astype(float)
    raman = 1e7 / (1e7 / ex - 3400)
    hidden = (np.abs(em - ex) < 20) | (em < ex - 5) | (np.abs(em - 2 * ex) < 20) | (np.abs(em - raman) < 12)
    return np.where(hidden[None], np.nan, tensor)[:, ::2, ::2]


def _microbiome(file: str, key: str) -> np.ndarray:
    return np.asarray(np.load(Path(os.environ["CODIAG_DATA_DIR"]) / "microbiome" / file)[key], dtype=float)


def _shipped(name: str, *, zeros: bool = False) -> np.ndarray:
    from tensorly import datasets

    tensor = np.asarray(getattr(datasets, f"load_{name}")().tensor, dtype=float)
    return np.nan_to_num(tensor) if zeros else tensor


DATA: dict[str, Callable[[], np.ndarray]] = {
    "IL-2, missing as 0": lambda: _shipped("IL2data", zeros=True),
    "IL-2": lambda: _shipped("IL2data"),
    "COVID": lambda: _shipped("covid19_serology"),
    "kinetic": lambda: _shipped("kinetic", zeros=True)[:, :, :, ::3],
    "amino, simulated": lambda: codiag.synthetic.fluorescence((5, 67, 61), 3, noise=0.01, rng=0).tensor,
    "EEM": _without_scatter,
    "Fujita": lambda: _centred_log(_microbiome("fujita2023.npz", "counts")),
    "tongue": lambda: _microbiome("tongue_metabolome.npz", "tongue"),
    "metabolome": lambda: _microbiome("tongue_metabolome.npz", "metabolome"),
    "Indian Pines": lambda: _shipped("indian_pines")[::5, ::5, ::5],
}
POSITIVE = ("IL-2, missing as 0", "kinetic", "amino, simulated", "EEM", "Indian Pines")
"""Sets that are fitted with non-negative factors, too."""


def _simulated(seed: int) -> tuple[np.ndarray, int]:
    """Draw a hard tensor: weak or collinear components, more of them than rows, strong noise, or missing entries."""
    rng = np.random.default_rng(10_000 + seed)
    kind = seed % 5
    shape = [(8, 9, 10), (12, 15, 18), (6, 6, 6, 6), (15, 15, 15), (10, 20, 12)][kind]
    rank = int(rng.integers(3, [9, 8, 9, 20, 7][kind]))
    factors = [rng.standard_normal((size, rank)) for size in shape]
    if kind in (1, 4):
        factors = [factor + rng.uniform(0.5, 2) * rng.standard_normal((len(factor), 1)) for factor in factors]
    factors[0] *= 10 ** rng.uniform(-1, 0, rank)
    tensor = np.einsum("ir,jr,kr->ijk" if len(shape) == 3 else "ir,jr,kr,lr->ijkl", *factors)
    noise = rng.standard_normal(shape)
    tensor += 10 ** rng.uniform(-2, 0) * np.linalg.norm(tensor) / np.linalg.norm(noise) * noise
    if kind == 4:
        tensor[rng.random(shape) < 0.4] = np.nan
    return tensor, rank


@cache
def _tensor(name: str) -> tuple[np.ndarray, int]:
    if name.startswith("simulated"):
        return _simulated(int(name.split()[1]))
    return DATA[name](), 0


def _run(cell: tuple[str, int, bool, str, int]) -> dict[str, Any]:
    name, rank, positive, method, seed = cell
    tensor, true_rank = _tensor(name)
    rank = rank or true_rank
    constraints = "nonnegative" if positive else None
    begin = time.process_time()
    found: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if method in ("codiag", "long"):
            strategy = Auto() if method == "codiag" else Auto(max_work=10.0)
            fit = codiag.factorize(tensor, rank, constraints=constraints, method=strategy, rng=seed)
            found["cpu"] = time.process_time() - begin
            found["p_missed"] = max((entry.p_missed for entry in fit.history), default=0.0)
            found["converged"] = bool(fit.converged)
            weights, factors = fit
        else:
            weights, factors = _peer(tensor, rank, seed, positive=positive)
            found["cpu"] = time.process_time() - begin
    columns = [np.nan_to_num(np.asarray(factor)) for factor in factors]
    order = tensor.ndim
    script = ",".join("abcd"[mode] + "r" for mode in range(order)) + ",r->" + "abcd"[:order]
    model = np.einsum(script, *columns, np.asarray(weights), optimize=True)
    known = np.isfinite(tensor)
    left = np.where(known, tensor - model, 0.0)
    found["error"] = float(np.sum(left**2) / np.sum(np.where(known, tensor, 0.0) ** 2))
    return {"data": name, "rank": rank, "positive": positive, "method": method, "seed": seed, **found}


def _peer(tensor: np.ndarray, rank: int, seed: int, *, positive: bool) -> tuple[Any, Any]:
    """Return what a run of TensorLy of 1000 iterations finds, from a random start."""
    from tensorly.decomposition import non_negative_parafac, non_negative_parafac_hals, parafac

    known = np.isfinite(tensor)
    mask = None if known.all() else known
    filled = np.where(known, tensor, 0.0)
    stated: dict[str, Any] = {"n_iter_max": 1000, "init": "random", "random_state": seed, "tol": 1e-9}
    if not positive:
        return parafac(filled, rank, mask=mask, **stated)
    if mask is None:
        return non_negative_parafac_hals(filled, rank, **stated)
    return non_negative_parafac(filled, rank, mask=mask, **stated)


def _cells(options: argparse.Namespace) -> list[tuple[str, int, bool, str, int]]:
    problems = [
        (name, rank, positive)
        for name in options.data
        for positive in ((False, True) if name in POSITIVE else (False,))
        for rank in options.ranks
    ]
    problems += [(f"simulated {seed}", 0, False) for seed in range(options.simulated)]
    np.random.default_rng(0).shuffle(problems)  # what there was no time for is of all kinds
    runs, first = {"codiag": options.seeds, "long": options.long, "TensorLy": options.peers}, options.first
    return [(*one, method, first + seed) for one in problems for method, n in runs.items() for seed in range(n)]


def summary(records: Sequence[dict[str, Any]]) -> str:
    """Return the shares at the best fit, how well doubts are calibrated, and CPU times, as text."""
    groups = defaultdict(list)
    for one in records:
        groups[one["data"], one["rank"], one["positive"]].append(one)
    by_data, ratios, told = defaultdict(list), defaultdict(list), []
    for (name, rank, positive), group in groups.items():
        best = min(one["error"] for one in group)
        ours = [one for one in group if one["method"] == "codiag"]
        peers = [one["cpu"] for one in group if one["method"] == "TensorLy"]
        label = "simulated" if name.startswith("simulated") else f"{name}{', non-negative' if positive else ''}"
        for one in ours:
            at_best = one["error"] <= best * (1 + SAME) + 1e-14
            by_data[label].append(at_best)
            told.append((one["p_missed"], at_best, label != "simulated"))
        if peers and ours:
            ratios[label].append(np.median([one["cpu"] for one in ours]) / np.median(peers))
        missed = [one for one in ours if one["error"] > best * (1 + SAME) + 1e-14]
        if missed and label != "simulated":
            excess = max(one["error"] / best - 1 for one in missed)
            doubts = ", ".join(f"{one['p_missed']:.2g}" for one in missed)
            print(f"  {label} {rank}: {len(missed)} of {len(ours)} above, up to {excess:.1e}; p_missed {doubts}")
    lines = []
    for label, found in by_data.items():
        ratio = ratios[label]
        cpu = f"; CPU over a run of TensorLy {np.median(ratio):.2f}, at most {max(ratio):.2f}" if ratio else ""
        lines.append(f"{label}: {np.mean(found):.3f} of {len(found)}{cpu}")
    real = [at_best for _, at_best, is_real in told if is_real]
    lines.append(f"real: {np.mean(real) if real else np.nan:.3f} of {len(real)}")
    for low, high in ((0, 0.05), (0.05, 0.1), (0.1, 0.3), (0.3, 1.01)):
        inside = [at_best for p, at_best, _ in told if (low < p or low == 0) and p <= high]
        share = np.mean(inside) if inside else np.nan
        lines.append(f"p_missed {low}-{min(high, 1)}: {len(inside)} runs, {share:.3f} at the best")
    doubtful = [p > 0.1 for p, _, is_real in told if is_real]
    lines.append(f"real fits with p_missed above .1: {np.mean(doubtful) if doubtful else np.nan:.3f}")
    return "\n".join(lines)


def main() -> None:
    """Run what is asked for, and print the summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="*", default=list(DATA), choices=list(DATA))
    parser.add_argument("--ranks", nargs="+", type=int, default=list(RANKS))
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--first", type=int, default=0, help="seed of the first run")
    parser.add_argument("--long", type=int, default=2, help="searches ten times as long")
    parser.add_argument("--peers", type=int, default=5)
    parser.add_argument("--simulated", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=np.inf, help="stop then")
    parser.add_argument("--best", type=Path, nargs="*", default=[], help="earlier runs, whose best counts, too")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    begin, records = time.perf_counter(), []
    with ProcessPoolExecutor(options.jobs) as pool:
        futures = [pool.submit(_run, cell) for cell in _cells(options)]
        for future in futures:
            if future.cancelled():
                continue
            left = options.seconds - (time.perf_counter() - begin)
            try:
                records.append(future.result(timeout=None if np.isinf(left) else max(left, 0.01)))
            except TimeoutError:
                pool.shutdown(wait=False, cancel_futures=True)
    if options.out:
        options.out.write_text("\n".join(json.dumps(one) for one in records) + "\n")
    earlier = [json.loads(line) for path in options.best for line in path.read_text().splitlines()]
    print(summary([*records, *(one | {"method": "earlier"} for one in earlier)]))


if __name__ == "__main__":
    main()
