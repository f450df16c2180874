"""What the commands have in common."""

from __future__ import annotations

import itertools
import logging
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.markup import escape

from codiag._writing import visible, written_at_once

app = typer.Typer(
    help="Factorize tensors by jointly diagonalizing matrices.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    add_completion=False,
)
out = Console()
err = Console(stderr=True)

Seed = Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same answer.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist; never the one that is read.")]
PICTURES = {".png", ".svg", ".pdf"}


@contextmanager
def progress(message: str) -> Iterator[None]:
    """Show on a terminal what is being done, from the log of the methods."""
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
def mistakes_in_one_sentence() -> Iterator[None]:
    """Turn what a user can mend into a sentence, without a trace."""
    try:
        yield
    except (ValueError, TypeError, OSError) as error:
        fail(str(error))
    except MemoryError:
        fail("it does not fit into memory; tensors in .npy files are read slab by slab")


def check_outputs(
    outputs: Mapping[str, tuple[Path | None, set[str]]], sources: Sequence[Path] = (), *, force: bool
) -> None:
    """End before any work is done where a result could not be written, or would destroy a file that is there.

    Parameters
    ----------
    outputs : mapping of options to a path, None where it was not asked for, and the endings it may have
    sources : sequence of Path
        What is read: never to be replaced, under whatever name.
    force : bool
        Whether other files that exist may be replaced.
    """
    asked = {option: path for option, (path, _) in outputs.items() if path is not None}
    for option, path in asked.items():
        for source in sources:
            if _same_file(path, source):
                fail(f"{option} must not be the file that is read, {source}; choose another name")
        _check_writable(path, option, outputs[option][1])
    for (first, one), (second, other) in itertools.combinations(asked.items(), 2):
        if _same_file(one, other):
            fail(f"{first} and {second} must be two files; both are {one}")
    for option, path in asked.items():
        if path.exists() and not force:
            fail(f"{option} must not be a file that exists, unless it is to be replaced: {path}. Then add --force")


def _same_file(one: Path, other: Path) -> bool:
    """Tell whether two names stand for one file: links, symbolic or hard, are other names of it."""
    if one.resolve() == other.resolve():
        return True
    return one.exists() and other.exists() and one.samefile(other)


def _check_writable(path: Path, option: str, endings: set[str]) -> None:
    parent = path.resolve().parent
    if not parent.is_dir():
        fail(f"{option} must lie in a folder that exists; {parent} does not")
    if path.suffix.lower() not in endings:
        fail(f"{option} must end in {', '.join(sorted(endings))}; got {path.name}")
    if path.is_dir() or not os.access(path if path.exists() else parent, os.W_OK):
        fail(f"{option} must be a file that can be written; {path} is not")


def shown(text: object) -> str:
    """Return text of a user for the terminal: without control characters, and without meaning for rich."""
    return escape(visible(str(text)))


def draw(picture: Callable[[Path], None], figure: Path) -> None:
    """Save a figure, or say why there is none."""
    try:
        with written_at_once(figure) as file:
            picture(Path(file.name))
    except ModuleNotFoundError as error:
        err.print(f"No figure: {error.name} is not installed. Get it with: pip install 'codiag\\[plot]'")
    except OSError as error:
        fail(f"the figure could not be written: {error}")
    else:
        out.print(f"Figure saved to [bold]{shown(figure)}[/bold]")


def fail(message: str) -> NoReturn:
    """Say what is wrong in one sentence, and end."""
    err.print(f"[red]Error:[/red] {shown(_one_line(message))}", soft_wrap=True, highlight=False)
    raise typer.Exit(2)


def _one_line(message: str) -> str:
    return " ".join(message.split("\n"))


def show_warnings(caught: Iterable[warnings.WarningMessage]) -> None:
    """Print warnings to the side, each once."""
    told = [warning for warning in caught if issubclass(warning.category, UserWarning)]
    for message in dict.fromkeys(str(warning.message) for warning in told):
        err.print(f"[yellow]Warning:[/yellow] {shown(_one_line(message))}", soft_wrap=True)
