"""Commands for votes: ``label``, for a crowd of workers, and ``judge``, for a jury."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from codiag.cli.commands import Figure, Report, Run, command, option, shown, table_of, write_table
from codiag.cli.tables import Tables, column

VotesFile = Annotated[str, typer.Argument(metavar="VOTES", help="A table with a row for each vote.")]
Workers = Annotated[str | None, option("--workers", "Where to save the accuracy of workers, .csv or .tsv.")]
OneCoin = Annotated[bool, typer.Option("--one-coin", help="Give each worker one accuracy for all classes.")]


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are votes, and which of them are valid."""

    task: Annotated[str, typer.Option("--task", help="Column of the tasks.")] = "task"
    worker: Annotated[str, typer.Option("--worker", help="Column of the workers.")] = "worker"
    label: Annotated[str, typer.Option("--label", help="Column of the labels.")] = "label"
    wide: Annotated[bool, typer.Option("--wide", help="Rows are tasks, and columns but --task are workers.")] = False
    known_classes: Annotated[str | None, option("--gold", "A table of known classes.", "TABLE")] = None
    least_share: Annotated[float, typer.Option("--least-share", help="Set aside labels with fewer votes.")] = 0.001

    def read(self, path: str, tables: Tables, run: Run) -> Any:
        """Return votes as a data frame with the columns task, worker and label, without those that lack one."""
        frame, names = tables.read(path, wide=self.wide), {"--task": self.task}
        if not self.wide:
            names |= {"--worker": self.worker, "--label": self.label}
        for option_name, name in names.items():
            if name not in frame.columns:
                raise ValueError(
                    f"{option_name} must name a column of {Path(path).name}, one of {', '.join(frame.columns)[:200]}; "
                    f"got {name}. A table with a column for each worker takes --wide, and choices between two answers "
                    "codiag judge --pairs"
                )
        if self.wide:
            votes = frame.melt(self.task, var_name="worker", value_name="label")
        else:
            votes = frame[[self.task, self.worker, self.label]]
        complete = votes.set_axis(["task", "worker", "label"], axis=1).dropna()
        if len(complete) < len(votes):
            run.note(f"{len(votes) - len(complete)} of {len(votes)} cells hold no vote, and are set aside")
        return complete

    def known(self, votes: Any, tables: Tables) -> dict[Any, Any] | None:
        """Return known classes by task, named as in the votes; names are compared as text."""
        if self.known_classes is None:
            return None
        frame, path = tables.read(self.known_classes), Path(self.known_classes)
        pairs = zip(column(frame, path, "--task", self.task), column(frame, path, "--label", self.label), strict=True)
        tasks, labels = ({str(name): name for name in set(votes[own])} for own in ("task", "label"))
        return {tasks.get(str(task), task): labels.get(str(label), label) for task, label in pairs if label == label}

    def valid(self, votes: Any, tables: Tables, run: Run) -> tuple[Any, dict[Any, Any] | None]:
        """Return votes without those whose labels hardly occur, and the known classes by task."""
        from codiag.io import set_aside_invalid

        known = self.known(votes, tables)
        valid, invalid = set_aside_invalid(
            votes, least_share=self.least_share, always_valid=list((known or {}).values())
        )
        reason = f"each label has less than {self.least_share:g} of all votes; --least-share 0 keeps them"
        run.note(_about_invalid(invalid, reason))
        return valid, known


def _about_invalid(invalid: Mapping[Any, int], reason: str) -> str:
    """Return a sentence about votes that were set aside; empty if there are none."""
    labels = ", ".join(f"{str(name)[:40]!r} ({count})" for name, count in list(invalid.items())[:5])
    return f"{sum(invalid.values())} votes are invalid and set aside: {labels}, ...; {reason}" if invalid else ""


@command
def label(
    path: VotesFile,
    columns: Columns,
    tables: Tables,
    run: Run,
    workers: Workers = None,
    figure: Figure = None,
    one_coin: OneCoin = False,
) -> None:
    """Find the labels of tasks from votes that disagree. The accuracy of the workers is printed."""
    from codiag import plotting
    from codiag.models import DawidSkene

    run.check_outputs([path, columns.known_classes], workers=workers, figure=figure)
    votes, known = columns.valid(columns.read(path, tables, run), tables, run)
    model = DawidSkene(one_coin=one_coin, random_state=run.seed).fit(votes, known)
    _show_and_save(model, path, run, workers)
    run.save(figure, lambda file: plotting.confusions(model).savefig(file))


@command
def judge(
    path: VotesFile,
    columns: Columns,
    tables: Tables,
    run: Run,
    workers: Workers = None,
    figure: Figure = None,
    report: Report = None,
    pairs: Annotated[
        bool, typer.Option("--pairs", help="Rows are choices between two; recognized by columns.")
    ] = False,
    ordered: Annotated[bool, typer.Option("--ordered", help="Labels are grades, in sorted order.")] = False,
    one_coin: OneCoin = False,
) -> None:
    """Find out which judges of a jury to trust. Who errs together, and which items need a person, is printed."""
    from codiag import plotting, reports
    from codiag.io import preference_votes
    from codiag.models import Jury
    from codiag.models.jury import are_preferences

    run.check_outputs([path, columns.known_classes], workers=workers, figure=figure, report=report)
    preferences = None
    if pairs or (not columns.wide and are_preferences(tables.read(path).columns)):
        preferences = preference_votes(tables.read(path))
        run.note("" if pairs else "rows are choices between two answers, by their columns; --pairs says so")
        run.note(_about_invalid(preferences.invalid, "they are none of the two sides, nor a tie"))
    votes = columns.read(path, tables, run) if preferences is None else preferences.votes
    votes, known = columns.valid(votes, tables, run)
    model = Jury(ordered=ordered, one_coin=one_coin, random_state=run.seed).fit(votes, known)
    _show_and_save(model, path, run, workers)
    copies = [f"{one} and {other} have the same votes on all items." for one, other in model.copies_]
    if preferences is not None:
        ranks = {name: values.tolist() for name, values in preferences.ranking.items()}
        run.show(table_of("ranking (Bradley-Terry), with 95 % intervals", ranks))
    run.show(*map(shown, [*reports.clusters_in_words(model), *copies, reports.effective_annotators(model)]))
    run.save(figure, lambda file: plotting.dependence(model).savefig(file))
    run.save(report, lambda file: reports.jury_report(model, file, preferences=preferences, title=Path(path).name))


def _show_and_save(model: Any, path: str, run: Run, workers: str | None) -> None:
    """Print the workers, the least accurate first, and the tasks whose labels are least certain; save all of them."""
    from codiag.models.crowd import label_columns, least_confident_columns, worker_columns

    columns = worker_columns(model)
    order = columns["accuracy"].argsort(kind="stable")
    summary = {name: own[order].tolist() for name, own in columns.items() if not name.startswith(("p(", "accuracy_"))}
    uncertain = least_confident_columns(model, min(5, len(model.tasks_)))
    shares = ", ".join(f"{name} {share:.3f}" for name, share in zip(model.classes_, model.priors_, strict=True))
    run.show(
        table_of(f"{Path(path).name}: {len(model.workers_)} workers, {len(model.tasks_)} tasks", summary, most=15),
        table_of("least certain", {name: own.tolist() for name, own in uncertain.items()}),
        f"shares of the classes: {shown(shares)}",
    )
    run.save(run.out, lambda file: write_table(file, label_columns(model)))
    run.save(workers, lambda file: write_table(file, columns))
