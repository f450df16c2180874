"""Text corpora."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

from codiag._text import as_file, open_text, read_numbers, readable
from codiag.datasets._registry import check_contents, locate


@dataclass(frozen=True, eq=False)
class CorpusData:
    """A text corpus as counts of words.

    Attributes
    ----------
    counts : scipy.sparse.csr_array of shape (n_documents, n_words)
        How often every word occurs in every document.
    vocabulary : numpy.ndarray of str of shape (n_words,)
        The words.

    See Also
    --------
    load_kos : Load the corpus of the paper's topics.
    read_bag_of_words : Read files of the same format.
    codiag.reports.topics_report : Takes counts and vocabulary.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from codiag.datasets import CorpusData
    >>> data = CorpusData(sparse.csr_array([[2, 0], [1, 3]]), np.array(["cat", "dog"]))
    >>> data.counts.sum(axis=0).tolist()
    [3, 3]
    """

    counts: sparse.csr_array
    vocabulary: np.ndarray


def load_kos(*, download: bool = False) -> CorpusData:
    """Load the KOS blog entries, and check that they are the published ones.

    Parameters
    ----------
    download : bool
        Whether to download them if they are neither in ``CODIAG_DATA_DIR`` nor in the cache.

    Returns
    -------
    CorpusData
        ``counts``, a sparse array of shape (3430, 6906), documents x words, and ``vocabulary``, an array of the words.

    See Also
    --------
    read_bag_of_words : Read a corpus of the same format.
    codiag.models.LatentDirichlet : Estimate topics from counts.
    codiag.models.SingleTopic : Estimate topics with one for each document.

    Examples
    --------
    >>> from codiag.datasets import load_kos
    >>> load_kos(download=True).counts.shape  # doctest: +SKIP
    (3430, 6906)
    """
    files = locate("kos", download=download)
    data = _read_npz(files[0]) if len(files) == 1 else read_bag_of_words(*files)
    entries = sparse.csr_array(data.counts)
    entries.sort_indices()
    check_contents("kos", [entries.indptr, entries.indices, entries.data, data.vocabulary])
    return data


def _read_npz(path: Path) -> CorpusData:
    with readable(path), np.load(path, allow_pickle=False) as file:
        entries = file["count"].astype(np.float64), (file["doc"], file["word"])
        return CorpusData(sparse.csr_array(entries), file["vocab"])


def read_bag_of_words(counts: str | Path, vocabulary: str | Path) -> CorpusData:
    r"""Read a bag of words as the UCI repository has them.

    Parameters
    ----------
    counts : str or Path
        A file, also ``.gz``: the numbers of documents, of words and of entries on three lines, then a document, a word
        and a count on every line, which count from one.
    vocabulary : str or Path
        A file with a word on every line.

    Returns
    -------
    CorpusData
        ``counts``, a sparse array of documents x words, and ``vocabulary``, an array of the words.

    See Also
    --------
    load_kos : A corpus of this format.
    codiag.models.LatentDirichlet : Estimate topics from counts.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from codiag.datasets import read_bag_of_words
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     counts, words = Path(folder) / "docword.txt", Path(folder) / "vocab.txt"
    ...     _ = counts.write_text("2\n2\n2\n1 1 4\n2 2 3\n"), words.write_text("cat\ndog\n")
    ...     read_bag_of_words(counts, words).counts.toarray().tolist()
    [[4.0, 0.0], [0.0, 3.0]]
    """
    path, words_path = as_file("counts", counts), as_file("vocabulary", vocabulary)
    with readable(path), open_text(path) as lines:
        n_documents, n_words, _ = (int(next(lines, "")) for _ in range(3))
        table = read_numbers(lines, np.int64)
        if table.shape[1] != 3:
            raise ValueError(f"a document, a word and a count must be on every line; got {table.shape[1]} numbers")
    with readable(words_path):
        words = np.array(words_path.read_text().split())
    if words.size != n_words:
        raise ValueError(f"{words_path.name} must contain {n_words} words; it contains {words.size}")
    rows, columns, numbers = table.T
    with readable(path):
        matrix = sparse.csr_array((numbers.astype(np.float64), (rows - 1, columns - 1)), shape=(n_documents, n_words))
    return CorpusData(matrix, words)
