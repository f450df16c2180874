"""A bar of tqdm that says what is being done, or lines where the standard error is no terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

SECONDS = 10.0
"""Before a bar appears that nobody has asked for, and between two lines."""


class Shown(Protocol):
    """What shows progress."""

    place: str

    def tell(self, text: str) -> None: ...

    def close(self) -> None: ...


_shown: Shown | None = None
"""The bar, if there is one: calls inside of another call, and in other threads, share it."""


@contextmanager
def progress_if(wanted: bool | None, message: str) -> Iterator[None]:
    """Show progress on the standard error until the end: always, never, or if that takes long and somebody watches."""
    global _shown
    if wanted is not None and not isinstance(wanted, bool):
        raise TypeError(f"progress must be True, False or None; got {wanted!r}")
    if wanted is False or _shown is not None or sys.stderr is None or not (wanted or is_interactive()):
        yield
        return
    _shown = shown = _Bar(message, 0.0 if wanted else SECONDS) if is_interactive() else _Lines(message)
    try:
        yield
    finally:
        _shown = None
        shown.close()


def is_interactive() -> bool:
    """Return whether the standard error is a terminal, or this is the kernel of a notebook."""
    return "ipykernel" in sys.modules or sys.stderr.isatty()


def tell(text: str, *values: object, is_place: bool = False) -> None:
    """Say what is being done, or where in a series the work is, which stays until the next such place."""
    if _shown is None:
        return
    text = text % values
    if is_place:
        _shown.place = text
    elif _shown.place:
        text = f"{_shown.place}, {text}"
    _shown.tell(text)


class _Bar:
    """A bar of tqdm, in a terminal or below the cell of a notebook."""

    def __init__(self, message: str, delay: float) -> None:
        from tqdm.auto import tqdm

        self.place = ""
        form = "{desc} {elapsed}{postfix}"  # how much is left is not known
        self._bar = tqdm(desc=message, delay=delay, bar_format=form, leave=False, miniters=1)

    def tell(self, text: str) -> None:
        self._bar.set_postfix_str(text, refresh=False)
        self._bar.update()

    def close(self) -> None:
        self._bar.close()


class _Lines:
    """A line every ten seconds."""

    def __init__(self, message: str) -> None:
        self.place, self._message = "", message
        self._start = self._last = time.monotonic()

    def tell(self, text: str) -> None:
        now = time.monotonic()
        if now - self._last >= SECONDS:
            self._last = now
            sys.stderr.write(f"{self._message} {now - self._start:.0f} s, {text}\n")
            sys.stderr.flush()

    def close(self) -> None: ...
