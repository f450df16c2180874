"""The structure that all commands share: check the outputs, work, save, print."""

from __future__ import annotations

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

from codiag._text import write_text, written_at_once
from codiag.cli import errors as usage
from codiag.cli.errors import options_of
from codiag.cli.outputs import Outputs, check_outputs, stream_ending
from codiag.cli.streams import STREAM, spooled, write_to_stdout
from codiag.cli.terminal import Passes, err, out, progress, shown, user_errors

app = typer.Typer(
    cls=usage.Commands,
    help="Factorize tensors by jointly diagonalizing matrices.",
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    add_completion=False,
)
Seed = Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same answer.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist; never the one that is read.")]
Report = Annotated[
    Path | None,
    typer.Option("--report", help="Where to write a page about the result, as .html.", show_default=False),
]


def named(path: str) -> Path:
    """Return the path of a file to read, which must have a name."""
    if not path:
        raise typer.BadParameter("it must name a file, or be - for the standard input; got nothing")
    return Path(path)


def as_command(function: Callable[..., None]) -> Callable[..., None]:
    """Make a function a command, whose errors name options in place of the arguments that these become."""

    @wraps(function)
    def run(**given: Any) -> None:
        with user_errors(options_of(function)):
            function(**given)

    app.command(cls=usage.Command)(run)
    return run


@dataclass
class Command:
    """The files that a command was asked to write, those that it wrote, and the bar of its passes over data."""

    outputs: Outputs
    passes: Passes
    folder: Path
    saved: list[str] = field(default_factory=list)

    @property
    def console(self) -> Console:
        """Where to print: the standard error where the standard output takes a result."""
        return err if any(path == STREAM for path, _ in self.outputs.values()) else out

    @staticmethod
    def title(path: Path) -> str:
        """Return what the file that is read is called."""
        return "standard input" if path == STREAM else path.name

    def source(self, path: Path, text: str = ".csv") -> Path:
        """Return the file to read: for ``-``, one of the standard input, binary or of a kind like `text`."""
        return spooled(self.folder, text) if path == STREAM else path

    def save(self, option: str, write: Callable[[Path], None], contents: str = "") -> None:
        """Write the file that an option names, where it was given."""
        path, endings = self.outputs[option]
        if path == STREAM:
            write_to_stdout(write, stream_ending(endings))
        elif path is not None:
            write(path)
            self.saved.append(f"Saved to [bold]{shown(path)}[/bold]{contents}")

    def report(self, page: Callable[[], str]) -> None:
        """Write the page that ``--report`` names, where it was given."""
        self.save("--report", lambda path: write_text(path, page()), "; open it in a browser")

    def show(self, *items: RenderableType) -> None:
        """Print the result, and then where it was saved."""
        for item in (*items, *self.saved):
            self.console.print(item, highlight=False, soft_wrap=isinstance(item, str))

    def draw(self, option: str, picture: Callable[[Path], None]) -> None:
        """Save the figure that an option names, where it was given."""
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
