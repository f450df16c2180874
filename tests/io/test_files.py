"""Tensors from files, and files that are none."""

from __future__ import annotations

import gzip
import io
import pickle
import shutil
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.io import savemat

from codiag.datasets import read_bag_of_words, read_crowd, read_facebook
from codiag.io import read_edges, read_entries, read_graph, read_labelled_entries, read_tensor, read_votes
from codiag.models.topics import read_corpus
from codiag.tensors import DaskTensor, DenseTensor, SparseTensor

ENTRIES = np.arange(24.0).reshape(2, 3, 4)


def test_npy_is_mapped(tmp_path):
    np.save(tmp_path / "a.npy", ENTRIES)
    tensor = read_tensor(tmp_path / "a.npy")
    assert isinstance(tensor, DenseTensor)
    assert isinstance(tensor._entries.base, np.memmap)
    assert_array_equal(tensor.to_dense(), ENTRIES)


def test_npy_that_is_packed(tmp_path):
    (tmp_path / "a.npy.gz").write_bytes(gzip.compress(_saved()))
    assert_array_equal(read_tensor(tmp_path / "a.npy.gz").to_dense(), ENTRIES)
    (tmp_path / "b.npy.gz").write_bytes(_saved())
    with pytest.raises(ValueError, match=r"b\.npy\.gz is not a readable \.npy\.gz file"):
        read_tensor(tmp_path / "b.npy.gz")


def test_npz(tmp_path):
    np.savez(tmp_path / "one.npz", anything=ENTRIES, labels=np.arange(3))
    assert_array_equal(read_tensor(tmp_path / "one.npz").to_dense(), ENTRIES)
    np.savez(tmp_path / "two.npz", first=ENTRIES, second=2 * ENTRIES)
    assert_array_equal(read_tensor(tmp_path / "two.npz", "second").to_dense(), 2 * ENTRIES)
    with pytest.raises(
        ValueError, match=r"must contain one array .* it contains first \(2, 3, 4\), second \(2, 3, 4\)"
    ):
        read_tensor(tmp_path / "two.npz")
    with pytest.raises(ValueError, match="has no array 'third'; it contains first, second"):
        read_tensor(tmp_path / "two.npz", "third")


@pytest.mark.parametrize("values", ["values", "data"])
def test_npz_of_coordinates(tmp_path, values):
    places = np.nonzero(ENTRIES)
    contents = {"coords": np.array(places), values: ENTRIES[places], "shape": np.array(ENTRIES.shape)}
    np.savez(tmp_path / "a.npz", **contents, fill_value=np.float64(0))
    tensor = read_tensor(tmp_path / "a.npz")
    assert isinstance(tensor, SparseTensor)
    assert_array_equal(tensor.to_dense(), ENTRIES)
    np.savez(tmp_path / "b.npz", **contents, fill_value=np.float64(1))
    with pytest.raises(ValueError, match="fill_value"):
        read_tensor(tmp_path / "b.npz")


def test_files_of_pydata_sparse(tmp_path):
    sparse = pytest.importorskip("sparse", reason="pydata/sparse is not installed; it is the extra 'sparse'")
    sparse.save_npz(tmp_path / "a.npz", sparse.COO.from_numpy(ENTRIES))
    assert_array_equal(read_tensor(tmp_path / "a.npz").to_dense(), ENTRIES)


def stored(path, arrays):
    """Write arrays by name, of which an empty one is alone, as a Zarr folder or an HDF5 file."""
    if path.suffix == ".zarr":
        zarr = pytest.importorskip("zarr", reason="zarr is not installed; it is in the extra 'files'")
        if "" in arrays:
            zarr.save_array(str(path), arrays[""])
            return
        group = zarr.open_group(str(path), mode="w")
        for name, array in arrays.items():
            group.create_array(name, data=array)
        return
    h5py = pytest.importorskip("h5py", reason="h5py is not installed; it is in the extra 'files'")
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file.create_dataset(name or "X", data=array, chunks=True)


@pytest.mark.parametrize("name", ["a.zarr", "a.h5", "a.hdf5"])
def test_arrays_that_are_stored_in_chunks(tmp_path, name):
    pytest.importorskip("dask", reason="dask is not installed; it is the extra 'dask'")
    stored(tmp_path / name, {"": ENTRIES})
    tensor = read_tensor(tmp_path / name)
    assert isinstance(tensor, DaskTensor)
    assert_array_equal(tensor.to_dense(), ENTRIES)
    several = tmp_path / f"b{name}"
    stored(several, {"first": ENTRIES, "inside/second": 2 * ENTRIES, "labels": np.arange(3)})
    assert_array_equal(read_tensor(several, "inside/second").to_dense(), 2 * ENTRIES)
    assert_array_equal(read_tensor(f"{several}:/inside/second").to_dense(), 2 * ENTRIES)
    with pytest.raises(
        ValueError, match=r"must contain one array .* first \(2, 3, 4\), inside/second \(2, 3, 4\), labels"
    ):
        read_tensor(several)
    with pytest.raises(ValueError, match="has no array 'third'; it contains first, inside/second, labels"):
        read_tensor(f"{several}:third")


@pytest.mark.parametrize(("name", "package"), [("a.zarr", "zarr"), ("a.h5", "h5py"), ("a.h5", "dask.array")])
def test_what_is_missing_to_read_chunks_is_named(tmp_path, name, package, monkeypatch):
    stored(tmp_path / name, {"": ENTRIES})
    monkeypatch.setitem(sys.modules, package, None)
    words = rf"without {package.partition('.')[0]}, which is not installed.*pip install 'codiag\[dask,files\]'"
    with pytest.raises(ValueError, match=words):
        read_tensor(tmp_path / name)


@pytest.mark.parametrize("name", ["a.zarr", "a.h5"])
def test_files_of_chunks_that_are_none(tmp_path, name):
    with pytest.raises(FileNotFoundError, match=rf"{name} does not exist"):
        read_tensor(tmp_path / name)
    pytest.importorskip("zarr")
    pytest.importorskip("h5py")
    (tmp_path / name).write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match=rf"{name} is not a readable"):
        read_tensor(tmp_path / name)


@pytest.mark.parametrize("inside", ["", "a.zarr"])
@pytest.mark.parametrize("name", ["b.zarr", "b.zarr.zip"])
def test_zarr_folders_that_were_zipped(tmp_path, name, inside):
    pytest.importorskip("dask", reason="dask is not installed; it is the extra 'dask'")
    stored(tmp_path / "a.zarr", {"": ENTRIES})
    stored(tmp_path / "two.zarr", {"first": ENTRIES, "second": 2 * ENTRIES})
    root = tmp_path if inside else tmp_path / "a.zarr"
    Path(shutil.make_archive(str(tmp_path / "c"), "zip", root, inside or None)).rename(tmp_path / name)
    assert_array_equal(read_tensor(tmp_path / name).to_dense(), ENTRIES)
    Path(shutil.make_archive(str(tmp_path / "c"), "zip", tmp_path / "two.zarr")).rename(tmp_path / name)
    assert_array_equal(read_tensor(f"{tmp_path / name}:second").to_dense(), 2 * ENTRIES)


def test_zarr_folders_that_are_none_say_why(tmp_path):
    stored(tmp_path / "a.zarr", {"": ENTRIES})
    (tmp_path / "empty.zarr").mkdir()
    (tmp_path / "text.zarr").write_text("text")
    with zipfile.ZipFile(tmp_path / "other.zarr", "w") as archive:
        archive.writestr("text", "text")
    expected = {
        "empty.zarr": r"it contains none of zarr\.json, .* but nothing\. Name the folder",
        "text.zarr": r"neither a folder nor a zip archive of one\. Write the array with",
        "other.zarr": r"the archive holds none of zarr\.json",
    }
    for name, reason in expected.items():
        with pytest.raises(ValueError, match=rf"^{name} is not a readable \.zarr folder: .*{reason}"):
            read_tensor(tmp_path / name)
    with pytest.raises(ValueError, match=r"a\.zarr holds one tensor without a name; leave `variable` out"):
        read_tensor(tmp_path / "a.zarr", "X")


@pytest.mark.parametrize("name", ["a.zarr", "a.h5"])
def test_an_array_has_one_name(tmp_path, name):
    path = tmp_path / name
    stored(path, {"first": ENTRIES, "second": 2 * ENTRIES})
    assert_array_equal(read_tensor(f"{path}:/first", "first").to_dense(), ENTRIES)
    with pytest.raises(
        ValueError, match=f"{name} must be read for one array; got first after its name and `variable` second"
    ):
        read_tensor(f"{path}:/first", "second")
    with pytest.raises(ValueError, match=rf"path must name an array after the colon, as in {name}:/group/array"):
        read_tensor(f"{path}:")


def test_mat(tmp_path):
    savemat(tmp_path / "a.mat", {"X": ENTRIES, "labels": np.arange(3)})
    assert_array_equal(read_tensor(tmp_path / "a.mat").to_dense(), ENTRIES)
    assert_array_equal(read_tensor(tmp_path / "a.mat", "X").to_dense(), ENTRIES)


@pytest.mark.parametrize("name", ["a.tns", "a.tns.gz"])
def test_frostt(tmp_path, name):
    text = "# i j k value\n1 1 2 1.5\n\n2 3 4 -2\n1 1 2 0.5\n"
    path = tmp_path / name
    if name.endswith("gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    tensor = read_tensor(path)
    assert tensor.shape == (2, 3, 4)
    assert tensor.to_dense()[0, 0, 1] == 2
    assert tensor.to_dense()[1, 2, 3] == -2
    with pytest.raises(ValueError, match="leave `variable` out"):
        read_tensor(path, "X")


def test_nan_in_lists_of_entries_are_missing(tmp_path):
    (tmp_path / "a.tns").write_text("1 1 2 1.5\n2 3 4 nan\n1 1 2 0.5\n")
    expected = np.zeros((2, 3, 4))
    expected[0, 0, 1], expected[1, 2, 3] = 2, np.nan
    assert_array_equal(read_entries(tmp_path / "a.tns"), expected)
    contents = {"coords": np.array([[0, 1], [0, 2], [1, 3]]), "values": np.array([2, np.nan]), "shape": (2, 3, 4)}
    np.savez(tmp_path / "a.npz", **contents)
    assert_array_equal(read_entries(tmp_path / "a.npz"), expected)


def _saved() -> bytes:
    file = io.BytesIO()
    np.save(file, ENTRIES)
    return file.getvalue()


def _damaged() -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, a=np.random.default_rng(0).standard_normal((8, 8, 8)))
    content = bytearray(file.getvalue())
    content[len(content) // 2 : len(content) // 2 + 40] = b"x" * 40
    return bytes(content)


class Evil:
    def __reduce__(self):
        return (pytest.fail, ("a file was executed",))


def write(path, content):
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        content(path)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.npy", b"not an array", "a.npy is not a readable .npy file: it does not begin like one"),
        ("a.npy", lambda path: path.write_bytes(_saved()[:-8]), "a.npy"),
        ("a.npz", lambda path: path.write_bytes(_damaged()), "a.npz"),
        ("a.tns.gz", gzip.compress(b"1 1 1 1\n" * 50, mtime=0)[:-12], "a.tns.gz is not a readable"),
        ("a.npy", pickle.dumps(Evil()), "a.npy holds pickled objects, which are refused"),
        ("a.npy", lambda path: np.save(path, np.array([[[Evil()]]], dtype=object)), "refused|pickled"),
        ("a.npz", lambda path: np.savez(path, a=np.array([[[Evil()]]], dtype=object)), "refused|pickled"),
        ("a.npz", b"PK not a zip", "a.npz"),
        ("a.npz", b"garbage", "a.npz is not a readable .npz file: it does not begin like one"),
        ("a.npz", pickle.dumps(Evil()), "a.npz holds pickled objects, which are refused"),
        ("a.npz", lambda path: np.savez(path, a=np.ones(3)), "must contain one array of three modes or more"),
        ("a.npy", lambda path: np.save(path, np.ones((3, 3))), "at least three modes"),
        ("a.mat", b"nonsense" * 40, "a.mat is not a readable .mat file"),
        ("a.mat", b"MATLAB 7.3 MAT-file, Platform" + b" " * 95 + b"\x00\x02IM" + b"\x00" * 400, "MATLAB 7.3"),
        ("a.tns", b"1 2 x 4\n", "must contain lines of coordinates and a value"),
        ("a.tns", b"1 2 3 4\n1 2 3\n", "must contain lines of coordinates and a value"),
        ("a.tns", b"0 1 1 4\n", "count from one; the least is 0"),
        ("a.tns", b"1.5 1 1 4\n", "whole coordinates"),
        ("a.tns", b"1 1 4\n", "at least three modes"),
        ("a.tns.gz", b"not zipped", "a.tns.gz is not a readable"),
        ("a.xls", b"1,2,3", r"end in one of \.npy, \.npy\.gz, .* \.zarr\.zip, \.h5, \.hdf5, .*\.parquet, .* got a.xls"),
        ("a.csv", b"1,2,3", r"a.csv cannot be read as a tensor: tensor must have three modes or more"),
    ],
)
def test_files_that_are_none(tmp_path, name, content, words):
    path = tmp_path / name
    write(path, content)
    with pytest.raises(ValueError, match=words):
        read_tensor(path)


def test_an_empty_list_of_entries(tmp_path):
    (tmp_path / "a.tns").write_text("# nothing\n")
    with pytest.raises(ValueError, match="holds no entries"):
        read_tensor(tmp_path / "a.tns")


def test_missing_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        read_tensor(tmp_path / "a.npy")


PACKED = gzip.compress


def _chunked(path, module):
    pytest.importorskip("dask", reason="dask is not installed; it is the extra 'dask'")
    package = pytest.importorskip(module, reason=f"{module} is not installed; it is in the extra 'files'")
    if module == "zarr":
        package.save(path, ENTRIES)
        return
    with package.File(path, "w") as file:
        file.create_dataset("X", data=ENTRIES)


def _parquet(path):
    pytest.importorskip("pyarrow")
    index = np.indices(ENTRIES.shape).reshape(3, -1)
    columns = dict(zip("abc", index, strict=True)) | {"value": ENTRIES.ravel()}
    pytest.importorskip("pandas").DataFrame(columns).to_parquet(path)


def _graph(path):
    nx = pytest.importorskip("networkx")
    plain = path.with_suffix("")
    getattr(nx, f"write_{plain.suffix[1:].lower()}")(nx.path_graph(3), plain)
    path.write_bytes(PACKED(plain.read_bytes()))


def _entries(path):
    return np.asarray(read_labelled_entries(path).tensor.shape).tolist()


LONG = "a,b,c,value\n" + "".join(f"{i},{j},{k},1\n" for i, j, k in np.ndindex(2, 3, 4))
CAPITALS = [
    ("X.TNS.GZ", PACKED(b"2 3 4 1\n"), _entries, [2, 3, 4]),
    ("X.NPY.GZ", lambda path: path.write_bytes(PACKED(_saved())), _entries, [2, 3, 4]),
    ("X.NPZ", lambda path: path.write_bytes(_archive()), _entries, [2, 3, 4]),
    ("X.MAT", lambda path: savemat(path, {"X": ENTRIES}, appendmat=False), _entries, [2, 3, 4]),
    ("X.ZARR", lambda path: _chunked(path, "zarr"), _entries, [2, 3, 4]),
    ("X.H5", lambda path: _chunked(path, "h5py"), lambda path: _entries(f"{path}:/X"), [2, 3, 4]),
    ("X.CSV.GZ", PACKED(LONG.encode()), _entries, [2, 3, 4]),
    ("X.PARQUET", _parquet, _entries, [2, 3, 4]),
    (
        "V.CSV.GZ",
        PACKED(b"task,worker,label\n1,2,3\n"),
        lambda path: list(read_votes(path)),
        ["task", "worker", "label"],
    ),
    ("E.TXT.GZ", PACKED(b"1 2\n"), lambda path: read_edges(path).tolist(), [[1, 2]]),
    ("G.GML.GZ", _graph, lambda path: read_graph(path).nodes.size, 3),
    ("G.GRAPHML.GZ", _graph, lambda path: read_graph(path).nodes.size, 3),
    ("C.TXT.GZ", PACKED(b"1 2 3\n"), lambda path: read_crowd(path).votes["label"].tolist(), [3]),
    ("B.TXT.GZ", PACKED(b"1\n1\n1\n1 1 5\n"), lambda path: read_bag_of_words(path, _vocabulary(path)).counts.sum(), 5),
    (
        "F.MAT",
        lambda path: savemat(path, NETWORK, appendmat=False),
        lambda path: read_facebook(path).adjacency.sum(),
        2,
    ),
    ("T.TXT.GZ", PACKED(b"cats dogs\n" * 3), lambda path: sorted(read_corpus(path)[1]), ["cats", "dogs"]),
    ("folder", lambda path: _folder(path), lambda path: sorted(read_corpus(path)[1]), ["cats", "dogs"]),
]
NETWORK = {"A": np.array([[0, 1], [1, 0]]), "local_info": np.ones((2, 7))}


def _archive():
    file = io.BytesIO()
    np.savez(file, X=ENTRIES)
    return file.getvalue()


def _vocabulary(path):
    path.with_name("vocab.txt").write_text("cat\n")
    return path.with_name("vocab.txt")


def _folder(path):
    path.mkdir()
    (path / "A.TXT").write_text("cats dogs")


@pytest.mark.parametrize(("name", "content", "read", "expected"), CAPITALS, ids=[name for name, *_ in CAPITALS])
def test_endings_may_be_capitals(tmp_path, name, content, read, expected):
    write(tmp_path / name, content)
    assert read(tmp_path / name) == expected
