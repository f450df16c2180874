"""Read graphs from files: lists of edges, with weights or without, GraphML and GML."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from codiag._text import (
    ABSENT,
    SEPARATORS,
    as_path,
    checked_ending,
    ending_of,
    is_whole,
    open_binary,
    readable,
    refuse_lines,
    rows_of,
)
from codiag.labels import sorted_names
from codiag.models.communities._network import Network, adjacency_of

LISTS = (".txt", ".csv", ".tsv", ".edges", ".edgelist")
"""Endings of lists of edges."""
GRAPHS = (".graphml", ".gml")
"""Endings of files that networkx reads."""
WEIGHTS = ("weight", "weights", "w")
"""Names of a column of weights."""
ENDS = {"source", "target", "from", "to", "src", "dst", "node1", "node2", "u", "v"}
"""Names of the two columns of nodes."""
OTHERS = {*ENDS, "", "id", "key", "index", "time", "timestamp", "date", "year"}
"""Names of columns and attributes whose numbers are not weights."""
MORE_FIELDS = 2
"""Largest number of fields after two nodes, in lines without names of columns: a weight and a time."""
Line = tuple[int, list[str]]
"""Number and fields of a line."""


def read_edges(path: str | Path) -> np.ndarray:
    r"""Read the edges of a graph, a pair of linked nodes on every line.

    Parameters
    ----------
    path : str or Path
        A ``.csv`` or ``.tsv`` file, whose first line may name the columns source and target, or a ``.txt``,
        ``.edges`` or ``.edgelist`` file with blanks or commas between nodes; also ``.gz``. Lines that begin with # or %
        are ignored, as are further columns. A file without names of columns may have one or two of these, of numbers.
        `read_graph` reads weights.

    Returns
    -------
    numpy.ndarray of shape (n_edges, 2)
        Integers if all nodes are integers, otherwise text: data for `codiag.models.MixedMembershipCommunities`.

    See Also
    --------
    read_graph : Edges with weights.
    codiag.models.MixedMembershipCommunities : Takes the edges.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from codiag.io import read_edges
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "edges.txt"
    ...     _ = path.write_text("# friends\n1 2\n2 3\n")
    ...     read_edges(path).tolist()
    [[1, 2], [2, 3]]
    """
    return _read_list(as_path("path", path), "none")[0]


def read_graph(path: str | Path, *, weight: str | None = None) -> Network:
    r"""Read a graph with the weights of its edges.

    Parameters
    ----------
    path : str or Path
        A list of edges, as for `read_edges`, or a ``.graphml`` or ``.gml`` file, which requires networkx. An edge that
        is listed in both directions counts once, and must have one weight.
    weight : str, optional
        The column, or the attribute of edges, with weights; a number counts columns from 1, and "none" ignores
        weights. By default the column or attribute called weight. If there is none, and edges have other numbers that
        differ, the file is refused, since these may be weights or something else.

    Returns
    -------
    Network
        With ``adjacency``, sparse, and ``nodes``: data for `codiag.models.MixedMembershipCommunities`.

    See Also
    --------
    read_edges : Edges without weights.
    codiag.models.MixedMembershipCommunities : Takes the graph.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from codiag.io import read_graph
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "edges.csv"
    ...     _ = path.write_text("source,target,weight\nann,bob,2\nbob,carl,1\n")
    ...     graph = read_graph(path)
    >>> graph.nodes.tolist(), graph.adjacency.toarray().tolist()
    (['ann', 'bob', 'carl'], [[0.0, 2.0, 0.0], [2.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    """
    path = as_path("path", path)
    checked_ending(path, (*LISTS, *GRAPHS))
    if ending_of(path) in GRAPHS:
        nodes, pairs, weights = _read_networkx(path, weight)
    else:
        edges, weights = _read_list(path, weight)
        nodes, pairs = edges.ravel().tolist(), edges.tolist()
    names = sorted_names(nodes)
    places = {node: place for place, node in enumerate(names.tolist())}
    ends = np.array([[places[node] for node in pair] for pair in pairs], dtype=np.int64).reshape(-1, 2)
    return Network(adjacency_of(ends, names, weights, path.name), names)


def _read_list(path: Path, weight: str | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the pairs of linked nodes, and the weights of edges or None."""
    ending = checked_ending(path, LISTS)
    rows = [(number, row) for number, row in rows_of(path, SEPARATORS.get(ending)) if row[0][:1] not in ("#", "%")]
    names = [field.strip().lower() for field in rows[0][1]] if rows else []
    places = [place for place, name in enumerate(names) if name in ENDS]
    named = len(places) == 2
    rows, places = (rows[1:], places) if named else (rows, [0, 1])
    if not named:
        _check_unnamed(path.name, rows)
    ends, bad = [], []
    for number, row in rows:
        pair = [row[place].strip() for place in places] if len(row) > max(places) else []
        if len(pair) < 2 or any(node.lower() in ABSENT for node in pair):
            bad.append(f"line {number} has no two nodes")
        ends.append(pair)
    refuse_lines(path.name, bad, "edges")
    if not ends:
        raise ValueError(f"{path.name} holds no edges")
    column = _weight_column(path.name, weight, names if named else None, rows)
    weights = None if column is None else _numbers(path.name, rows, column)
    whole = all(is_whole(node) for pair in ends for node in pair)
    return np.array(ends, dtype=np.int64) if whole else np.array(ends), weights


def _weight_column(name: str, weight: str | None, names: list[str] | None, rows: Sequence[Line]) -> int | None:
    """Return the column of the weights; None without weights."""
    if weight == "none":
        return None
    if weight is None:
        columns = [] if names is None else [names.index(word) for word in WEIGHTS if word in names]
        if not columns:
            _refuse_unused(name, names, rows)
        return next(iter(columns), None)
    if names is not None and weight.lower() in names:
        return names.index(weight.lower())
    if weight.isdigit() and 1 <= int(weight) <= max(len(row) for _, row in rows):
        return int(weight) - 1
    raise ValueError(f"weight must be a column of {name}, by its name or its number from 1, or none; got {weight}")


def _check_unnamed(name: str, rows: Sequence[Line]) -> None:
    """Raise if lines without names of columns hold more than two nodes and one or two numbers: these are not edges."""
    bad = []
    for number, row in rows:
        more = [field for field in map(str.strip, row[2:]) if field not in ("", "{}")]
        if len(more) > MORE_FIELDS or not all(map(_is_number, more)):
            bad.append(f"line {number} has {len(row)} fields" + f", as {more[0]!r:.20}" * (len(more) <= MORE_FIELDS))
    way_out = (
        "A line has two nodes, and perhaps a weight and a time, which are numbers; a first line may name the columns, "
        "two of them source and target"
    )
    refuse_lines(name, bad, "edges", way_out)


def _refuse_unused(name: str, names: list[str] | None, rows: Sequence[Line]) -> None:
    """Raise if a column of different numbers may be weights, and the user has not said so."""
    columns = {"3": 2} if names is None else {key: place for place, key in enumerate(names) if key not in OTHERS}
    for column, place in columns.items():
        fields = {row[place].strip() for _, row in rows if len(row) > place}
        if len(fields) > 1 and all(map(_is_number, fields)):
            raise ValueError(_unused(name, f"column {column}", column))


def _unused(name: str, where: str, weight: str) -> str:
    return (
        f"{name} has different numbers in {where}, which may be the weights of edges; weight='{weight}' uses them as "
        "weights, and weight='none' ignores them"
    )


def _numbers(name: str, rows: Sequence[Line], column: int) -> np.ndarray:
    fields = [(number, row[column].strip() if len(row) > column else "") for number, row in rows]
    bad = [f"line {number} has no weight" for number, field in fields if not _is_number(field)]
    refuse_lines(name, bad, "edges with weights")
    return np.array([float(field) for _, field in fields])


def _is_number(field: str) -> bool:
    try:
        return bool(np.isfinite(float(field)))
    except ValueError:
        return False


def _read_networkx(path: Path, weight: str | None) -> tuple[list[Any], list[Any], np.ndarray | None]:
    """Return nodes, pairs of linked nodes, and the weights of edges or None."""
    try:
        import networkx as nx
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{path.name} cannot be read without networkx, which is not installed. Get it with: pip install networkx"
        ) from error
    with readable(path):
        graph = _unpacked(nx.read_graphml, path) if ending_of(path) == ".graphml" else _read_gml(nx, path)
    edges = list(graph.edges(data=True))
    if not edges:
        raise ValueError(f"{path.name} holds no edges")
    if weight is None:
        _refuse_unused_attributes(path.name, [data for *_, data in edges])
    wanted = "weight" if weight is None else weight
    values = [data.get(wanted) for *_, data in edges]
    pairs = [pair for *pair, _ in edges]
    if weight == "none" or (weight is None and all(value is None for value in values)):
        return list(graph.nodes), pairs, None
    n_missing = sum(not _is_number(str(value)) for value in values)
    if n_missing:
        raise ValueError(
            f"weight must be a number of all edges of {path.name}; {n_missing} of {len(edges)} have none by the name "
            f"{wanted}. weight='none' ignores them"
        )
    return list(graph.nodes), pairs, np.array([float(value) for value in values])


def _refuse_unused_attributes(name: str, attributes: Sequence[dict[str, Any]]) -> None:
    """Raise if edges have no weight by that name, but another number that differs between them."""
    if any("weight" in edge for edge in attributes):
        return
    for attribute in sorted({key for edge in attributes for key in edge} - OTHERS):
        values = [edge.get(attribute) for edge in attributes]
        if len(set(map(str, values))) > 1 and all(isinstance(value, int | float) for value in values):
            raise ValueError(_unused(name, f"the attribute {attribute} of edges", attribute))


def _read_gml(nx: Any, path: Path) -> Any:
    """Return the graph in a GML file; nodes are named by their labels, or by their numbers if they have none."""
    try:
        return _unpacked(nx.read_gml, path)
    except nx.NetworkXError as error:
        if "label" not in str(error):
            raise
        return _unpacked(nx.read_gml, path, label="id")


def _unpacked(read: Callable[..., Any], path: Path, **options: Any) -> Any:
    """Read a graph by a function of networkx, which recognizes packed files by ``.gz`` in small letters only."""
    with open_binary(path) as file:
        return read(file, **options)
