"""How often a default ends worse than the best method on the same problem."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from benchmarks.measure import run_parts, table
from codiag import factor_error
from codiag.diagonalize import LUJ1D, QRJ1D, UWEDGE, Diagonalization, Jacobi, JDi, OrthogonalNewton
from codiag.extending import Diagonalizer
from codiag.synthetic import Stack, matrix_stack, mild_factor, orthonormal_factor, unit_factor
from simulated import projection_stack

NOISES = (1e-6, 1e-3, 1e-2, 5e-2)
TRIALS = 20
ORTHOGONAL: dict[str, Diagonalizer] = {"ours": OrthogonalNewton(), "Jacobi": Jacobi(max_sweeps=300)}
FREE: dict[str, Diagonalizer] = {
    "ours": UWEDGE(),
    "JDi": JDi(),
    "QRJ1D": QRJ1D(max_sweeps=60),
    "LUJ1D": LUJ1D(max_sweeps=60),
}


def spectra(size: int, noise: float, rng: np.random.Generator) -> Stack:
    return matrix_stack(orthonormal_factor(size, size, rng), size, noise=noise, seed=rng)


def equal_weights(size: int, noise: float, rng: np.random.Generator) -> Stack:
    return projection_stack(orthonormal_factor(size, size, rng), np.ones(size), size, noise=noise, seed=rng)


def squared_weights(size: int, noise: float, rng: np.random.Generator) -> Stack:
    factor, weights = orthonormal_factor(size, size, rng), rng.standard_normal(size) ** 2
    return projection_stack(factor, weights, 5, noise=noise, seed=rng)


def mild(size: int, noise: float, rng: np.random.Generator) -> Stack:
    return matrix_stack(mild_factor(size, size, rng), size, noise=noise, seed=rng)


def random_columns(size: int, noise: float, rng: np.random.Generator) -> Stack:
    return matrix_stack(unit_factor(size, size, rng), size, noise=noise, seed=rng)


Problem = Callable[[int, float, np.random.Generator], Stack]


def compare(
    make: Problem, size: int, noise: float, methods: dict[str, Diagonalizer], measure: Callable[..., float]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the measure of every method (columns) in every trial (rows), and whether the first converged."""
    values, converged = [], []
    for trial in range(TRIALS):
        stack = make(size, noise, np.random.default_rng([trial, size]))
        fits = [method(stack.matrices, seed=trial) for method in methods.values()]
        values.append([measure(fit, stack.factor) for fit in fits])
        converged.append(fits[0].converged)
    return np.array(values), np.array(converged)


def off(fit: Diagonalization, _: np.ndarray) -> float:
    return fit.off_diagonal


def orthogonal() -> str:
    rows = []
    models: dict[str, Problem] = {
        "Gaussian spectra": spectra,
        "projections, equal weights": equal_weights,
        "projections, squared-Gaussian weights, L = 5": squared_weights,
    }
    for (name, make), size, noise in itertools.product(models.items(), (15, 50), NOISES):
        values, converged = compare(make, size, noise, ORTHOGONAL, off)
        ratios = values[:, 0] / values.min(axis=1)
        above = ratios > 1.001
        counts = int(np.sum(above)), int(np.sum(above & converged))
        rows.append((name, size, f"{noise:g}", *counts, f"{ratios.max():.5f}", int(np.sum(~converged))))
    headings = ("model", "d", "noise", "above 1.001 of 20", "of these converged", "worst", "not converged of 20")
    return (
        "## Robustness, orthogonal\noff() of `OrthogonalNewton` over the lower of its own and `Jacobi`, which has up "
        "to 300 sweeps; 20 problems each.\n\n" + table(headings, rows)
    )


def free(kind: str, make: Problem, sizes: tuple[int, ...]) -> str:
    rows = []
    for size, noise in itertools.product(sizes, NOISES):
        values, _ = compare(make, size, noise, FREE, factor_error)
        ratios = values[:, 0] / values.min(axis=1)
        medians = [f"{value:.2e}" for value in np.median(values, axis=0)]
        rows.append((size, f"{noise:g}", int(np.sum(ratios > 2)), f"{ratios.max():.2f}", *medians))
    headings = ("d = n", "noise", "above 2 of 20", "worst", "median error `UWEDGE`", "`JDi`", "`QRJ1D`", "`LUJ1D`")
    return (
        f"## Robustness, {kind}\nFactor error of `UWEDGE` over the smallest of all four (QRJ1D and LUJ1D stopped "
        "at 60 sweeps), 20 problems each.\n\n" + table(headings, rows)
    )


def covariances(n: int, size: int, rng: np.random.Generator) -> np.ndarray:
    samples = rng.standard_normal((n, size, 2 * size))
    return samples @ samples.transpose(0, 2, 1) / (2 * size)


def symmetric(n: int, size: int, rng: np.random.Generator) -> np.ndarray:
    entries = rng.standard_normal((n, size, size))
    return entries + entries.transpose(0, 2, 1)


def measures(inverse: np.ndarray, matrices: np.ndarray) -> tuple[float, float]:
    """Return what is left off the diagonals: in units that no scale changes, and for factors of unit norm."""
    inverse = inverse * np.linalg.norm(np.linalg.inv(inverse), axis=0)[:, None]
    energy = np.sum((inverse @ matrices @ inverse.T) ** 2, axis=0)
    sizes = np.sqrt(np.diag(energy))
    return float(np.sum(energy / np.outer(sizes, sizes)) - len(inverse)), float(np.sum(energy) - np.trace(energy))


def without_common_factors(seeds: int = 2) -> str:
    """Compare with pyriemann's `uwedge`, at its own tolerance, on matrices that nothing diagonalizes."""
    from pyriemann.geometry.ajd import uwedge

    rows = []
    for name, make, n, size, sets in (
        ("covariances", covariances, 20, 6, 20),
        ("covariances", covariances, 100, 6, 4),
        ("covariances", covariances, 4, 6, 8),
        ("symmetric Gaussian", symmetric, 20, 6, 8),
    ):
        ratios, apart = [], []
        for trial in range(sets):
            matrices = make(n, size, np.random.default_rng(trial))
            theirs = np.array(measures(uwedge(matrices)[0], matrices))
            ours = np.array([measures(UWEDGE()(matrices, seed=seed).inverse, matrices) for seed in range(seeds)])
            ratios.append(ours / theirs)
            apart.append(np.max(ours[:, 0]) / np.min(ours[:, 0]))
        free, unit = np.array(ratios).reshape(-1, 2).T
        counts = int(np.sum(free > 1.001)), int(np.sum(free < 0.999))
        figures = f"{free.max():.5f}", f"{max(apart):.5f}", f"{unit.max():.5f}"
        rows.append((name, f"{n} of {size}", sets * seeds, *counts, *figures))
    worst = ("worst", "between seeds", "worst off(), unit factors")
    headings = ("matrices", "size", "fits", "above 1.001", "below 0.999", *worst)
    return (
        "## Robustness, no common factors\nThe criterion sum_ij R_ij / sqrt(R_ii R_jj), i != j, of `UWEDGE` over that "
        f"of pyriemann's `uwedge`: sets of matrices, {seeds} seeds each.\n\n" + table(headings, rows)
    )


PARTS: dict[str, Callable[[], str]] = {
    "orthogonal": orthogonal,
    "mild": lambda: free("mild U", mild, (15, 50)),
    "random": lambda: free("random unit columns", random_columns, (50,)),
    "no common factors": without_common_factors,
}

if __name__ == "__main__":
    run_parts("robustness", PARTS)
