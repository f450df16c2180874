"""Files that cannot be read, and paths that are none: one sentence that names the argument or the file."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from scipy import sparse

import codiag
from codiag import datasets
from codiag import io as tables
from codiag._text import read_frame
from codiag.io import read_tensor
from codiag.models.topics import read_corpus

READERS = [
    ("path", read_tensor),
    ("path", read_corpus),
    ("path", tables.read_votes),
    ("path", tables.read_edges),
    ("path", datasets.read_facebook),
    ("path", codiag.Factorization.load),
    ("votes", datasets.read_crowd),
    ("counts", lambda path: datasets.read_bag_of_words(path, __file__)),
    ("vocabulary", lambda path: datasets.read_bag_of_words(__file__, path)),
]
FIT = codiag.Factorization(np.ones(1), (np.ones((2, 1)),) * 3, 0.1, 1.0, True)
WRITERS = [FIT.save, lambda path: tables.write_table(path, {"a": [1]})]


@pytest.mark.parametrize(("name", "read"), READERS)
@pytest.mark.parametrize(
    ("path", "kind"), [(None, TypeError), (b"x.npy", TypeError), (3, TypeError), ("", ValueError), ("a\0b", ValueError)]
)
def test_readers_refuse_what_is_no_path(name, read, path, kind):
    with pytest.raises(kind, match=f"^{name} must (be a str or a Path|name a file)"):
        read(path)


def test_a_truth_that_is_no_path(tmp_path):
    (tmp_path / "votes.txt").write_text("0 0 1\n")
    for truth, kind in ((3, TypeError), ("", ValueError)):
        with pytest.raises(kind, match=r"^truth must"):
            datasets.read_crowd(tmp_path / "votes.txt", truth)


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize(("path", "kind"), [(None, TypeError), (b"x", TypeError), ("", ValueError)])
def test_writers_refuse_what_is_no_path(write, path, kind):
    with pytest.raises(kind, match=r"^path must"):
        write(path)


@pytest.mark.parametrize("read", [datasets.read_facebook, datasets.read_crowd, codiag.Factorization.load])
def test_folders_are_no_files(read, tmp_path):
    with pytest.raises(ValueError, match=r"must be a file; .* is a folder"):
        read(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"nothing\.npz does not exist"):
        read(tmp_path / "nothing.npz")


def _facebook(path):
    upper = sparse.csr_array(np.triu(np.ones((4, 4)), 1))
    np.savez(path, n=4, attrs=np.ones((4, 7), dtype=int), indices=upper.indices, indptr=upper.indptr)


def _bag(path):
    path.write_text("2\n2\n2\n1 1 3\n2 2 4\n")
    (path.parent / "vocab.txt").write_text("a\nb\n")


FILES = [
    ("net.npz", _facebook, datasets.read_facebook),
    ("bag.txt", _bag, lambda path: datasets.read_bag_of_words(path, path.parent / "vocab.txt")),
    ("votes.csv.gz", lambda path: path.write_bytes(gzip.compress(b"0,0,1\n" * 50)), tables.read_votes),
    ("corpus.npz", lambda path: np.savez(path, counts=np.ones((3, 2))), read_corpus),
    ("tensor.npz", lambda path: np.savez(path, x=np.ones((2, 2, 2))), read_tensor),
    ("fit.npz", FIT.save, codiag.Factorization.load),
]


@pytest.mark.parametrize(("name", "write", "read"), FILES, ids=[name for name, *_ in FILES])
def test_files_that_are_cut_or_damaged_are_named(name, write, read, tmp_path):
    path = tmp_path / name
    write(path)
    read(path)
    whole, rng, refused = path.read_bytes(), np.random.default_rng(0), 0
    for turn in range(40):
        damaged = bytearray(whole[: rng.integers(len(whole))] if turn % 2 else whole)
        for place in rng.integers(0, len(damaged), 3) if damaged else ():
            damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(damaged))
        try:
            read(path)
        except ValueError as error:
            refused += 1
            assert name in str(error)  # noqa: PT017
    assert refused > 10


def test_numbers_that_are_not_text_are_named(tmp_path):
    path = tmp_path / "crowd.txt"
    path.write_bytes(b"\xe4\xf6\0 1 2\n")
    with pytest.raises(ValueError, match=r"crowd\.txt cannot be read as text"):
        datasets.read_crowd(path)


def test_networks_whose_ends_are_out_of_place(tmp_path):
    path = tmp_path / "net.npz"
    np.savez(path, n=2, attrs=np.ones((2, 7), dtype=int), indices=np.array([7]), indptr=np.array([0, 1, 1]))
    with pytest.raises(ValueError, match=r"net\.npz is not a readable \.npz file"):
        datasets.read_facebook(path)


def test_counts_whose_words_are_out_of_place(tmp_path):
    path = tmp_path / "corpus.npz"
    parts = {"indices": np.array([7]), "indptr": np.array([0, 1, 1]), "data": np.ones(1)}
    np.savez(path, format=b"csr", shape=np.array([2, 3]), **parts)
    with pytest.raises(ValueError, match=r"corpus\.npz is not a readable \.npz file"):
        read_corpus(path)


@pytest.mark.parametrize(
    ("columns", "kind", "words"),
    [
        ({"a": [1, 2], "b": [1]}, ValueError, "columns must be of one length; got a 2, b 1"),
        ({"a": [1], "b": None}, TypeError, "columns must contain sequences; 'b' is NoneType"),
        ([[1]], TypeError, "columns must be a mapping"),
    ],
)
def test_columns_of_a_table(columns, kind, words, tmp_path):
    with pytest.raises(kind, match=words):
        tables.write_table(tmp_path / "t.csv", columns)
    assert not (tmp_path / "t.csv").exists()


def test_cells_of_text_files_are_numbers_if_all_are(tmp_path):
    path = tmp_path / "t.csv"
    numbers = [str(row) for row in range(300)]
    rows = zip(
        numbers, [*numbers[:-1], "0.5"], [*numbers[:-1], "NA"], ["True"] * 300, ['"a,\nb"', *numbers[1:]], strict=True
    )
    path.write_text("whole,real,gaps,flag,text\n" + "\n".join(",".join(row) for row in rows))
    frame = read_frame(path)
    assert [column.dtype.kind for column in frame.values()] == ["i", "f", "f", "b", "O"]
    assert np.isnan(frame["gaps"]).sum() == 1
    assert frame["text"][:2].tolist() == ["a,\nb", "1"]
    path.write_text("a,b\nx,\n,1\n")
    assert read_frame(path)["a"].tolist() == ["x", None]
    assert np.isnan(read_frame(path)["b"][0])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n\n1\n", r"line 4 of t\.csv has 1 columns, not 2"),
        ("a,b,a\n1,2,3\n", r"line 1 of t\.csv must name columns differently; it reads a, b, a"),
        ("\n \n", r"t\.csv is empty"),
    ],
)
def test_text_files_that_are_no_tables(tmp_path, text, words):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(ValueError, match=words):
        read_frame(tmp_path / "t.csv")


@pytest.mark.parametrize("name", ["one.npz", "one.npy"])
def test_a_matrix_alone_is_a_corpus(tmp_path, name):
    counts = np.random.default_rng(0).poisson(2.0, (6, 4))
    (np.save if name.endswith(".npy") else lambda path, array: np.savez(path, table=array))(tmp_path / name, counts)
    corpus = read_corpus(tmp_path / name)
    np.testing.assert_array_equal(corpus.counts.toarray(), counts)
    assert corpus.vocabulary.tolist() == ["word0", "word1", "word2", "word3"]
    assert corpus.documents.tolist() == [1, 2, 3, 4, 5, 6]
