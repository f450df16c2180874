"""Time the default methods on an accelerator, through torch: ``python -m benchmarks.device [size]``."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import torch

import codiag
from codiag.synthetic import matrix_stack, mild_factor, orthonormal_factor


def milliseconds(work: Callable[[], object], repeats: int = 7) -> float:
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


def main(size: int = 500, noise: float = 1e-3) -> None:
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, d = n = {size}, float64, noise {noise:g}")
    for name, make, orthogonal in (("orthogonal", orthonormal_factor, True), ("mild U", mild_factor, False)):
        stack = matrix_stack(make(size, size, seed=0), size, noise=noise, seed=1)
        matrices = torch.asarray(stack.matrices, device="cuda")
        inverse = torch.asarray(np.linalg.inv(stack.factor), device="cuda")
        layout = matrices.permute(1, 0, 2).reshape(size, -1).contiguous()
        product = milliseconds(lambda: inverse @ layout)  # noqa: B023
        fit = codiag.joint_diagonalize(matrices, orthogonal=orthogonal, seed=0)
        total = milliseconds(lambda: codiag.joint_diagonalize(matrices, orthogonal=orthogonal, seed=0))  # noqa: B023
        error = codiag.factor_error(fit, stack.factor)
        print(
            f"{name}: {total:.1f} ms, {total / product:.1f} products of {product:.2f} ms, {fit.n_sweeps} sweeps, "
            f"factor error {error:.3e}, predicted {np.sqrt(np.mean(fit.standard_errors**2)):.3e}"
        )


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
