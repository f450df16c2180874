"""Files of topic models: reading corpora, and writing topics and the shares of documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from codiag._text import TABLES, as_file, as_path, check_npz, ending_of, read_frame, readable, save_arrays, text_of

ARRAYS = (".npy", ".npz")
ENDINGS = (*ARRAYS, ".txt", *TABLES)
"""Endings of files that hold a corpus."""
MIN_DOCUMENTS = 20
"""Number of documents above which words that occur in one document only are left out by default."""


class Corpus(NamedTuple):
    """Counts of words (documents, words), the words, and names of the documents."""

    counts: sparse.csr_array
    vocabulary: np.ndarray
    documents: np.ndarray


def read_corpus(
    path: str | Path,
    *,
    text: str | None = None,
    document: str | None = None,
    stop_words: str | None = None,
    min_df: float | None = None,
) -> Corpus:
    """Read counts (documents, words), the vocabulary and the names of documents; nothing in a file is executed.

    Parameters
    ----------
    path : str or Path
        A folder of ``.txt`` files, one document each; a ``.txt`` file with one document per line; a ``.csv``, ``.tsv``,
        ``.parquet`` or ``.xlsx`` table with one document per row; text may be compressed (``.gz``). Or an ``.npz`` file
        as written by scipy.sparse.save_npz, or with the arrays `doc`, `word`, `count`, or with a matrix `counts`, or
        with one matrix by any name, each with an optional `vocab`; or a matrix as an ``.npy`` file. Lines, rows and
        files without words are left out.
    text : str, optional
        Name of the column of a table with the documents; by default "text".
    document : str, optional
        Name of the column of a table with the names of documents; by default rows are numbered from 1.
    stop_words : str, optional
        Words to leave out: ``"english"``, the default, ``"none"``, or a file with one word per line.
    min_df : float, optional
        Leave out words that occur in fewer documents or, if below one, in a smaller share of the documents; by default
        2 if there are more than 20 documents, else 1.
    """
    path = as_path("path", path)
    ending = "folder" if path.is_dir() else ending_of(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    if ending not in ("folder", *ENDINGS):
        raise ValueError(f"path must be a folder, or a file that ends in one of {', '.join(ENDINGS)}; got {path}")
    for name, column in (("text", text), ("document", document)):
        if column is not None and ending not in TABLES:
            raise ValueError(f"{name} names a column of a table, {', '.join(TABLES)}; got {path}")
    if ending in ARRAYS:
        if stop_words is not None or min_df is not None:
            raise ValueError(f"stop_words and min_df are for text; {path.name} holds counts of words")
        return _read_counts(as_file("path", path))
    if ending == "folder":
        names, documents = _read_folder(path)
    else:
        with readable(as_file("path", path)):
            names, documents = _read_table(path, text, document) if ending in TABLES else _read_lines(path)
    return _counted(path, names, documents, _stop_words(stop_words), min_df)


def save_topics(path: str | Path, model: Any, corpus: Corpus, shares: np.ndarray) -> None:
    """Write the topics of a fitted model and their shares in documents; on failure no file is left."""
    arrays = {name: getattr(model, f"{name}_") for name in ("components", "weights", "doc_topic_prior")}
    arrays |= {"vocabulary": np.asarray(corpus.vocabulary, dtype=str), "shares": shares, "documents": corpus.documents}
    save_arrays(as_path("path", path), arrays)


def share_table(corpus: Corpus, shares: np.ndarray) -> dict[str, np.ndarray]:
    """Return a table with one row per document: its name, its strongest topic, and the shares of all topics."""
    columns = {"document": corpus.documents, "topic": np.argmax(shares, axis=1)}
    return columns | {f"topic_{topic}": shares[:, topic] for topic in range(shares.shape[1])}


def _read_lines(path: Path) -> tuple[list[Any], list[str]]:
    lines = list(enumerate(text_of(path).split("\n"), 1))
    return [number for number, _ in lines], [line for _, line in lines]


def _read_folder(path: Path) -> tuple[list[Any], list[str]]:
    files = sorted(file for file in path.rglob("*") if file.is_file() and ending_of(file) == ".txt")
    if not files:
        raise ValueError(f"path must be a folder with .txt files in it, each a document; {path} has none")
    documents = []
    for file in files:
        with readable(file):
            documents.append(text_of(file))
    return [file.relative_to(path).as_posix() for file in files], documents


def _read_table(path: Path, text: str | None, document: str | None) -> tuple[list[Any], list[str]]:
    frame = read_frame(path)
    names = [str(name) for name in frame.columns]
    column = "text" if text is None else text
    if column not in names:
        raise ValueError(_no_column("text", path, "that holds the documents", names, text))
    if document is not None and document not in names:
        raise ValueError(_no_column("document", path, "that names the documents", names, document))
    texts = _as_texts(frame[column])
    return list(range(1, len(texts) + 1)) if document is None else _as_texts(frame[document]), texts


def _no_column(argument: str, path: Path, which: str, names: list[str], given: str | None) -> str:
    return (
        f"{argument} must name the column of {path.name} {which}, one of {', '.join(names)[:200]}; got "
        f"{'none' if given is None else given}"
    )


def _as_texts(column: Any) -> list[str]:
    cells = np.asarray(column, dtype=object).tolist()
    return ["" if cell is None or cell != cell else str(cell) for cell in cells]


def _stop_words(given: str | None) -> str | list[str] | None:
    if given in (None, "english"):
        return "english"
    if given == "none":
        return None
    path = as_path("stop_words", given)
    if not path.is_file():
        raise ValueError(f"stop_words must be english, none, or a file with a word on every line; got {given}")
    return text_of(path).lower().split()


def _counted(
    path: Path, names: list[Any], documents: list[str], stop_words: str | list[str] | None, min_df: float | None
) -> Corpus:
    from sklearn.feature_extraction.text import CountVectorizer

    nonempty = [row for row, document in enumerate(documents) if document.strip()]
    if not nonempty:
        raise ValueError(f"{path.name} holds no text")
    if min_df is None:
        min_df = 2 if len(nonempty) > MIN_DOCUMENTS else 1
    if min_df <= 0 or (min_df > 1 and min_df != int(min_df)):
        raise ValueError(f"min_df must be a number of documents, or a share below one; got {min_df:g}")
    if min_df > len(nonempty):
        raise ValueError(f"min_df must be at most {len(nonempty)}, the number of documents; got {min_df:g}")
    analyzer = CountVectorizer(stop_words="english" if stop_words == "english" else None).build_analyzer()
    excluded = frozenset(stop_words if isinstance(stop_words, list) else ())
    vectorizer = CountVectorizer(
        analyzer=lambda document: [word for word in analyzer(document) if word not in excluded],
        min_df=min_df if min_df < 1 else int(min_df),
    )
    try:
        counts = vectorizer.fit_transform([documents[row] for row in nonempty])
    except ValueError as error:  # scikit-learn found no words
        raise ValueError(
            f"{path.name} must contain words of two letters or more besides `stop_words`, each in at least `min_df` "
            f"documents, {min_df:g}; none of its {len(nonempty)} documents has one"
        ) from error
    nonempty_names = np.array([names[row] for row in nonempty])
    return Corpus(sparse.csr_array(counts), vectorizer.get_feature_names_out().astype(str), nonempty_names)


def _read_counts(path: Path) -> Corpus:
    if ending_of(path) == ".npy":
        with readable(path):
            return _with_numbers(_as_counts(path, np.load(path, allow_pickle=False)))
    check_npz(path)
    with readable(path), np.load(path, allow_pickle=False) as file:
        counts = _counts_in(path, file)
        arrays = [name for name in ("vocab", "vocabulary") if name in file.files]
        if not arrays:
            return _with_numbers(counts)
        vocabulary = file[arrays[0]]
    if vocabulary.shape != (counts.shape[1],):
        raise ValueError(f"{path.name} must have one word per column, {counts.shape[1]}; got {vocabulary.shape[0]}")
    return Corpus(counts, vocabulary, np.arange(1, counts.shape[0] + 1))


def _with_numbers(counts: sparse.csr_array) -> Corpus:
    """Return a corpus whose words are numbered."""
    words = np.array([f"word{number}" for number in range(counts.shape[1])])
    return Corpus(counts, words, np.arange(1, counts.shape[0] + 1))


def _as_counts(path: Path, array: np.ndarray) -> sparse.csr_array:
    """Return a matrix of counts; raise if an array is none."""
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise ValueError(
            f"{path.name} must contain a matrix of counts, documents x words; it has shape {array.shape} and type "
            f"{array.dtype}"
        )
    return sparse.csr_array(array)


def _counts_in(path: Path, file: Any) -> sparse.csr_array:
    names = set(file.files)
    if {"doc", "word", "count"} <= names:
        entries = file["doc"].astype(np.int64), file["word"].astype(np.int64)
        shape = tuple(int(file[name]) for name in ("n_docs", "n_words")) if "n_words" in names else None
        return sparse.csr_array((file["count"].astype(np.float64), entries), shape=shape)
    if {"data", "shape", "format"} <= names:
        loaded = sparse.load_npz(path)
        if hasattr(loaded, "check_format"):
            loaded.check_format()  # conversion to CSR does not check
        return sparse.csr_array(loaded)
    others = names - {"vocab", "vocabulary"}
    if "counts" in names or len(others) == 1:
        return _as_counts(path, file["counts" if "counts" in names else others.pop()])
    present = ", ".join(sorted(names)) or "nothing"
    raise ValueError(
        f"{path.name} must contain the array counts, or doc, word and count, or one matrix alone; it contains {present}"
    )
