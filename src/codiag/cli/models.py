"""Commands for topics and communities."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from codiag._text import as_file, ending_of, open_text, readable
from codiag.cli.commands import Figure, Report, Result, Run, as_count, command, option, table_of, write_table
from codiag.cli.tables import KINDS, Tables, column, labels_in


@command
def topics(
    path: Annotated[
        str,
        typer.Argument(
            metavar="CORPUS",
            help="A table with a document in each row; a .txt file with one on each line; counts of words in a .npz "
            "file of scipy.sparse.save_npz; or, with --vocabulary, a bag of words of the UCI repository.",
        ),
    ],
    n_components: Annotated[str, option("--topics", "Number of topics, or auto to estimate it.", "N", "-k", "-t")],
    tables: Tables,
    run: Run,
    text: Annotated[str, typer.Option("--text", help="Column of a table with documents.")] = "text",
    vocabulary: Annotated[str | None, option("--vocabulary", "A word on every line, for counts.")] = None,
    stop_words: Annotated[
        str, typer.Option("--stop-words", help="Common words left out: english, or none.")
    ] = "english",
    result: Result = None,
    figure: Figure = None,
    report: Report = None,
) -> None:
    """Find topics in a corpus. Their weights and top words are printed."""
    from codiag import plotting, reports
    from codiag.models import LatentDirichlet

    number = as_count("--topics", n_components)
    run.check_outputs([path, vocabulary], out=result, figure=figure, report=report)
    counts, words = _corpus(path, vocabulary, text, tables, None if stop_words == "none" else stop_words)
    model = LatentDirichlet(number, random_state=run.seed).fit(counts)
    shares = model.transform(counts)
    strongest = shares.argmax(axis=1)
    columns = {
        "topic": range(len(model.weights_)),
        "weight": model.weights_.tolist(),
        "strongest in": [int((strongest == topic).sum()) for topic in range(len(model.weights_))],
        "words": [" ".join(top) for top in model.top_words(words, 10)],
    }
    title = Path(path).name
    run.show(
        table_of(f"{title}: {counts.shape[0]} documents, {counts.shape[1]} words", columns),
        f"perplexity of these documents {model.perplexity(counts):.1f}",
    )
    by_topic = {f"topic_{topic}": share for topic, share in enumerate(shares.T)}
    saved = {"document": range(1, len(shares) + 1), "topic": strongest} | by_topic
    run.save(result, lambda file: write_table(file, saved))
    run.save(figure, lambda file: plotting.topics(model, words).savefig(file))
    run.save(report, lambda file: reports.topics_report(model, counts, words, file, title=title))


def _corpus(
    given: str, vocabulary: str | None, text: str, tables: Tables, stop_words: str | None
) -> tuple[Any, Sequence[str]]:
    """Return counts (documents, words), and the words, which are numbered if counts have none."""
    import numpy as np
    from scipy import sparse
    from sklearn.feature_extraction.text import CountVectorizer

    path = as_file("path", given)
    if ending_of(path) == ".npz" or vocabulary is not None:
        with readable(path):
            if ending_of(path) == ".npz":
                counts = sparse.csr_array(sparse.load_npz(path))
            else:
                rows, columns, numbers = np.loadtxt(path, np.int64, skiprows=3, unpack=True)
                counts = sparse.csr_array((numbers.astype(float), (rows - 1, columns - 1)))
        words = [f"word{number}" for number in range(counts.shape[1])]
        if vocabulary is not None:
            words = as_file("--vocabulary", vocabulary).read_text(encoding="utf-8").split()
            counts.resize((counts.shape[0], max(len(words), counts.shape[1])))
        if len(words) != counts.shape[1]:
            raise ValueError(f"--vocabulary must have {counts.shape[1]} words, one for each column; got {len(words)}")
        return counts, words
    if ending_of(path) == ".txt":
        with readable(path), open_text(path) as file:
            documents = [line for line in file if line.strip()]
    else:
        documents = column(tables.read(given), path, "--text", text).fillna("").astype(str).tolist()
    vectorizer = CountVectorizer(stop_words=stop_words)
    return sparse.csr_array(vectorizer.fit_transform(documents)), vectorizer.get_feature_names_out()


@command
def communities(
    path: Annotated[
        str,
        typer.Argument(
            metavar="EDGES",
            help="A table whose first two columns are linked nodes; a list of edges, .txt or .edges, with two nodes on "
            "every line; .graphml or .gml.",
        ),
    ],
    tables: Tables,
    run: Run,
    n_components: Annotated[str, option("--communities", "Their number, by default auto.", "N", "-k")] = "auto",
    weight: Annotated[str | None, option("--weight", "Column or attribute with the weights of edges.", "NAME")] = None,
    result: Result = None,
    figure: Figure = None,
) -> None:
    """Find communities in a graph, which may overlap. Their sizes are printed."""
    from codiag import plotting
    from codiag.models import MixedMembershipCommunities

    number = as_count("--communities", n_components)
    run.check_outputs([path], out=result, figure=figure)
    model = MixedMembershipCommunities(number, random_state=run.seed).fit(_graph(path, weight, tables, run))
    columns = {
        "community": range(model.n_components_),
        "strongest for": [int((model.labels_ == community).sum()) for community in range(model.n_components_)],
        "above 0.3": model.overlapping_labels().sum(axis=0).tolist(),
        "linked inside": model.connectivity_.diagonal().tolist(),
    }
    run.show(table_of(f"{Path(path).name}: {len(model.nodes_)} nodes", columns))
    run.save(result, lambda file: write_table(file, model.membership_table()))
    run.save(figure, lambda file: plotting.communities(model).savefig(file))


def _graph(given: str, weight: str | None, tables: Tables, run: Run) -> Any:
    """Return a graph of networkx, without directions; its weights are called weight."""
    from codiag.io import installed

    path = as_file("path", given)
    nx = installed("networkx", path)
    readers = {".graphml": nx.read_graphml, ".gml": nx.read_gml}
    readers |= dict.fromkeys((".txt", ".edges"), nx.read_edgelist if weight is None else nx.read_weighted_edgelist)
    if ending_of(path) not in (*readers, *KINDS):
        known = ", ".join((*readers, *KINDS))
        raise ValueError(f"path must end in one of {known}, which graphs are read from; got {path.name}")
    if ending_of(path) in readers:
        with readable(path):
            graph = nx.Graph(readers[ending_of(path)](path))
    else:
        frame = tables.read(given)
        ends = [str(name) for name in frame.columns[:2]]
        for name in ends:
            labels_in(frame, path, name)
        graph = nx.from_pandas_edgelist(frame, *ends, edge_attr=True)
    if weight is not None:
        weights = nx.get_edge_attributes(graph, weight)
        if len(weights) < graph.number_of_edges():
            raise ValueError(
                f"--weight must name a column or attribute that all edges of {path.name} have; got {weight}"
            )
        nx.set_edge_attributes(graph, weights, "weight")
    is_weighted = bool(nx.get_edge_attributes(graph, "weight"))
    run.note(f"edges of {path.name} have {'weights' if is_weighted else 'no weights'}; --weight names them")
    return graph
