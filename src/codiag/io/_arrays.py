"""Read tensors from files by the libraries that know them; Zarr and HDF5 arrays stay in the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from codiag._text import as_file, as_path, ending_of, installed, open_text, readable
from codiag.tensors import SparseTensor


def read_tns(path: str | Path) -> SparseTensor:
    r"""Read a sparse tensor in FROSTT's format: the coordinates of an entry, from one, and its value on every line.

    Parameters
    ----------
    path : str or Path
        A ``.tns`` file, also ``.tns.gz``. Lines that begin with # are ignored.

    Returns
    -------
    SparseTensor
        Entries that are not listed are zero.

    See Also
    --------
    codiag.tensors.SparseTensor : Entries by their coordinates.
    labelled_tensor : The same from a data frame.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from codiag.io import read_tns
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "x.tns"
    ...     _ = path.write_text("1 1 1 0.5\n2 3 4 1.5\n")
    ...     read_tns(path).shape
    (2, 3, 4)
    """
    path = as_file("path", path)
    with readable(path), open_text(path) as lines:
        table = np.loadtxt(lines, ndmin=2)
    coords = table[:, :-1].T
    if coords.shape[0] < 3 or not np.array_equal(coords, np.floor(coords)) or coords.min() < 1:
        raise ValueError(
            f"{path.name} must have three or more whole coordinates that count from one, and a value, on every line"
        )
    return SparseTensor(coords.astype(np.int64) - 1, table[:, -1], [int(row.max()) for row in coords])


def read_array(path: str | Path, variable: str | None = None) -> Any:
    """Read the entries of a tensor; no code in the file is executed.

    Parameters
    ----------
    path : str or Path
        ``.npy`` (mapped, not loaded), ``.npz``, ``.mat``, ``.tns``, ``.zarr``, ``.h5``, ``.hdf5`` or ``.nc``.
    variable : str, optional
        Name of the array, if the file has several.

    Returns
    -------
    array of NumPy, zarr or h5py, SparseTensor, or of a NetCDF file an xarray.DataArray
    """
    path = as_path("path", path)
    read = READERS.get(ending_of(path))
    if read is None:
        raise ValueError(f"path must end in one of {', '.join(READERS)}, which arrays are read from; got {path.name}")
    if ending_of(path) != ".zarr":
        as_file("path", path)
    elif not path.exists():
        raise FileNotFoundError(f"path must be a folder that exists; {path} does not")
    with readable(path):
        return read(path, variable)


def _read_npy(path: Path, _variable: str | None) -> np.ndarray:
    return np.load(path, mmap_mode="r", allow_pickle=False)


def _read_npz(path: Path, variable: str | None) -> np.ndarray:
    with np.load(path, allow_pickle=False) as file:
        return _chosen(path, {name: file[name] for name in file.files}, variable)


def _read_mat(path: Path, variable: str | None) -> np.ndarray:
    from scipy.io import loadmat

    arrays = {name: array for name, array in loadmat(path).items() if isinstance(array, np.ndarray)}
    return _chosen(path, arrays, variable)


def _read_zarr(path: Path, variable: str | None) -> Any:
    stored = installed("zarr", path).open(str(path), mode="r")
    return stored if hasattr(stored, "shape") else _chosen(path, dict(stored.arrays()), variable)


def _read_hdf5(path: Path, variable: str | None) -> Any:
    """Return a dataset of an HDF5 file, which stays open as long as the dataset is used."""
    h5py = installed("h5py", path)
    datasets: dict[str, Any] = {}
    h5py.File(path, "r").visititems(
        lambda name, item: datasets.update({name: item} if isinstance(item, h5py.Dataset) else {})
    )
    return _chosen(path, datasets, variable)


def _read_netcdf(path: Path, variable: str | None) -> Any:
    opened = installed("xarray", path).open_dataset(path, chunks="auto" if find_spec("dask") else None)
    return _chosen(path, dict(opened.data_vars.items()), variable)


def _chosen(path: Path, arrays: Mapping[str, Any], variable: str | None) -> Any:
    tensors = [name for name, array in arrays.items() if np.ndim(array) >= 3] if variable is None else [variable]
    if len(tensors) != 1 or tensors[0] not in arrays:
        contents = ", ".join(f"{name} {np.shape(array)}" for name, array in sorted(arrays.items())) or "nothing"
        raise ValueError(
            f"variable must name one array of {path.name} with three modes or more; it contains {contents}; got "
            f"{variable or 'no name'}"
        )
    return arrays[tensors[0]]


READERS: dict[str, Callable[[Path, str | None], Any]] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".mat": _read_mat,
    ".tns": lambda path, _variable: read_tns(path),
    ".zarr": _read_zarr,
    ".h5": _read_hdf5,
    ".hdf5": _read_hdf5,
    ".nc": _read_netcdf,
}
"""Functions that read arrays, by the ending of the file."""
