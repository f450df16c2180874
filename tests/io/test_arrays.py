"""Tensors in files."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from codiag.io import read_array, read_tns

LINES = "# comment\n1 1 1 0.5\n2 3 4 -1.5\n"


@pytest.mark.parametrize("name", ["x.tns", "x.tns.gz", "X.TNS"])
def test_tns_lists_entries_by_coordinates_from_one(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(gzip.compress(LINES.encode()) if name.endswith(".gz") else LINES.encode())
    tensor = read_tns(path)
    assert tensor.shape == (2, 3, 4)
    assert_array_equal(tensor.coords, [[0, 1], [0, 2], [0, 3]])
    assert_array_equal(tensor.values, [0.5, -1.5])


@pytest.mark.parametrize("text", ["0 1 1 2.0\n", "1 1.5 1 2.0\n", "1 2 3\n", "1 1 x 2\n", "1 1 1 1\n1 1 1\n"])
def test_lines_that_are_no_entries_are_refused(text, tmp_path):
    (tmp_path / "x.tns").write_text(text)
    with pytest.raises(ValueError, match=r"^x\.tns "):
        read_tns(tmp_path / "x.tns")


def test_an_array_of_several_is_named(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.ones((2, 3, 4)), b=np.zeros((2, 3, 4)), c=np.ones(3))
    assert_array_equal(read_array(tmp_path / "x.npz", "b"), np.zeros((2, 3, 4)))
    for variable in (None, "d"):
        with pytest.raises(ValueError, match="^variable must"):
            read_array(tmp_path / "x.npz", variable)


def test_a_npy_file_is_mapped(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((2, 3, 4)))
    assert isinstance(read_array(tmp_path / "x.npy"), np.memmap)


def test_zarr_and_h5py_arrays_stay_in_the_file(tmp_path):
    zarr, h5py = pytest.importorskip("zarr"), pytest.importorskip("h5py")
    zarr.save_array(str(tmp_path / "x.zarr"), np.ones((2, 3, 4)))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["group/x"], file["y"] = np.ones((2, 3, 4)), np.ones(3)
    for name in ("x.zarr", "x.h5"):
        array = read_array(tmp_path / name)
        assert type(array).__module__.partition(".")[0] in ("zarr", "h5py")
        assert array.shape == (2, 3, 4)


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.mat", "x.tns", "x.h5"])
@pytest.mark.parametrize("content", [b"PK\x03\x04nonsense", b"\x93NUMPY\x01", b"\0" * 100])
def test_damaged_files_are_named(name, content, tmp_path):
    pytest.importorskip("h5py")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=name):
        read_array(tmp_path / name)


def test_pickles_are_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.array([{}, {}, {}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"^x\.npy cannot be read"):
        read_array(tmp_path / "x.npy")


@pytest.mark.parametrize(
    ("path", "error"), [("x.foo", ValueError), ("none.npy", FileNotFoundError), ("", ValueError), (3, TypeError)]
)
def test_paths_are_checked(path, error, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=r"^path must"):
        read_array(path)


def test_a_missing_library_is_named_with_its_extra(tmp_path, monkeypatch):
    (tmp_path / "x.h5").write_bytes(b"x")
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    with pytest.raises(ImportError, match=r"pip install 'codiag\[files\]'"):
        read_array(tmp_path / "x.h5")
