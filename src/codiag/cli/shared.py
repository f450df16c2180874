"""What the commands have in common."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.markup import escape

app = typer.Typer(
    help="Factorize tensors by jointly diagonalizing matrices.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    add_completion=False,
)
out = Console()
err = Console(stderr=True)

Seed = Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same answer.")]


@contextmanager
def progress(message: str) -> Iterator[None]:
    """Show on a terminal what is being done, from the log of the methods."""
    with err.status(message) as status:
        logger = logging.getLogger("codiag")
        handler = logging.Handler()
        handler.emit = lambda record: status.update(escape(f"done: {record.getMessage()}"))  # type: ignore[method-assign]
        level = logger.level
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        try:
            yield
        finally:
            logger.removeHandler(handler)
            logger.setLevel(level)


@contextmanager
def mistakes_in_one_sentence() -> Iterator[None]:
    """Turn what a user can mend into a sentence, without a trace."""
    try:
        yield
    except (ValueError, TypeError, OSError) as error:
        fail(str(error))
    except MemoryError:
        fail("it does not fit into memory; tensors in .npy files are read slab by slab")


def check_writable(path: Path, option: str, endings: set[str], source: Path | None = None) -> None:
    """End before any work is done where its result could not be written, or would take the place of its source."""
    if source is not None and path.resolve() == source.resolve():
        fail(f"{option} must not be the file that is read, {source}")
    parent = path.resolve().parent
    if not parent.is_dir():
        fail(f"{option} must lie in a folder that exists; {parent} does not")
    if path.suffix.lower() not in endings:
        fail(f"{option} must end in {', '.join(sorted(endings))}; got {path.name}")
    if path.is_dir() or not os.access(path if path.exists() else parent, os.W_OK):
        fail(f"{option} must be a file that can be written; {path} is not")


def draw(picture: Callable[[Path], None], figure: Path) -> None:
    """Save a figure, or say why there is none."""
    try:
        picture(figure)
    except ModuleNotFoundError as error:
        err.print(f"No figure: {error.name} is not installed. Get it with: pip install 'codiag\\[plot]'")
    except OSError as error:
        fail(f"the figure could not be written: {error}")
    else:
        out.print(f"Figure saved to [bold]{escape(str(figure))}[/bold]")


def fail(message: str) -> NoReturn:
    """Say what is wrong in one sentence, and end."""
    err.print(f"[red]Error:[/red] {escape(message)}", soft_wrap=True, highlight=False)
    raise typer.Exit(2)


def show_warnings(caught: Iterable[warnings.WarningMessage]) -> None:
    """Print warnings to the side, each once."""
    told = [warning for warning in caught if issubclass(warning.category, UserWarning)]
    for message in dict.fromkeys(str(warning.message) for warning in told):
        err.print(f"[yellow]Warning:[/yellow] {escape(message)}", soft_wrap=True)
