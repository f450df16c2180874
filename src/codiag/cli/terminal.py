"""Print results, progress, warnings and errors."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer
from rich.console import Console
from rich.markup import escape

from codiag._writing import visible

out = Console()
err = Console(stderr=True)


def shown(text: object) -> str:
    """Return text for the terminal, with control characters and the markup of rich escaped."""
    return escape(visible(str(text)))


def fail(message: str) -> NoReturn:
    """Print an error message and exit with status 2."""
    _say("[red]Error:[/red]", message)
    raise typer.Exit(2)


def show_warning(message: Warning | str, *_place: object, **_more: object) -> None:
    """Print a warning as one line: in place of `warnings.showwarning`, which names the place in the code too."""
    _say("[yellow]Warning:[/yellow]", str(message))


def _say(heading: str, message: str) -> None:
    err.print(heading, shown(" ".join(message.split("\n"))), soft_wrap=True, highlight=False)


@contextmanager
def progress(message: str) -> Iterator[None]:
    """Show the progress on a terminal, as the methods log it."""
    with err.status(message) as status:
        logger = logging.getLogger("codiag")
        handler = logging.Handler()
        handler.emit = lambda record: status.update(shown(f"done: {record.getMessage()}"))  # type: ignore[method-assign]
        level = logger.level
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        try:
            yield
        finally:
            logger.removeHandler(handler)
            logger.setLevel(level)


@contextmanager
def user_errors() -> Iterator[None]:
    """Report errors that the user can correct in one sentence, without a traceback."""
    try:
        yield
    except (ValueError, TypeError, OSError) as error:
        fail(str(error))
    except MemoryError:
        fail("it does not fit into memory; tensors in .npy files are read slab by slab")
