"""Read arrays from Zarr and HDF5 files chunk by chunk, as dask arrays."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any
from zipfile import ZipFile, is_zipfile

HDF5 = (".h5", ".hdf5")
ZARR = (".zarr", ".zarr.zip")
WITH_ARRAY = re.compile(r"(?P<file>.*?\.(h5|hdf5|zarr|zarr\.zip)):(?P<name>.*)", re.IGNORECASE)
"""The path of a file, a colon and the name of an array in it."""
ZARR_METADATA = ("zarr.json", ".zgroup", ".zarray")
"""Names of metadata; every Zarr array or group has a file by one of them."""


def split_dataset(path: Path) -> tuple[Path, str | None]:
    """Split the path of a file from the name of an array in it, as in ``file.h5:/group/array``."""
    split = WITH_ARRAY.fullmatch(str(path))
    if split is None:
        return path, None
    file, name = Path(split["file"]), split["name"].strip("/")
    if not name:
        raise ValueError(
            f"path must name an array after the colon, as in {file.name}:/group/array, or end before it; got {path}"
        )
    return file, name


def open_zarr(path: Path) -> dict[str, Any]:
    """Return the arrays of a Zarr group by name, not read yet; a single array has the empty name.

    The folder may be in a zip archive, which is not unpacked.
    """
    zarr = _imported("zarr", path)
    try:
        if path.is_dir():
            _check_zarr_folder(path)
            stored = zarr.open(str(path), mode="r")
        else:
            store = import_module("zarr.storage").ZipStore(str(path), mode="r")
            stored = zarr.open(store, path=_zipped_root(path), mode="r")
    except (ValueError, OSError) as error:
        raise ValueError(f"{path.name} is not a readable .zarr folder: {error}") from error
    return {"": stored} if hasattr(stored, "shape") else dict(_arrays_of_group(stored))


def _check_zarr_folder(path: Path) -> None:
    if not any((path / name).exists() for name in ZARR_METADATA):
        contents = "other files" if any(path.iterdir()) else "nothing"
        raise ValueError(
            f"it holds none of {', '.join(ZARR_METADATA)}, which a Zarr array or group begins with, but {contents}. "
            "Name the folder that holds one, or write the array again, as with zarr.save_array"
        )


def _zipped_root(path: Path) -> str:
    """Return the outermost folder in a zip archive that is a Zarr array or group."""
    if not is_zipfile(path):
        raise ValueError("it is neither a folder nor a zip archive of one. Write the array with zarr.save_array")
    with ZipFile(path) as archive:
        folders = [
            folder for folder, _, name in (path.rpartition("/") for path in archive.namelist()) if name in ZARR_METADATA
        ]
    if not folders:
        raise ValueError(
            f"the archive holds none of {', '.join(ZARR_METADATA)}, which a Zarr array or group begins with"
        )
    return min(folders, key=lambda folder: (bool(folder), folder.count("/")))


def open_hdf5(path: Path) -> dict[str, Any]:
    """Return the datasets of an HDF5 file by name, not read yet. The file stays open as long as they are used."""
    h5py = _imported("h5py", path)
    datasets: dict[str, Any] = {}

    def keep(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.shape is not None:
            datasets[name] = item

    h5py.File(path, "r").visititems(keep)
    return datasets


def in_chunks(stored: Any, path: Path) -> Any:
    """Return a stored array as one of dask, whose chunks consist of whole chunks of the file."""
    return _imported("dask.array", path).from_array(stored, chunks="auto", inline_array=True)


def _arrays_of_group(group: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, array in group.arrays():
        yield prefix + name, array
    for name, inner in group.groups():
        yield from _arrays_of_group(inner, f"{prefix}{name}/")


def _imported(name: str, path: Path) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{path.name} cannot be read without {name.partition('.')[0]}, which is not installed. Get what reading "
            "such files takes with: pip install 'codiag[dask,files]'"
        ) from error
