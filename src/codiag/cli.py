"""The command line: the only part of codiag that prints."""

from __future__ import annotations

import logging
import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import codiag

if TYPE_CHECKING:
    from codiag.experiments.compare import Comparison
    from codiag.experiments.demo import Demo

app = typer.Typer(
    help="Factorize tensors by jointly diagonalizing matrices.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    add_completion=False,
)
out = Console()
err = Console(stderr=True)
SHOWN = 30
"""Components that fit on a screen."""


def _show_version(wanted: bool) -> None:
    if wanted:
        out.print(f"codiag {codiag.__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Factorize tensors by jointly diagonalizing matrices."""


TensorFile = Annotated[Path, typer.Argument(help="A .npy, .npz, .mat or .tns(.gz) file.", show_default=False)]
Rank = Annotated[int, typer.Option("--rank", "-r", help="Number of components.", show_default=False)]
Symmetric = Annotated[
    bool | None, typer.Option("--symmetric/--not-symmetric", help="Whether all modes share one factor.")
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same answer.")]
Variable = Annotated[
    str | None, typer.Option("--variable", help="Which array, where the file holds several.", show_default=False)
]


@app.command()
def factorize(
    tensor: TensorFile,
    rank: Rank,
    method: Annotated[
        str | None,
        typer.Option(
            "--method", help="ojd0, ojd1, nojd0, nojd1, nls, als, tpm, lathauwer, sd2, givens; unasked, the best."
        ),
    ] = None,
    symmetric: Symmetric = None,
    result: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to save weights and factors, as .npz.", show_default=False)
    ] = None,
    seed: Seed = 0,
    variable: Variable = None,
) -> None:
    """Write a tensor as a sum of components, and print their weights."""
    from codiag.files import read_tensor

    if result is not None:
        _check_writable(result, "--out", {".npz"})
    with _mistakes_in_one_sentence(), _progress("reading ..."):
        start = time.perf_counter()
        loaded = read_tensor(tensor, variable)
        reading = time.perf_counter() - start
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", codiag.ConvergenceWarning)
            fit = codiag.factorize(loaded, rank, method=method, symmetric=symmetric, seed=seed)
        if result is not None:
            fit.save(result)
    out.print(_stage_table(fit, reading))
    out.print(_weight_table(fit))
    out.print(f"relative error [bold]{fit.relative_error:.3e}[/bold]", highlight=False)
    for warning in caught:
        err.print(f"[yellow]Warning:[/yellow] {escape(str(warning.message))}", soft_wrap=True)
    if result is not None:
        out.print(f"Saved to [bold]{escape(str(result))}[/bold]; read it with codiag.Factorization.load")


@app.command()
def compare(
    tensor: TensorFile, rank: Rank, symmetric: Symmetric = None, seed: Seed = 0, variable: Variable = None
) -> None:
    """Factorize a tensor by every method that applies, and print how close they come and whether they agree."""
    from codiag.experiments.compare import compare as compare_methods
    from codiag.files import read_tensor

    with _mistakes_in_one_sentence(), _progress("comparing ..."):
        results = compare_methods(read_tensor(tensor, variable), rank, symmetric=symmetric, seed=seed)
    out.print(_comparison_table(results, f"{tensor.name}, rank {rank}"))
    out.print("distance: mean distance of the unit factors from those of the closest fit, after matching", style="dim")
    for result in results:
        if result.fit is None:
            out.print(f"{result.method} does not apply: {escape(result.reason)}", style="dim", soft_wrap=True)


@app.command()
def topics(
    corpus: Annotated[
        Path,
        typer.Argument(help="Counts (.npz, documents x words) or text (.txt, a document a line).", show_default=False),
    ],
    n_topics: Annotated[int, typer.Option("--topics", "-t", help="Number of topics.", show_default=False)],
    result: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to save topics and weights, as .npz.", show_default=False)
    ] = None,
    alpha_0: Annotated[float, typer.Option("--alpha-0", help="How mixed documents are; 0 for one topic each.")] = 1.0,
    polish: Annotated[int, typer.Option("--polish", min=0, help="Steps of expectation maximization.")] = 5,
    n_words: Annotated[int, typer.Option("--words", min=1, help="Words to show of each topic.")] = 10,
    seed: Seed = 0,
) -> None:
    """Find topics in a corpus, and print their weights and top words."""
    from codiag.corpora import read_corpus, save_topics
    from codiag.models import LatentDirichlet

    if result is not None:
        _check_writable(result, "--out", {".npz"})
    with _mistakes_in_one_sentence(), _progress("finding topics ..."), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        counts, vocabulary = read_corpus(corpus)
        model = LatentDirichlet(n_topics, alpha_0=alpha_0, polish=polish, random_state=seed).fit(counts)
        if result is not None:
            save_topics(result, model, vocabulary)
    table = Table(
        title=escape(f"{corpus.name}: {counts.shape[0]} documents, {counts.shape[1]} words"), box=box.SIMPLE_HEAD
    )
    table.add_column("weight", justify="right")
    table.add_column("topic")
    for weight, words in zip(model.weights_, model.top_words(vocabulary, n_words), strict=True):
        table.add_row(f"{weight:.3f}", escape(" ".join(words)))
    out.print(table)
    out.print(f"perplexity of these documents [bold]{model.perplexity(counts):.1f}[/bold]", highlight=False)
    for warning in caught:
        err.print(f"[yellow]Warning:[/yellow] {escape(str(warning.message))}", soft_wrap=True)
    if result is not None:
        out.print(f"Saved to [bold]{escape(str(result))}[/bold]: components, weights, doc_topic_prior, vocabulary")


@app.command()
def demo(
    figure: Annotated[Path, typer.Option("--figure", help="Where to save the figure.")] = Path("codiag-demo.png"),
    size: Annotated[int, typer.Option("--size", min=4, max=100, help="Size of every mode, and the rank.")] = 40,
    noise: Annotated[
        float, typer.Option("--noise", min=1e-12, max=1.0, help="Size of the noise, relative to the tensor.")
    ] = 1e-3,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the random problem.")] = 0,
) -> None:
    """Factorize a hard noisy tensor, by codiag and by every rival that is installed, and draw the result."""
    from codiag.experiments.demo import run_demo

    _check_writable(figure, "--figure", {".png", ".svg", ".pdf"})
    with err.status("factorizing ..."):
        result = run_demo(size, noise, seed)
    out.print(
        _demo_table(result, f"A symmetric {size} x {size} x {size} tensor of rank {size}, noise {noise:g} of its norm")
    )
    out.print(
        "error: mean distance of the unit factors from the truth\n"
        "ratio: to the oracle, least squares started from the truth, which is the statistical limit",
        style="dim",
    )
    predicted = float((result.fit.standard_errors**2).mean() ** 0.5)
    measured = float((result.component_errors()[0] ** 2).mean() ** 0.5)
    out.print(
        f"fit.standard_errors says {predicted:.2e} without knowing the truth; it is {measured:.2e} (root mean square)"
    )
    _draw(result, figure)


def _stage_table(fit: codiag.Factorization, reading: float) -> Table:
    table = Table(title=escape(repr(fit)), title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("stage")
    for heading in ("sweeps", "objective", "seconds"):
        table.add_column(heading, justify="right")
    table.add_row("read", "", "", f"{reading:.3f}")
    for stage in fit.stages:
        objective = "" if stage.objective != stage.objective else f"{stage.objective:.3e}"
        table.add_row(stage.name, str(stage.sweeps), objective, f"{stage.seconds:.3f}")
    return table


def _weight_table(fit: codiag.Factorization) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("component", "weight"):
        table.add_column(heading, justify="right")
    weights = [float(weight) for weight in fit.weights]
    for index, weight in enumerate(weights[:SHOWN]):
        table.add_row(str(index), f"{weight:.6g}")
    if len(weights) > SHOWN:
        table.add_row("...", f"{len(weights) - SHOWN} more, down to {weights[-1]:.6g}")
    return table


def _comparison_table(results: list[Comparison], title: str) -> Table:
    table = Table(title=escape(title), title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("method")
    for heading in ("relative error", "distance", "sweeps", "seconds"):
        table.add_column(heading, justify="right")
    for result in results:
        if result.fit is not None:
            sweeps = sum(stage.sweeps for stage in result.fit.stages)
            table.add_row(
                result.method + ("" if result.fit.converged else " (not converged)"),
                f"{result.fit.relative_error:.6e}",
                f"{result.distance:.1e}",
                str(sweeps),
                f"{result.seconds:.3f}",
            )
    return table


def _demo_table(result: Demo, title: str) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("method")
    for heading in ("error", "ratio", "seconds"):
        table.add_column(heading, justify="right")
    table.add_row("oracle", f"{result.oracle:.2e}", "1.00", "", style="dim")
    for run in result.runs:
        style = "bold" if run is result.runs[0] else None
        table.add_row(run.method, f"{run.error:.2e}", f"{run.ratio:.2f}", f"{run.seconds:.2f}", style=style)
    return table


def _draw(result: Demo, figure: Path) -> None:
    from codiag.plotting import draw_demo

    try:
        draw_demo(result, figure)
    except ModuleNotFoundError as error:
        err.print(f"No figure: {error.name} is not installed. Get it with: pip install 'codiag\\[plot]'")
    except OSError as error:
        _fail(f"the figure could not be written: {error}")
    else:
        out.print(f"Figure saved to [bold]{escape(str(figure))}[/bold]")


@contextmanager
def _progress(message: str) -> Iterator[None]:
    """Show on a terminal what is being done, from the log of the methods."""
    with err.status(message) as status:
        logger = logging.getLogger("codiag")
        handler = logging.Handler()
        handler.emit = lambda record: status.update(escape(f"done: {record.getMessage()}"))  # type: ignore[method-assign]
        level = logger.level
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        try:
            yield
        finally:
            logger.removeHandler(handler)
            logger.setLevel(level)


@contextmanager
def _mistakes_in_one_sentence() -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError, OSError) as error:
        _fail(str(error))
    except MemoryError:
        _fail("the tensor does not fit into memory; a .npy file is read slab by slab")


def _check_writable(path: Path, option: str, endings: set[str]) -> None:
    parent = path.resolve().parent
    if not parent.is_dir():
        _fail(f"{option} must lie in a folder that exists; {parent} does not")
    if path.suffix.lower() not in endings:
        _fail(f"{option} must end in {', '.join(sorted(endings))}; got {path.name}")
    if path.is_dir() or not os.access(path if path.exists() else parent, os.W_OK):
        _fail(f"{option} must be a file that can be written; {path} is not")


def _fail(message: str) -> NoReturn:
    err.print(f"[red]Error:[/red] {escape(message)}", soft_wrap=True, highlight=False)
    raise typer.Exit(2)
