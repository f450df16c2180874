"""Two factorizations from end to end, on tensors made for them, beside everybody else who is installed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from codiag._factorization import Factorization
from codiag.experiments.demo_spectra import Spectra, run_spectra
from codiag.experiments.fitting import silent_fit
from codiag.experiments.rivals import RIVALS
from codiag.methods import ALS, NLS
from codiag.metrics import factor_error, match_components
from codiag.synthetic import PlantedTensor, noisy_tensor


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
