"""Errors of noisy spectra under `Unimodal`, `Smooth`, `Prior` and `L1`, beside plain and non-negative fits.

``python -m benchmarks.profiles [DRAWS] [FIRST]`` prints the table of RESULTS.md. Strengths are those that predict
held-out entries best.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np

import codiag
from codiag.constraints import L1, Prior, Smooth, Unimodal

NOISE = 0.3
SHAPES = ["Gaussian", "Lorentzian", "skewed"]


def peaks(shape: str, places: np.ndarray) -> np.ndarray:
    """Return peaks at zero, of width one."""
    if shape == "Gaussian":
        return np.asarray(np.exp(-(places**2) / 2))
    if shape == "Lorentzian":
        return np.asarray(1 / (1 + places**2))
    return np.where(places > -2, (places + 2) * np.exp(-(places + 2)), 0.0)


def drawn(shape: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return spectra of one peak each, (60, 3), and a noisy tensor of them with uniform other factors."""
    rng = np.random.default_rng([43, SHAPES.index(shape), seed])
    centers, widths = np.sort(rng.uniform(0.15, 0.85, 3)), rng.uniform(0.04, 0.12, 3)
    spectra = peaks(shape, (np.linspace(0, 1, 60)[:, None] - centers) / widths)
    tensor = np.einsum("ir,jr,kr->ijk", spectra, rng.random((12, 3)), rng.random((10, 3)))
    return spectra, tensor + NOISE * np.sqrt(np.mean(tensor**2)) * rng.standard_normal(tensor.shape)


def rules(spectra: np.ndarray) -> dict[str, Any]:
    """Return the constraints of the spectra, by name."""
    one = np.where([True, False, False], spectra, np.nan)
    return {
        "plain": None,
        "non-negative": "nonnegative",
        "Unimodal": Unimodal(),
        "Smooth, auto": Smooth("auto"),
        "non-negative, Smooth, auto": ["nonnegative", Smooth("auto")],
        "Prior, one right spectrum, auto": Prior(one, "auto"),
        "Prior, one wrong spectrum, auto": Prior(one[::-1], "auto"),
        "Prior, one wrong spectrum, strength 1": Prior(one[::-1], 1.0),
        "L1, auto": L1("auto"),
    }


def errors(shape: str, seed: int) -> tuple[dict[str, float], dict[str, float]]:
    """Return the error of the spectra, and the CPU time, by name of the constraint."""
    spectra, tensor = drawn(shape, seed)
    found, seconds = {}, {}
    for name, rule in rules(spectra).items():
        clock = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", codiag.ConvergenceWarning)
            fit = codiag.factorize(tensor, 3, constraints={0: rule}, rng=seed)
        seconds[name] = time.process_time() - clock
        found[name] = codiag.factor_error([fit.factors[0]], [spectra])
    return found, seconds


def report(draws: int, first: int = 0) -> None:
    """Print the table."""
    print(
        "| peaks | constraint | median error | below plain | below non-negative | s a fit |\n|---|---|---|---|---|---|"
    )
    for shape in SHAPES:
        runs = [errors(shape, seed) for seed in range(first, first + draws)]
        for name in runs[0][0]:
            values = np.array([[found[key] for key in (name, "plain", "non-negative")] for found, _ in runs])
            seconds = np.median([clocks[name] for _, clocks in runs])
            below = np.mean(values[:, :1] < values[:, 1:], axis=0)
            shares = f"{below[0]:.0%} | {below[1]:.0%}"
            print(f"| {shape} | {name} | {np.median(values[:, 0]):.3f} | {shares} | {seconds:.2f} |", flush=True)


if __name__ == "__main__":
    report(*map(int, sys.argv[1:] or ["50"]))
