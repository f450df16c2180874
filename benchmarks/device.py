"""Time the default methods on an accelerator, through torch: ``python -m benchmarks.device``."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import torch

import codiag
from benchmarks.measure import keep, table
from codiag.synthetic import matrix_stack, mild_factor, orthonormal_factor

SIZE = 500
NOISES = {"1e-3 in each entry": 1e-3, "1e-3 in operator norm": 1e-3 / (2 * SIZE**0.5)}


def milliseconds(work: Callable[[], object], repeats: int = 9) -> float:
    """Return the median wall-clock time, after two warm-up calls, with the device waited for."""
    times = []
    for repeat in range(repeats + 2):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        if repeat >= 2:
            times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def run() -> str:
    rows = []
    for (label, noise), (name, make, orthogonal) in (
        (noise, kind)
        for noise in NOISES.items()
        for kind in (("orthogonal", orthonormal_factor, True), ("mild U", mild_factor, False))
    ):
        rng = np.random.default_rng(0)
        stack = matrix_stack(make(SIZE, SIZE, rng), SIZE, noise=noise, seed=rng)
        matrices = torch.asarray(stack.matrices, device="cuda")
        inverse = torch.asarray(np.linalg.inv(stack.factor), device="cuda")
        layout = matrices.permute(1, 0, 2).reshape(SIZE, -1).contiguous()
        product = milliseconds(lambda: inverse @ layout)  # noqa: B023
        fit = codiag.joint_diagonalize(matrices, orthogonal=orthogonal, seed=0)
        total = milliseconds(lambda: codiag.joint_diagonalize(matrices, orthogonal=orthogonal, seed=0))  # noqa: B023
        error, predicted = codiag.factor_error(fit, stack.factor), float(np.sqrt(np.mean(fit.standard_errors**2)))
        rows.append(
            (name, label, f"{total:.1f}", f"{total / product:.1f}", fit.n_sweeps, f"{error:.3e}", f"{predicted:.3e}")
        )
    headings = ("problem", "noise", "ms", "products", "sweeps", "factor error", "predicted")
    return (
        f"## Accelerator\n{torch.cuda.get_device_name()}, d = n = {SIZE}, float64, matrices on the device; median of "
        "nine calls after two that warm up.\n\n" + table(headings, rows)
    )


if __name__ == "__main__":
    text = run()
    keep("device", "python -m benchmarks.device", text)
    print(text)
