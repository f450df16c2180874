"""How data with many numbers is shown: by the sizes of its parts, not by their entries."""

from __future__ import annotations

from dataclasses import fields
from typing import Any


class Described:
    """Base of data classes that are shown so."""

    def __repr__(self) -> str:
        parts = [f"{part.name}: {described(getattr(self, part.name))}" for part in fields(self)]  # type: ignore[arg-type]
        return f"{type(self).__name__}({'; '.join(parts)})"


def described(value: Any) -> str:
    """Return the sizes of an array, or of each of several; other values as they are."""
    shape = getattr(value, "shape", None)
    if shape is not None:
        return " x ".join(map(str, shape)) or str(value)
    if isinstance(value, list | tuple) and value and all(_has_sizes(item) for item in value):
        return ", ".join(map(described, value))
    return repr(value)


def _has_sizes(value: Any) -> bool:
    """Return whether a value is an array, several of them."""
    if isinstance(value, list | tuple):
        return len(value) > 0 and all(_has_sizes(item) for item in value)
    return hasattr(value, "shape")
