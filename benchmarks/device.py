"""Time the default methods on an accelerator, through torch: ``python -m benchmarks.device``."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import torch

import codiag
from benchmarks.measure import keep, table
from codiag.synthetic import matrix_stack, mild_factor, orthonormal_factor, unit_factor

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


def factorization(size: int = 1000, rank: int = 50, noise: float = 1e-2) -> str:
    """Factorize a dense tensor that is made on the device and never leaves it."""
    rows = []
    rng = np.random.default_rng(0)
    factors = [unit_factor(size, rank, rng) for _ in range(3)]
    weights = 1 + rng.random(rank)
    on_device = [torch.asarray(factor, device="cuda") for factor in factors]
    scaled = on_device[0] * torch.asarray(weights, device="cuda")
    for dtype in (torch.float64, torch.float32):
        tensor = torch.einsum("ir,jr,kr->ijk", scaled, *on_device[1:])
        generator = torch.Generator(device="cuda").manual_seed(0)
        level = noise * float(torch.linalg.vector_norm(tensor)) / size**1.5
        for part in tensor:
            part += level * torch.randn(part.shape, generator=generator, dtype=torch.float64, device="cuda")
        tensor = tensor.to(dtype)
        fit = codiag.factorize(tensor, rank, seed=0)
        seconds = milliseconds(lambda: codiag.factorize(tensor, rank, seed=0), repeats=3) / 1e3  # noqa: B023
        error = codiag.factor_error(fit, factors)
        rows.append(
            (
                f"{size}^3, rank {rank}, {str(dtype).removeprefix('torch.')}",
                f"{seconds:.2f}",
                f"{error:.3e}",
                f"{np.mean(fit.standard_errors):.3e}",
                "; ".join(f"{stage.name} {stage.seconds:.2f}" for stage in fit.stages),
            )
        )
    headings = ("problem", "seconds", "factor error", "predicted", "stages, seconds (first call)")
    return (
        f"## Factorization on an accelerator\n{torch.cuda.get_device_name()}, relative noise {noise:g}; median of "
        "three calls after three that warm up, the tensor on the device.\n\n" + table(headings, rows)
    )


if __name__ == "__main__":
    for name, text in (("device factorization", factorization()), ("device", run())):
        keep(name, "python -m benchmarks.device", text)
        print(text, end="\n\n")
