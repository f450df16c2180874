"""Check paths, and report files that cannot be read in one sentence.

Lines of text files as rows of fields, and what is said of those that cannot be read.
"""

from __future__ import annotations

import inspect
import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np


def as_path(name: str, value: object) -> Path:
    """Return an argument, a str or an object of `pathlib`, as a Path."""
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a str or a Path; got {type(value).__name__} {value!r}")
    if not text or "\0" in text:
        raise ValueError(f"{name} must name a file; got {value!r}")
    return Path(text)


def as_file(name: str, value: object) -> Path:
    """Return the path of a file that exists, and is not empty."""
    path = as_path(name, value)
    if path.is_dir():
        raise ValueError(f"{name} must be a file; {path} is a folder")
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not a file")
    if path.stat().st_size == 0:
        raise ValueError(f"{path.name} is empty")
    return path


def reason_of(error: Exception) -> str:
    """Return what an error says, as a phrase also where that is the key that was not found."""
    if isinstance(error, KeyError) and error.args:
        return f"it holds no {error.args[0]}"
    return str(error) or type(error).__name__


def check_npz(path: Path) -> None:
    """Raise where a file does not begin like an archive of NumPy, nor like a pickle, of which `numpy.load` tells."""
    with path.open("rb") as file:
        first = file.read(2)
    if first != b"PK" and first[:1] != b"\x80":
        raise ValueError(f"{path.name} is not a readable .npz file: it does not begin like one")


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn every error while a file is read into one ValueError that names the file.

    Libraries raise almost any exception for truncated or damaged files. A ValueError that names the file is kept.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, ValueError) and path.name in str(error):
            raise
        ending = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
        reason = reason_of(error)
        raise ValueError(f"{path.name} is not a readable {ending or 'file of this kind'} file: {reason}") from error


def read_numbers(lines: Iterator[str], dtype: Any = np.float64) -> np.ndarray:
    """Return the numbers in lines of text, of shape (0, 0) where there are none: `numpy.loadtxt` warns of that."""
    first = next((line for line in lines if line.partition("#")[0].strip()), None)
    if first is None:
        return np.zeros((0, 0), dtype)
    return np.loadtxt(itertools.chain([first], lines), dtype=dtype, ndmin=2)


def read_mat(path: Path) -> dict[str, Any]:
    """Return the variables of a .mat file by name, matrices with few entries as sparse arrays where SciPy can do that.

    Versions of SciPy that can warn unless they are told, and earlier ones do not know the option.
    """
    from scipy.io import loadmat

    options = {"spmatrix": False} if "spmatrix" in inspect.signature(loadmat).parameters else {}
    contents: dict[str, Any] = loadmat(path, **options)
    return contents
