"""Read text corpora, counts of words and the vocabulary, from files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from codiag._reading import as_file, as_path, readable
from codiag._writing import save_arrays


def read_corpus(path: str | Path) -> tuple[sparse.csr_array, np.ndarray]:
    """Read counts (documents, words) and the vocabulary; nothing in the file is ever executed.

    Parameters
    ----------
    path : str or Path
        An ``.npz`` file as scipy.sparse.save_npz writes it, or with the arrays `doc`, `word`, `count`, or with one
        matrix `counts`, each with an optional `vocab`; or a ``.txt`` file with a document on every line.
    """
    path = as_path("path", path)
    if path.suffix.lower() not in (".npz", ".txt"):
        raise ValueError(f"path must be of another kind: a corpus is read from .npz or .txt files; got {path.name}")
    as_file("path", path)
    with readable(path):
        counts, vocabulary = _read_text(path) if path.suffix.lower() == ".txt" else _read_counts(path)
    if vocabulary.shape != (counts.shape[1],):
        raise ValueError(f"{path.name} must have one word per column, {counts.shape[1]}; got {vocabulary.shape[0]}")
    return counts, vocabulary


def save_topics(path: str | Path, model: Any, vocabulary: np.ndarray) -> None:
    """Write the topics of a fitted model, all of them or nothing."""
    save_arrays(
        as_path("path", path),
        {
            "components": model.components_,
            "weights": model.weights_,
            "doc_topic_prior": model.doc_topic_prior_,
            "vocabulary": np.asarray(vocabulary, dtype=str),
        },
    )


def _read_text(path: Path) -> tuple[sparse.csr_array, np.ndarray]:
    from sklearn.feature_extraction.text import CountVectorizer

    with path.open(encoding="utf-8") as lines:
        documents = [line for line in lines if line.strip()]
    vectorizer = CountVectorizer(stop_words="english", min_df=2 if len(documents) > 20 else 1)
    try:
        counts = vectorizer.fit_transform(documents)
    except ValueError as error:
        raise ValueError(f"{path.name} must hold a document on every line: {error}") from error
    return sparse.csr_array(counts), vectorizer.get_feature_names_out()


def _read_counts(path: Path) -> tuple[sparse.csr_array, np.ndarray]:
    with np.load(path, allow_pickle=False) as file:
        names = set(file.files)
        if {"doc", "word", "count"} <= names:
            places = file["doc"].astype(np.int64), file["word"].astype(np.int64)
            shape = tuple(int(file[name]) for name in ("n_docs", "n_words")) if "n_words" in names else None
            counts = sparse.csr_array((file["count"].astype(np.float64), places), shape=shape)
        elif {"data", "shape", "format"} <= names:
            loaded = sparse.load_npz(path)
            if hasattr(loaded, "check_format"):
                loaded.check_format()  # before a conversion that trusts it
            counts = sparse.csr_array(loaded)
        elif "counts" in names:
            counts = sparse.csr_array(file["counts"])
        else:
            raise KeyError(f"counts, or doc, word and count; it holds {', '.join(sorted(names)) or 'nothing'}")
        words = [name for name in ("vocab", "vocabulary") if name in names]
        return counts, file[words[0]] if words else np.array([f"word{i}" for i in range(counts.shape[1])])
