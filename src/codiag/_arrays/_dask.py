"""Passes over dask arrays: what all tasks share is sent once, and a pass is repeated if a cluster loses it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any, TypeVar

T = TypeVar("T")

FAN_IN = 8
"""Number of contributions that are added at a time, so that no worker holds those of all chunks (by experience)."""

IN_GRAPH = 2**22
"""Bytes of shared arrays up to which they are a task of the graph, which a cluster repeats if a worker is lost. Larger
ones would slow the scheduler, so that every worker gets a copy before the pass; 4 MiB, chosen by experience."""


def is_dask(data: Any) -> bool:
    """Return whether data is an array of dask, without importing dask."""
    return callable(getattr(data, "__dask_graph__", None)) and hasattr(type(data), "rechunk")


def pass_with(content: Any, run: Callable[[Any], T]) -> T:
    """Return ``run(reference)``; tasks use the reference for the content. Repeat the pass if all copies are lost."""
    n_attempts = 0
    while True:
        reference, scattered = _reference(content)
        n_attempts += 1
        try:
            return run(reference)
        except CancelledError:
            if not scattered or n_attempts == 3:
                raise


def _reference(content: Any) -> tuple[Any, bool]:
    """Return a reference to the content for every task, and whether copies were sent to the workers beforehand."""
    import dask
    from dask.base import get_scheduler

    client: Any = getattr(get_scheduler(), "__self__", None)
    if _n_bytes(content) > IN_GRAPH and hasattr(client, "scatter"):
        return client.scatter(content, broadcast=True, hash=False), True
    return dask.delayed(content, name=f"codiag-shared-{uuid.uuid4().hex}", traverse=False), False


def _n_bytes(content: Any) -> int:
    """Return the size of the arrays in an object, a sequence or a dataclass of them."""
    if isinstance(content, tuple | list):
        return sum(_n_bytes(item) for item in content)
    if hasattr(content, "nbytes"):
        return int(content.nbytes)
    return sum(_n_bytes(value) for value in vars(content).values()) if hasattr(content, "__dataclass_fields__") else 0
