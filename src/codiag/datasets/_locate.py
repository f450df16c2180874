"""Find the files of a data set, and check what was read from them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from codiag.datasets._registry import SOURCES, Source, available


def source_of(name: str, folder: str | None = None) -> Source:
    """Return the source of a data set, of one kind or of any, or raise an error that lists the names."""
    if name not in available(folder):
        raise ValueError(f"name must be one of {', '.join(available(folder))}; got {name!r}")
    return SOURCES[name]


def locate(name: str, *, download: bool) -> list[Path]:
    """Return the files of a data set: in ``CODIAG_DATA_DIR``, in the cache, or downloaded if that was asked for."""
    source = source_of(name)
    files = _find(source)
    if files:
        return files
    if not download or not source.original:
        raise FileNotFoundError(_way_out(name, source))
    return _download(source)


def at_hand(name: str) -> bool:
    """Tell whether a data set is on this computer, in ``CODIAG_DATA_DIR`` or in the cache.

    Parameters
    ----------
    name : str
        One of `available`.

    Returns
    -------
    bool
        True where loading would need no download.

    See Also
    --------
    available : The names of all data sets.

    Examples
    --------
    >>> from codiag.datasets import at_hand, load_crowd
    >>> crowd = load_crowd("bluebird") if at_hand("bluebird") else None
    """
    return bool(_find(source_of(name)))


def _find(source: Source) -> list[Path]:
    own = os.environ.get("CODIAG_DATA_DIR")
    for folder in filter(None, (Path(own) if own else None, _cache())):
        for names in (source.converted, source.original):
            files = [folder / source.folder / file for file in names]
            if files and all(file.is_file() for file in files):
                return files
    return []


def check_contents(name: str, arrays: Iterable[np.ndarray]) -> None:
    """Raise where the contents of a data set are not those that were published."""
    found = digest(arrays)
    if found != SOURCES[name].sha256:
        raise ValueError(
            f"the files of {name} do not hold what was published: the checksum of their contents is {found[:12]}..., "
            f"it must be {SOURCES[name].sha256[:12]}...; delete them and load again with download=True"
        )


def digest(arrays: Iterable[np.ndarray]) -> str:
    """Return the SHA-256 of arrays of whole numbers or of strings, whatever their type and layout."""
    total = hashlib.sha256()
    for array in arrays:
        total.update(str(array.shape).encode())
        total.update(array.astype("<i8").tobytes() if array.dtype.kind in "iuf" else "\n".join(array).encode())
    return total.hexdigest()


def _cache() -> Path | None:
    try:
        import pooch
    except ModuleNotFoundError:
        return None
    return Path(pooch.os_cache("codiag"))


def _download(source: Source) -> list[Path]:
    try:
        import pooch
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("downloading needs pooch; get it with: pip install 'codiag[data]'") from error
    folder = pooch.os_cache("codiag") / source.folder
    try:
        # Bytes are not checked here: contents are, after reading, whatever the line ends.
        return [Path(pooch.retrieve(source.address + file, None, file, folder)) for file in source.original]
    except OSError as error:
        raise ConnectionError(
            f"{source.address} could not be reached ({type(error).__name__}). Without a network, set CODIAG_DATA_DIR "
            f"to a folder that holds {' and '.join(f'{source.folder}/{file}' for file in source.original)}"
        ) from error


def _way_out(name: str, source: Source) -> str:
    held = " and ".join(f"{source.folder}/{file}" for file in source.converted)
    own = os.environ.get("CODIAG_DATA_DIR")
    if own:
        return f"{name} is not in CODIAG_DATA_DIR, {own}: it must hold {held}" + (
            "" if not source.original else ". Without it, download=True gets them from " + source.address
        )
    if not source.original:
        return (
            f"{name} is not on this computer. Set CODIAG_DATA_DIR to a folder that holds {held}; "
            f"it is published at {source.address} in a format of R"
        )
    return (
        f"{name} is not on this computer. Pass download=True to get it from {source.address}, "
        f"or set CODIAG_DATA_DIR to a folder that holds {held}"
    )
