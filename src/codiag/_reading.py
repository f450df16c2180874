"""Read files of others: a path that is one, and one sentence about a file that cannot be read."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np


def as_path(name: str, value: object) -> Path:
    """Return the path that an argument stands for: text or an object of `pathlib`."""
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a str or a Path; got {type(value).__name__} {value!r}")
    if not text or "\0" in text:
        raise ValueError(f"{name} must name a file; got {value!r}")
    return Path(text)


def as_file(name: str, value: object) -> Path:
    """Return the path of a file that can be read."""
    path = as_path(name, value)
    if path.is_dir():
        raise ValueError(f"{name} must be a file; {path} is a folder")
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not a file")
    return path


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn whatever goes wrong on reading a file into one ValueError that names it.

    Libraries raise errors of almost any kind for files that are cut or damaged. Refusals that name the file stay.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, ValueError) and path.name in str(error):
            raise
        ending = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
        reason = str(error) or type(error).__name__
        raise ValueError(f"{path.name} is not a readable {ending or 'file of this kind'} file: {reason}") from error


def read_numbers(lines: Iterator[str], dtype: Any = np.float64) -> np.ndarray:
    """Return the table of numbers in lines of text, of shape (0, 0) where there are none, of which NumPy warns."""
    first = next((line for line in lines if line.partition("#")[0].strip()), None)
    if first is None:
        return np.zeros((0, 0), dtype)
    return np.loadtxt(itertools.chain([first], lines), dtype=dtype, ndmin=2)
