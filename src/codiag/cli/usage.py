"""What ``--help`` prints: two columns that fit into eighty letters, with a word for each value in place of its type."""

from __future__ import annotations

import re
from typing import Any

from typer.core import TyperCommand, TyperGroup

ORDER = ("factorize", "compare", "label", "topics", "communities", "demo", "reproduce")
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
