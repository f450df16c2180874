"""The command that runs the paper's experiments."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from codiag.cli.shared import app, err, fail, mistakes_in_one_sentence, out, shown

if TYPE_CHECKING:
    from codiag.experiments.page import Chapter
    from codiag.experiments.runs import Experiment


@app.command()
def reproduce(
    name: Annotated[str, typer.Argument(help="An experiment of the paper, or all.", show_default=False)],
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer trials of smaller problems, under a minute each.")
    ] = False,
    folder: Annotated[Path, typer.Option("--out", "-o", help="Where results are kept, and gone on from.")] = Path(
        "reports"
    ),
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Processes; the numbers are the same.")] = 1,
    minutes: Annotated[
        float, typer.Option("--minutes", min=0, help="Begin no run of an experiment after this time.")
    ] = math.inf,
) -> None:
    """Run experiments of the paper, and put its numbers beside ours: CSV, figures, Markdown and one HTML page.

    What was run already is not run again.
    """
    from codiag.experiments.page import whole_markdown, whole_page
    from codiag.experiments.paper import EXPERIMENTS

    if name not in (*EXPERIMENTS, "all"):
        fail(f"name must be all, or one of {', '.join(EXPERIMENTS)}; got {name}")
    chapters, absent = [], []
    with mistakes_in_one_sentence():
        folder.mkdir(parents=True, exist_ok=True)
        for experiment in EXPERIMENTS.values() if name == "all" else [EXPERIMENTS[name]]:
            reason = experiment.missing()
            if reason:
                absent.append((experiment.title, reason))
                err.print(f"[yellow]Left out:[/yellow] {experiment.name}, {shown(reason)}", soft_wrap=True)
            else:
                chapters.append(_chapter(experiment, folder, quick, jobs, minutes))
        if not chapters:
            fail(absent[0][1])
        (folder / "index.html").write_text(whole_page(chapters, absent), encoding="utf-8")
        (folder / "REPRODUCTION.md").write_text(whole_markdown(chapters, absent, folder), encoding="utf-8")
    for chapter in chapters:
        out.print(f"[bold]{chapter.experiment.title}[/bold]")
        for finding in chapter.report.findings:
            out.print(f"  {shown(finding.claim)}\n    {shown(finding.measured)}: [bold]{finding.holds}[/bold]")
    out.print(f"Open [bold]{shown(folder / 'index.html')}[/bold]")


def _chapter(experiment: Experiment, folder: Path, quick: bool, jobs: int, minutes: float) -> Chapter:
    from codiag.experiments.page import Chapter, chapter_markdown
    from codiag.experiments.runs import as_csv, run
    from codiag.plotting import draw_report

    own = folder / experiment.name
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True) as progress:
        task = progress.add_task(experiment.name)
        records = run(
            experiment,
            own,
            quick=quick,
            jobs=jobs,
            minutes=minutes,
            progress=lambda done, total: progress.update(task, completed=done, total=total),
        )
    if not records:
        fail(f"{experiment.name} has no results yet; give it more --minutes")
    report = experiment.report(records)
    stem = own / ("quick" if quick else "full")
    figure = stem.with_suffix(".png")
    draw_report(report, figure, stem.with_suffix(".svg"))
    stem.with_suffix(".csv").write_text(as_csv(records), encoding="utf-8")
    command = f"codiag reproduce {experiment.name}{' --quick' if quick else ''}"
    chapter = Chapter(experiment, report, command, len(records), len(experiment.cells(quick)), figure)
    stem.with_suffix(".md").write_text(chapter_markdown(chapter, figure.name), encoding="utf-8")
    return chapter
