"""Two factorizations of simulated tensors, by codiag and by other libraries that are installed.

The first, spectra of substances in mixtures, is repeated from several seeds; the second has as many components as rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from codiag.cli.demo.rivals import RIVALS
from codiag.methods import ALS, NLS, Method, as_method
from codiag.metrics import factor_error, match_components
from codiag.problem import Problem
from codiag.result import Factorization
from codiag.result import solve as solve_problem
from codiag.synthetic import Fluorescence, PlantedTensor, fluorescence, noisy_tensor

SHAPE, RANK, NOISE = (8, 60, 40), 6, 0.1
"""Samples, wavelengths of emission and of excitation; substances; noise relative to the tensor."""
STARTS = 5
"""Number of seeds for every method."""
NORMAL = 1.96
"""Half the width of a 95 % confidence interval in standard errors, for normal noise."""


@dataclass(frozen=True, eq=False)
class Starts:
    """The results of a method from several seeds: factors matched to the truth, and their distances from it."""

    method: str
    factors: Sequence[Sequence[np.ndarray]]
    errors: list[float]
    seconds: float  # mean time of a run


@dataclass(frozen=True, eq=False)
class Spectra:
    """The mixtures, the first fit of codiag, and the results of every method, codiag first."""

    measured: Fluorescence
    fit: Factorization
    runs: list[Starts]

    def bands(self) -> list[np.ndarray]:
        """Return, for each mode, half the width of the 95 % confidence intervals of the entries of the factor."""
        order = match_components(self.fit, self.measured).permutation
        return [NORMAL * errors[:, order] for errors in self.fit.entry_standard_errors]

    def coverage(self) -> float:
        """Return the share of all entries of the true factors that lie in these intervals."""
        modes = zip(self.runs[0].factors[0], self.measured.factors, self.bands(), strict=True)
        inside = [np.ravel(np.abs(estimate - true) <= band) for estimate, true, band in modes]
        return float(np.mean(np.concatenate(inside)))


def silent_fit(tensor: np.ndarray, rank: int, seed: int = 0, *, method: Method | str | None = None) -> Factorization:
    """Factorize a tensor without warnings."""
    return solve_problem(Problem(tensor, rank), as_method(method), seed)


def run_spectra(seed: int = 0) -> Spectra:
    """Factorize emission-excitation matrices of mixtures by codiag and by other libraries, from the same seeds.

    If no other library is installed, codiag's alternating least squares is run in place of theirs.
    """
    measured = fluorescence(SHAPE, RANK, noise=NOISE, seed=seed)
    tensor = measured.tensor
    candidates: dict[str, Callable[..., object]] = {"codiag": silent_fit}
    candidates |= {rival.name: rival.solve for rival in RIVALS if rival.seeded and rival.installed}
    if len(candidates) == 1:
        candidates["ALS from random starts (codiag's, for want of TensorLy)"] = partial(silent_fit, method=ALS())
    runs = [_starts(name, partial(solve, tensor, RANK), measured) for name, solve in candidates.items()]
    return Spectra(measured, silent_fit(tensor, RANK), runs)


def _starts(name: str, solve: Callable[[int], object], measured: Fluorescence) -> Starts:
    begin = time.perf_counter()
    results = [solve(start) for start in range(STARTS)]
    seconds = (time.perf_counter() - begin) / STARTS
    factors = [match_components(result, measured).factors for result in results]
    return Starts(name, factors, [factor_error(matched, measured) for matched in factors], seconds)


@dataclass(frozen=True, eq=False)
class Run:
    """The result of one method on the harder tensor."""

    method: str
    ours: bool
    factors: Sequence[np.ndarray]
    error: float  # mean distance of the unit factors from the truth
    ratio: float  # to the error of the oracle
    seconds: float


@dataclass(frozen=True, eq=False)
class Demo:
    """The harder tensor, codiag's fit, the results of every method; and the spectra of mixtures."""

    problem: PlantedTensor
    fit: Factorization
    oracle: float
    runs: list[Run]
    spectra: Spectra

    def component_errors(self) -> tuple[np.ndarray, np.ndarray]:
        """Return, for each true factor, its measured error and the standard error predicted from the data."""
        matching = match_components(self.fit, self.problem)
        errors = [
            np.linalg.norm(estimate - true, axis=0)
            for estimate, true in zip(matching.factors, self.problem.factors, strict=True)
        ]
        return np.stack(errors), self.fit.standard_errors[:, matching.permutation]


def run_demo(size: int = 40, noise: float = 1e-3, seed: int = 0) -> Demo:
    """Factorize mixtures and a noisy symmetric tensor of full rank, by codiag and by every library installed.

    On one BLAS thread: with arrays this small, several threads wait for each other longer than they compute.
    """
    from threadpoolctl import threadpool_limits

    problem = noisy_tensor((size,) * 3, size, symmetric=True, noise=noise, seed=seed)
    tensor = problem.tensor

    with threadpool_limits(1):  # `few_threads` would limit the fits of codiag alone
        truth = NLS(init=(problem.weights, problem.factors), max_replacements=0)
        oracle = factor_error(silent_fit(tensor, size, method=truth), problem)
        silent_fit(tensor[:4, :4, :4], 2)  # the first call loads libraries, whose time does not count
        start = time.perf_counter()
        fit = silent_fit(tensor, size, seed)
        runs = [_run("codiag", True, fit, time.perf_counter() - start, problem, oracle)]
        candidates: list[tuple[str, bool, Callable[..., object]]] = [
            ("codiag, method='nojd1'", True, partial(silent_fit, method="nojd1")),
            ("codiag, NLS() from a random start", True, partial(silent_fit, method=NLS(max_replacements=0))),
            ("codiag, ALS() from a random start", True, partial(silent_fit, method=ALS())),
        ]
        candidates += [(rival.name, False, rival.solve) for rival in RIVALS if rival.installed]
        for name, is_ours, solve in candidates:
            start = time.perf_counter()
            result = solve(tensor, size, seed)
            runs.append(_run(name, is_ours, result, time.perf_counter() - start, problem, oracle))
        return Demo(problem, fit, oracle, runs, run_spectra(seed))


def _run(method: str, ours: bool, result: object, seconds: float, problem: PlantedTensor, oracle: float) -> Run:
    factors = match_components(result, problem).factors
    error = factor_error(factors, problem)
    return Run(method, ours, factors, error, error / oracle, seconds)
