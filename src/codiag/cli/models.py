"""Commands for topics and communities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from codiag._text import as_file, as_path, ending_of, open_text, readable
from codiag.cli.commands import Report, Run, as_count, command, option, table_of, write_table
from codiag.cli.tables import Tables, column


@command
def topics(
    path: Annotated[str, typer.Argument(metavar="CORPUS", help="Texts in a table or .txt file, or counts of words.")],
    n_components: Annotated[
        str, option("--topics", "Number of topics, auto, or several to compare: 8,12,20.", "N", "-k", "-t")
    ],
    tables: Tables,
    run: Run,
    text: Annotated[str, typer.Option("--text", help="Column of a table with documents.")] = "text",
    vocabulary: Annotated[str | None, option("--vocabulary", "A word on every line, for counts.")] = None,
    report: Report = None,
) -> None:
    """Find topics in a corpus. Their weights and top words are printed."""
    from codiag import reports
    from codiag.io import count_words, read_counts
    from codiag.models import LatentDirichlet

    numbers, file = [as_count("--topics", number) for number in n_components.split(",")], as_path("path", path)
    run.check_outputs([path, vocabulary], report=report)
    if vocabulary is not None or ending_of(file) == ".npz":
        counts, words = read_counts(file, vocabulary)
    elif ending_of(file) == ".txt":
        with readable(as_file("path", path)), open_text(file) as lines:
            counts, words = count_words(list(lines))
    else:
        counts, words = count_words(column(tables.read(path), file, "--text", text).fillna("").astype(str))
    number = numbers[0] if len(numbers) == 1 else _predicts_best(numbers, counts, run)
    model = LatentDirichlet(number, random_state=run.seed).fit(counts)
    shares = model.transform(counts)
    strongest = shares.argmax(axis=1)
    columns = {
        "topic": range(len(model.weights_)),
        "weight": model.weights_.tolist(),
        "strongest in": [int((strongest == topic).sum()) for topic in range(len(model.weights_))],
        "words": [" ".join(top) for top in model.top_words(words, 10)],
    }
    run.show(
        table_of(f"{file.name}: {counts.shape[0]} documents, {counts.shape[1]} words", columns),
        f"perplexity of these documents {model.perplexity(counts):.1f}",
    )
    by_topic = {f"topic_{topic}": share for topic, share in enumerate(shares.T)}
    saved = {"document": range(1, len(shares) + 1), "topic": strongest} | by_topic
    run.save(run.out, lambda table: write_table(table, saved))
    run.save(report, lambda page: reports.topics_report(model, counts, words, page, title=file.name))


def _predicts_best(numbers: Sequence[int | None], counts: Any, run: Run) -> int | None:
    """Return the number of topics that predicts a fifth of the documents best, after fits to the others."""
    import numpy as np

    from codiag.models import LatentDirichlet

    held_out = np.random.default_rng(run.seed).permutation(counts.shape[0]) < counts.shape[0] // 5
    models = [LatentDirichlet(number, random_state=run.seed).fit(counts[~held_out]) for number in numbers]
    scores = [model.held_out_perplexity(counts[held_out], run.seed) for model in models]
    found: list[object] = [model.n_components_ for model in models]
    columns: dict[str, Sequence[object]] = {"topics": found, "held-out perplexity": scores}
    run.show(table_of("half of the words of a fifth of the documents, given the other half", columns))
    return models[int(np.argmin(scores))].n_components_


@command
def communities(
    path: Annotated[str, typer.Argument(metavar="EDGES", help="Two nodes in a row or line; or .graphml or .gml.")],
    tables: Tables,
    run: Run,
    n_components: Annotated[str, option("--communities", "Their number, by default auto.", "N", "-k")] = "auto",
    weight: Annotated[str | None, option("--weight", "Column or attribute with the weights of edges.", "NAME")] = None,
) -> None:
    """Find communities in a graph, which may overlap. Their sizes are printed."""
    from codiag.io import GRAPHS, graph_of_table, read_graph
    from codiag.models import MixedMembershipSBM

    number, file = as_count("--communities", n_components), as_path("path", path)
    run.check_outputs([path])
    graph = read_graph(file, weight) if ending_of(file) in GRAPHS else graph_of_table(file, tables.read(path), weight)
    run.note(f"{graph.number_of_edges():,} edges; their weights are {weight or 'called weight, or 1'}")
    model = MixedMembershipSBM(number, random_state=run.seed).fit(graph)
    columns = {
        "community": range(model.n_components_),
        "strongest for": [int((model.labels_ == community).sum()) for community in range(model.n_components_)],
        "above 0.3": model.overlapping_labels().sum(axis=0).tolist(),
        "linked inside": model.connectivity_.diagonal().tolist(),
    }
    run.show(table_of(f"{file.name}: {len(model.nodes_)} nodes", columns))
    run.save(run.out, lambda table: write_table(table, model.membership_table()))
