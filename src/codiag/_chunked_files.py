"""Read arrays from Zarr and HDF5 files chunk by chunk, as dask arrays."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

HDF5 = (".h5", ".hdf5")


def split_dataset(path: Path) -> tuple[Path, str | None]:
    """Split the path of a file from the name of an array in it, as in ``file.h5:/group/array``."""
    for ending in (*HDF5, ".zarr"):
        file, mark, name = str(path).partition(f"{ending}:")
        if mark and name.strip("/"):
            return Path(file + ending), name.strip("/")
    return path, None


def open_zarr(path: Path) -> dict[str, Any]:
    """Return the arrays of a Zarr folder by name, not read yet: one without a name where it is nothing else."""
    zarr = _imported("zarr", path)
    try:
        stored = zarr.open(str(path), mode="r")
    except (ValueError, OSError) as error:  # which zarr words in terms of its own
        raise ValueError(f"{path.name} is not a readable .zarr folder: {error}") from error
    return {"": stored} if hasattr(stored, "shape") else dict(_arrays_of_group(stored))


def open_hdf5(path: Path) -> dict[str, Any]:
    """Return the datasets of an HDF5 file by name, not read yet. The file stays open while they are used."""
    h5py = _imported("h5py", path)
    datasets: dict[str, Any] = {}

    def keep(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.shape is not None:
            datasets[name] = item

    h5py.File(path, "r").visititems(keep)
    return datasets


def in_chunks(stored: Any, path: Path) -> Any:
    """Return a stored array as one of dask, in chunks that hold whole ones of the file."""
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
