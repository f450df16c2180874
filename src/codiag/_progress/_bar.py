"""A bar that shows what methods log: the stages that are done, and passes over a large tensor."""

from __future__ import annotations

import logging
import math
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from codiag._text import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

READS = 4
"""Passes over a large tensor that a fit takes if its components explain it; other tensors take more."""

PATIENCE, SILENCE = 2.0, 10.0
"""Seconds before a bar appears in Python: where it is wanted, and where nobody has said anything."""

_unasked = threading.Lock()
"""Held while a bar that nobody has asked for is waiting or shown: there is one of these at a time."""


@contextmanager
def progress_if(wanted: bool | None, message: str) -> Iterator[None]:
    """Show progress on the standard error: after two seconds if that is wanted, and after ten if it is None.

    Nothing appears where the standard error is no terminal, nor a notebook. What takes a moment costs no import.
    """
    if wanted is not None and not isinstance(wanted, bool):
        raise TypeError(f"progress must be True, False or None; got {wanted!r}")
    delay = PATIENCE if wanted else SILENCE
    is_alone = wanted is None and _is_watched() and _unasked.acquire(blocking=False)
    try:
        with _bar_after(delay, message) if wanted or is_alone else nullcontext():
            yield
    finally:
        if is_alone:
            _unasked.release()


def _is_watched() -> bool:
    """Return whether the standard error is a terminal, or this is the kernel of a notebook."""
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())


@contextmanager
def _bar_after(delay: float, message: str) -> Iterator[None]:
    """Show a bar from some seconds on."""
    with ExitStack() as stack:
        timer = threading.Timer(delay, lambda: stack.enter_context(progress_bar(message, elapsed=delay)))
        timer.daemon = True
        timer.start() if delay > 0 else timer.run()
        try:
            yield
        finally:
            timer.cancel()
            if timer.is_alive():
                timer.join()


@contextmanager
def progress_bar(message: str, console: Console | None = None, *, elapsed: float = 0.0) -> Iterator[Passes]:
    """Show progress: the stages that methods log, and a bar of the passes over a large tensor.

    Parameters
    ----------
    message : str
        What is being done.
    console : rich.console.Console, optional
        Where it is shown: by default on the standard error, and in a notebook below the cell. If that is no terminal,
        nothing is.
    elapsed : float
        Seconds that it has taken already.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.table import Column

    console = console or Console(stderr=True)
    detail = TextColumn("[dim]{task.fields[detail]}", table_column=Column(no_wrap=True, overflow="ellipsis"))
    doing, passes_done = TextColumn("{task.description}"), TextColumn("{task.fields[passes]}")
    place = TextColumn("{task.fields[place]}")
    columns = (SpinnerColumn(), doing, place, BarColumn(24), TimeElapsedColumn(), passes_done, detail)
    is_shown = console.is_terminal or console.is_jupyter
    display = Progress(*columns, console=console, transient=True, disable=not is_shown)
    task = display.add_task(message, total=None, place="", passes="", detail="")
    display.tasks[0].start_time = display.get_time() - elapsed
    passes = Passes(display, task)
    handlers: dict[str, logging.Handler] = {"codiag": Stages(display, task), "codiag.reads": passes}
    with display if is_shown else nullcontext(), _attached(handlers):
        yield passes


@contextmanager
def _attached(handlers: dict[str, logging.Handler]) -> Iterator[None]:
    """Attach handlers to loggers, by name, at their levels, and detach them."""
    loggers = {name: logging.getLogger(name) for name in handlers}
    levels = {name: logger.level for name, logger in loggers.items()}
    for name, logger in loggers.items():
        logger.addHandler(handlers[name])
        logger.setLevel(handlers[name].level)
    try:
        yield
    finally:
        for name, logger in loggers.items():
            logger.removeHandler(handlers[name])
            logger.setLevel(levels[name])


class Stages(logging.Handler):
    """Shows beside the bar the last stage that is done, and where in a series the work is: ``extra={"place": ...}``."""

    def __init__(self, display: Progress, task: Any) -> None:
        super().__init__(logging.INFO)
        self._display, self._task = display, task

    def emit(self, record: logging.LogRecord) -> None:
        from rich.markup import escape

        message = record.getMessage()
        if hasattr(record, "place"):
            self._display.update(self._task, place=escape(visible(message)))
            return
        self._display.update(self._task, detail=escape(visible(message.split(", objective ")[0])))


class Passes(logging.Handler):
    """Shows the share of the usual number of passes over a large tensor that is done, then the number of the pass."""

    def __init__(self, display: Progress, task: Any) -> None:
        super().__init__(logging.DEBUG)
        self._display, self._task = display, task
        self._shape: tuple[int, ...] | None = None
        self._n_done = 0

    def over(self, shape: Sequence[int]) -> None:
        """Count passes over a tensor of this shape alone, not over its cores and chunks; a small one has no bar."""
        from codiag.tensors import is_large

        self._shape = tuple(shape) if is_large(shape) else None

    def doing(self, message: str) -> None:
        """Show what is being done."""
        self._display.update(self._task, description=message, place="", detail="")

    def emit(self, record: logging.LogRecord) -> None:
        shape, part, n_parts = (getattr(record, name) for name in ("shape", "part", "n_parts"))
        if shape != self._shape:
            return
        done = self._n_done + part / n_parts
        self._n_done += part == n_parts
        number, total = math.ceil(done), max(READS, math.floor(done) + 1)  # above `done`: work goes on
        words = f"pass {number} of {READS}" if number <= READS else f"pass {number}"
        self._display.update(self._task, completed=done, total=total, passes=words)
