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
    counts = datasets.load_microbiome()
    assert counts.shape == (8, 28, 110)
    assert counts.max() == 157075


def published(monkeypatch, folder, kind):
    """Return the folder of a kind of data, whose contents are not checked."""
    monkeypatch.setenv("CODIAG_DATA_DIR", str(folder))
    (folder / kind).mkdir()
    monkeypatch.setattr("codiag.datasets._loaders.check_contents", lambda *_: None)
    return folder / kind


def test_votes_are_read_as_published(tmp_path, monkeypatch):
    """Between tabs, some lines ending the old way, rows of the truth ten times over; or between commas, with names."""
    folder = published(monkeypatch, tmp_path, "crowd")
    (folder / "rte_crowd.txt").write_bytes(b"1\t1\t2\r\n1\t2\t1\n\n2\t1\t2\r\n")
    (folder / "rte_truth.txt").write_text("1\t2\n" * 10 + "2\t1\n" * 10)
    data = datasets.load_crowd("rte")
    assert_array_equal(data.votes["label"], [2, 1, 2])
    assert_array_equal(data.truth["task"], [1, 2])
    assert data.accuracy(np.array([1, 2]), np.array([2, 2])) == 0.5
    assert data.accuracy(np.array([1, 2]), np.array([2, 2]), n_tasks=4) == 0.25
    for file, text in (("labels", "task,worker,label\n1,1,2\n1,2,1\n2,1,2\n"), ("truth", "task,truth\n1,2\n")):
        with gzip.open(folder / f"rte_{file}.csv.gz", "wt") as opened:
            opened.write(text)
    assert_array_equal(datasets.load_crowd("rte").votes["worker"], data.votes["worker"])


def test_networks_are_read_as_published(tmp_path, monkeypatch):
    folder, rng = published(monkeypatch, tmp_path, "facebook"), np.random.default_rng(0)
    upper = np.triu(rng.random((9, 9)) < 0.4, 1)
    info = rng.integers(0, 3, (9, 7))
    savemat(folder / "UNC28.mat", {"A": sparse.csc_matrix((upper | upper.T).astype(float)), "local_info": info})
    kept = sparse.csr_array(upper.astype(float))
    for _ in range(2):
        data = datasets.load_facebook("UNC28")
        assert_array_equal(data.adjacency.toarray(), upper | upper.T)
        assert_array_equal(data.attributes["dorm"], info[:, 4])
        assert data.groups(["dorm"]).sum() == np.sum(info[:, 4] > 0)
        np.savez(folder / "UNC28.npz", n=9, indptr=kept.indptr, indices=kept.indices, attrs=info)


def test_bags_of_words_are_read_as_published(tmp_path, monkeypatch):
    folder = published(monkeypatch, tmp_path, "text")
    with gzip.open(folder / "docword.kos.txt.gz", "wt") as file:
        file.write("2\n3\n3\n1 1 4\n1 3 1\n2 2 7\n")
    (folder / "vocab.kos.txt").write_text("one\ntwo\nthree\n")
    data = datasets.load_kos()
    assert_array_equal(data.counts.toarray(), [[4, 0, 1], [0, 7, 0]])
    assert data.vocabulary.tolist() == ["one", "two", "three"]


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    monkeypatch.delenv("CODIAG_DATA_DIR", raising=False)
    monkeypatch.setattr("codiag.datasets._registry._cache", lambda: tmp_path / "cache")
    return tmp_path


def test_nothing_is_fetched_unasked(nowhere):
    with pytest.raises(FileNotFoundError, match=r"pass download=True to get it from https://.* or set CODIAG_DATA_DIR"):
        datasets.load_crowd("web")
    with pytest.raises(FileNotFoundError, match="^anesthesia is not"):
        datasets.load_crowd("anesthesia", download=True)


def test_a_folder_that_lacks_it_is_named(nowhere, monkeypatch):
    monkeypatch.setenv("CODIAG_DATA_DIR", str(nowhere))
    with pytest.raises(FileNotFoundError, match=f"facebook/UNC28.npz; got CODIAG_DATA_DIR='{nowhere}'"):
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
    with pytest.raises(ValueError, match="do not hold"):
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
    with pytest.raises(ValueError, match="do not hold"):
        datasets.load_crowd("bluebird")


def test_unknown_names_are_answered_with_the_known():
    with pytest.raises(ValueError, match="one of UNC28"):
        datasets.load_facebook("MIT8")
    with pytest.raises(ValueError, match="^folder must"):
        datasets.names("music")
    assert all(len(source.sha256) == 64 for source in datasets.SOURCES.values())
