"""The data sets: their sources, finding or downloading their files, and checking their contents."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np


class Source(NamedTuple):
    """A data set: its kind, files as tables or arrays and as published, address, and a checksum of its contents.

    Files are in the folder of their kind. `original` is empty if the published files are in a format of R.
    """

    kind: str
    converted: list[str]
    original: list[str]
    address: str
    sha256: str


_TABLE = json.loads((files("codiag.datasets") / "sources.json").read_text(encoding="utf-8"))
SOURCES = {name: Source(**source) for name, source in _TABLE.items()}
"""All data sets by name."""


def names(folder: str | None = None) -> list[str]:
    """Return the names of the data sets.

    Parameters
    ----------
    folder : {"crowd", "eem", "facebook", "microbiome", "text"}, optional
        The kind of data; by default all kinds.

    Returns
    -------
    list of str
        Names, as the loaders take them.

    See Also
    --------
    is_local : Whether a data set is on this computer.
    load_crowd : Load votes.
    load_facebook : Load a network.
    load_kos : Load counts of words.

    Examples
    --------
    >>> from codiag.datasets import names
    >>> names("facebook")
    ['UNC28', 'Amherst41', 'Simmons81', 'Caltech36']
    """
    if folder is not None and folder not in [source.kind for source in SOURCES.values()]:
        raise ValueError(f"folder must be crowd, eem, facebook, microbiome or text; got {folder!r}")
    return [name for name, source in SOURCES.items() if folder in (None, source.kind)]


def source_of(name: str, folder: str | None = None) -> Source:
    """Return the source of a data set, of one kind or of any, or raise an error that lists the names."""
    if name not in names(folder):
        raise ValueError(f"name must be one of {', '.join(names(folder))}; got {name!r}")
    return SOURCES[name]


def locate(name: str, *, download: bool) -> list[Path]:
    """Return the files of a data set: in ``CODIAG_DATA_DIR``, in the cache, or downloaded if `download` is true."""
    source = source_of(name)
    local = _local_files(source)
    if local:
        return local
    if download and source.original:
        return _download(source)
    needed = " and ".join(f"{source.kind}/{file}" for file in source.converted)
    way_out = f"pass download=True to get it from {source.address}, or " if source.original else ""
    raise FileNotFoundError(
        f"{name} is not on this computer: {way_out}set CODIAG_DATA_DIR to a folder that holds {needed}; "
        f"got CODIAG_DATA_DIR={os.environ.get('CODIAG_DATA_DIR', '')!r}"
    )


def is_local(name: str) -> bool:
    """Return whether a data set is on this computer, in ``CODIAG_DATA_DIR`` or in the cache.

    Parameters
    ----------
    name : str
        One of `names`.

    Returns
    -------
    bool
        Whether loading needs no download.

    See Also
    --------
    names : The names of all data sets.

    Examples
    --------
    >>> from codiag.datasets import is_local, load_crowd
    >>> crowd = load_crowd("bluebird") if is_local("bluebird") else None
    """
    return bool(_local_files(source_of(name)))


def _local_files(source: Source) -> list[Path]:
    folders: list[str | Path | None] = [os.environ.get("CODIAG_DATA_DIR"), _cache()]
    for folder in [known for known in folders if known]:
        for listed in (source.converted, source.original):
            paths = [Path(folder) / source.kind / name for name in listed]
            if paths and all(path.is_file() for path in paths):
                return paths
    return []


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
        raise ModuleNotFoundError("downloading needs pooch: pip install 'codiag[data]'", name="pooch") from error
    folder = pooch.os_cache("codiag") / source.kind
    try:
        # Contents are checked after reading, not the bytes, which differ by line ends.
        return [Path(pooch.retrieve(source.address + name, None, name, folder)) for name in source.original]
    except OSError as error:
        raise ConnectionError(
            f"{source.address} could not be reached ({type(error).__name__}). Without a network, set CODIAG_DATA_DIR "
            f"to a folder that holds {' and '.join(f'{source.kind}/{name}' for name in source.original)}"
        ) from error


def check_contents(name: str, arrays: Iterable[np.ndarray]) -> None:
    """Raise if the SHA-256 of the contents, whole numbers or strings of any type and layout, is not the published."""
    total = hashlib.sha256()
    for array in arrays:
        total.update(str(array.shape).encode())
        total.update(array.astype("<i8").tobytes() if array.dtype.kind in "iuf" else "\n".join(array).encode())
    if total.hexdigest() != SOURCES[name].sha256:
        raise ValueError(
            f"the files of {name} do not hold what was published: the checksum of their contents must be "
            f"{SOURCES[name].sha256[:12]}...; got {total.hexdigest()[:12]}... Delete them and pass download=True"
        )
