"""How synthetic data is shown: by the sizes of its parts, not by their entries."""

from __future__ import annotations

from dataclasses import fields
from typing import Any


class Described:
    """Base of synthetic data."""

    def __repr__(self) -> str:
        parts = [f"{part.name}: {_described(getattr(self, part.name))}" for part in fields(self)]  # type: ignore[arg-type]
        return f"{type(self).__name__}({'; '.join(parts)})"


def _described(value: Any) -> str:
    """Return the sizes of an array, or of each of several; other values as they are."""
    shape = getattr(value, "shape", None)
    if shape is not None:
        return " x ".join(map(str, shape)) or str(value)
    if isinstance(value, list | tuple) and value and all(hasattr(item, "shape") for item in value):
        return ", ".join(map(_described, value))
    return repr(value)
