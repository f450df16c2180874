"""Where a fit on an accelerator spends its time, stage by stage, for `benchmarks.device`.

The wall-clock time of a stage is that until the device has finished it; stages are timed in calls of their own, because
waiting for the device between them makes the whole slower. Launches, kernels and waits are from the profiler.
"""

from __future__ import annotations

import importlib
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.measure import table

STAGES = (
    ("first look", "codiag._factorize", "as_problem"),
    ("bases and sides", "codiag.reduction._reduction", "_sides_in_turns"),
    ("bases of the core", "codiag.reduction._reduction", "dominant_core"),
    ("diagonalize", "codiag.starts._diagonal", "diagonal_start"),
    ("rough minimum on the core", "codiag.search._loop", "local_minimum"),
    ("minimum on the core", "codiag.search._finish", "settled"),
    ("polish", "codiag.search._finish", "finish_large"),
    ("result", "codiag.result._solve", "as_factorization"),
)
"""Name, module and function of each stage."""

WAITS = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize")


def wait() -> None:
    """Wait for the device, if there is one."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


@contextmanager
def timed(seconds: dict[str, float]) -> Iterator[None]:
    """Add the time of each stage to `seconds` while the functions of the stages are replaced by timed ones."""
    before = []

    def replacement(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def measured(*args: Any, **options: Any) -> Any:
            wait()
            start = time.perf_counter()
            try:
                return function(*args, **options)
            finally:
                wait()
                seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - start

        return measured

    for name, module_name, attribute in STAGES:
        module = importlib.import_module(module_name)
        before.append((module, attribute, getattr(module, attribute)))
        setattr(module, attribute, replacement(name, getattr(module, attribute)))
    try:
        yield
    finally:
        for module, attribute, function in before:
            setattr(module, attribute, function)


def n_calls(work: Callable[[], object]) -> int:
    """Return the number of calls of Python functions, and of functions in C, during one call."""
    count = 0

    def seen(_: Any, event: str, __: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def traffic(work: Callable[[], object]) -> tuple[float, int, int]:
    """Return the milliseconds in kernels and copies, the number of these, and how often the host waited for them."""
    activity = ProfilerActivity.CUDA if torch.cuda.is_available() else ProfilerActivity.CPU
    with profile(activities=[activity]) as recorded:
        work()
        wait()
    events = recorded.events()
    there = [event for event in events if str(event.device_type).endswith("CUDA")]
    n_waits = sum(event.name in WAITS for event in events)
    return sum(event.device_time for event in there) / 1e3, len(there), n_waits - 1


def milliseconds(work: Callable[[], object], repeats: int = 10) -> float:
    """Return the median wall-clock time, after two warm-up calls, with the device waited for."""
    times = []
    for repeat in range(repeats + 2):
        wait()
        start = time.perf_counter()
        work()
        wait()
        if repeat >= 2:
            times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def floor(tensor: torch.Tensor, width: int) -> tuple[float, float]:
    """Return the milliseconds of one read of a tensor, and of its product with so many columns."""
    columns = torch.ones((tensor.shape[-1], width), dtype=tensor.dtype, device=tensor.device)
    side = tensor.reshape(-1, tensor.shape[-1])
    return milliseconds(lambda: torch.linalg.vector_norm(tensor)), milliseconds(lambda: side @ columns)


def stages(work: Callable[[], object], repeats: int = 5) -> dict[str, float]:
    """Return the median milliseconds of each stage."""
    found = []
    for _ in range(repeats):
        seconds: dict[str, float] = {}
        with timed(seconds):
            work()
        found.append(seconds)
    names = [name for name, *_ in STAGES if name in found[0]]
    return {name: 1e3 * statistics.median(one.get(name, 0.0) for one in found) for name in names}


def stage_table(columns: dict[str, dict[str, float]]) -> str:
    """Return the table of stages of several problems."""
    rows = [
        (stage, *(f"{column[stage]:.1f}" if stage in column else "-" for column in columns.values()))
        for stage, *_ in STAGES
        if any(stage in column for column in columns.values())
    ]
    return table(("stage, ms", *columns), rows)
