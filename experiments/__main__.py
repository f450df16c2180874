"""The paper's experiments as a command: ``python -m experiments run all --quick``."""

from __future__ import annotations

import math
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from codiag.cli.terminal import err, fail, out, progress, shown, user_errors
from experiments.pages import write_pages
from experiments.paper import EXPERIMENTS
from experiments.runs import Experiment
from experiments.runs import run as run_experiments

app = typer.Typer(
    no_args_is_help=True, help="The experiments of Kuleshov, Chaganty and Liang (2015), and their claims."
)


@app.callback()
def _commands() -> None:
    """Keep `run` a command of its own while there is only one."""


@app.command(epilog=f"Experiments: {', '.join(EXPERIMENTS)}.")
def run(
    names: Annotated[
        list[str], typer.Argument(help="Experiments of the paper, or all.", metavar="EXPERIMENT", show_default=False)
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="Few trials of the smaller problems: minutes, and no verdicts yet.")
    ] = False,
    folder: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where records are kept and resumed from.")
    ] = Path("reports"),
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Processes; the numbers are the same.")] = 1,
    minutes: Annotated[
        float,
        typer.Option(
            "--minutes",
            min=0,
            metavar="X",
            help="Begin no trial after this time; by default, run all.",
            show_default=False,
        ),
    ] = math.inf,
    pages: Annotated[
        bool, typer.Option("--pages/--records-only", help="Whether to write figures, Markdown and the HTML page.")
    ] = True,
) -> None:
    """Run experiments of the paper, and judge its claims.

    Records, figures, Markdown and one HTML page are written.

    Trials that the folder already holds, from this call or another, are not run again. The page shows everything that
    the folder holds. Several calls may run at once.
    """
    unknown = [name for name in names if name not in (*EXPERIMENTS, "all")]
    if unknown:
        fail(f"name must be all, or one of {', '.join(EXPERIMENTS)}; got {unknown[0]}")
    wanted = [experiment for experiment in EXPERIMENTS.values() if "all" in names or experiment.name in names]
    present = [experiment for experiment in wanted if not _is_missing_data(experiment)]
    if not present:
        fail(wanted[0].missing())
    with user_errors():
        failures = _run_with_progress(present, folder, " ".join(names), quick=quick, jobs=jobs, minutes=minutes)
        if pages:
            _write_pages(folder)
    for failure in failures:
        err.print(f"[red]Failed:[/red] {shown(failure)}", soft_wrap=True)
    if failures:
        raise typer.Exit(1)


def _run_with_progress(
    experiments: list[Experiment], folder: Path, title: str, *, quick: bool, jobs: int, minutes: float
) -> list[str]:
    """Run experiments behind a progress bar, and return the failures; an interrupt keeps what was finished."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=err, transient=True, disable=not err.is_terminal)
    try:
        with bar if err.is_terminal else nullcontext():
            task = bar.add_task(title)
            return run_experiments(
                experiments,
                folder,
                quick=quick,
                jobs=jobs,
                minutes=minutes,
                progress=lambda done, total: bar.update(task, completed=done, total=total),
            )
    except KeyboardInterrupt:
        resume = "the same command resumes from there"
        err.print(f"Stopped. What was finished is kept in {shown(folder)}; {resume}.", soft_wrap=True)
        raise typer.Exit(130) from None


def _is_missing_data(experiment: Experiment) -> bool:
    """Tell whether an experiment lacks its data, and print the reason."""
    reason = experiment.missing()
    if reason:
        err.print(f"[yellow]Left out:[/yellow] {experiment.name}, {shown(reason)}", soft_wrap=True)
    return bool(reason)


def _write_pages(folder: Path) -> None:
    with progress("drawing ..."):
        judgements = write_pages(folder)
    for judgement in judgements:
        number, sentence = judgement.claim.number, shown(judgement.claim.sentence)
        out.print(f"{number:2d} [bold]{judgement.verdict}[/bold]: {sentence}", soft_wrap=True)
    out.print(f"Open [bold]{shown(folder / 'index.html')}[/bold]")


if __name__ == "__main__":
    app()
