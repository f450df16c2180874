"""Files with a JSON object on each line, as tools for evaluations write them, as rows of a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from codiag._text._encoding import open_text
from codiag._text._files import readable

JSON_LINES = (".jsonl", ".ndjson")
"""Endings of such files."""


def json_rows(path: Path) -> list[tuple[int, list[str]]]:
    """Return the names of all keys and then the values of each object as text, with the numbers of their lines.

    Keys that an object lacks, and null, are empty. Numbers that are whole have no decimals; values that are objects or
    lists are JSON.
    """
    with readable(path), open_text(path) as file:
        objects = [(number, _object(path.name, number, line)) for number, line in enumerate(file, 1) if line.strip()]
    names = list(dict.fromkeys(name for _, found in objects for name in found))
    return [(1, names), *((number, [_text(found.get(name)) for name in names]) for number, found in objects)]


def _object(name: str, number: int, line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"line {number} of {name} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"line {number} of {name} must be a JSON object, as {{...}}; got {line.strip()[:40]}")
    return found


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)
