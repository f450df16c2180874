"""The encoding of text files: UTF-8, UTF-16 and UTF-32 by their mark, and Latin-1 as Windows writes it."""

from __future__ import annotations

import codecs
import gzip
import logging
import re
from pathlib import Path
from typing import TextIO

from codiag._text._files import is_packed, open_binary

logger = logging.getLogger("codiag.reading")
MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Encodings by the bytes that a file begins with; the mark of UTF-32 begins like that of UTF-16."""
CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
"""Bytes that no text in Latin-1 has."""
BLOCK = 2**20
"""Bytes that are decoded at once."""


def encoding_of(path: Path) -> str:
    """Return the encoding of a text file, packed or not; raise and name the encodings if it has none of them.

    A file without a mark that is not UTF-8 is read as Windows-1252, which Latin-1 is part of, and this is logged.
    """
    with open_binary(path) as file:
        first = file.read(BLOCK)
        marked = _marked(first)
        if marked is not None:
            return marked
        decoder, block = codecs.getincrementaldecoder("utf-8")(), first
        try:
            while block:
                decoder.decode(block)
                block = file.read(BLOCK)
            decoder.decode(b"", final=True)
            return "utf-8"
        except UnicodeDecodeError:
            pass
    with open_binary(path) as file:
        return _fallback(path.name, file.read())


def open_text(path: Path) -> TextIO:
    """Open a text file in its encoding, packed or not, with line ends as they are."""
    opened = gzip.open if is_packed(path) else open
    return opened(path, "rt", encoding=encoding_of(path), newline="")


def text_of(path: Path) -> str:
    """Return the whole text of a file, packed or not, in its encoding."""
    with open_text(path) as file:
        return file.read()


def text_start(content: bytes) -> str:
    """Return the beginning of a text in an encoding that is not known, for a look at its form."""
    start = content[:BLOCK]
    return start.decode(_marked(start) or "utf-8", "replace")


def _marked(first: bytes) -> str | None:
    return next((encoding for mark, encoding in MARKS.items() if first.startswith(mark)), None)


def _fallback(name: str, content: bytes) -> str:
    """Return the encoding of bytes that are not UTF-8; raise if they are no text in Latin-1 either."""
    way_out = "save it as UTF-8, and end a packed file in .gz"
    zeros = content[:BLOCK].count(b"\0")
    if 3 * zeros > min(len(content), BLOCK):
        raise ValueError(
            f"{name} cannot be read as text: it seems to be UTF-16 without the mark that says so (a byte order mark); "
            f"{way_out}"
        )
    strange = CONTROLS.search(content)
    if strange is not None:
        raise ValueError(
            f"{name} cannot be read as text: it is neither UTF-8 nor Latin-1, since byte {strange.start()} is "
            f"0x{content[strange.start()]:02x}; {way_out}"
        )
    try:
        content.decode("cp1252")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{name} cannot be read as text: it is neither UTF-8 nor Latin-1 (Windows-1252), since byte {error.start} "
            f"is 0x{content[error.start]:02x}; {way_out}"
        ) from error
    logger.info(f"{name} is not UTF-8, and is read as Latin-1 (Windows-1252)")
    return "cp1252"
