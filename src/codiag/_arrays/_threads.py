"""Threads of linear algebra (BLAS) and of Python.

A BLAS library divides every product among its threads, even products so small that the threads mostly wait for each
other. While a fit runs, BLAS is therefore limited to as many threads as have enough to do. The limit is a setting of
the whole process, so that fits in several Python threads share it: it is that of the fit which needs most, and the last
fit restores the number of threads that was set before. A part of a fit may have a limit of its own, which replaces that
of the whole. Products of the caller's own threads are also limited while a fit runs beside them.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

SMALL_PRODUCT = 2**22
"""Multiplications in the largest product of a fit for each thread, at least. Measured with OpenBLAS: a second thread
gains nothing up to 2^18, a factor of 1.1 to 1.3 at twice the work up to 2^22, and 1.5 or more from 2^23 on."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class ThreadLimit:
    """A limit of the number of BLAS threads that holds while fits run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._needed: dict[object, tuple[int, int]] = {}  # the Python thread of a fit, and the BLAS threads it needs
        self._limiter: Any = None
        self._limit: int | None = None

    @cached_property
    def libraries(self) -> Any:
        """The BLAS libraries of this process, which take milliseconds to find."""
        return ThreadpoolController().select(user_api="blas")

    @contextmanager
    def around(self, n_multiplications: float) -> Iterator[None]:
        """Run a fit, or a part of one, whose largest product has this many multiplications."""
        fit = object()
        n_threads = math.ceil(min(max(n_multiplications / SMALL_PRODUCT, 1), 2**16))
        try:
            with self._lock:
                self._needed[fit] = threading.get_ident(), n_threads
                self._update()
            yield
        finally:
            with self._lock:
                self._needed.pop(fit, None)
                self._update()

    def _update(self) -> None:
        innermost = dict(self._needed.values())
        limit = max(innermost.values()) if innermost else None
        if limit == self._limit:
            return
        if self._limiter is not None:
            self._limiter.restore_original_limits()
            self._limiter = None
        if limit is not None and limit < min((each.num_threads for each in self.libraries.lib_controllers), default=0):
            self._limiter = self.libraries.limit(limits=limit, user_api="blas")
        self._limit = limit
        # The last fit may run in another thread than the first. Recent versions of threadpoolctl let only the thread
        # that set a number change it again, until that thread gives up this right.
        for library in self.libraries.lib_controllers:
            if hasattr(library, "clear_controlling_thread"):
                library.clear_controlling_thread()


_LIMIT = ThreadLimit()

few_threads = _LIMIT.around


def n_threads() -> int:
    """Return the number of Python threads to use: that of linear algebra, and at most the number of processors.

    ``OMP_NUM_THREADS``, `threadpoolctl.threadpool_limits`, joblib and the workers of a cluster limit the threads of
    linear algebra, and therefore these threads too.
    """
    limits = [int(library.num_threads) for library in _LIMIT.libraries.lib_controllers]
    return max(min([*limits, _n_processors()]), 1)


def _n_processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_threads(work: Callable[[Item], Result], items: Sequence[Item], threads: int) -> Iterator[Result]:
    """Yield the results of `work` for each item, in the order of the items, computed by this number of threads."""
    if threads <= 1 or len(items) <= 1:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(min(threads, len(items))) as pool:
        yield from pool.map(work, items)
