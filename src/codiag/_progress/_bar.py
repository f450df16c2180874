"""A bar that shows what methods log: the stages that are done, and passes over a large tensor."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from codiag._text import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

READS = 4
"""Passes over a large tensor that a fit takes if its components explain it; other tensors take more."""

PATIENCE = 2.0
"""Seconds before a bar appears in Python."""


def progress_if(wanted: bool, message: str) -> AbstractContextManager[object]:
    """Show progress on the standard error if that is wanted, once it has taken two seconds."""
    if not isinstance(wanted, bool):
        raise TypeError(f"progress must be True or False; got {wanted!r}")
    return progress_bar(message, delay=PATIENCE) if wanted else nullcontext()


@contextmanager
def progress_bar(message: str, console: Console | None = None, *, delay: float = 0.0) -> Iterator[Passes]:
    """Show progress: the stages that methods log, and a bar of the passes over a large tensor.

    Parameters
    ----------
    message : str
        What is being done.
    console : rich.console.Console, optional
        Where it is shown: by default on the standard error, and in a notebook below the cell. If that is no terminal,
        nothing is.
    delay : float
        Seconds before the bar appears.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.table import Column

    console = console or Console(stderr=True)
    detail = TextColumn("[dim]{task.fields[detail]}", table_column=Column(no_wrap=True, overflow="ellipsis"))
    doing, passes_done = TextColumn("{task.description}"), TextColumn("{task.fields[passes]}")
    columns = (SpinnerColumn(), doing, BarColumn(24), TimeElapsedColumn(), passes_done, detail)
    is_shown = console.is_terminal or console.is_jupyter
    display = Progress(*columns, console=console, transient=True, disable=not is_shown)
    task = display.add_task(message, total=None, passes="", detail="")
    passes = Passes(display, task)
    handlers: dict[str, logging.Handler] = {"codiag": Stages(display, task), "codiag.reads": passes}
    with _started(display, delay) if is_shown else nullcontext(), _attached(handlers):
        yield passes


@contextmanager
def _started(display: Progress, delay: float) -> Iterator[None]:
    """Start a display after some seconds, and stop it."""
    timer = threading.Timer(delay, display.start)
    timer.daemon = True
    timer.start() if delay > 0 else display.start()
    try:
        yield
    finally:
        timer.cancel()
        display.stop()


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
    """Shows beside the bar the last stage that is done."""

    def __init__(self, display: Progress, task: Any) -> None:
        super().__init__(logging.INFO)
        self._display, self._task = display, task

    def emit(self, record: logging.LogRecord) -> None:
        from rich.markup import escape

        message = record.getMessage()
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
        self._display.update(self._task, description=message, detail="")

    def emit(self, record: logging.LogRecord) -> None:
        shape, part, n_parts = (getattr(record, name) for name in ("shape", "part", "n_parts"))
        if shape != self._shape:
            return
        done = self._n_done + part / n_parts
        self._n_done += part == n_parts
        number, total = math.ceil(done), max(READS, math.floor(done) + 1)  # above `done`: work goes on
        words = f"pass {number} of {READS}" if number <= READS else f"pass {number}"
        self._display.update(self._task, completed=done, total=total, passes=words)
