"""Print results, progress, warnings and errors, with options of commands in place of arguments of functions.

Parameters of commands have the names of the arguments that they become. Messages name an argument as their first word,
in backquotes, as ``name=value``, or after "leave".
"""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any, NoReturn, get_args, get_origin, get_type_hints

import typer
from rich.console import Console
from rich.markup import escape
from typer.models import OptionInfo

from codiag._progress import progress_if, tell
from codiag._text import visible

out = Console()
err = Console(stderr=True)

FILE = "path"
"""The argument of functions that is no option, but the file to be read."""
SUBJECT = re.compile(r"(?P<before>^|: )(?P<names>(?:\w+, )*(?:\w+ and )?\w+)(?= (?:must|needs?|names?|says?|is|are)\b)")
ASSIGNED = re.compile(r"\b(?P<name>\w+)=(?P<value>\[[^]]*\]|'[^']*'|\"[^\"]*\"|[\w.+-]*\w)")
QUOTED = re.compile(r"`(?P<name>\w+)`")
LEFT_OUT = re.compile(r"(?<=eave )(?P<name>\w+)(?= out\b)")
OBJECTS = re.compile(r", (?P<last>[^,;]+),? or (?:an object of codiag\.\w+|an array)")
"""Python objects at the end of a list, which no option can be."""
CALLS = re.compile(r",? as (?:in|with) (?:[\w.]+\((?:[^()]|\([^()]*\))*\)(?:\.\w+\([^()]*\))*(?: of \w+)?|groupby)")
"""Calls of Python that a message advises, which a command line has no use for."""
OPTIONS_OF_TABLES = {"modes": "--modes", "value": "--value", "absent": "--absent"}
"""The options of arguments that readers of tables name."""
SPOOLED = re.compile(r"(?:[^\s]*/)?standard input(?:\.\w+)+")
"""The file that holds the standard input."""


def shown(text: object) -> str:
    """Return text for the terminal, with control characters and the markup of rich escaped."""
    return escape(visible(str(text)))


def fail(message: str) -> NoReturn:
    """Print an error message and exit with status 2."""
    _say("[red]Error:[/red]", message)
    raise typer.Exit(2)


def show_warning(options: Mapping[str, str], message: Warning | str, *_source: object, **_more: object) -> None:
    """Print a warning as one line, in place of `warnings.showwarning`, which also names the line of code."""
    _say("[yellow]Warning:[/yellow]", in_options(str(message), options))


def remark(message: str) -> None:
    """Print what a user may not expect, on the standard error."""
    _say("[cyan]Note:[/cyan]", message)


@contextmanager
def notes_of_reading(note: Callable[[str], None]) -> Iterator[None]:
    """Print each sentence that readers of files log, once."""
    logger, handler = logging.getLogger("codiag.reading"), _Notes(note)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


class _Notes(logging.Handler):
    def __init__(self, note: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self._note, self._said = note, set[str]()

    def emit(self, record: logging.LogRecord) -> None:
        sentence = in_options(record.getMessage(), OPTIONS_OF_TABLES)
        if sentence not in self._said:
            self._said.add(sentence)
            self._note(sentence)


def _say(heading: str, message: str) -> None:
    err.print(heading, shown(" ".join(message.split("\n"))), soft_wrap=True, highlight=False)


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


def options_of(*commands: Callable[..., Any]) -> dict[str, str]:
    """Return the option of every parameter, as ``--yes/--no`` if it has two; -k if commands differ in it."""
    options: dict[str, str] = {}
    for command in commands:
        hints = get_type_hints(inspect.unwrap(command), include_extras=True)
        for name, hint in hints.items():
            declared = _declared(hint)
            if declared:
                options[name] = declared[0] if options.get(name, declared[0]) == declared[0] else "-k"
    return options | {FILE: "the path"}


def _declared(hint: Any) -> tuple[str, ...]:
    if get_origin(hint) is not Annotated:
        return ()
    infos = [info for info in get_args(hint)[1:] if isinstance(info, OptionInfo)]
    return tuple(name for info in infos for name in (info.default, *(info.param_decls or ())) if isinstance(name, str))


def in_options(message: str, options: Mapping[str, str]) -> str:
    """Return a message with options in place of the arguments that it names."""
    message = SPOOLED.sub("the standard input", OBJECTS.sub(r" or \g<last>", CALLS.sub("", message)))
    message = SUBJECT.sub(partial(_subject, options), message)
    message = ASSIGNED.sub(partial(_assigned, options), message)
    for pattern in (QUOTED, LEFT_OUT):
        message = pattern.sub(lambda match: _yes(options, match["name"]), message)
    with_underscores = "|".join(re.escape(name) for name in options if "_" in name)
    if not with_underscores:
        return message
    return re.sub(rf"(?<![\w-])(?:{with_underscores})\b", lambda match: _yes(options, match[0]), message)


def _subject(options: Mapping[str, str], match: re.Match[str]) -> str:
    return match["before"] + re.sub(r"\w+", lambda word: _yes(options, word[0]), match["names"])


def _assigned(options: Mapping[str, str], match: re.Match[str]) -> str:
    name, value = match["name"], match["value"].strip("'\"")
    if name not in options:
        return match[0]
    if value.startswith("["):
        value = ",".join(part.strip().strip("'\"") for part in value.strip("[]").split(","))
    yes, _, no = options[name].partition("/")
    return {"True": yes, "False": no or f"no {yes}", "None": f"no {yes}"}.get(value, f"{yes} {value}")


def _yes(options: Mapping[str, str], name: str) -> str:
    return options.get(name, name).partition("/")[0]


class Passes:
    """What a command tells its bar."""

    def over(self, shape: Sequence[int]) -> None:
        """Say how large the tensor is."""
        tell("a tensor of %s", " x ".join(map(str, shape)))

    def doing(self, message: str) -> None:
        """Say what is being done."""
        tell(message, is_place=True)


@contextmanager
def progress(message: str, *, quiet: bool = False) -> Iterator[Passes]:
    """Show progress on a terminal."""
    with progress_if(False if quiet else None, message):
        yield Passes()
