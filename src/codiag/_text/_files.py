"""Paths of files, packed files, and errors of reading in one sentence."""

from __future__ import annotations

import gzip
import inspect
import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

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
    """Return the path of a file that exists and is not empty."""
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


def is_packed(path: Path) -> bool:
    """Return whether the name of a file ends in ``.gz``, in small or capital letters."""
    return path.suffix.lower() == ".gz"


def ending_of(path: Path) -> str:
    """Return the last suffix of a path before ``.gz``, in small letters."""
    return (Path(path.stem) if is_packed(path) else path).suffix.lower()


def checked_ending(path: Path, endings: tuple[str, ...], *, must_exist: bool = True) -> str:
    """Return the ending of a path; raise if it is not one of `endings`, or if the file must exist and does not."""
    ending = ending_of(path)
    if must_exist and (path.is_dir() or not path.exists()):
        as_file("path", path)
    if ending not in endings:
        packed = "; .gz may follow" if must_exist else ""
        raise ValueError(f"path must end in {', '.join(endings)}{packed}; got {path}")
    if must_exist:
        as_file("path", path)
    return ending


def open_binary(path: Path) -> IO[bytes]:
    """Open a file, unpacked if it is packed."""
    return gzip.open(path) if is_packed(path) else path.open("rb")  # type: ignore[return-value]


def reason_of(error: Exception) -> str:
    """Return the message of an error, as a phrase also for a KeyError, whose message is only the key."""
    if isinstance(error, KeyError) and error.args:
        return f"it holds no {error.args[0]}"
    return str(error) or type(error).__name__


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
        ending = "".join(path.suffixes[-2:]) if is_packed(path) else path.suffix
        reason = reason_of(error)
        raise ValueError(f"{path.name} is not a readable {ending or 'file of this kind'} file: {reason}") from error


def check_npz(path: Path) -> None:
    """Raise if a file begins neither like an archive of NumPy nor like a pickle, which `numpy.load` refuses by name."""
    with path.open("rb") as file:
        first = file.read(2)
    if first != b"PK" and first[:1] != b"\x80":
        raise ValueError(f"{path.name} is not a readable .npz file: it does not begin like one")


def read_numbers(lines: Iterator[str], dtype: Any = np.float64) -> np.ndarray:
    """Return the numbers in lines of text as a matrix, (0, 0) if there are none: `numpy.loadtxt` warns then."""
    first = next((line for line in lines if line.partition("#")[0].strip()), None)
    if first is None:
        return np.zeros((0, 0), dtype)
    return np.loadtxt(itertools.chain([first], lines), dtype=dtype, ndmin=2)


def read_mat(path: Path) -> dict[str, Any]:
    """Return the variables of a .mat file by name.

    Sparse matrices are sparse arrays if the installed SciPy can return these; it then warns unless the option is set,
    which earlier versions do not know.
    """
    from scipy.io import loadmat

    options = {"spmatrix": False} if "spmatrix" in inspect.signature(loadmat).parameters else {}
    contents: dict[str, Any] = loadmat(path, **options)
    return contents
