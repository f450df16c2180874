"""Coupled CP: components in one set only, error bars, the gain of a second set, and TensorLy's from one start.

``python -m benchmarks.coupled [DRAWS]`` prints the tables of RESULTS.md.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np

import codiag

NAMES = [("a", "b", "c"), ("a", "d")]
SIZES = (20, 15, 10, 12)


def drawn(
    rng: np.random.Generator,
    presence: Any = ((1, 1, 1), (1, 1, 1)),
    noise: Any = (0.1, 0.1),
    second: str = "ad",
    freedom: float = np.inf,
) -> tuple[dict[str, np.ndarray], list[np.ndarray], list[np.ndarray]]:
    """Return normal factors, and two sets with noise and without it; a row of `presence` are weights in a set."""
    rank = len(presence[0])
    factors = {name: rng.standard_normal((size, rank)) for name, size in zip("abcd", SIZES, strict=True)}
    factors |= {"e": rng.standard_normal((8, rank))}
    clean = [
        np.einsum("ir,jr,kr,r->ijk", *(factors[name] for name in "abc"), np.array(presence[0], float)),
        np.einsum(
            "ir,jr,r->ij" if second == "ad" else "ir,jr,kr,r->ijk",
            *(factors[name] for name in second),
            np.array(presence[1], float),
        ),
    ]
    noisy = [
        one + share * np.sqrt(np.mean(one**2)) * unit_noise(rng, one.shape, freedom)
        for one, share in zip(clean, noise, strict=True)
    ]
    return factors, noisy, clean


def unit_noise(rng: np.random.Generator, shape: tuple[int, ...], freedom: float) -> np.ndarray:
    """Return noise of variance one: normal, or with Student's distribution and so many degrees of freedom."""
    if freedom == np.inf:
        return rng.standard_normal(shape)
    return np.asarray(rng.standard_t(freedom, shape) * np.sqrt((freedom - 2) / freedom))


def shared_error(found: np.ndarray, truth: np.ndarray) -> float:
    """Return the relative error of a factor, up to order, signs and sizes."""
    return codiag.factor_error([found], [truth])


def presence_found(seed: int, weights: Any, second: str, freedom: float = np.inf) -> bool:
    """Return whether the table of presence is right in all cells."""
    rng = np.random.default_rng([43, 1, seed])
    factors, noisy, _ = drawn(rng, weights, second=second, freedom=freedom)
    names = [NAMES[0], tuple(second)]
    fit = codiag.factorize_coupled(noisy, len(weights[0]), modes=names, rng=seed)
    found = fit.without_absent().factors["a"]  # a component of a matrix alone is known up to what the others share
    match = codiag.match_components([found], [factors["a"]]).permutation
    table = fit.presence()["present"].reshape(fit.rank, 2)[match]
    return bool(np.array_equal(table, np.array(weights).T > 0))


def calibration(seed: int, case: str) -> list[tuple[float, float]]:
    """Return squared errors and squared standard errors: of the factors a, b, d, and of the weights."""
    rng = np.random.default_rng([43, 2, seed])
    factors, noisy, _ = drawn(rng, noise=(0.1, 0.2))
    if case == "missing":
        noisy = [np.where(rng.random(one.shape) < 0.8, one, np.nan) for one in noisy]
    fit = codiag.factorize_coupled(noisy, 3, modes=NAMES, rng=seed)
    match = codiag.match_components([fit.factors["a"]], [factors["a"]]).permutation
    found = []
    for name in "abd":
        unit = factors[name] / np.linalg.norm(factors[name], axis=0)
        estimate = fit.factors[name][:, match]
        signs = np.sign(np.sum(estimate * unit, axis=0))
        found.append((float(np.sum((estimate * signs - unit) ** 2)), float(np.sum(fit.standard_errors[name] ** 2))))
    lengths = {name: np.linalg.norm(factors[name], axis=0) for name in "abcd"}
    truth = np.stack([np.prod([lengths[name] for name in modes], axis=0) for modes in NAMES])
    squares = (np.abs(fit.weights[:, match]) - truth) ** 2
    found.append((float(np.sum(squares)), float(np.sum(fit.weight_standard_errors**2))))
    return found


def gain(seed: int, second: str, noise: tuple[float, float]) -> tuple[float, float, float, float]:
    """Return errors of the shared factor: coupled, of the best set alone, of TensorLy's CMTF, and equal variances."""
    rng = np.random.default_rng([43, 3, seed])
    factors, noisy, _ = drawn(rng, noise=noise, second=second)
    names = [NAMES[0], tuple(second)]
    fit = codiag.factorize_coupled(noisy, 3, modes=names, rng=seed)
    alone = [shared_error(codiag.factorize(one, 3, rng=seed).factors[0], factors["a"]) for one in noisy if one.ndim > 2]
    theirs = float("nan")
    if second == "ad":
        theirs = shared_error(tensorly_factor(noisy, 3), factors["a"])
    return shared_error(fit.factors["a"], factors["a"]), min(alone), theirs, fit.converged


def tensorly_factor(noisy: list[np.ndarray], rank: int) -> np.ndarray:
    """Return the shared factor of TensorLy's coupled factorization, from its start by singular vectors."""
    from tensorly.decomposition._cmtf_als import coupled_matrix_tensor_3d_factorization

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tensor, *_ = coupled_matrix_tensor_3d_factorization(noisy[0], noisy[1], rank)
    return np.asarray(tensor.factors[0])


def report(draws: int) -> None:
    """Print all tables."""
    report_presence(draws)
    report_errors(draws)
    report_gain(draws)


def report_presence(draws: int) -> None:
    """Print how often the table of presence is right."""
    seeds = range(draws)
    print("| presence right in all cells, 10 % noise | of", draws, "| s a fit |\n|---|---|---|")
    for label, weights, second, freedom in (
        ("tensor and matrix, one component of three in the tensor only", ((1, 1, 1), (1, 1, 0)), "ad", np.inf),
        ("tensor and matrix, one in the matrix only", ((1, 1, 0), (1, 1, 1)), "ad", np.inf),
        ("two tensors, one in each only", ((1, 1, 0), (1, 0, 1)), "ade", np.inf),
        ("the first, Student's noise with 3 degrees of freedom", ((1, 1, 1), (1, 1, 0)), "ad", 3),
        ("two tensors with nothing in common, two components each", ((1, 1, 0, 0), (0, 0, 1, 1)), "ade", np.inf),
    ):
        clock = time.process_time()
        right = sum(presence_found(seed, weights, second, freedom) for seed in seeds)
        print(f"| {label} | {right} | {(time.process_time() - clock) / draws:.2f} |", flush=True)


def report_errors(draws: int) -> None:
    """Print errors over standard errors."""
    seeds = range(draws)
    print("\n| rms error / standard error | a | b | d | weights |\n|---|---|---|---|---|")
    for case in ("complete", "missing"):
        pairs = np.array([calibration(seed, case) for seed in seeds])
        ratios = np.sqrt(pairs[:, :, 0].mean(axis=0) / pairs[:, :, 1].mean(axis=0))
        print(f"| {case} | " + " | ".join(f"{ratio:.3f}" for ratio in ratios) + " |", flush=True)


def report_gain(draws: int) -> None:
    """Print errors of the shared factor beside those of others."""
    seeds = range(draws)
    print("\n| shared factor: noise | coupled below the best set alone | median ratio | below TensorLy's |")
    print("|---|---|---|---|")
    for second, noise in (("ad", (0.1, 0.1)), ("ad", (0.3, 0.1)), ("ade", (0.1, 0.1)), ("ad", (0.3, 0.02))):
        found = np.array([gain(seed, second, noise) for seed in seeds])
        below, ratio = np.mean(found[:, 0] < found[:, 1]), np.median(found[:, 0] / found[:, 1])
        theirs = np.mean(found[:, 0] < found[:, 2] * (1 + 1e-3)) if second == "ad" else float("nan")
        kind = "matrix" if second == "ad" else "tensor"
        print(
            f"| tensor {noise[0]:.0%}, {kind} {noise[1]:.0%} | {below:.0%} | {ratio:.3f} | {theirs:.0%} |", flush=True
        )


if __name__ == "__main__":
    report(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
