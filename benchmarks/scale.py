"""A large dense tensor, against TensorLy to the same error."""

from __future__ import annotations

import resource
import time
from collections.abc import Sequence

import numpy as np
from threadpoolctl import threadpool_limits

import codiag
from benchmarks.measure import table
from codiag.synthetic import unit_factor
from codiag.tensors import FactoredTensor


def run(inits: Sequence[str] = ("svd",), size: int = 400, rank: int = 20, noise: float = 1e-2) -> str:
    """Time both on one BLAS thread each; TensorLy stops at the first sweep that is as close as codiag, or at 100."""
    from tensorly.decomposition import parafac

    rng = np.random.default_rng(0)
    factors = [unit_factor(size, rank, rng) for _ in range(3)]
    tensor = FactoredTensor(1 + rng.random(rank), factors).to_dense()
    level = noise * np.linalg.norm(tensor) / size**1.5
    for slab in tensor:
        slab += level * rng.standard_normal(slab.shape)
    rows = []
    with threadpool_limits(1):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.perf_counter()
        fit = codiag.factorize(tensor, rank, seed=0)
        ours = time.perf_counter() - start
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        rows.append(("codiag", f"{ours:.1f}", "1", f"{codiag.factor_error(fit, factors):.2e}", f"{grown:.0f}"))
        for init in inits:
            reached = fit.relative_error * (1 + 1e-6)
            sweeps: list[float] = []

            def close_enough(_: object, error: float) -> bool:
                sweeps.append(error)  # noqa: B023
                return bool(error <= reached)  # noqa: B023

            start = time.perf_counter()
            _, theirs = parafac(
                tensor,
                rank,
                init=init,
                n_iter_max=100,
                tol=1e-16,  # zero would leave its errors undefined
                random_state=0,
                callback=close_enough,
            )
            seconds = time.perf_counter() - start
            error = f"{codiag.factor_error(theirs, factors):.2e}"
            rows.append(
                (
                    f"TensorLy, init={init!r}, {len(sweeps) - 1} sweeps",
                    f"{seconds:.1f}",
                    f"{seconds / ours:.1f}",
                    error,
                    "",
                )
            )
    headings = ("", "seconds", "ratio", "factor error", "MB beyond the tensor")
    return (
        f"## Scale\n{size} x {size} x {size}, float64 ({8e-6 * size**3:.0f} MB), rank {rank}, weights between 1 and 2, "
        f"noise {noise:g} of the norm; one BLAS thread; standard errors predict {np.mean(fit.standard_errors):.2e}.\n\n"
        + table(headings, rows)
    )
