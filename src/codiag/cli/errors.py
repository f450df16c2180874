"""What ``--help`` prints: two columns that fit into eighty letters, with a word for each value in place of its type.

Errors and warnings of functions, which name their arguments, in the words of the command line.

Parameters of commands have the names of the arguments that they become, so that nothing else is to be kept in step.
Messages name an argument as their first word, in backquotes, as ``name=value``, or as what to leave out.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from typer.core import TyperCommand, TyperGroup
from typer.models import OptionInfo

ORDER = ("factorize", "compare", "label", "topics", "communities", "demo")
VALUES = {"path": "FILE", "int": "N", "integer": "N", "float": "X", "str": "NAME", "text": "NAME"}
"""What values of a type, by its names in any version of typer, are called where an option has no word for them."""
TYPE = re.compile(rf"(?<= )<?(?P<kind>{'|'.join(VALUES)})(?: range)?>?$", re.IGNORECASE)
PLAIN = re.compile(r"  \[x>=[01]\]|; x>=[01](?=[];])")
"""What goes without saying: that counts are not negative."""


class Command(TyperCommand):
    """A command whose help has no types of Python."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the line of usage."""
        return [re.sub("[{}]", "", piece) for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options."""
        records = [(param.param_type_name, param.get_help_record(ctx)) for param in self.get_params(ctx)]
        for heading, shown in (("Arguments", _argument), ("Options", _option)):
            own = [record for kind, record in records if record and f"{kind}s" == heading.lower()]
            rows = [shown(name, text.replace("\\[", "[")) for name, text in own]  # old versions escape them for rich
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


def _argument(name: str, text: str) -> tuple[str, str]:
    """Return an argument without its type; that it is required, the line of usage shows."""
    return name.split(" <")[0], text.replace("  [required]", "")


def _option(name: str, text: str) -> tuple[str, str]:
    """Return an option with a word for its value."""
    return TYPE.sub(lambda match: VALUES[match["kind"].lower()], name), PLAIN.sub("", text)


class Commands(TyperGroup):
    """The commands, those that most people want first."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of commands in the order of the help."""
        return sorted(super().list_commands(ctx), key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))


FILE = "path"
"""The argument of functions that is no option, but the file to be read."""
SUBJECT = re.compile(r"(?P<before>^|: )(?P<names>(?:\w+, )*(?:\w+ and )?\w+)(?= (?:must|needs?|names?|says?|is|are)\b)")
ASSIGNED = re.compile(r"\b(?P<name>\w+)=(?P<value>'[^']*'|\"[^\"]*\"|[\w.+-]*\w)")
QUOTED = re.compile(r"`(?P<name>\w+)`")
LEFT_OUT = re.compile(r"(?<=eave )(?P<name>\w+)(?= out\b)")
OBJECTS = re.compile(r", (?P<last>[^,;]+),? or (?:an object of codiag\.\w+|an array)")
"""What no option can be, at the end of a list."""
SPOOLED = re.compile(r"(?:[^\s]*/)?standard input(?:\.\w+)+")
"""The file that holds the standard input."""


def options_of(*commands: Callable[..., Any]) -> dict[str, str]:
    """Return the option of every parameter, as ``--yes/--no`` where it has two; -k where commands differ in it."""
    found: dict[str, str] = {}
    for command in commands:
        hints = get_type_hints(inspect.unwrap(command), include_extras=True)
        for name, hint in hints.items():
            declared = _declared(hint)
            if declared:
                found[name] = declared[0] if found.get(name, declared[0]) == declared[0] else "-k"
    return found | {FILE: "the path"}


def _declared(hint: Any) -> tuple[str, ...]:
    if get_origin(hint) is not Annotated:
        return ()
    found = [one for one in get_args(hint)[1:] if isinstance(one, OptionInfo)]
    return tuple(name for one in found for name in (one.default, *(one.param_decls or ())) if isinstance(name, str))


def in_options(message: str, options: Mapping[str, str]) -> str:
    """Return a message with options in place of the arguments that it names."""
    message = SPOOLED.sub("the standard input", OBJECTS.sub(r" or \g<last>", message))
    message = SUBJECT.sub(partial(_subject, options), message)
    message = ASSIGNED.sub(partial(_assigned, options), message)
    for named in (QUOTED, LEFT_OUT):
        message = named.sub(lambda match: _yes(options, match["name"]), message)
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
    yes, _, no = options[name].partition("/")
    return {"True": yes, "False": no or f"no {yes}"}.get(value, f"{yes} {value}")


def _yes(options: Mapping[str, str], name: str) -> str:
    return options.get(name, name).partition("/")[0]
