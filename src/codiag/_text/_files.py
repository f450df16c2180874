"""Paths of files, and errors of reading in one sentence."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO


def as_path(name: str, value: object) -> Path:
    """Return an argument, a str or an object of `pathlib`, as a Path."""
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a str or a Path; got {type(value).__name__} {value!r}")
    if not text or "\0" in text:
        raise ValueError(f"{name} must name a file; got {value!r}")
    if "://" in text:
        raise ValueError(f"{name} must be a file of this computer; got the URL {text}. Download it first")
    return Path(text)


def as_file(name: str, value: object) -> Path:
    """Return the path of a file that exists and is not empty."""
    path = as_path(name, value)
    if path.is_dir():
        raise ValueError(f"{name} must be a file; {path} is a folder")
    if not path.is_file():
        raise FileNotFoundError(f"{name} must be a file that exists; {path} does not")
    if path.stat().st_size == 0:
        raise ValueError(f"{name} must be a file with data; {path} is empty")
    return path


def as_npz(path: Any) -> Path:
    """Return the path of an ``.npz`` file that is there, also as it was given to `save`, without the ending."""
    found = as_path("path", path)
    if not found.exists() and Path(f"{found}.npz").exists():
        found = Path(f"{found}.npz")
    return as_file("path", found)


def ending_of(path: Path) -> str:
    """Return the last suffix of a path before ``.gz``, in small letters."""
    return (Path(path.stem) if _is_packed(path) else path).suffix.lower()


def _is_packed(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def open_text(path: Path) -> TextIO:
    """Open a text file, packed or not, by default in UTF-8, with line ends as they are."""
    opened = gzip.open if _is_packed(path) else open
    return opened(path, "rt", encoding="utf-8-sig", newline="")


def reason_of(error: Exception) -> str:
    """Return the message of an error, as a phrase also for a KeyError, whose message is only the key."""
    if isinstance(error, KeyError) and error.args:
        key = str(error.args[0]).removesuffix(" is not a file in the archive")  # the words of NumPy
        return f"it has no entry {key!r}"
    return str(error) or type(error).__name__


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn every error while a file is read into one ValueError that names the file.

    Libraries raise almost any exception for truncated or damaged files. A ValueError that names the file is kept, and
    so is the error about a library that is not installed.
    """
    try:
        yield
    except Exception as error:
        if (isinstance(error, ValueError) and path.name in str(error)) or isinstance(error, ImportError):
            raise
        reason = " ".join(reason_of(error).split()).rstrip(".")
        raise ValueError(
            f"{path.name} cannot be read as a {ending_of(path) or 'data'} file: {reason}. If it is damaged or cut off, "
            "copy or write it again"
        ) from error


def installed(module: str, path: Path) -> Any:
    """Return a module that reads a file; raise with the command that installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{path.name} cannot be read without {module.partition('.')[0]}. Get it with: pip install 'codiag[files]'"
        ) from error
