"""What all commands share: their help, and the order of their work: check the outputs, compute, save, print.

``--help`` prints two columns that fit into eighty letters, with a word for each value in place of its type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
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

from codiag._text import write_text, written_at_once
from codiag.cli.files import STREAM, Outputs, check_outputs, spooled, stream_ending, write_to_stdout
from codiag.cli.terminal import Passes, err, options_of, out, progress, shown, user_errors

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


@dataclass
class Command:
    """A running command: the files that its options name, those that it wrote, and the bar of its passes over data."""

    outputs: Outputs
    passes: Passes
    folder: Path
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

    def save(self, option: str, write: Callable[[Path], None], contents: str = "") -> None:
        """Write the file that an option names, if it was given."""
        path, endings = self.outputs[option]
        if path == STREAM:
            write_to_stdout(write, stream_ending(endings))
        elif path is not None:
            write(path)
            self.saved.append(f"Saved to [bold]{shown(path)}[/bold]{contents}")

    def report(self, page: Callable[[], str]) -> None:
        """Write the page that ``--report`` names, if it was given."""
        self.save("--report", lambda path: write_text(path, page()), "; open it in a browser")

    def show(self, *items: RenderableType) -> None:
        """Print the result, and then the files that hold it."""
        for item in (*items, *self.saved):
            self.console.print(item, highlight=False, soft_wrap=isinstance(item, str))

    def draw(self, option: str, picture: Callable[[Path], None]) -> None:
        """Save the figure that an option names, if it was given."""
        path, _ = self.outputs[option]
        if path is None:
            return
        with progress("drawing ..."), written_at_once(path) as file:
            picture(Path(file.name))
        self.console.print(f"Figure saved to [bold]{shown(path)}[/bold]", soft_wrap=True)


@contextmanager
def working(
    message: str, outputs: Outputs | None = None, sources: Sequence[Path] = (), *, force: bool = False
) -> Iterator[Command]:
    """Check the outputs of a command, then show its progress."""
    check_outputs(outputs or {}, sources, force=force)
    with TemporaryDirectory(prefix="codiag-") as folder, progress(message) as passes:
        yield Command(outputs or {}, passes, Path(folder))


def table_of(title: str, words: Sequence[str], numbers: Sequence[str], caption: str | None = None) -> Table:
    """Return an empty table with columns of words and, to the right, columns of numbers."""
    table = Table(title=shown(title) or None, title_justify="left", box=box.SIMPLE_HEAD, caption=caption)
    for heading in words:
        table.add_column(heading)
    for heading in numbers:
        table.add_column(heading, justify="right")
    return table
