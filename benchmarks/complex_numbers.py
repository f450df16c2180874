"""Complex numbers: errors of joint diagonalization against first-order theory, and tensors against the oracle.

``python -m benchmarks.complex_numbers [stacks] [tensors] [errors]``
"""

from __future__ import annotations

import time

import numpy as np

import codiag
from benchmarks.measure import run_parts, table
from codiag.diagonalize import UWEDGE, Diagonalizer, OrthogonalNewton, TwoSided
from codiag.methods import NLS
from codiag.synthetic import matrix_stack
from codiag.tensors import FactoredTensor

N_DRAWS, SIZE, N_MATRICES, NOISE = 200, 8, 30, 1e-4


def circular(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Return complex noise of unit variance."""
    noise: np.ndarray = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)) / np.sqrt(2)
    return noise


def factor_of(rng: np.random.Generator, orthogonal: bool) -> np.ndarray:
    """Return a unitary matrix, or unit columns of condition two."""
    first, second = (np.linalg.qr(circular(rng, (SIZE, SIZE)))[0] for _ in range(2))
    mixed = first if orthogonal else first @ np.diag(np.linspace(1, 0.5, SIZE)) @ second
    factor: np.ndarray = mixed / np.linalg.norm(mixed, axis=0)
    return factor


def ratio(method: Diagonalizer, kind: str) -> float:
    """Return the root mean square of errors over that of their standard errors for the true noise."""
    squares = predicted = 0.0
    for seed in range(N_DRAWS):
        rng = np.random.default_rng([5, seed])
        factor = factor_of(rng, method.orthogonal)
        other = {"Hermitian": factor.conj(), "symmetric": None, "general": factor_of(rng, method.orthogonal)}[kind]
        stack = matrix_stack(factor, N_MATRICES, right_factor=other, noise=NOISE, seed=rng)
        fit = method(stack.matrices, seed=0)
        matching = codiag.match_components(fit.factor, factor)
        squares += float(np.sum(np.abs(matching.factors[0] - factor) ** 2))
        predicted += float(np.sum(fit.standard_errors**2)) * (NOISE / fit.noise) ** 2
    return float(np.sqrt(squares / predicted))


def stacks() -> str:
    """Measure all kinds of complex stacks."""
    kinds = [(OrthogonalNewton(), "Hermitian"), (OrthogonalNewton(), "symmetric"), (UWEDGE(), "Hermitian"),
             (UWEDGE(), "symmetric"), (TwoSided(orthogonal=True), "general"), (TwoSided(), "general")]  # fmt: skip
    rows = [(kind, "unitary" if method.orthogonal else "free", f"{ratio(method, kind):.4f}") for method, kind in kinds]
    return (
        f"## Complex stacks\nRoot mean square error over first-order theory, {N_DRAWS} draws of {N_MATRICES} matrices "
        f"of size {SIZE}, noise {NOISE:g}.\n\n" + table(("matrices", "factors", "ratio"), rows)
    )


def planted(shape: tuple[int, ...], rank: int, rng: np.random.Generator) -> FactoredTensor:
    """Return random unit factors with weights from one to two."""
    factors = [circular(rng, (size, rank)) for size in shape]
    factors = [factor / np.linalg.norm(factor, axis=0) for factor in factors]
    return FactoredTensor(rng.uniform(1, 2, rank), factors)


def tensors() -> str:
    """Measure how often the default ends where least squares from the truth does."""
    rows = []
    for noise in (1e-3, 1e-2):
        n_reached, seconds = 0, []
        for seed in range(50):
            rng = np.random.default_rng([20, 15, seed])
            truth = planted((20, 20, 20), 15, rng)
            tensor = truth.to_dense() + noise * circular(rng, (20, 20, 20))
            start = time.process_time()
            fit = codiag.factorize(tensor, 15, seed=seed)
            seconds.append(time.process_time() - start)
            oracle = codiag.factorize(tensor, 15, method=NLS(init=(truth.weights, truth.factors)), seed=seed)
            n_reached += fit.relative_error <= oracle.relative_error * (1 + 1e-6)
        rows.append((f"{noise:g}", f"{n_reached} of 50", f"{np.median(seconds):.3f} s"))
    return (
        "## Complex tensors\nA complex 20 x 20 x 20 tensor of rank 15: fits at least as low as least squares from the "
        "truth.\n\n" + table(("noise of an entry", "at the oracle", "CPU time, median"), rows)
    )


def errors() -> str:
    """Measure standard errors of complex tensors."""
    rows = []
    for share in (1.0, 0.6):
        squares, predicted, shifts = [], [], []
        rng = np.random.default_rng(3)
        truth = planted((7, 6, 8), 3, rng)
        for _ in range(N_DRAWS):
            tensor = truth.to_dense() + 1e-3 * circular(rng, truth.shape)
            observed = None if share == 1 else rng.random(truth.shape) < share
            fit = codiag.factorize(tensor, 3, observed=observed, seed=0)
            matching = codiag.match_components(fit, truth.factors)
            pairs = zip(matching.factors, truth.factors, strict=True)
            squares.append([np.sum(np.abs(found - true) ** 2, axis=0) for found, true in pairs])
            scale = 1e-3 / fit.noise
            predicted.append((scale * np.asarray(fit.standard_errors)[:, matching.permutation]) ** 2)
            weights = fit.weights[matching.permutation] - truth.weights
            shifts.append(weights / (scale * fit.weight_standard_errors[matching.permutation]))
        ratio = np.sqrt(np.mean(squares) / np.mean(predicted))
        rows.append((f"{share:.0%}", f"{ratio:.3f}", f"{np.std(shifts):.3f}"))
    return (
        f"## Standard errors of complex tensors\nRoot mean square error over standard error, {N_DRAWS} draws of "
        "7 x 6 x 8, rank 3.\n\n" + table(("observed", "factors", "weights"), rows)
    )


PARTS = {"stacks": stacks, "tensors": tensors, "errors": errors}

if __name__ == "__main__":
    run_parts("complex_numbers", PARTS)
