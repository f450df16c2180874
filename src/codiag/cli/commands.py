"""What all commands share: their registration, errors in one sentence, outputs that are checked first, and printing."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from importlib import import_module
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from rich import box
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table

from codiag._text import atomic_write, escape_control

ENDINGS = {"figure": (".png", ".svg", ".pdf"), "report": (".html",)}
"""Endings of the files that options name; tables have others."""
NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?([eE][+-]?\d+)?")
"""Text that is a number, with a decimal point or comma."""
NEEDED = {"figure": ("matplotlib",), "report": ("matplotlib", "jinja2")}
"""Modules that an option needs."""

app = typer.Typer(
    help="Factorize tensors by jointly diagonalizing matrices.",
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
stdout, stderr = Console(), Console(stderr=True)


def option(name: str, words: str, metavar: str = "FILE", *short: str, **more: Any) -> Any:
    """Return an option that is described by these words, without its default."""
    return typer.Option(name, *short, metavar=metavar, help=words, show_default=False, **more)


Figure = Annotated[str | None, option("--figure", "Where to draw the result, .png, .svg or .pdf.")]
Report = Annotated[str | None, option("--report", "Where to write a page about the result, .html.")]


def command(function: Callable[..., None]) -> None:
    """Register a command: fields of dataclasses among its parameters become options, and errors one sentence."""
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: list[Parameter] = []
    for name, parameter in signature(function).parameters.items():
        if name in groups:
            parameters += signature(groups[name], eval_str=True).parameters.values()
        else:
            parameters.append(parameter.replace(annotation=hints[name]))

    @wraps(function)
    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        with user_errors():
            function(**given)

    keywords = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in parameters]
    vars(run)["__signature__"] = Signature(keywords)
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in keywords}
    app.command()(run)


@contextmanager
def user_errors() -> Iterator[None]:
    """Report errors that the user can correct as they are, without a traceback."""
    try:
        yield
    except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
        message = str(error) or "the data must fit into memory"
        if isinstance(error, ImportError) and "pip install" not in message:
            message += ". Get it with: pip install 'codiag[files,plot,report]'"
        say("[red]Error:[/red]", message)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        say("[red]Interrupted[/red]", "")
        raise typer.Exit(130) from None


def say(heading: str, message: str) -> None:
    """Print a sentence on the standard error."""
    stderr.print(heading, shown(" ".join(message.split())), soft_wrap=True, highlight=False)


def shown(text: object) -> str:
    """Return text for the terminal, with control characters and the markup of rich escaped."""
    return escape(escape_control(str(text)))


def as_count(option: str, text: str) -> int | None:
    """Return the number that an option is given, None for auto."""
    if text != "auto" and (not text.isdecimal() or int(text) == 0):
        raise ValueError(f"{option} must be a positive integer, or auto; got {text}")
    return None if text == "auto" else int(text)


@dataclass(frozen=True)
class Run:
    """The options of every command, and what they control: which files are replaced, and what is printed."""

    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same answer.")] = 0
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist, but not those read.")] = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but warnings and errors.")] = False
    out: Annotated[str | None, option("--out", "Where to save the result, as a table.", "FILE", "-o")] = None

    def check_outputs(self, sources: Sequence[str | None], also: Sequence[str] = (), **outputs: str | None) -> None:
        """Raise if a result could not be written, or would replace a file that is read, or without --force any file.

        Results in ``--out`` may `also` have other endings than tables.
        """
        outputs = {"out": self.out} | outputs
        named = {option: Path(path) for option, path in outputs.items() if path}
        for option, path in named.items():
            endings = ENDINGS.get(option, (".csv", ".tsv", *(also if option == "out" else ())))
            if path.suffix.lower() not in endings:
                raise ValueError(f"--{option} must end in {', '.join(endings)}; got {path.name}")
            if not path.parent.is_dir() or path.is_dir() or not os.access(path.parent, os.W_OK):
                raise ValueError(f"--{option} must be a file in a folder that can be written to; got {path}")
            if any(_is_within(path, Path(source)) for source in sources if source):
                raise ValueError(f"--{option} must not be a file that is read; got {path}. Choose another name")
            if path.exists() and not self.force:
                raise ValueError(f"--{option} must not be a file that exists; got {path}. --force replaces it")
            for module in NEEDED.get(option, ()):
                import_module(module)  # its absence is reported before the work rather than after it
        if len({path.resolve() for path in named.values()}) < len(named):
            raise ValueError(f"outputs must be different files; got {', '.join(map(str, named.values()))}")
        if self.quiet and not named:
            say("[cyan]Note:[/cyan]", "--quiet prints no result, and none is saved; add --out FILE")

    def note(self, sentence: str) -> None:
        """Print what was done with the data, on the standard error."""
        if sentence and not self.quiet:
            say("[cyan]Note:[/cyan]", sentence)

    def show(self, *items: RenderableType) -> None:
        """Print tables and sentences, which may have markup."""
        for item in () if self.quiet else items:
            stdout.print(item, highlight=False, soft_wrap=isinstance(item, str))

    def save(self, path: str | None, write: Callable[[Path], object]) -> None:
        """Write a file that an option names, completely or not at all."""
        if path is not None:
            with atomic_write(Path(path)) as file:
                write(Path(file.name))
            self.show(f"Saved to [bold]{shown(path)}[/bold]")


def _is_within(path: Path, other: Path) -> bool:
    """Return whether two paths are one file, also through links, or the first lies in the folder of the second."""
    return path.resolve().is_relative_to(other.resolve()) or (path.exists() and other.exists() and path.samefile(other))


def table_of(title: str, columns: Mapping[str, Sequence[object]], most: int = 30) -> Table:
    """Return a table to print, text at the left and numbers at the right, with as many rows as fit on a screen."""
    table = Table(title=shown(title) or None, title_justify="left", box=box.SIMPLE_HEAD)
    for name, column in columns.items():
        table.add_column(shown(name), justify="left" if len(column) and isinstance(column[0], str) else "right")
    rows = list(zip(*columns.values(), strict=True))
    for row in rows[:most]:
        table.add_row(*(shown(f"{cell:.4g}" if isinstance(cell, float) else cell) for cell in row))
    if len(rows) > most:
        table.add_row(f"... {len(rows) - most} more")
    return table


def write_table(path: Path, columns: Mapping[str, Any]) -> None:
    """Write columns to a .csv or .tsv file.

    Text that a spreadsheet would run as a formula gets a single quote before it, as OWASP advises.
    """
    lists = [column.tolist() if hasattr(column, "tolist") else column for column in columns.values()]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ",", lineterminator="\n")
        writer.writerow(map(_escape_formula, columns))
        writer.writerows(map(_escape_formula, row) for row in zip(*lists, strict=True))


def _escape_formula(cell: Any) -> Any:
    is_formula = isinstance(cell, str) and cell.startswith(tuple("=+-@\t\r\n")) and not NUMBER.fullmatch(cell)
    return f"'{cell}" if is_formula else cell
