"""Files of tensors, votes, edges, corpora, and the sets of data that are read from them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
from scipy import sparse

from codiag import datasets
from codiag import io as tables
from codiag.io import read_entries, read_labelled_entries, read_tensor
from codiag.models import topics as corpora

from ..arrays import choose, folder, random_array
from ..case import Case, covers
from ..invariants import Problems, finite

MISSING = (ValueError, TypeError, FileNotFoundError)


def damaged(path: Path, rng: np.random.Generator, share: float = 0.2) -> bool:
    """Spoil a file now and then: cut it, turn bits, or put text where none belongs. Tell whether that was done."""
    if rng.random() > share:
        return False
    contents = bytearray(path.read_bytes())
    kind = choose(rng, "cut", "bits", "text", "empty", "line")
    if kind == "cut":
        contents = contents[: int(rng.integers(len(contents) + 1))]
    elif kind == "bits":
        for _ in range(int(rng.integers(1, 6))):
            contents[int(rng.integers(len(contents)))] ^= 1 << int(rng.integers(8))
    elif kind == "text":
        contents = bytearray("\u00e4\u00f6,nan\n\x00;;".encode("latin-1"))
    elif kind == "line":
        place = int(rng.integers(len(contents) + 1))
        contents[place:place] = choose(
            rng, b"\n1,2\n", b"\nabc\n", b"\n-1 0 x 5\n", b"\n\n\n", b"\n99999999999999999999 1 1 1\n"
        )
    else:
        contents = bytearray()
    path.write_bytes(bytes(contents))
    return True


def write_tensor(rng: np.random.Generator) -> tuple[Path, np.ndarray]:
    """Write an array to a file of some kind; return where it is and what it holds."""
    held = random_array(rng, extreme=False)
    array = np.array(held.data)
    array = array if array.dtype.kind in "fi" else array.astype(float)
    path = folder() / f"tensor{choose(rng, '.npy', '.npz', '.coo.npz', '.mat', '.tns', '.tns.gz')}"
    places = np.nonzero(array)
    if path.name.endswith(".npy"):
        np.save(path, array)
    elif path.name.endswith(".coo.npz"):
        np.savez(path, coords=np.array(places), values=array[places], shape=np.array(array.shape))
    elif path.suffix == ".npz":
        np.savez(path, x=array)
    elif path.suffix == ".mat":
        scipy.io.savemat(path, {"x": array})
    else:
        lines = "".join(
            f"{' '.join(str(i + 1) for i in place)} {array[tuple(place)]!r}\n" for place in np.argwhere(array)
        )
        text = lines.replace("np.float64(", "").replace("np.float32(", "").replace("np.int64(", "").replace(")", "")
        path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path, array.astype(float)


@covers(*(f"codiag.io.{name}" for name in ("read_tensor", "read_entries", "read_labelled_entries")), weight=3)
def tensor_files(rng: np.random.Generator) -> Case:
    """Tensors in every format, whole and damaged."""
    path, array = write_tensor(rng)
    bad = damaged(path, rng)
    exact = path.suffix not in (".tns", ".gz", ".mat")

    def same(tensor: Any, given: dict[str, Any]) -> Problems:
        tensor = tensor.tensor if isinstance(tensor, tables.Labelled) else tensor
        found = np.asarray(tensor if isinstance(tensor, np.ndarray) else tensor.to_dense(), dtype=float)
        if not bad and exact and not (found.shape == array.shape and np.allclose(found, array)):
            yield "file", f"{path.suffix} holds {array.shape}, {found.shape} was read"

    squeezed = path.suffix == ".mat" and array.shape[-1] == 1  # MATLAB drops modes of size one at the end
    valid = None if bad or squeezed else True
    reader = choose(rng, read_tensor, read_entries, read_labelled_entries)
    name = f"codiag.io.{reader.__name__}"
    return Case(name, reader, {"path": path}, valid, (same,), ("tensor",), MISSING)


def write_votes(rng: np.random.Generator) -> Path:
    """Write a table of votes."""
    path = folder() / f"votes{choose(rng, '.csv', '.tsv', '.csv.gz', '.jsonl', '.jsonl.gz')}"
    mark = "\t" if ".tsv" in path.name else ","
    names = choose(
        rng, ("task", "worker", "label"), ("item", "rater", "rating"), ("Question", "Annotator", "Answer", "time")
    )
    named = choose(rng, str, lambda i: f"t{i}", lambda i: f"=cmd|{i}", lambda i: f"\x1b[31m{i}")
    rows = [
        [named(int(rng.integers(9))), int(rng.integers(4)), int(rng.integers(3)), 7][: len(names)]
        for _ in range(int(rng.integers(1, 40)))
    ]
    lines = [mark.join(map(str, row)) for row in [names, *rows]]
    if ".jsonl" in path.name:
        lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
    text = "\n".join(lines) + choose(rng, "", "\n", "\n\n")
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@covers("codiag.io.read_votes", weight=1.5)
def vote_files(rng: np.random.Generator) -> Case:
    """Tables of votes."""
    path = write_votes(rng)
    bad = damaged(path, rng)

    def whole(votes: Any, given: dict[str, Any]) -> Problems:
        if set(votes) != {"task", "worker", "label"} or len({column.size for column in votes.values()}) != 1:
            yield "file", f"columns {list(votes)}"

    return Case("codiag.io.read_votes", tables.read_votes, {"path": path}, None if bad else True, (whole,), (), MISSING)


def write_edges(rng: np.random.Generator) -> Path:
    """Write a list of edges."""
    path = folder() / f"graph{choose(rng, '.txt', '.csv', '.tsv', '.edges', '.txt.gz')}"
    mark = {".csv": ",", ".tsv": "\t"}.get(path.suffix, " ")
    rows = [
        [f"{mark}".join(str(int(end)) for end in rng.integers(0, 20, 2))][0] for _ in range(int(rng.integers(5, 80)))
    ]
    head = choose(rng, [], ["# comment"], [f"source{mark}target"] if path.suffix in (".csv", ".tsv") else [])
    text = "\n".join([*head, *rows]) + "\n"
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@covers("codiag.io.read_edges", "codiag.io.read_graph", "codiag.io.write_table", weight=1.5)
def edge_files(rng: np.random.Generator) -> Case:
    """Lists of edges, and tables that are written."""
    if rng.random() < 0.3:
        path = folder() / choose(rng, "table.csv", "table.tsv")
        columns = {"node": np.arange(3), "name": np.array(["a", "=1+1", 'b"c,']), "p": rng.random(3)}
        arguments = {"path": path, "columns": columns}
        return Case(
            "codiag.io.write_table",
            tables.write_table,
            arguments,
            True,
            (),
            (),
            (*MISSING, OSError),
            outputs=("path",),
        )
    path = write_edges(rng)
    bad = damaged(path, rng)

    def pairs(found: Any, given: dict[str, Any]) -> Problems:
        if found.ndim != 2 or found.shape[1] != 2:
            yield "file", f"edges of shape {found.shape}"

    return Case("codiag.io.read_edges", tables.read_edges, {"path": path}, None if bad else True, (pairs,), (), MISSING)


def write_corpus(rng: np.random.Generator) -> Path:
    """Write counts of words, or text."""
    counts = rng.poisson(1, (int(rng.integers(5, 40)), int(rng.integers(3, 9))))
    counts[0] += 2
    kind = choose(rng, "counts", "triples", "scipy", "text")
    path = folder() / ("corpus.txt" if kind == "text" else "corpus.npz")
    if kind == "text":
        words = np.array(["apple", "river", "stone", "cloud", "tiger", "music", "paper", "glass"])
        path.write_text("\n".join(" ".join(rng.choice(words, 12)) for _ in range(30)))
    elif kind == "counts":
        np.savez(path, counts=counts, vocab=np.array([f"w{i}" for i in range(counts.shape[1])]))
    elif kind == "scipy":
        sparse.save_npz(path, sparse.csr_array(counts))
    else:
        doc, word = np.nonzero(counts)
        np.savez(path, doc=doc, word=word, count=counts[doc, word], n_docs=counts.shape[0], n_words=counts.shape[1])
    return path


@covers(
    *(f"codiag.models.topics.{name}" for name in ("Corpus", "read_corpus", "save_topics", "share_table")),
    weight=1.5,
)
def corpus_files(rng: np.random.Generator) -> Case:
    """Corpora in every format, and topics that are written."""
    if rng.random() < 0.2:
        from types import SimpleNamespace

        model = SimpleNamespace(components_=np.ones((2, 3)) / 3, weights_=np.ones(2) / 2, doc_topic_prior_=np.ones(2))
        known = corpora.Corpus(sparse.csr_array(np.ones((4, 3))), np.array(["a", "b", "c"]), np.arange(4))
        arguments: dict[str, Any] = {"corpus": known, "shares": rng.dirichlet(np.ones(2), 4)}
        if rng.random() < 0.5:
            return Case("codiag.models.topics.share_table", corpora.share_table, arguments, True, (), spoilable=False)
        arguments |= {"path": folder() / "topics.npz", "model": model}
        return Case(
            "codiag.models.topics.save_topics",
            corpora.save_topics,
            arguments,
            True,
            (),
            outputs=("path",),
            spoilable=False,
        )
    path = write_corpus(rng)
    bad = damaged(path, rng)

    def counted(found: Any, given: dict[str, Any]) -> Problems:
        if found[1].shape != (found[0].shape[1],):
            yield "file", f"{found[0].shape} counts, {found[1].shape} words"
        if not bad:
            yield from finite(found[0], given)

    return Case(
        "codiag.models.topics.read_corpus",
        corpora.read_corpus,
        {"path": path},
        None if bad else True,
        (counted,),
        (),
        MISSING,
    )


LOADERS = ("is_local", "names", "load_crowd", "load_eem", "load_facebook", "load_kos", "load_microbiome")


@covers(*(f"codiag.datasets.{name}" for name in LOADERS))
def loaders(rng: np.random.Generator) -> Case:
    """Sets of data by name: what is not on this computer is said to be missing."""
    name, arguments = choose(
        rng,
        ("is_local", {"name": choose(rng, *datasets.SOURCES)}),
        ("names", {"folder": choose(rng, None, "crowd", "facebook", "text")}),
        ("load_crowd", {"name": choose(rng, "bluebird", "rte", "dog", "web")}),
        ("load_facebook", {"name": choose(rng, "Caltech36", "Simmons81")}),
        ("load_eem", {}),
        ("load_microbiome", {}),
    )
    valid = None if name.startswith("load") else True
    return Case(f"codiag.datasets.{name}", getattr(datasets, name), arguments, valid, (), ("name",), MISSING)


@covers("codiag.datasets.read_crowd", weight=0.7)
def crowd_data(rng: np.random.Generator) -> Case:
    """Votes and truth as published."""
    home = folder()
    votes, truth = home / "votes.txt", home / "truth.txt"
    votes.write_text(
        "".join(f"{int(rng.integers(5))} {int(rng.integers(3))} {int(rng.integers(2))}\n" for _ in range(9))
    )
    truth.write_text("".join(f"{i} {int(rng.integers(2))}\n" for i in range(5)))
    bad = damaged(votes, rng)
    arguments = {"votes": votes, "truth": truth if rng.random() < 0.7 else None}
    return Case("codiag.datasets.read_crowd", datasets.read_crowd, arguments, None if bad else True, (), (), MISSING)


@covers("codiag.datasets.read_facebook", weight=0.7)
def facebook_data(rng: np.random.Generator) -> Case:
    """Networks as published, and as arrays."""
    n = int(rng.integers(3, 12))
    upper = sparse.csr_array(sparse.triu(rng.random((n, n)) < 0.4, 1)).astype(float)
    attributes = rng.integers(0, 4, (n, 7))
    path = folder() / choose(rng, "net.mat", "net.npz")
    if path.suffix == ".mat":
        scipy.io.savemat(path, {"A": sparse.csc_matrix(upper + upper.T), "local_info": attributes})
    else:
        np.savez(path, n=n, attrs=attributes, indices=upper.indices, indptr=upper.indptr)
    bad = damaged(path, rng)

    def square(found: Any, given: dict[str, Any]) -> Problems:
        if not bad and (found.adjacency.shape != (n, n) or (found.adjacency != found.adjacency.T).nnz):
            yield "file", f"adjacency {found.adjacency.shape}"

    return Case(
        "codiag.datasets.read_facebook",
        datasets.read_facebook,
        {"path": path},
        None if bad else True,
        (square,),
        (),
        MISSING,
    )


@covers("codiag.datasets.read_bag_of_words", weight=0.7)
def bags_of_words(rng: np.random.Generator) -> Case:
    """Corpora of the UCI repository."""
    counts = rng.poisson(1, (6, 4))
    counts[0] += 1
    home = folder()
    table, words = home / "docword.txt", home / "vocab.txt"
    entries = [f"{d + 1} {w + 1} {counts[d, w]}" for d, w in np.argwhere(counts)]
    table.write_text("\n".join(["6", "4", str(len(entries)), *entries]) + "\n")
    words.write_text("a\nb\nc\nd\n")
    bad = damaged(table, rng)
    arguments = {"counts": table, "vocabulary": words}
    return Case(
        "codiag.datasets.read_bag_of_words",
        datasets.read_bag_of_words,
        arguments,
        None if bad else True,
        (),
        (),
        MISSING,
    )
