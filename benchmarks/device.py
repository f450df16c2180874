"""Time the default methods on an accelerator, through torch, CuPy and JAX: ``python -m benchmarks.device``.

Times are medians by the clock, with the device waited for. The host's work is part of them, so that they vary with the
host by a factor of up to two; the time in kernels does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import torch

import codiag
from benchmarks.device_stages import floor, milliseconds, n_calls, stage_table, stages, traffic
from benchmarks.measure import keep, table
from codiag.synthetic import matrix_stack, mild_factor, orthonormal_factor, unit_factor

SIZES = (500, 100)
"""Sizes and numbers of matrices."""

TENSORS = ((100, 10), (400, 20), (1000, 50))
"""Sizes of cubes, and ranks."""


def planted(
    size: int, rank: int, dtype: torch.dtype, noise: float = 1e-2
) -> tuple[torch.Tensor, int, list[np.ndarray]]:
    """Return a dense tensor that is made on the device, its rank, and its factors."""
    rng = np.random.default_rng(0)
    factors = [unit_factor(size, rank, rng) for _ in range(3)]
    there = [torch.asarray(factor, device="cuda") for factor in factors]
    weights = torch.asarray(1 + rng.random(rank), device="cuda")
    tensor = torch.einsum("ir,jr,kr->ijk", there[0] * weights, *there[1:])
    generator = torch.Generator(device="cuda").manual_seed(0)
    level = noise * float(torch.linalg.vector_norm(tensor)) / size**1.5
    for part in tensor:
        part += level * torch.randn(part.shape, generator=generator, dtype=torch.float64, device="cuda")
    return tensor.to(dtype), rank, factors


def row(name: str, tensor: Any, rank: int, factors: list[np.ndarray]) -> tuple[object, ...]:
    """Return the name of a problem, its times, and the error of the fit with its prediction."""

    def fit() -> codiag.Factorization:
        return codiag.factorize(tensor, rank, rng=0)

    total, (kernels, launches, waits) = milliseconds(fit), traffic(fit)
    result, least = fit(), "-"
    error, errors = codiag.factor_error(result, factors), float(np.mean(result.standard_errors))
    predicted = "not computed" if np.isnan(errors) else f"{errors:.2e}"
    if isinstance(tensor, torch.Tensor) and not bool(torch.isnan(tensor[0]).any()):
        read, multiply = floor(tensor, rank + 10)
        least = f"{read + 5 * multiply:.1f}"
    return (name, f"{total:.1f}", least, f"{kernels:.1f}", launches, waits, n_calls(fit), f"{error:.2e}", predicted)


def problems() -> Iterator[tuple[str, torch.Tensor, int, list[np.ndarray]]]:
    """Yield names, tensors on the device, ranks and factors."""
    for size, rank in TENSORS:
        for dtype in (torch.float64, torch.float32):
            yield f"{size}^3, rank {rank}, {str(dtype).removeprefix('torch.')}", *planted(size, rank, dtype)
    tensor, rank, factors = planted(200, 10, torch.float64)
    generator = torch.Generator(device="cuda").manual_seed(1)
    tensor[torch.rand(tensor.shape, generator=generator, device="cuda") < 0.5] = torch.nan
    yield "200^3, rank 10, half missing", tensor, rank, factors


def factorization() -> str:
    """Factorize dense tensors on the device, complete and with missing entries, and the smallest on the host, too."""
    rows, works = [], {}
    for name, tensor, rank, factors in problems():
        rows.append(row(name, tensor, rank, factors))
        works[name] = stages(lambda: codiag.factorize(tensor, rank, rng=0))  # noqa: B023
        if tensor.shape[0] == TENSORS[0][0] and tensor.dtype == torch.float64:
            rows.append(row(f"{name}, on the host", tensor.cpu().numpy(), rank, factors))
    headings = ("problem", "ms", "floor", "in kernels", "launches", "waits", "calls of Python")
    return (
        f"## Factorization on an accelerator\n{torch.cuda.get_device_name()}, relative noise 0.01; medians of ten "
        "calls after two that warm up, the tensor on the device. The floor is one read of the tensor and five products "
        "with rank + 10 columns, measured beside it.\n\n"
        f"{table((*headings, 'factor error', 'predicted'), rows)}\n\n"
        f"Stages, each until the device has ended it; waiting makes the whole slower.\n\n{stage_table(works)}"
    )


def libraries() -> str:
    """Factorize the same tensor as an array of each library."""
    import cupy
    import jax

    jax.config.update("jax_enable_x64", True)
    rows = []
    for size, rank in TENSORS[:2]:
        tensor, *_ = planted(size, rank, torch.float64)
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
    kinds = (("orthogonal", orthonormal_factor, True), ("mild U", mild_factor, False))
    noises = ("each entry", lambda _: 1e-3), ("operator norm", lambda size: 1e-3 / (2 * size**0.5))
    for size, (label, noise), (name, make, orthogonal) in product(SIZES, noises, kinds):
        rng = np.random.default_rng(0)
        stack = matrix_stack(make(size, size, rng), size, noise=noise(size), rng=rng)
        matrices = torch.asarray(stack.matrices, device="cuda")
        inverse = torch.asarray(np.linalg.inv(stack.factor), device="cuda")
        layout = matrices.permute(1, 0, 2).reshape(size, -1).contiguous()
        least = milliseconds(lambda: inverse @ layout)  # noqa: B023

        def diagonalize() -> codiag.Diagonalization:
            return codiag.joint_diagonalize(matrices, orthogonal=orthogonal, rng=0)  # noqa: B023

        total, (kernels, launches, waits), fit = milliseconds(diagonalize), traffic(diagonalize), diagonalize()
        error, predicted = codiag.factor_error(fit, stack.factor), float(np.sqrt(np.mean(fit.standard_errors**2)))
        times = (f"{total:.1f}", f"{kernels:.1f}", launches, waits, f"{total / least:.1f}", fit.n_sweeps)
        rows.append((size, name, f"1e-3 in {label}", *times, f"{error:.3e}", f"{predicted:.3e}"))
    headings = ("d = n", "problem", "noise", "ms", "in kernels", "launches", "waits", "products", "sweeps")
    return (
        f"## Accelerator\n{torch.cuda.get_device_name()}, float64, matrices on the device; medians of ten calls after "
        f"two that warm up.\n\n{table((*headings, 'factor error', 'predicted'), rows)}"
    )


if __name__ == "__main__":
    sections = {"device factorization": factorization, "device libraries": libraries, "device": stacks}
    for name, section in sections.items():
        text = section()
        keep(name, "python -m benchmarks.device", text)
        print(text, end="\n\n")
