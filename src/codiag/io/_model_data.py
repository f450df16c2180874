"""Files with data of models: graphs, read by networkx, and counts of words."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from codiag._text import as_file, ending_of, installed, open_text, readable

GRAPHS = (".graphml", ".gml", ".edges", ".txt")
"""Endings of files with a graph; the last two have the names of two nodes on every line."""


def read_graph(path: Path, weight: str | None = None) -> Any:
    """Return a graph of networkx without directions, whose weights are called weight.

    They are the attribute of edges that `weight` names, or the third column of a list of edges if it is not None.
    """
    nx = installed("networkx", as_file("path", path))
    with readable(path):
        if ending_of(path) == ".graphml":
            graph = nx.read_graphml(path)
        elif ending_of(path) == ".gml":
            graph = nx.read_gml(path)
        else:
            return nx.read_edgelist(path) if weight is None else nx.read_weighted_edgelist(path)
    weights = nx.get_edge_attributes(graph, "weight" if weight is None else weight)
    if weight is not None and len(weights) < graph.number_of_edges():
        raise ValueError(f"weight must name an attribute that all edges of {path.name} have; got {weight}")
    nx.set_edge_attributes(graph, weights, "weight")
    return nx.Graph(graph)


def graph_of_table(path: Path, frame: Any, weight: str | None) -> Any:
    """Return the graph whose edges are the first two columns of a pandas.DataFrame, and their weights another."""
    nx, ends = installed("networkx", path), list(frame.columns[:2])
    if weight is None and "weight" in frame.columns:
        weight = "weight"
    if len(ends) < 2 or frame[ends].isna().any(axis=None) or (weight is not None and weight not in frame.columns):
        found = ", ".join(map(str, frame.columns))
        raise ValueError(
            f"{path.name} must have two nodes in every row, and any weights in a column; got the columns {found}"
        )
    if weight is None:
        return nx.from_pandas_edgelist(frame, *ends)
    if frame.duplicated(ends).any():
        raise ValueError(
            f"{path.name} must list edges with weights once; {frame.duplicated(ends).sum()} rows repeat one"
        )
    return nx.from_pandas_edgelist(frame.rename(columns={weight: "weight"}), *ends, edge_attr="weight")


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
