"""Time the default methods on an accelerator, through torch, CuPy and JAX: ``python -m benchmarks.device``.

Times are medians by the clock, with the device waited for. The host's work is part of them, so that they vary with the
host by a factor of up to two; the time in kernels does not.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

import codiag
from benchmarks.measure import keep, table
from codiag.synthetic import matrix_stack, mild_factor, orthonormal_factor, unit_factor

SIZE = 500
NOISES = {"1e-3 in each entry": 1e-3, "1e-3 in operator norm": 1e-3 / (2 * SIZE**0.5)}
TENSORS = ((100, 10), (400, 20), (1000, 50))
"""Sizes of cubes, and ranks."""


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


def in_kernels(work: Callable[[], object]) -> tuple[float, int]:
    """Return the milliseconds that the device computes or copies during one call, and the number of launches."""
    work()
    with profile(activities=[ProfilerActivity.CUDA]) as recorded:
        work()
        torch.cuda.synchronize()
    events = [event for event in recorded.events() if str(event.device_type).endswith("CUDA")]
    return sum(event.device_time for event in events) / 1e3, len(events)


def planted(size: int, rank: int, dtype: torch.dtype, noise: float = 1e-2) -> tuple[torch.Tensor, list[np.ndarray]]:
    """Return a dense tensor that is made on the device, and its factors."""
    rng = np.random.default_rng(0)
    factors = [unit_factor(size, rank, rng) for _ in range(3)]
    there = [torch.asarray(factor, device="cuda") for factor in factors]
    weights = torch.asarray(1 + rng.random(rank), device="cuda")
    tensor = torch.einsum("ir,jr,kr->ijk", there[0] * weights, *there[1:])
    generator = torch.Generator(device="cuda").manual_seed(0)
    level = noise * float(torch.linalg.vector_norm(tensor)) / size**1.5
    for part in tensor:
        part += level * torch.randn(part.shape, generator=generator, dtype=torch.float64, device="cuda")
    return tensor.to(dtype), factors


def row(name: str, tensor: Any, rank: int, factors: list[np.ndarray]) -> tuple[object, ...]:
    """Return the name of a problem, its times, and the error of the fit with its prediction."""

    def fit() -> codiag.Factorization:
        return codiag.factorize(tensor, rank, rng=0)

    total, (kernels, launches) = milliseconds(fit), in_kernels(fit)
    result = fit()
    error, errors = codiag.factor_error(result, factors), float(np.mean(result.standard_errors))
    predicted = "not computed" if np.isnan(errors) else f"{errors:.2e}"
    history = "; ".join(f"{stage.name} {1e3 * stage.seconds:.1f}" for stage in result.history)
    numbers = (f"{total:.1f}", f"{kernels:.1f}", f"{total - kernels:.1f}", launches, f"{error:.2e}", predicted)
    return (name, *numbers, history)


def factorization() -> str:
    """Factorize dense tensors on the device, complete and with missing entries, and the smallest on the host, too."""
    rows = []
    for size, rank in TENSORS:
        for dtype in (torch.float64, torch.float32):
            tensor, factors = planted(size, rank, dtype)
            name = f"{size}^3, rank {rank}, {str(dtype).removeprefix('torch.')}"
            rows.append(row(name, tensor, rank, factors))
            if size == TENSORS[0][0] and dtype == torch.float64:
                rows.append(row(f"{name}, on the host", tensor.cpu().numpy(), rank, factors))
    tensor, factors = planted(200, 10, torch.float64)
    generator = torch.Generator(device="cuda").manual_seed(1)
    tensor[torch.rand(tensor.shape, generator=generator, device="cuda") < 0.5] = torch.nan
    rows.append(row("200^3, rank 10, half missing", tensor, 10, factors))
    headings = (
        "problem",
        "ms",
        "in kernels",
        "host and waiting",
        "launches",
        "factor error",
        "predicted",
        "stages, ms",
    )
    return (
        f"## Factorization on an accelerator\n{torch.cuda.get_device_name()}, relative noise 0.01; median of nine "
        "calls after two that warm up, the tensor on the device.\n\n" + table(headings, rows)
    )


def libraries() -> str:
    """Factorize the same tensor as an array of each library."""
    import cupy
    import jax

    jax.config.update("jax_enable_x64", True)
    rows = []
    for size, rank in TENSORS[:2]:
        tensor, _ = planted(size, rank, torch.float64)
        entries = tensor.cpu().numpy()
        arrays = {"torch": tensor, "CuPy": cupy.asarray(entries), "JAX": jax.numpy.asarray(entries)}
        for name, array in arrays.items():
            rows.append((f"{size}^3, rank {rank}", name, f"{milliseconds(lambda: codiag.factorize(array, rank)):.1f}"))  # noqa: B023
    return "## Libraries on an accelerator\nThe same tensors in three libraries, float64.\n\n" + table(
        ("problem", "library", "ms"), rows
    )


def stacks() -> str:
    """Diagonalize stacks of matrices on the device."""
    rows = []
    for (label, noise), (name, make, orthogonal) in (
        (noise, kind)
        for noise in NOISES.items()
        for kind in (("orthogonal", orthonormal_factor, True), ("mild U", mild_factor, False))
    ):
        rng = np.random.default_rng(0)
        stack = matrix_stack(make(SIZE, SIZE, rng), SIZE, noise=noise, rng=rng)
        matrices = torch.asarray(stack.matrices, device="cuda")
        inverse = torch.asarray(np.linalg.inv(stack.factor), device="cuda")
        layout = matrices.permute(1, 0, 2).reshape(SIZE, -1).contiguous()
        product = milliseconds(lambda: inverse @ layout)  # noqa: B023
        fit = codiag.joint_diagonalize(matrices, orthogonal=orthogonal, rng=0)
        total = milliseconds(lambda: codiag.joint_diagonalize(matrices, orthogonal=orthogonal, rng=0))  # noqa: B023
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
    sections = {"device factorization": factorization, "device libraries": libraries, "device": stacks}
    for name, section in sections.items():
        text = section()
        keep(name, "python -m benchmarks.device", text)
        print(text, end="\n\n")
