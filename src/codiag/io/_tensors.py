"""Read tensors from files; arrays of Zarr and HDF5 files are read chunk by chunk, as dask arrays."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from zipfile import ZipFile, is_zipfile

import numpy as np

from codiag._text import (
    TABLES,
    as_file,
    as_path,
    check_npz,
    ending_of,
    is_packed,
    open_binary,
    open_text,
    read_frame,
    read_mat,
    read_numbers,
    readable,
)
from codiag.labels import Labelled, count_rows, of_table, read_labelled, zeros_and
from codiag.tensors import SparseTensor, Tensor, as_tensor


def read_tensor(path: str | Path, variable: str | None = None) -> Tensor:
    """Read a tensor from a file, as `read_entries` does, without labels; all of its entries must be finite."""
    entries = read_labelled_entries(path, variable).tensor
    with readable(Path(path)):
        return as_tensor(entries)


def read_entries(path: str | Path, variable: str | None = None) -> Any:
    """Read the entries of a tensor, or the list of a sparse one; no code in the file is executed.

    Parameters
    ----------
    path : str or Path
        ``.npy`` (mapped, not loaded) and ``.npy.gz``, ``.npz`` (one array, or `coords`, `values` or `data`, and `shape`
        of a COO tensor), ``.mat`` of MATLAB up to version 7, FROSTT ``.tns`` and ``.tns.gz``, with coordinates from
        one, a ``.zarr`` folder, also a zipped one, or an ``.h5`` or ``.hdf5`` file, which are read in chunks;
        ``file.h5:/group/array`` names an array of these three. NetCDF files, ``.nc``, ``.nc4`` or ``.cdf``.
    variable : str, optional
        Name of the array, if the file has several.

    Returns
    -------
    array of NumPy, dask array, SparseTensor, or of a NetCDF file an xarray.DataArray
    """
    path, named = split_dataset(as_path("path", path))
    readers = {".npy": _read_npy, ".npy.gz": _read_npy, ".npz": _read_npz, ".mat": _read_mat}
    readers |= {".tns": _read_tns, ".tns.gz": _read_tns}
    readers |= dict.fromkeys(ZARR, _read_zarr) | dict.fromkeys(HDF5, _read_hdf5) | dict.fromkeys(NETCDF, _read_netcdf)
    packed = path.suffix.lower() in (".gz", ".zip")
    ending = "".join(path.suffixes[-2:] if packed else path.suffixes[-1:]).lower()
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    if ending not in readers and path.is_dir():
        raise ValueError(f"path must be a file, or a folder that ends in .zarr; {path} is another folder")
    if ending not in readers:
        kinds = ", ".join((*readers, *TABLES))
        raise ValueError(f"path must end in one of {kinds}, which tensors are read from; got {path.name}")
    if named is not None and variable is not None and variable.strip("/") != named:
        raise ValueError(
            f"{path.name} must be read for one array; got {named} after its name and `variable` {variable}; leave one "
            "out"
        )
    if ending != ".zarr":
        as_file("path", path)
    with readable(path):
        return readers[ending](path, variable or named)


def read_labelled_entries(
    path: str | Path,
    variable: str | None = None,
    *,
    modes: Sequence[str] | None = None,
    value: str | None = None,
    absent: str = "missing",
    counts: bool = False,
    sort: bool = False,
) -> Labelled:
    """Read the entries of a tensor as `read_entries` does, or a long table with its labels.

    Parameters
    ----------
    path, variable
        As in `read_entries`; also a ``.csv``, ``.tsv`` (and ``.gz``), ``.parquet`` or ``.xlsx`` file with a row for
        each entry.
    modes, value, absent
        Columns of such a table, and the combinations that it does not list, as in `codiag.io.labelled_tensor`.
    counts
        Whether every row of such a table is an event, and the entries are how many rows there are of each combination.
    sort
        Whether to sort text labels, as in `codiag.io.labelled_tensor`.

    Returns
    -------
    Labelled
    """
    path = as_path("path", path)
    if ending_of(path) not in TABLES:
        if modes is not None or value is not None:
            raise ValueError(f"modes and value name columns of a table, {', '.join(TABLES)}; got {path.name}")
        entries = read_entries(path, variable)
        return read_labelled(entries) if ending_of(path) in NETCDF else Labelled(entries, None)
    _no_variable(path, variable)
    frame = read_frame(as_file("path", path))
    try:
        if counts:
            return count_rows(frame, modes, absent=absent, sort=sort)
        return of_table(frame, modes, value, absent, sort=sort)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path.name} cannot be read as a tensor: {error}") from error


def _read_npy(path: Path, variable: str | None) -> np.ndarray | SparseTensor:
    _no_variable(path, variable)
    with open_binary(path) as file:
        start = file.read(6)
    if not start:
        raise ValueError(f"{path.name} is empty")
    if start != b"\x93NUMPY" and start[:1] != b"\x80":  # 0x80 begins a pickle, which is refused below
        raise ValueError(f"{path.name} is not a readable .npy file: it does not begin like one")
    with _no_pickles(path):
        if not is_packed(path):
            return np.load(path, mmap_mode="r", allow_pickle=False)
        with open_binary(path) as file:
            return np.load(file, allow_pickle=False)


def _read_npz(path: Path, variable: str | None) -> np.ndarray | SparseTensor:
    check_npz(path)
    with _no_pickles(path), np.load(path, allow_pickle=False) as file:
        names = set(file.files)
        values = "values" if "values" in names else "data"
        if variable is None and {"coords", "shape", values} <= names:
            if "fill_value" in names and np.any(file["fill_value"] != 0):
                raise ValueError(
                    f"{path.name} must be zero where it has no entries; fill_value is {file['fill_value']}"
                )
            return _from_list(file["coords"], file[values], file["shape"].tolist())
        return _chosen(path, {name: file[name] for name in file.files}, variable)


def _read_mat(path: Path, variable: str | None) -> np.ndarray:
    try:
        contents = read_mat(path)
    except NotImplementedError as error:
        raise ValueError(f"{path.name} is of MATLAB 7.3; save it with save(..., '-v7')") from error
    arrays = {name: array for name, array in contents.items() if not name.startswith("__")}
    return _chosen(path, arrays, variable)


def _read_tns(path: Path, variable: str | None) -> np.ndarray | SparseTensor:
    _no_variable(path, variable)
    try:
        with open_text(path) as lines:
            table = read_numbers(lines)
    except (ValueError, UnicodeDecodeError) as error:
        reason = str(error).split(";")[0]
        raise ValueError(f"{path.name} must contain lines of coordinates and a value: {reason}") from error
    if table.size == 0:
        raise ValueError(f"{path.name} holds no entries")
    numbers = table[:, :-1].T
    if not np.array_equal(numbers, np.floor(numbers)) or numbers.min() < 1:
        raise ValueError(f"{path.name} must have whole coordinates that count from one; the least is {numbers.min():g}")
    coords = numbers.astype(np.int64) - 1
    return _from_list(coords, table[:, -1], [int(row.max()) + 1 for row in coords])


def _from_list(coords: np.ndarray, values: np.ndarray, shape: Sequence[int]) -> np.ndarray | SparseTensor:
    """Return a sparse tensor, or an array if entries are missing, since entries that are not listed are zero."""
    if values.dtype.kind == "f" and np.isnan(values).any() and len(shape) == len(coords):
        return zeros_and(coords, values, shape)
    return SparseTensor(coords, values, shape)


def _read_zarr(path: Path, variable: str | None) -> Any:
    arrays = open_zarr(path)
    if list(arrays) != [""]:
        return in_chunks(_chosen(path, arrays, variable), path)
    _no_variable(path, variable)
    return in_chunks(arrays[""], path)


def _read_hdf5(path: Path, variable: str | None) -> Any:
    return in_chunks(_chosen(path, open_hdf5(path), variable), path)


def _read_netcdf(path: Path, variable: str | None) -> Any:
    """Return a variable with its coordinates, which fill values make NaN; of dask if it is larger than a gigabyte."""
    xarray = _imported("xarray", path, NETCDF_PACKAGES)
    with path.open("rb") as file:
        if not file.read(4).startswith((b"CDF", b"\x89HDF")):
            raise ValueError(f"{path.name} is not a readable {path.suffix} file: it does not begin like one")
    try:
        opened = xarray.open_dataset(path)
    except ValueError as error:
        if "engine" not in str(error) and "backend" not in str(error):
            raise
        raise ValueError(
            f"{path.name} cannot be read, since no library for this version of NetCDF is installed. Get one with: pip "
            f"install {NETCDF_PACKAGES}"
        ) from error
    with opened as dataset:
        array = _chosen(path, dict(dataset.data_vars.items()), variable)
        if array.size * array.dtype.itemsize <= LARGEST:
            return array.load()
    _imported("dask.array", path)
    return xarray.open_dataset(path, chunks="auto")[array.name]


def _chosen(path: Path, arrays: Mapping[str, Any], variable: str | None) -> Any:
    if variable is not None:
        variable = variable.strip("/") if variable not in arrays else variable
        if variable not in arrays:
            raise ValueError(
                f"{path.name} has no array {variable!r}; it contains {', '.join(sorted(arrays)) or 'none'}"
            )
        return arrays[variable]
    tensors = [name for name, array in arrays.items() if np.ndim(array) >= 3]
    if len(tensors) != 1:
        contents = ", ".join(f"{name} {np.shape(array)}" for name, array in sorted(arrays.items())) or "nothing"
        raise ValueError(
            f"{path.name} must contain one array of three modes or more, or `variable` name one; it contains {contents}"
        )
    return arrays[tensors[0]]


@contextmanager
def _no_pickles(path: Path) -> Iterator[None]:
    """Explain why NumPy refuses a file of pickled objects."""
    try:
        yield
    except ValueError as error:
        if not any(word in str(error) for word in ("pickle", "Python objects")):
            raise
        raise ValueError(
            f"{path.name} holds pickled objects, which are refused since reading them can run code; "
            "save a plain array of numbers with numpy.save"
        ) from error


def _no_variable(path: Path, variable: str | None) -> None:
    if variable is not None:
        raise ValueError(f"{path.name} holds one tensor without a name; leave `variable` out")


HDF5 = (".h5", ".hdf5")
ZARR = (".zarr", ".zarr.zip")
NETCDF = (".nc", ".nc4", ".cdf")
NETCDF_PACKAGES = "xarray h5netcdf"
LARGEST = 2**30
"""Bytes of an array of a NetCDF file up to which it is read at once."""
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
            f"it contains none of {', '.join(ZARR_METADATA)}, which a Zarr array or group begins with, but {contents}. "
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


def _imported(name: str, path: Path, packages: str = "'codiag[dask,files]'") -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{path.name} cannot be read without {name.partition('.')[0]}, which is not installed. Get what reading "
            f"such files takes with: pip install {packages}"
        ) from error
