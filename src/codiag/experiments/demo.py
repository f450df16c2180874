"""A joint diagonalization from end to end, on matrices made for it."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass

import numpy as np

from codiag.diagonalize import LUJ1D, QRJ1D, UWEDGE, Diagonalization, Diagonalizer, Jacobi, JDi, OrthogonalNewton
from codiag.metrics import factor_error, match_components
from codiag.synthetic import Stack, matrix_stack, mild_factor, orthonormal_factor


@dataclass(frozen=True, eq=False)
class Run:
    """One method on one problem."""

    problem: str
    diagonalizer: Diagonalizer
    fit: Diagonalization
    error: float
    predicted: float
    seconds: float

    @property
    def method(self) -> str:
        """Name of the method."""
        return type(self.diagonalizer).__name__


@dataclass(frozen=True, eq=False)
class Demo:
    """The problems, and every method on each."""

    stacks: dict[str, Stack]
    runs: list[Run]

    def best(self, problem: str) -> Run:
        """Return the run of the default method, which stands first."""
        return next(run for run in self.runs if run.problem == problem)


METHODS: dict[str, tuple[Diagonalizer, ...]] = {
    "orthogonal": (OrthogonalNewton(), Jacobi()),
    "non-orthogonal": (UWEDGE(), JDi(), LUJ1D(), QRJ1D()),
}


def run_demo(size: int = 40, noise: float = 0.01, seed: int = 0) -> Demo:
    """Diagonalize a noisy stack with orthonormal factors and one without, by every method that applies.

    On one BLAS thread: matrices this small lose more by waiting for a second one than it does for them.
    """
    from threadpoolctl import threadpool_limits

    rng = np.random.default_rng(seed)
    factors = {"orthogonal": orthonormal_factor(size, size, rng), "non-orthogonal": mild_factor(size, size, rng)}
    stacks = {name: matrix_stack(factor, size, noise=noise, seed=rng) for name, factor in factors.items()}
    with threadpool_limits(1):
        runs = [_run(problem, stacks[problem], method, seed) for problem in stacks for method in METHODS[problem]]
    return Demo(stacks, runs)


def component_errors(fit: Diagonalization, stack: Stack) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each true component, its measured error and the standard error predicted from the data."""
    matching = match_components(fit.factor, stack.factor)
    errors = np.linalg.norm(matching.factors[0] - stack.factor, axis=0)
    return errors, fit.standard_errors[matching.permutation]


def _run(problem: str, stack: Stack, diagonalizer: Diagonalizer, seed: int) -> Run:
    diagonalizer(stack.matrices[:, :3, :3], seed=seed)  # first calls load libraries, which is nobody's method
    seconds: list[float] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the table says what did not converge
        while len(seconds) < 5 and sum(seconds) < 0.2:
            start = time.perf_counter()
            fit = diagonalizer(stack.matrices, seed=seed)
            seconds.append(time.perf_counter() - start)
    predicted = float(np.sqrt(np.mean(fit.standard_errors**2)))
    return Run(problem, diagonalizer, fit, factor_error(fit.factor, stack.factor), predicted, min(seconds))
