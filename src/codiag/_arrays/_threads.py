"""Threads of linear algebra: one is enough for small arrays.

A BLAS library divides every product and every solution among its threads, also those so small that the threads only
wait for each other; and where processes or threads of Python fit small tensors side by side, each of them would start
as many as there are cores. While small fits run, and no other, BLAS is held to one thread.

How many threads BLAS has is a setting of the whole process, and this is the one place where codiag changes such a
setting for a while; only the programs of `codiag.experiments`, which have a process to themselves, hold all that they
compare to one thread, whatever its size. It is safe with threads because fits are listed, under a lock: the first small
fit sets the limit, the last one removes it, and a fit that is not small removes it as long as it runs. A fit that an
interrupt has ended, even at the very moment at which it wanted to leave the list, is found not to run any more as soon
as another begins or ends. A library gets back the number of threads that it had, unless somebody else has changed it
meanwhile, and never more. Where a ``threadpool_limits`` of the caller's holds in another thread, recent versions of
threadpoolctl leave that as it is, and so does this. What cannot be had is a limit for one thread of Python alone:
products of the caller's own threads run on one core, too, while small fits run beside them; and a ``threadpool_limits``
that begins beside a fit in another thread and outlasts it restores the limit that it found.

How many threads work may take, and work in them whose results do not depend on their number.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from types import FrameType
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController, threadpool_info

SMALL_PRODUCT = 2**22
"""Multiplications of the largest product up to which a fit is small. Measured with OpenBLAS and two threads: no gain by
the second up to 2^18, a factor of 1.1 to 1.3 up to here, at twice the work; 1.5 and more from 2^23 on."""


class Fit:
    """A fit that has begun: known by the frame that it runs in, until that says that it has ended."""

    def __init__(self, small: bool, frame: FrameType) -> None:
        self.small, self.thread = small, threading.get_ident()
        self.frame: FrameType | None = frame

    def runs(self) -> bool:
        """Tell whether the frame is still at work in its thread; an interrupt may have ended it without a word."""
        frame = sys._current_frames().get(self.thread)
        while frame is not None and frame is not self.frame:
            frame = frame.f_back
        return frame is not None


class ThreadLimit:
    """A limit of one BLAS thread that holds while there are small fits, and no others."""

    def __init__(self) -> None:
        self.forget()

    @cached_property
    def _libraries(self) -> list[Any]:
        """The BLAS libraries of this process, looked up once, which takes milliseconds."""
        found: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
        return found

    @contextmanager
    def around(self, n_multiplications: float) -> Iterator[None]:
        """Run a fit whose largest product has so many multiplications."""
        fit = Fit(n_multiplications <= SMALL_PRODUCT, sys._getframe(2))  # that of the with statement
        try:
            self._begin(fit)
            yield
        finally:
            fit.frame = None
            self._update()

    def _begin(self, fit: Fit) -> None:
        with self._lock:
            self._fits.add(fit)
        self._update()

    def _update(self) -> None:
        """Set or remove the limit, by the fits that still run; what an interrupt has left undone, too."""
        with self._lock:
            fits = {fit for fit in self._fits if fit.runs()}
            self._fits &= fits
            if fits and all(fit.small for fit in fits):
                self._limit()
            else:
                self._restore()

    def _limit(self) -> None:
        for library in self._libraries:
            n_threads = library.num_threads
            if n_threads is not None and n_threads > 1 and not any(library is known for known, _ in self._before):
                self._before.append((library, n_threads))
                _set(library, 1)

    def _restore(self) -> None:
        while self._before:
            library, n_threads = self._before[-1]
            if library.num_threads == 1:
                _set(library, n_threads)
            self._before.pop()

    def forget(self) -> None:
        """Start anew in a process that was forked, where no fit goes on and a lock may have been left closed."""
        self._lock = threading.Lock()
        self._fits: weakref.WeakSet[Fit] = weakref.WeakSet()
        self._before: list[tuple[Any, int]] = getattr(self, "_before", [])
        self._restore()


def _set(library: Any, n_threads: int) -> None:
    """Set a number of threads, and let other threads of Python set it after this: the last fit need not be the first.

    Recent versions of threadpoolctl ignore all threads but the one that was first, until that one gives way.
    """
    library.set_num_threads(n_threads)
    if hasattr(library, "clear_controlling_thread"):
        library.clear_controlling_thread()


_LIMIT = ThreadLimit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_LIMIT.forget)

few_threads = _LIMIT.around


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
