"""What all tasks of a pass by dask need, beside the part that each reads: sent once, not with every task."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any, TypeVar

T = TypeVar("T")

FAN_IN = 8
"""Contributions that are added at a time, so that no worker and no scheduler ever holds those of all parts."""

IN_GRAPH = 2**22
"""Bytes of arrays up to which they are one task of the graph, which a cluster makes again if its worker is lost; of
more, which would burden the scheduler, every worker gets a copy before."""

ATTEMPTS = 3
"""Times that a pass is begun, at most, where all workers are lost that had these copies."""


def pass_with(content: Any, run: Callable[[Any], T]) -> T:
    """Return what a pass gives, called with what its tasks refer to the content by; again where all copies are lost."""
    n_attempts = 0
    while True:
        held, scattered = _held(content)
        n_attempts += 1
        try:
            return run(held)
        except CancelledError:
            if not scattered or n_attempts == ATTEMPTS:
                raise


def _held(content: Any) -> tuple[Any, bool]:
    """Return what every task refers to, by name, and whether copies of it were sent to the workers beforehand."""
    import dask
    from dask.base import get_scheduler

    client: Any = getattr(get_scheduler(), "__self__", None)
    if _n_bytes(content) > IN_GRAPH and hasattr(client, "scatter"):
        return client.scatter(content, broadcast=True, hash=False), True
    return dask.delayed(content, name=f"codiag-asked-{uuid.uuid4().hex}", traverse=False), False


def _n_bytes(content: Any) -> int:
    """Return the size of the arrays in an object, a sequence or a dataclass of them."""
    if isinstance(content, tuple | list):
        return sum(_n_bytes(item) for item in content)
    if hasattr(content, "nbytes"):
        return int(content.nbytes)
    return sum(_n_bytes(value) for value in vars(content).values()) if hasattr(content, "__dataclass_fields__") else 0
