"""Commands for latent-variable models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.table import Table

from codiag.cli.commands import (
    Force,
    Json,
    Printing,
    Quiet,
    Report,
    Seed,
    argument,
    as_command,
    as_count,
    option,
    table_of,
    working,
)
from codiag.cli.files import ARRAYS, PAGES, PICTURES, TABLES
from codiag.cli.results import communities_result, topics_result
from codiag.cli.terminal import shown

if TYPE_CHECKING:
    from codiag.models.communities import MixedMembershipCommunities

SHOWN = 15
"""Workers that fit on a screen."""


@as_command
def topics(
    path: Annotated[
        Path,
        argument(
            "CORPUS",
            "A folder of .txt files, a .txt file with one document per line, a .csv, .tsv (also .gz), .parquet or "
            ".xlsx table, or counts (.npy or .npz, documents x words); - for lines on the standard input.",
        ),
    ],
    n_components: Annotated[
        str, option("--topics", "-k", "-t", metavar="N", words="Number of topics, or auto to estimate it.")
    ],
    result: Annotated[
        Path | None, option("--out", "-o", words="File to save topics, weights and shares to, .npz.")
    ] = None,
    documents: Annotated[
        Path | None, option("--documents", words="File to save the shares of topics in documents to, .csv or .tsv.")
    ] = None,
    text: Annotated[
        str | None,
        option("--text", metavar="COLUMN", words="Column of a table with the documents; by default text."),
    ] = None,
    document: Annotated[
        str | None,
        option(
            "--id",
            metavar="COLUMN",
            words="Column of a table with the names of documents; by default rows are numbered from 1.",
        ),
    ] = None,
    stop_words: Annotated[
        str | None,
        option(
            "--stop-words",
            metavar="WORDS",
            words="Words to leave out: english (the default), none, or a file of words.",
        ),
    ] = None,
    min_df: Annotated[
        float | None,
        option(
            "--min-df", words="Leave out words in fewer documents or, if below 1, in a smaller share; by default 2."
        ),
    ] = None,
    alpha_0: Annotated[
        float | None,
        option(
            "--alpha-0",
            words="Sum of the Dirichlet parameters of mixtures; 0 for one topic per document, by default estimated.",
        ),
    ] = None,
    max_iter: Annotated[
        int, typer.Option("--max-iter", min=0, help="Largest number of collapsed variational steps.")
    ] = 30,
    n_words: Annotated[int, typer.Option("--words", min=1, help="Number of words to print per topic.")] = 10,
    figure: Annotated[Path | None, option("--figure", words="File to draw the words of topics to.")] = None,
    report: Report = None,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Find topics in a corpus. Their weights and top words are printed."""
    from codiag.io import write_table
    from codiag.models.topics import LatentDirichlet, read_corpus, save_topics, share_table
    from codiag.plotting import topics as draw_topics
    from codiag.reports import topics_report

    outputs = {"--out": (result, ARRAYS), "--documents": (documents, TABLES), "--figure": (figure, PICTURES)}
    outputs["--report"] = (report, PAGES)
    number = as_count("--topics", n_components)
    with working("finding topics ...", outputs, [path], force=force, printing=Printing(quiet, as_json)) as command:
        source = command.source(path, ".txt")
        corpus = read_corpus(source, text=text, document=document, stop_words=stop_words, min_df=min_df)
        counts, vocabulary, names = corpus
        model = LatentDirichlet(number, alpha_0=alpha_0, max_iter=max_iter, random_state=seed).fit(counts)
        shares = model.transform(counts)
        contents = ": components, weights, doc_topic_prior, vocabulary, shares, documents"
        command.save("--out", lambda path: save_topics(path, model, corpus, shares), contents)
        command.save("--documents", lambda path: write_table(path, share_table(corpus, shares)))
        about_page: dict[str, Any] = {"documents": names, "title": command.title(path)}
        command.report(lambda page: topics_report(model, counts, vocabulary, page, **about_page))
        perplexity = model.perplexity(counts)
    heading = f"{command.title(path)}: {counts.shape[0]} documents, {counts.shape[1]} words"
    table = table_of(heading, ["topic"], ["weight", "strongest in"])
    table.add_column("words")
    strongest = np.bincount(np.argmax(shares, axis=1), minlength=len(model.weights_))
    rows = zip(model.weights_, strongest, model.top_words(vocabulary, n_words), strict=True)
    for topic, (weight, n_documents, words) in enumerate(rows):
        table.add_row(str(topic), f"{weight:.3f}", str(n_documents), shown(" ".join(words)))
    command.show(table, f"perplexity of these documents [bold]{perplexity:.1f}[/bold]")
    command.answer(lambda: topics_result(model, corpus, shares, n_words) | {"perplexity": perplexity})
    command.draw("--figure", lambda path: draw_topics(model, vocabulary, n_words=n_words).savefig(path))


@as_command
def communities(
    path: Annotated[
        Path,
        argument(
            "EDGES",
            "A .txt, .csv or .tsv file (also .gz) with two linked nodes on every line, .graphml or .gml; - for "
            "such lines on the standard input.",
        ),
    ],
    n_components: Annotated[
        str,
        option(
            "--communities",
            "-k",
            "--k",
            metavar="N",
            words="Number of communities; by default auto, estimated from the spectrum of the graph.",
        ),
    ] = "auto",
    result: Annotated[Path | None, option("--out", "-o", words="Where to save memberships, .csv or .tsv.")] = None,
    weight: Annotated[
        str | None,
        option(
            "--weight",
            metavar="COLUMN",
            words="Column, by name or number from 1, or attribute with the weights of edges; none ignores them. By "
            "default the one called weight.",
        ),
    ] = None,
    alpha_0: Annotated[
        float | None,
        option("--alpha-0", min=0, words="How mixed nodes are; 0 for one community each. By default, estimated."),
    ] = None,
    degree_corrected: Annotated[
        bool,
        typer.Option(
            "--degree-corrected/--plain",
            help="Whether degrees of nodes also differ for other reasons than communities.",
        ),
    ] = True,
    method: Annotated[
        str | None, option("--method", words="nojd1, ojd1, tpm, als, ...; by default, joint diagonalization alone.")
    ] = None,
    n_partitions: Annotated[
        int | None, option("--partitions", min=1, words="Partitions to average over; by default, 10 or more.")
    ] = None,
    max_iter: Annotated[int, typer.Option("--max-iter", min=0, help="Number of variational steps.")] = 5,
    correct_bias: Annotated[
        bool, typer.Option("--correct-bias", help="Correct the bias of rates of links by simulated graphs.")
    ] = False,
    figure: Annotated[Path | None, option("--figure", words="Where to draw sizes, memberships and links.")] = None,
    report: Report = None,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Find communities in a graph, which may overlap. Their sizes are printed."""
    from codiag.io import write_table
    from codiag.models.communities import MixedMembershipCommunities, read_graph
    from codiag.plotting import communities as draw_communities
    from codiag.reports import communities_report

    outputs = {"--out": (result, TABLES), "--figure": (figure, PICTURES), "--report": (report, PAGES)}
    number = as_count("--communities", n_components)
    with working("finding ...", outputs, [path], force=force, printing=Printing(quiet, as_json)) as command:
        graph = read_graph(command.source(path, ".txt"), weight=weight)
        model = MixedMembershipCommunities(
            number,
            alpha_0=alpha_0,
            degree_corrected=degree_corrected,
            method=method,
            n_partitions=n_partitions,
            max_iter=max_iter,
            correct_bias=correct_bias,
            random_state=seed,
        ).fit(graph)
        contents = ": every node, its strongest community, all memberships"
        command.save("--out", lambda path: write_table(path, model.membership_table()), contents)
        command.report(lambda page: communities_report(model, page, title=command.title(path)))
    command.show(_community_table(model, command.title(path)))
    command.answer(lambda: communities_result(model))
    command.draw("--figure", lambda path: draw_communities(model).savefig(path))


def _community_table(model: MixedMembershipCommunities, name: str) -> Table:
    meaning = "expected weight" if model.weighted_ else "probability"
    table = table_of(
        f"{name}: {model.nodes_.size} nodes, {model.n_components_} communities",
        [],
        ["community", "strongest for", "above 0.3", "linked inside", "with others"],
        caption=f"linked: {meaning} of a link between two pure members, by the fitted model",
    )
    members = model.overlapping_labels().sum(axis=0)
    mass, rates = model.memberships_.sum(axis=0), model.connectivity_
    for community in range(min(model.n_components_, 2 * SHOWN)):
        inside, others = rates[community, community], mass.sum() - mass[community]
        outside = (rates[community] @ mass - inside * mass[community]) / max(others, 1e-300)
        strongest = int((model.labels_ == community).sum())
        table.add_row(str(community), str(strongest), str(members[community]), f"{inside:.4f}", f"{outside:.4f}")
    return table
