"""Error bars, diagnosis and rank under noise that is not white: ``python -m benchmarks.noises``.

Tensors of smooth non-negative factors with noise of seven kinds, 5 % of the norm (3 % for few samples). Coverage is the
share of entries of all factors, and of weights, in their intervals of 90 %. ``--draws`` says how many tensors of each
kind; ``--jobs`` how many at a time.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment

import codiag
from benchmarks.noise_kinds import NOISES, curves, spectra
from codiag.losses import Gaussian

FIRST = 70_000
"""First seed: no test uses as large ones."""


def aligned(fit: codiag.Factorization, factors: Sequence[np.ndarray]) -> list[int]:
    """Return the true component of each one of a fit."""
    found = [np.nan_to_num(factor) for factor in fit.factors]
    likeness = np.prod([np.abs(one.T @ two) for one, two in zip(found, factors, strict=True)], axis=0)
    return linear_sum_assignment(-likeness)[1].tolist()


def covered(
    kind: str, shape: tuple[int, int, int], rank: int, setting: str, seed: int
) -> tuple[list[float], list[float], float]:
    """Return the coverage by mode and of weights, the same by a bootstrap over samples, and seconds of the latter."""
    factors, weights, tensor = spectra(kind, shape, rank, seed=seed)
    observed = np.random.default_rng(seed).random(shape) > 0.2 if setting == "20 % missing" else None
    constraints = "nonnegative" if setting == "non-negative" else None
    fit = codiag.factorize(tensor, rank, weights=observed, constraints=constraints, rng=0)
    order = aligned(fit, factors)
    start = time.process_time()
    resampled = fit.bootstrap(rng=0).conf_int(0.9) if setting == "complete" else None
    seconds, shares = time.process_time() - start, []
    for found in filter(None, (fit.conf_int(0.9), resampled)):
        held = []
        for factor, truth, (low, high) in zip(fit.factors, factors, found.factors, strict=True):
            true = truth[:, order] * np.sign(np.nansum(factor * truth[:, order], axis=0))
            held.append(float(np.mean((low <= true) & (true <= high))))
        held.append(float(np.mean((found.weights[0] <= weights[order]) & (weights[order] <= found.weights[1]))))
        shares.append(held)
    return shares[0], shares[-1], seconds


def advised(kind: str, seed: int) -> tuple[bool, bool, bool]:
    """Return whether the diagnosis is right about the true rank three, about two, and about four."""
    _, _, tensor = spectra(kind, (20, 30, 25), 3, seed=seed)
    low, right, high = (codiag.factorize(tensor, rank, rng=0).diagnose() for rank in (2, 3, 4))
    is_right = "not" not in right.verdicts and "try rank 4" not in str(right)
    return is_right, "try rank 3" in str(low), "try rank 3" in str(high)


def few_samples(kind: str, constraints: str | None, seed: int) -> tuple[bool, float]:
    """Return whether the rank of four to eight samples is found, some of which may be pure, and CPU seconds."""
    rng = np.random.default_rng(seed)
    n_samples = int(rng.integers(4, 9))
    rank = min(int(rng.integers(2, 6)), n_samples)
    amounts = rng.gamma(2.0, 1.0, (n_samples, rank))
    if rng.random() < 0.5:
        n_pure = min(rank, n_samples - 1)
        amounts[:n_pure] = np.diag(rng.uniform(1, 3, rank))[:n_pure]
    clean = np.einsum("ir,jr,kr->ijk", amounts, *(curves(rng, size, rank) for size in (50, 40)))
    noise = NOISES[kind](rng, clean, 0.03)
    tensor = clean + noise * 0.03 * np.linalg.norm(clean) / np.linalg.norm(noise)
    start = time.process_time()
    found = codiag.choose_rank(tensor, range(1, 8), constraints=constraints, rng=0).rank
    return found == rank, time.process_time() - start


def weighted(kind: str, seed: int) -> tuple[float, ...]:
    """Return the error of factors with estimated variances over that of plain least squares, and the coverage."""
    factors, weights, tensor = spectra(kind, (20, 30, 25), 3, seed=seed)
    plain, fit = (codiag.factorize(tensor, 3, loss=loss, rng=0) for loss in (None, Gaussian("modes")))
    order, held = aligned(fit, factors), []
    for factor, truth, (low, high) in zip(fit.factors, factors, fit.conf_int(0.9).factors, strict=True):
        true = truth[:, order] * np.sign(np.sum(factor * truth[:, order], axis=0))
        held.append(float(np.mean((low <= true) & (true <= high))))
    ratio = codiag.factor_error(fit, (weights, factors)) / codiag.factor_error(plain, (weights, factors))
    return float(ratio), *held


def main() -> None:
    import joblib

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    seeds = range(FIRST, FIRST + options.draws)
    parallel = joblib.Parallel(n_jobs=options.jobs)
    print("| shape, rank | setting | noise | modes 0, 1, 2 | weights | bootstrap, modes 1, 2 | s |")
    print("|---|---|---|---|---|---|---|")
    for shape, rank in (((20, 30, 25), 3), ((8, 60, 40), 5)):
        for setting in ("complete", "20 % missing", "non-negative"):
            for kind in NOISES:
                found = parallel(joblib.delayed(covered)(kind, shape, rank, setting, seed) for seed in seeds)
                held, again = (np.mean([draw[part] for draw in found], axis=0) for part in (0, 1))
                drawn = f"{again[1]:.2f} {again[2]:.2f} | {np.mean([draw[2] for draw in found]):.2f}"
                name = f"{' x '.join(map(str, shape))}, {rank}"
                own = " ".join(f"{share:.2f}" for share in held[:3])
                drawn = drawn if setting == "complete" else " | "
                print(f"| {name} | {setting} | {kind} | {own} | {held[3]:.2f} | {drawn} |", flush=True)
    print("\n| noise | right rank | one too few | one too many |\n|---|---|---|---|")
    for kind in NOISES:
        shares = np.mean(parallel(joblib.delayed(advised)(kind, seed) for seed in seeds), axis=0)
        print(f"| {kind} | {shares[0]:.2f} | {shares[1]:.2f} | {shares[2]:.2f} |", flush=True)
    print("\n| noise | error with variances over plain, median | coverage |\n|---|---|---|")
    for kind in NOISES:
        trials = np.array(parallel(joblib.delayed(weighted)(kind, seed) for seed in seeds))
        cover = " ".join(f"{share:.2f}" for share in trials[:, 1:].mean(axis=0))
        print(f"| {kind} | {np.median(trials[:, 0]):.2f} | {cover} |", flush=True)
    print("\n| noise | factors | rank found | s |\n|---|---|---|---|")
    for kind in NOISES:
        for constraints in (None, "nonnegative"):
            found = parallel(joblib.delayed(few_samples)(kind, constraints, seed) for seed in seeds)
            right, seconds = np.mean(found, axis=0)
            print(f"| {kind} | {constraints or 'free'} | {right:.2f} | {seconds:.2f} |", flush=True)


if __name__ == "__main__":
    main()
