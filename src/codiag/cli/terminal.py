"""Print results, progress, warnings and errors."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column

from codiag._text import visible
from codiag.cli.errors import in_options
from codiag.tensors import is_large

out = Console()
err = Console(stderr=True)

READS = 4
"""Passes over a large tensor that a fit takes where its components explain it; other tensors take more."""


def shown(text: object) -> str:
    """Return text for the terminal, with control characters and the markup of rich escaped."""
    return escape(visible(str(text)))


def fail(message: str) -> NoReturn:
    """Print an error message and exit with status 2."""
    _say("[red]Error:[/red]", message)
    raise typer.Exit(2)


def show_warning(options: Mapping[str, str], message: Warning | str, *_place: object, **_more: object) -> None:
    """Print a warning as one line: in place of `warnings.showwarning`, which names the place in the code too."""
    _say("[yellow]Warning:[/yellow]", in_options(str(message), options))


def remark(message: str) -> None:
    """Print what a user may not expect, on the standard error."""
    _say("[cyan]Note:[/cyan]", message)


def _say(heading: str, message: str) -> None:
    err.print(heading, shown(" ".join(message.split("\n"))), soft_wrap=True, highlight=False)


@contextmanager
def progress(message: str) -> Iterator[Passes]:
    """Show the progress on a terminal, as the methods log it, with a bar of the passes over a tensor to be named."""
    detail = TextColumn("[dim]{task.fields[detail]}", table_column=Column(no_wrap=True, overflow="ellipsis"))
    doing, passes_done = TextColumn("{task.description}"), TextColumn("{task.fields[passes]}")
    columns = (SpinnerColumn(), doing, BarColumn(24), TimeElapsedColumn(), passes_done, detail)
    display = Progress(*columns, console=err, transient=True, disable=not err.is_terminal)
    with display if err.is_terminal else nullcontext():  # versions of rich end a line that they have not begun
        task = display.add_task(message, total=None, passes="", detail="")
        passes = Passes(display, task)
        handlers: dict[str, logging.Handler] = {
            "codiag": Stages(display, task),
            "codiag.reads": passes,
        }
        loggers = {name: logging.getLogger(name) for name in handlers}
        levels = {name: logger.level for name, logger in loggers.items()}
        for name, logger in loggers.items():
            logger.addHandler(handlers[name])
            logger.setLevel(handlers[name].level)
        try:
            yield passes
        finally:
            for name, logger in loggers.items():
                logger.removeHandler(handlers[name])
                logger.setLevel(levels[name])


class Stages(logging.Handler):
    """Shows beside the bar what has been done last."""

    def __init__(self, display: Progress, task: TaskID) -> None:
        super().__init__(logging.INFO)
        self._display, self._task = display, task

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        self._display.update(self._task, detail=shown(message.split(", objective ")[0]))


class Passes(logging.Handler):
    """Shows how much of the usual number of passes over a large tensor is done, and then which pass is going on."""

    def __init__(self, display: Progress, task: TaskID) -> None:
        super().__init__(logging.DEBUG)
        self._display, self._task = display, task
        self._shape: tuple[int, ...] | None = None
        self._n_done = 0

    def over(self, shape: Sequence[int]) -> None:
        """Count passes over a tensor of this shape: its cores and chunks are read, too. One in memory has no bar."""
        self._shape = tuple(shape) if is_large(shape) else None

    def doing(self, message: str) -> None:
        """Show what is done now."""
        self._display.update(self._task, description=message, detail="")

    def emit(self, record: logging.LogRecord) -> None:
        shape, part, n_parts = (getattr(record, name) for name in ("shape", "part", "n_parts"))
        if shape != self._shape:
            return
        done = self._n_done + part / n_parts
        self._n_done += part == n_parts
        number, total = math.ceil(done), max(READS, math.floor(done) + 1)  # more than is done: work goes on
        words = f"pass {number} of {READS}" if number <= READS else f"pass {number}"
        self._display.update(self._task, completed=done, total=total, passes=words)


@contextmanager
def user_errors(options: Mapping[str, str] | None = None) -> Iterator[None]:
    """Report errors that the user can correct in one sentence, with options for arguments and without a traceback."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        fail(f"no figure, since {error.name} is not installed. Get it with: pip install 'codiag[plot]'")
    except (ValueError, TypeError, OSError) as error:
        fail(in_options(str(error), options or {}))
    except MemoryError:
        fail("it does not fit into memory; tensors in .npy, .zarr and .h5 files are read part by part")
