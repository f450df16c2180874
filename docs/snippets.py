"""The code on a page: every block runs, in order, and what stands beside it or below it is what it gives.

A block that is marked ``<!-- not run: why -->`` is only compiled. A comment behind an expression that begins with a
number or a literal, as in ``fit.relative_error  # 0.0098: ...``, is the value of the expression, and ``# (20, 3)`` may
also be its shape. A block of plain text that follows a block of code is what it prints. Numbers agree where they differ
by one unit of the last digit that is given; whole numbers of one or two digits, which count things, must be equal.

``python docs/snippets.py docs/guide/rank.md`` runs pages and writes what their blocks print now below them.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

BLOCK = re.compile(
    r"(<!-- not run: .*? -->\s+)?^```python\n(.*?)^```$(?:\s+^```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE
)
NUMBER = re.compile(r"-?(?:\d[\d,]*\.?\d*|\.\d+)(?:e[+-]?\d+)?")
BRACKETS = {"(": ")", "[": "]", "{": "}"}
MEASURED = 3
"""Digits from which a whole number may be a measurement."""
NEEDS = re.compile(r"<!-- needs: (.*?) -->")


@dataclass(frozen=True)
class Snippet:
    """A block of code, what it prints, and whether it runs."""

    code: str
    printed: str | None
    runs: bool


def snippets(text: str) -> list[Snippet]:
    """Return the blocks of code of a page."""
    return [Snippet(code, printed, not marked) for marked, code, printed in BLOCK.findall(text)]


def needs(text: str) -> list[str]:
    """Return the optional packages that a page needs: ``<!-- needs: dask, zarr -->``."""
    return [name.strip() for found in NEEDS.findall(text) for name in found.split(",")]


def run(page: Path) -> list[str]:
    """Run the code of a page, and return the differences between what it says and what it gives."""
    names: dict[str, Any] = {"__name__": page.stem}
    faults = []
    for snippet in snippets(page.read_text()):
        tree, comments = ast.parse(snippet.code), dict(_comments(snippet.code))
        if not snippet.runs:
            continue
        with contextlib.redirect_stdout(io.StringIO()) as out:
            for node in tree.body:
                told = comments.get(node.end_lineno or 0, "")
                value = _value(node, names, str(page))
                if isinstance(node, ast.Expr) and not says(told, value):
                    faults.append(f"{page.name}: {ast.unparse(node)} gives {value!r}, and the page says {told!r}")
        if snippet.printed and not alike(snippet.printed, out.getvalue()):
            faults.append(f"{page.name} says\n{snippet.printed}\nand prints\n{out.getvalue()}")
    return faults


def write(page: Path) -> None:
    """Run the code of a page, and replace the texts below its blocks that have changed by what these print."""
    text, names = page.read_text(), {"__name__": page.stem}
    for snippet in snippets(text):
        if snippet.runs:
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(snippet.code, str(page), "exec"), names)
            printed = "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"
            if snippet.printed and not alike(snippet.printed, printed):
                text = text.replace(f"```text\n{snippet.printed}```", f"```text\n{printed}```")
    page.write_text(text)


def says(comment: str, value: Any) -> bool:
    """Return whether a comment that begins with a value has that of an expression; other comments are not judged."""
    told = _literal(comment)
    if told is None:
        return True
    if told.startswith("(") and alike(told, str(np.shape(value))):
        return True
    if isinstance(value, float | np.floating) and NUMBER.fullmatch(told):
        return _close(told, float(value))
    return alike(told, repr(value.tolist() if isinstance(value, np.ndarray | np.generic) else value))


def alike(told: str, printed: str) -> bool:
    """Return whether two texts are the same but for the last digits of numbers and for white space."""
    ours, theirs = (" ".join(text.split()) for text in (told, printed))
    pairs = zip(NUMBER.findall(ours), NUMBER.findall(theirs), strict=False)
    return NUMBER.sub("#", ours) == NUMBER.sub("#", theirs) and all(
        mine == other or (not (mine.isdigit() and len(mine) < MEASURED) and _close(mine, float(other.replace(",", ""))))
        for mine, other in pairs
    )


def _literal(comment: str) -> str | None:
    """Return the value that a comment begins with, if it does: a number, a string, or what stands in brackets."""
    brackets = 0
    for place, character in enumerate(comment if comment[:1] in BRACKETS else ""):
        brackets += (character in BRACKETS) - (character in BRACKETS.values())
        if not brackets:
            return comment[: place + 1]
    told = re.match(r"('[^']*'|True|False|None|" + NUMBER.pattern + r")(?=$|[\s:;,%])", comment)
    return told and told[1]


def _value(node: ast.stmt, names: dict[str, Any], place: str) -> Any:
    if isinstance(node, ast.Expr):
        return eval(compile(ast.Expression(node.value), place, "eval"), names)
    exec(compile(ast.Module([node], []), place, "exec"), names)
    return None


def _comments(code: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# ")


def _close(told: str, value: float) -> bool:
    mantissa, _, exponent = told.replace(",", "").partition("e")
    digits = len(mantissa.partition(".")[2])
    return abs(float(told.replace(",", "")) - value) <= 1.01 * 10.0 ** (int(exponent or 0) - digits)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        write(Path(name))
