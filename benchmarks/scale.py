"""A large dense tensor, against TensorLy to the same error."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

import numpy as np

import codiag
from benchmarks.measure import megabytes, table, timed
from codiag.synthetic import unit_factor
from codiag.tensors import FactoredTensor


def run(inits: Sequence[str] = ("svd",), size: int = 400, rank: int = 20, noise: float = 1e-2) -> str:
    """Time both on one BLAS thread each; TensorLy stops at the first sweep that is as close as codiag, or at 100."""
    rng = np.random.default_rng(0)
    factors = [unit_factor(size, rank, rng) for _ in range(3)]
    tensor = FactoredTensor(1 + rng.random(rank), factors).to_dense()
    level = noise * np.linalg.norm(tensor) / size**1.5
    for slab in tensor:
        slab += level * rng.standard_normal(slab.shape)
    before = megabytes()
    fit, ours = timed(lambda: codiag.factorize(tensor, rank, rng=0), time.process_time)
    grown = megabytes() - before
    rows = [("codiag", f"{ours:.1f}", "1", f"{codiag.factor_error(fit, factors):.2e}", f"{grown:.0f}")]
    for init in inits:
        until = partial(tensorly_until, tensor, rank, init, fit.relative_error * (1 + 1e-6))
        (theirs, sweeps), seconds = timed(until, time.process_time)
        name, error = f"TensorLy, init={init!r}, {sweeps} sweeps", f"{codiag.factor_error(theirs, factors):.2e}"
        rows.append((name, f"{seconds:.1f}", f"{seconds / ours:.1f}", error, ""))
    headings = ("", "CPU seconds", "ratio", "factor error", "MB beyond the tensor")
    return (
        f"## Scale\n{size} x {size} x {size}, float64 ({8e-6 * size**3:.0f} MB), rank {rank}, weights between 1 and 2, "
        f"noise {noise:g} of the norm; one BLAS thread; standard errors predict {np.mean(fit.standard_errors):.2e}.\n\n"
        + table(headings, rows)
    )


def tensorly_until(tensor: np.ndarray, rank: int, init: str, enough: float) -> tuple[Sequence[np.ndarray], int]:
    """Return TensorLy's factors as soon as their error is small enough, and the sweeps that took."""
    from tensorly.decomposition import parafac

    errors: list[float] = []

    def close_enough(_: object, error: float) -> bool:
        errors.append(error)
        return bool(error <= enough)

    options = {"n_iter_max": 100, "tol": 1e-16, "random_state": 0}  # a tolerance of zero leaves its errors undefined
    return parafac(tensor, rank, init=init, callback=close_enough, **options)[1], len(errors) - 1
