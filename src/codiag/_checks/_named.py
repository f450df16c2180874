"""Named tuples whose signatures read as they are written."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def readable(named: type[T]) -> type[T]:
    """Let ``help`` show the types of a named tuple as they are written, where typing makes ``ForwardRef`` of them."""
    shown = {name: getattr(kind, "__forward_arg__", kind) for name, kind in named.__annotations__.items()}
    named.__new__.__annotations__ = shown
    return named
