"""The command that runs the paper's experiments."""

from __future__ import annotations

import math
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from codiag.cli.commands import app
from codiag.cli.terminal import err, fail, out, progress, shown, user_errors
from codiag.cli.usage import Command

if TYPE_CHECKING:
    from codiag.experiments.runs import Experiment


class Listing(Command):
    """A command whose help names the experiments, which are imported where it is asked for."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        from codiag.experiments.paper import EXPERIMENTS

        self.epilog = f"Experiments: {', '.join(EXPERIMENTS)}."
        super().format_help(ctx, formatter)


@app.command(cls=Listing)
def reproduce(
    names: Annotated[
        list[str], typer.Argument(help="Experiments of the paper, or all.", metavar="EXPERIMENT", show_default=False)
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="Few trials of the smaller problems: minutes, and no verdicts yet.")
    ] = False,
    folder: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where records are kept, and gone on from.")
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

    What was run already, by this call or another in the same folder, is not run again; the page shows everything that
    the folder holds. Several calls may run at once.
    """
    from codiag.experiments.paper import EXPERIMENTS
    from codiag.experiments.runs import run

    unknown = [name for name in names if name not in (*EXPERIMENTS, "all")]
    if unknown:
        fail(f"name must be all, or one of {', '.join(EXPERIMENTS)}; got {unknown[0]}")
    wanted = [one for one in EXPERIMENTS.values() if "all" in names or one.name in names]
    present = [one for one in wanted if not _told_missing(one)]
    if not present:
        fail(wanted[0].missing())
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with user_errors():
        try:
            bar = Progress(*columns, console=err, transient=True, disable=not err.is_terminal)
            with bar if err.is_terminal else nullcontext():
                task = bar.add_task(" ".join(names))
                failures = run(
                    present,
                    folder,
                    quick=quick,
                    jobs=jobs,
                    minutes=minutes,
                    progress=lambda done, total: bar.update(task, completed=done, total=total),
                )
        except KeyboardInterrupt:
            again = "the same command goes on from there"
            err.print(f"Stopped. What was finished is kept in {shown(folder)}; {again}.", soft_wrap=True)
            raise typer.Exit(130) from None
        if pages:
            _write_pages(folder)
    for failure in failures:
        err.print(f"[red]Failed:[/red] {shown(failure)}", soft_wrap=True)
    if failures:
        raise typer.Exit(1)


def _told_missing(experiment: Experiment) -> bool:
    reason = experiment.missing()
    if reason:
        err.print(f"[yellow]Left out:[/yellow] {experiment.name}, {shown(reason)}", soft_wrap=True)
    return bool(reason)


def _write_pages(folder: Path) -> None:
    from codiag.experiments.pages import write_pages

    with progress("drawing ..."):
        judgements = write_pages(folder)
    for judgement in judgements:
        number, sentence = judgement.claim.number, shown(judgement.claim.sentence)
        out.print(f"{number:2d} [bold]{judgement.verdict}[/bold]: {sentence}", soft_wrap=True)
    out.print(f"Open [bold]{shown(folder / 'index.html')}[/bold]")
