"""Counts of words in files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from scipy import sparse

from codiag._text import as_file, ending_of, open_text, readable


def read_counts(path: Path, vocabulary: str | Path | None) -> tuple[sparse.csr_array, list[str]]:
    """Return counts (documents, words), and the words on the lines of a file, which are numbered without one.

    Counts are a .npz file of scipy.sparse.save_npz, or a bag of words of the UCI repository: after three lines, a
    document, a word and a count on every line, which count from one.
    """
    with readable(as_file("path", path)):
        if ending_of(path) == ".npz":
            counts = sparse.csr_array(sparse.load_npz(path))
        else:
            documents, columns, numbers = np.loadtxt(path, np.int64, skiprows=3, ndmin=2).T
            counts = sparse.csr_array((numbers.astype(np.float64), (documents - 1, columns - 1)))
    if vocabulary is None:
        return counts, [f"word{number}" for number in range(counts.shape[1])]
    with open_text(as_file("vocabulary", vocabulary)) as file:
        words = file.read().split()
    if len(words) < counts.shape[1]:
        raise ValueError(f"vocabulary must have {counts.shape[1]} words, one for each column; got {len(words)}")
    counts.resize((counts.shape[0], len(words)))
    return counts, words


def count_words(documents: Iterable[str]) -> tuple[sparse.csr_array, list[str]]:
    """Return the counts (documents, words) of words but for common English ones, and the words."""
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer(stop_words="english")
    counts = vectorizer.fit_transform([document for document in documents if document.strip()])
    return sparse.csr_array(counts), vectorizer.get_feature_names_out().tolist()
