"""Real data: found where it lies, read in either format, never fetched unasked, checked."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from scipy.io import savemat

from codiag import datasets
from real_data import needs_data


@needs_data
@pytest.mark.parametrize("name", datasets.names("crowd"))
def test_crowds_are_as_published(name):
    data = datasets.load_crowd(name)
    sizes = {"bluebird": 4212, "rte": 8000, "dog": 8070, "web": 15567, "anesthesia": 315}
    assert data.votes["label"].size == sizes[name]
    assert set(data.truth["task"]) <= set(data.votes["task"])


@needs_data
@pytest.mark.parametrize(("name", "n", "edges"), [("Caltech36", 769, 16656), ("UNC28", 18163, 766800)])
def test_networks_are_as_published(name, n, edges):
    data = datasets.load_facebook(name)
    assert data.adjacency.shape == (n, n)
    assert data.adjacency.nnz == 2 * edges
    assert name != "UNC28" or data.groups(min_size=14).shape == (n, 355)


@needs_data
def test_the_corpus_is_as_published():
    data = datasets.load_kos()
    assert data.counts.sum() == 467714
    assert data.vocabulary.shape == (6906,)


@needs_data
def test_tensors_are_as_published():
    eem = datasets.load_eem()
    assert eem.tensor.shape == (eem.samples.size, eem.emission.size, eem.excitation.size) == (15, 99, 46)
    assert 0.28 < np.isnan(eem.without_scatter()).mean() < 0.3
    counts = datasets.load_microbiome()
    assert counts.shape == (8, 28, 110)
    assert counts.max() == 157075


def test_votes_are_read_as_published(tmp_path):
    """Between tabs, some lines ending the old way, rows of the truth ten times over."""
    votes, truth = tmp_path / "x_crowd.txt", tmp_path / "x_truth.txt"
    votes.write_bytes(b"1\t1\t2\r\n1\t2\t1\n\n2\t1\t2\r\n")
    truth.write_text("1\t2\n" * 10 + "2\t1\n" * 10)
    data = datasets.read_crowd(votes, truth)
    assert_array_equal(data.votes["label"], [2, 1, 2])
    assert_array_equal(data.truth["task"], [1, 2])
    assert data.accuracy(np.array([1, 2]), np.array([2, 2])) == 0.5
    assert data.accuracy(np.array([1, 2]), np.array([2, 2]), n_tasks=4) == 0.25
    converted = tmp_path / "x_labels.csv.gz"
    with gzip.open(converted, "wt") as file:
        file.write("task,worker,label\n1,1,2\n1,2,1\n2,1,2\n")
    assert_array_equal(datasets.read_crowd(converted).votes["worker"], data.votes["worker"])


def test_bad_lines_and_two_truths_are_named(tmp_path):
    votes = tmp_path / "x.txt"
    votes.write_text("1\t1\t2\n1\tx\t1\n")
    with pytest.raises(ValueError, match=r"x\.txt, line 2, must contain 3 whole numbers"):
        datasets.read_crowd(votes)
    good, truth = tmp_path / "y.txt", tmp_path / "truth.txt"
    good.write_text("1\t1\t2\n")
    truth.write_text("1\t1\n1\t2\n")
    with pytest.raises(ValueError, match="one truth"):
        datasets.read_crowd(good, truth)


def test_networks_are_read_as_published(tmp_path):
    rng = np.random.default_rng(0)
    upper = np.triu(rng.random((9, 9)) < 0.4, 1)
    info = rng.integers(0, 3, (9, 7))
    savemat(tmp_path / "X.mat", {"A": sparse.csc_matrix((upper | upper.T).astype(float)), "local_info": info})
    kept = sparse.csr_array(upper.astype(float))
    np.savez(tmp_path / "X.npz", n=9, indptr=kept.indptr, indices=kept.indices, attrs=info, attr_names=["x"] * 7)
    for file in ("X.mat", "X.npz"):
        data = datasets.read_facebook(tmp_path / file)
        assert_array_equal(data.adjacency.toarray(), upper | upper.T)
        assert_array_equal(data.attributes["dorm"], info[:, 4])
        assert data.groups(["dorm"]).sum() == np.sum(info[:, 4] > 0)
    savemat(tmp_path / "Y.mat", {"A": upper.astype(float)})
    with pytest.raises(ValueError, match="lacks local_info"):
        datasets.read_facebook(tmp_path / "Y.mat")


def test_bags_of_words_are_read_as_published(tmp_path):
    with gzip.open(tmp_path / "docword.x.txt.gz", "wt") as file:
        file.write("2\n3\n3\n1 1 4\n1 3 1\n2 2 7\n")
    (tmp_path / "vocab.x.txt").write_text("one\ntwo\nthree\n")
    data = datasets.read_bag_of_words(tmp_path / "docword.x.txt.gz", tmp_path / "vocab.x.txt")
    assert_array_equal(data.counts.toarray(), [[4, 0, 1], [0, 7, 0]])
    (tmp_path / "vocab.x.txt").write_text("one\n")
    with pytest.raises(ValueError, match="must contain 3 words"):
        datasets.read_bag_of_words(tmp_path / "docword.x.txt.gz", tmp_path / "vocab.x.txt")
    (tmp_path / "docword.empty.txt").write_text("0\n1\n0\n")
    with pytest.raises(ValueError, match="must be on every line; got 0 numbers"):
        datasets.read_bag_of_words(tmp_path / "docword.empty.txt", tmp_path / "vocab.x.txt")


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    monkeypatch.delenv("CODIAG_DATA_DIR", raising=False)
    monkeypatch.setattr("codiag.datasets._registry._cache", lambda: tmp_path / "cache")
    return tmp_path


def test_nothing_is_fetched_unasked(nowhere):
    with pytest.raises(FileNotFoundError, match=r"Pass download=True to get it from https://.* or set CODIAG_DATA_DIR"):
        datasets.load_crowd("web")
    with pytest.raises(FileNotFoundError, match="in a format of R"):
        datasets.load_crowd("anesthesia", download=True)


def test_a_folder_that_lacks_it_is_named(nowhere, monkeypatch):
    monkeypatch.setenv("CODIAG_DATA_DIR", str(nowhere))
    with pytest.raises(
        FileNotFoundError, match=f"not in CODIAG_DATA_DIR, {nowhere}: it must contain facebook/UNC28.npz"
    ):
        datasets.load_facebook("UNC28")


def test_without_a_network_a_sentence_says_so(nowhere, monkeypatch):
    pooch = pytest.importorskip("pooch")

    def offline(*_, **__):
        raise OSError("no route")

    monkeypatch.setattr(pooch, "retrieve", offline)
    with pytest.raises(ConnectionError, match=r"could not be reached .*set CODIAG_DATA_DIR"):
        datasets.load_facebook("UNC28", download=True)


def test_what_was_downloaded_is_read_and_checked(nowhere, monkeypatch):
    """A download that holds something else is refused, by its contents."""
    pooch = pytest.importorskip("pooch")
    asked = []

    def retrieve(url, known_hash, fname, path):
        asked.append(url)
        file = nowhere / fname
        file.write_text("1\t1\t2\n" if "crowd" in fname else "1\t2\n")
        return str(file)

    monkeypatch.setattr(pooch, "retrieve", retrieve)
    with pytest.raises(ValueError, match="do not hold what was published"):
        datasets.load_crowd("rte", download=True)
    assert [url.rsplit("/", 1)[1] for url in asked] == ["rte_crowd.txt", "rte_truth.txt"]


@needs_data
def test_the_checksum_is_of_contents_not_of_bytes(nowhere, monkeypatch):
    """The original format with its oddities passes, a changed vote does not."""
    monkeypatch.undo()
    data = datasets.load_crowd("bluebird")
    folder = nowhere / "crowd"
    folder.mkdir()
    monkeypatch.setenv("CODIAG_DATA_DIR", str(nowhere))
    rows = np.stack(list(data.votes.values()), axis=1)[::-1]
    truth = np.stack(list(data.truth.values()), axis=1)
    np.savetxt(folder / "bluebird_crowd.txt", rows, fmt="%d", delimiter="\t", newline="\r\n")
    np.savetxt(folder / "bluebird_truth.txt", np.repeat(truth, 3, axis=0), fmt="%d", delimiter="\t")
    assert datasets.load_crowd("bluebird").votes["task"].size == 4212
    rows[0, 2] = 3 - rows[0, 2]
    np.savetxt(folder / "bluebird_crowd.txt", rows, fmt="%d", delimiter="\t")
    with pytest.raises(ValueError, match="do not hold what was published"):
        datasets.load_crowd("bluebird")


def test_unknown_names_are_answered_with_the_known():
    with pytest.raises(ValueError, match="one of UNC28, Amherst41, Simmons81, Caltech36"):
        datasets.load_facebook("MIT8")
    with pytest.raises(ValueError, match="folder must be"):
        datasets.names("music")
    assert all(len(source.sha256) == 64 for source in datasets.SOURCES.values())
