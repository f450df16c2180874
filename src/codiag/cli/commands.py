"""What all commands share: their help, and the order of their work: check the outputs, compute, save, print.

``--help`` prints two columns that fit into eighty letters, with a word for each value in place of its type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from typer.core import TyperCommand, TyperGroup

from codiag._text import written_at_once
from codiag.cli.files import STREAM, Outputs, check_outputs, spooled, stream_ending, write_to_stdout
from codiag.cli.results import print_json
from codiag.cli.terminal import (
    Passes,
    err,
    fail,
    notes_of_reading,
    options_of,
    out,
    progress,
    remark,
    shown,
    user_errors,
)

ORDER = ("factorize", "compare", "label", "judge", "topics", "communities", "demo")
"""Commands in the order in which the help lists them."""
VALUES = {"path": "FILE", "int": "N", "integer": "N", "float": "X", "str": "NAME", "text": "NAME"}
"""Words for values by type, as any version of typer names it, if an option declares none."""
TYPE = re.compile(rf"(?<= )<?(?P<kind>{'|'.join(VALUES)})(?: range)?>?$", re.IGNORECASE)
OBVIOUS = re.compile(r"  \[x>=[01]\]|; x>=[01](?=[];])")
"""Limits that need no words: counts are not negative."""


class HelpfulCommand(TyperCommand):
    """A command whose help has no types of Python."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the line of usage."""
        return [re.sub("[{}]", "", piece) for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options."""
        records = [(param.param_type_name, param.get_help_record(ctx)) for param in self.get_params(ctx)]
        for heading, described in (("Arguments", _argument), ("Options", _option)):
            chosen = [record for kind, record in records if record and f"{kind}s" == heading.lower()]
            rows = [described(name, text.replace("\\[", "[")) for name, text in chosen]  # old versions escape brackets
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


def _argument(name: str, text: str) -> tuple[str, str]:
    """Return an argument without its type; the line of usage shows that it is required."""
    return name.split(" <")[0], text.replace("  [required]", "")


def _option(name: str, text: str) -> tuple[str, str]:
    """Return an option with a word for its value."""
    return TYPE.sub(lambda match: VALUES[match["kind"].lower()], name), OBVIOUS.sub("", text)


class OrderedCommands(TyperGroup):
    """The commands, those that most people want first."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of commands in the order of the help."""
        return sorted(super().list_commands(ctx), key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))


app = typer.Typer(
    cls=OrderedCommands,
    help="Factorize tensors by jointly diagonalizing matrices.",
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    add_completion=False,
)


def option(*names: str, words: str, **more: Any) -> Any:
    """Return an option that is described by these words, without its default."""
    return typer.Option(*names, help=words, show_default=False, **more)


def argument(metavar: str, words: str) -> Any:
    """Return the argument of a command that names the file to read."""
    return typer.Argument(metavar=metavar, parser=named, help=words, show_default=False)


Seed = Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same answer.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist; never the one that is read.")]
Report = Annotated[Path | None, option("--report", words="Where to write a page about the result, as .html.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but warnings and errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object, for other programs.")]


def as_count(option: str, text: str) -> int | None:
    """Return the number that an option is given, None for auto."""
    if text == "auto":
        return None
    try:
        return int(text)
    except ValueError:
        fail(f"{option} must be an integer, or auto; got {text}")


def named(path: str) -> Path:
    """Return the path of a file to read, which must have a name."""
    if not path:
        raise typer.BadParameter("it must name a file, or be - for the standard input; got nothing")
    return Path(path)


def as_command(function: Callable[..., None]) -> Callable[..., None]:
    """Make a function a command, whose errors name options in place of arguments."""

    @wraps(function)
    def run(**given: Any) -> None:
        with user_errors(options_of(function)):
            function(**given)

    app.command(cls=HelpfulCommand)(run)
    return run


@dataclass(frozen=True)
class Printing:
    """What a command prints: tables and sentences, JSON in place of them, or nothing but warnings and errors."""

    quiet: bool = False
    as_json: bool = False


@dataclass
class Command:
    """A running command: the files that its options name, those that it wrote, and the bar of its passes over data."""

    outputs: Outputs
    passes: Passes
    folder: Path
    printing: Printing = Printing()
    saved: list[str] = field(default_factory=list)

    @property
    def console(self) -> Console:
        """Where to print: the standard error if a result goes to the standard output."""
        return err if any(path == STREAM for path, _ in self.outputs.values()) else out

    @staticmethod
    def title(path: Path) -> str:
        """Return the name of the file that is read."""
        return "standard input" if path == STREAM else path.name

    def source(self, path: Path, text: str = ".csv") -> Path:
        """Return the file to read; for ``-``, one with the standard input, which ends in `text` unless it is binary."""
        return spooled(self.folder, text) if path == STREAM else path

    def save(self, option: str, write: Callable[[Path], object], contents: str = "") -> None:
        """Write the file that an option names, if it was given."""
        path, endings = self.outputs[option]
        if path == STREAM:
            write_to_stdout(write, stream_ending(endings))
        elif path is not None:
            write(path)
            self.saved.append(f"Saved to [bold]{shown(path)}[/bold]{contents}")

    def report(self, write: Callable[[Path], object]) -> None:
        """Write the page that ``--report`` names, if it was given."""
        self.save("--report", write, "; open it in a browser")

    def note(self, sentence: str) -> None:
        """Print what a user may not expect, unless it is empty, or nothing is to be printed."""
        if sentence and not self.printing.quiet:
            remark(sentence)

    def show(self, *items: RenderableType) -> None:
        """Print the result in words, unless it is printed as JSON or not at all, and then the files that hold it."""
        if self.printing.quiet or self.printing.as_json:
            return
        for item in (*items, *self.saved):
            self.console.print(item, highlight=False, soft_wrap=isinstance(item, str))

    def answer(self, result: Callable[[], Mapping[str, Any]]) -> None:
        """Print the result as JSON, with the files that hold it, if this is wanted."""
        if self.printing.as_json:
            files = {option: str(path) for option, (path, _) in self.outputs.items() if path is not None}
            print_json({**result(), "files": files})

    def draw(self, option: str, picture: Callable[[Path], None]) -> None:
        """Save the figure that an option names, if it was given."""
        path, _ = self.outputs[option]
        if path is None:
            return
        with progress("drawing ...", quiet=self.printing.quiet), written_at_once(path) as file:
            picture(Path(file.name))
        if not (self.printing.quiet or self.printing.as_json):
            self.console.print(f"Figure saved to [bold]{shown(path)}[/bold]", soft_wrap=True)


@contextmanager
def working(
    message: str,
    outputs: Outputs | None = None,
    sources: Sequence[Path] = (),
    *,
    force: bool = False,
    printing: Printing | None = None,
) -> Iterator[Command]:
    """Check the outputs of a command, then show its progress."""
    printing = printing or Printing()
    streams = [option for option, (path, _) in (outputs or {}).items() if path == STREAM]
    if printing.as_json and streams:
        fail(f"{streams[0]} must not be -, the standard output, which --json prints to; name a file")
    check_outputs(outputs or {}, sources, force=force)
    with TemporaryDirectory(prefix="codiag-") as folder, progress(message, quiet=printing.quiet) as passes:
        command = Command(outputs or {}, passes, Path(folder), printing)
        with notes_of_reading(command.note):
            yield command


def table_of(title: str, words: Sequence[str], numbers: Sequence[str], caption: str | None = None) -> Table:
    """Return an empty table with columns of words and, to the right, columns of numbers."""
    table = Table(title=shown(title) or None, title_justify="left", box=box.SIMPLE_HEAD, caption=caption)
    for heading in words:
        table.add_column(heading)
    for heading in numbers:
        table.add_column(heading, justify="right")
    return table
