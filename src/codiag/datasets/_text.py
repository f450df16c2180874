"""Corpora."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

from codiag._corpora import read_corpus
from codiag._reading import as_file, read_numbers, readable
from codiag.datasets._locate import check_contents, locate


@dataclass(frozen=True, eq=False)
class CorpusData:
    """Counts of words (documents, words), and the words."""

    counts: sparse.csr_array
    vocabulary: np.ndarray


def load_kos(*, download: bool = False) -> CorpusData:
    """Return the KOS blog entries, 3430 documents of 6906 words.

    Parameters
    ----------
    download : bool
        Whether to fetch them where they are neither in ``CODIAG_DATA_DIR`` nor in the cache.
    """
    files = locate("kos", download=download)
    data = CorpusData(*read_corpus(files[0])) if len(files) == 1 else read_bag_of_words(*files)
    entries = sparse.csr_array(data.counts)
    entries.sort_indices()
    check_contents("kos", [entries.indptr, entries.indices, entries.data, data.vocabulary])
    return data


def read_bag_of_words(counts: str | Path, vocabulary: str | Path) -> CorpusData:
    """Read a corpus of the UCI repository: three lines with sizes, then documents, words and counts from one on."""
    path, words_path = as_file("counts", counts), as_file("vocabulary", vocabulary)
    with readable(path), gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        n_documents, n_words, _ = (int(next(lines, "")) for _ in range(3))
        table = read_numbers(lines, np.int64)
        if table.shape[1] != 3:
            raise ValueError(f"a document, a word and a count must be on every line; got {table.shape[1]} numbers")
    with readable(words_path):
        words = np.array(words_path.read_text().split())
    if words.size != n_words:
        raise ValueError(f"{words_path.name} must hold {n_words} words; it holds {words.size}")
    places = table[:, 0] - 1, table[:, 1] - 1
    with readable(path):
        counts_table = sparse.csr_array((table[:, 2].astype(np.float64), places), shape=(n_documents, n_words))
    return CorpusData(counts_table, words)
