"""Spectra of substances in mixtures, from several seeds, beside rivals that start at random.

Two factorizations from end to end, on tensors made for them, beside everybody else who is installed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from codiag.cli.demo.rivals import RIVALS
from codiag.methods import ALS, NLS, Method, as_method
from codiag.metrics import factor_error, match_components
from codiag.problem import Problem
from codiag.result import Factorization, solve
from codiag.synthetic import Fluorescence, PlantedTensor, fluorescence, noisy_tensor

SHAPE, RANK, NOISE = (8, 60, 40), 6, 0.1
"""Samples, wavelengths of emission and of excitation; substances; noise relative to the tensor."""
STARTS = 5
"""Seeds that every method gets."""
NORMAL = 1.96
"""Standard errors to either side that hold the truth in 95 of 100 cases."""


@dataclass(frozen=True, eq=False)
class Starts:
    """What one method gives from several seeds: factors that are matched to the truth, and how far they are from it."""

    method: str
    factors: Sequence[Sequence[np.ndarray]]
    errors: list[float]
    seconds: float  # a run, on average


@dataclass(frozen=True, eq=False)
class Spectra:
    """The mixtures, the first fit of codiag, and what every method gives; the first is codiag."""

    measured: Fluorescence
    fit: Factorization
    runs: list[Starts]

    def bands(self) -> list[np.ndarray]:
        """Return, for each mode, half the width of the band that holds an entry of the true factor 95 times in 100."""
        order = match_components(self.fit, self.measured).permutation
        return [NORMAL * errors[:, order] for errors in self.fit.entry_standard_errors]

    def held(self) -> float:
        """Return the share of all entries of the true factors that lie in these bands."""
        found = zip(self.runs[0].factors[0], self.measured.factors, self.bands(), strict=True)
        inside = [np.ravel(np.abs(guess - true) <= band) for guess, true, band in found]
        return float(np.mean(np.concatenate(inside)))


def silent_fit(tensor: np.ndarray, rank: int, *, method: Method | str | None = None, seed: int = 0) -> Factorization:
    """Factorize a tensor without warnings: whether a fit converged is part of what is shown."""
    return solve(Problem(tensor, rank), as_method(method), seed)


def run_spectra(seed: int = 0) -> Spectra:
    """Factorize emission-excitation matrices of mixtures by codiag and by rivals, each from the same seeds.

    Where no rival is installed, codiag's own alternating least squares, the method of the rivals, stands in for them.
    """
    measured = fluorescence(SHAPE, RANK, noise=NOISE, seed=seed)
    tensor = measured.tensor
    candidates: list[tuple[str, Callable[[int], object]]] = [("codiag", lambda start: _fit(tensor, None, start))]
    candidates += [
        (rival.name, _from(rival.solve, tensor)) for rival in RIVALS if rival.seeded and rival.installed
    ] or [("ALS from random starts (codiag's, for want of TensorLy)", lambda start: _fit(tensor, ALS(), start))]
    runs = [_starts(name, solve, measured) for name, solve in candidates]
    return Spectra(measured, _fit(tensor, None, 0), runs)


def _fit(tensor: np.ndarray, method: Any, start: int) -> Factorization:
    return silent_fit(tensor, RANK, method=method, seed=start)


def _from(solve: Callable[..., Sequence[np.ndarray]], tensor: np.ndarray) -> Callable[[int], object]:
    return lambda start: solve(tensor, RANK, start)


def _starts(name: str, solve: Callable[[int], object], measured: Fluorescence) -> Starts:
    begin = time.perf_counter()
    results = [solve(start) for start in range(STARTS)]
    seconds = (time.perf_counter() - begin) / STARTS
    factors = [match_components(result, measured).factors for result in results]
    return Starts(name, factors, [factor_error(one, measured) for one in factors], seconds)


@dataclass(frozen=True, eq=False)
class Run:
    """One method on the problem."""

    method: str
    ours: bool
    factors: Sequence[np.ndarray]
    error: float  # mean distance of the unit factors from the truth
    ratio: float  # to the error of the oracle
    seconds: float


@dataclass(frozen=True, eq=False)
class Demo:
    """The hard problem, the fit, and everybody's result; and the spectra of mixtures."""

    problem: PlantedTensor
    fit: Factorization
    oracle: float
    runs: list[Run]
    spectra: Spectra

    def component_errors(self) -> tuple[np.ndarray, np.ndarray]:
        """Return, for each true factor, its measured error and the standard error predicted from the data."""
        matching = match_components(self.fit, self.problem)
        errors = [
            np.linalg.norm(guess - true, axis=0)
            for guess, true in zip(matching.factors, self.problem.factors, strict=True)
        ]
        return np.stack(errors), self.fit.standard_errors[:, matching.permutation]


def run_demo(size: int = 40, noise: float = 1e-3, seed: int = 0) -> Demo:
    """Factorize mixtures and a noisy symmetric tensor of full rank, by codiag and by every rival that is installed.

    On one BLAS thread: arrays this small lose more by waiting for a second one than it does for them.
    """
    from threadpoolctl import threadpool_limits

    problem = noisy_tensor((size,) * 3, size, symmetric=True, noise=noise, seed=seed)
    tensor = problem.tensor

    def ours(method: object) -> Callable[[], Factorization]:
        return lambda: silent_fit(tensor, size, method=method, seed=seed)  # type: ignore[arg-type]

    with threadpool_limits(1):  # `few_threads` would leave large fits of ours, not of rivals, more
        truth = NLS(init=(problem.weights, problem.factors), max_replacements=0)
        oracle = factor_error(silent_fit(tensor, size, method=truth), problem)
        silent_fit(tensor[:4, :4, :4], 2, seed=0)  # first calls load libraries, which is nobody's method
        start = time.perf_counter()
        fit = silent_fit(tensor, size, seed=seed)
        runs = [_run("codiag", True, fit, time.perf_counter() - start, problem, oracle)]
        candidates: list[tuple[str, bool, Callable[[], object]]] = [
            ("codiag, method='nojd1'", True, ours("nojd1")),
            ("codiag, NLS() from a random start", True, ours(NLS(max_replacements=0))),
            ("codiag, ALS() from a random start", True, ours(ALS())),
        ]
        candidates += [
            (rival.name, False, _bound(rival.solve, tensor, size, seed)) for rival in RIVALS if rival.installed
        ]
        for name, is_ours, work in candidates:
            start = time.perf_counter()
            result = work()
            runs.append(_run(name, is_ours, result, time.perf_counter() - start, problem, oracle))
        return Demo(problem, fit, oracle, runs, run_spectra(seed))


def _bound(solve: Callable[..., Sequence[np.ndarray]], *arguments: object) -> Callable[[], Sequence[np.ndarray]]:
    return lambda: solve(*arguments)


def _run(method: str, ours: bool, result: object, seconds: float, problem: PlantedTensor, oracle: float) -> Run:
    factors = match_components(result, problem).factors
    error = factor_error(factors, problem)
    return Run(method, ours, factors, error, error / oracle, seconds)
