"""How many threads work may take, and work in them whose results do not depend on their number."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from threadpoolctl import threadpool_info

Item = TypeVar("Item")
Result = TypeVar("Result")


def n_threads() -> int:
    """Return how many threads a computation may take: as many as linear algebra may, and as there are processors.

    So ``OMP_NUM_THREADS``, `threadpoolctl.threadpool_limits` and the workers of joblib and of a cluster, which all
    limit the threads of linear algebra, limit these threads, too.
    """
    limits = [int(library["num_threads"]) for library in threadpool_info()]
    return max(min([*limits, _n_processors()]), 1)


def _n_processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_threads(work: Callable[[Item], Result], items: Sequence[Item], threads: int) -> Iterator[Result]:
    """Yield the results of work on items, in their order, computed by so many threads."""
    if threads <= 1 or len(items) <= 1:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(min(threads, len(items))) as pool:
        yield from pool.map(work, items)
