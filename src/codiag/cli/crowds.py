"""Commands for votes: `label`, for a crowd of workers, and `judge`, for a jury."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.table import Table

from codiag.cli.commands import (
    Command,
    Force,
    Json,
    Printing,
    Quiet,
    Report,
    Seed,
    argument,
    as_command,
    option,
    table_of,
    working,
)
from codiag.cli.files import PAGES, PICTURES, TABLES, Outputs
from codiag.cli.results import rows_of_columns
from codiag.cli.terminal import fail, shown

if TYPE_CHECKING:
    from codiag.models.crowd import DawidSkene, Preferences

SHOWN, FEW = 15, 5
"""Workers that fit on a screen, and labels that fit into a sentence."""
Votes = Annotated[
    Path,
    argument(
        "VOTES",
        "A .csv, .tsv (also .gz), .jsonl, .parquet or .xlsx file with task, worker and label; - for the standard "
        "input.",
    ),
]
Labels = Annotated[
    Path | None, option("--out", "-o", words="Where to save labels and probabilities, .csv or .tsv; or -.")
]
Workers = Annotated[Path | None, option("--workers", words="Where to save workers and their accuracy, .csv or .tsv.")]
Gold = Annotated[
    Path | None,
    option(
        "--gold",
        metavar="TABLE",
        words="A table like VOTES with task and label: known classes, which these tasks keep.",
    ),
]
TaskColumn = Annotated[
    str | None, option("--task", metavar="COLUMN", words="Column of the tasks; or several, as in a,b.")
]
WorkerColumn = Annotated[str | None, option("--worker", metavar="COLUMN", words="Column of the workers.")]
LabelColumn = Annotated[str | None, option("--label", metavar="COLUMN", words="Column of the labels.")]
Wide = Annotated[bool, typer.Option("--wide", help="The table has a row for each task and a column for each worker.")]
OneCoin = Annotated[bool, typer.Option("--one-coin", help="Give each worker one accuracy for all classes.")]
MaxIter = Annotated[int, typer.Option("--max-iter", min=0, help="Most steps of expectation maximization.")]
Doubtful = Annotated[int, typer.Option("--doubtful", min=0, help="Tasks to show whose labels are least certain.")]


@dataclass(frozen=True)
class Files:
    """The files that a command reads and writes."""

    path: Path
    gold: Path | None
    labels: Path | None
    workers: Path | None
    figure: Path | None
    report: Path | None

    @property
    def outputs(self) -> Outputs:
        """The files to write, by their options."""
        tables = {"--out": (self.labels, TABLES), "--workers": (self.workers, TABLES)}
        return tables | {"--figure": (self.figure, PICTURES), "--report": (self.report, PAGES)}

    @property
    def sources(self) -> list[Path]:
        """The files to read."""
        return [self.path] if self.gold is None else [self.path, self.gold]

    def known(self, votes: Mapping[str, np.ndarray], columns: Mapping[str, str | None]) -> Any:
        """Return the tasks and labels in the table of known classes; None if there is none."""
        from codiag._text import as_file
        from codiag.models.crowd import read_gold

        if self.gold is None:
            return None
        return read_gold(as_file("--gold", self.gold), votes, task=columns["task"], label=columns["label"])


@as_command
def label(
    path: Votes,
    result: Labels = None,
    workers: Workers = None,
    gold: Gold = None,
    figure: Annotated[
        Path | None, option("--figure", words="Where to draw confusion matrices, rows by true class.")
    ] = None,
    task: TaskColumn = None,
    worker: WorkerColumn = None,
    label: LabelColumn = None,
    wide: Wide = False,
    skip_missing: Annotated[
        bool, typer.Option("--skip-missing", help="Leave out votes without task, worker or label.")
    ] = False,
    init: Annotated[str, typer.Option("--init", help="Start: moments, or majority.")] = "moments",
    one_coin: OneCoin = False,
    max_iter: MaxIter = 100,
    smoothing: Annotated[
        float | None,
        option(
            "--smoothing",
            min=0,
            words="Votes added to every cell of a confusion matrix; by default, the prior of workers is estimated.",
        ),
    ] = None,
    n_doubtful: Doubtful = 5,
    sort: Annotated[
        str, typer.Option("--sort", help="Order of workers: votes (most first) or accuracy (worst first).")
    ] = "votes",
    report: Report = None,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Find the labels of tasks from votes that disagree. The accuracy of the workers is printed."""
    from codiag.models.crowd import DawidSkene, votes_in, worker_columns
    from codiag.plotting import confusions
    from codiag.reports import crowd_report, families_in_words

    if sort not in ("votes", "accuracy"):
        fail(f"--sort must be votes or accuracy; got {sort}")
    files = Files(path, gold, result, workers, figure, report)
    printing = Printing(quiet, as_json)
    with working("labeling ...", files.outputs, files.sources, force=force, printing=printing) as command:
        columns = {"task": task, "worker": worker, "label": label}
        table, omission = votes_in(command.source(path), columns, wide=wide, skip_missing=skip_missing)
        command.note(omission)
        known = files.known(table, columns)
        smoothed = "estimated" if smoothing is None else smoothing
        model = DawidSkene(init=init, one_coin=one_coin, max_iter=max_iter, smoothing=smoothed, random_state=seed)
        model.fit(table, gold=known)
        _save(command, model, worker_columns(model))
        command.report(lambda page: crowd_report(model, page, sort=sort, title=command.title(path)))
    shares = ", ".join(f"{name} {share:.3f}" for name, share in zip(model.classes_, model.priors_, strict=True))
    summary = f"{table['label'].size} votes on {model.tasks_.size} tasks; shares of the classes: {shown(shares)}"
    summary += "".join(f"\n{shown(line)} Their votes share a weight." for line in families_in_words(model))
    doubts = _doubt_tables(model, n_doubtful, "tasks most in doubt")
    command.show(_worker_table(model, command.title(path), sort), *doubts, summary)
    command.answer(lambda: _crowd_result(model, worker_columns(model), sort))
    command.draw("--figure", lambda path: confusions(model, sort=sort).savefig(path))


@as_command
def judge(
    path: Votes,
    result: Labels = None,
    workers: Workers = None,
    gold: Gold = None,
    figure: Annotated[Path | None, option("--figure", words="Where to draw which judges think alike.")] = None,
    task: TaskColumn = None,
    worker: WorkerColumn = None,
    label: LabelColumn = None,
    wide: Wide = False,
    pairs: Annotated[
        bool,
        typer.Option(
            "--pairs",
            help="Rows are choices between two answers: task, judge, first, second, and choice: first, second or tie.",
        ),
    ] = False,
    least_share: Annotated[
        float,
        typer.Option("--least-share", min=0, help="Set votes aside whose label has a smaller share of all votes."),
    ] = 0.001,
    one_coin: OneCoin = False,
    max_iter: MaxIter = 100,
    n_doubtful: Doubtful = 5,
    report: Report = None,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Find out which judges of a jury to trust. Who thinks alike, and which items need a person, is printed."""
    from codiag.models.crowd import DawidSkene
    from codiag.plotting import dependence
    from codiag.reports import judge_table, jury_report

    if pairs and wide:
        fail("--pairs and --wide exclude each other: a row has one choice between two answers, or a vote of each judge")
    files = Files(path, gold, result, workers, figure, report)
    printing = Printing(quiet, as_json)
    with working("judging ...", files.outputs, files.sources, force=force, printing=printing) as command:
        columns = {"task": task, "worker": worker, "label": label}
        votes, preferences = _jury_votes(command, path, columns, pairs=pairs, wide=wide or None)
        known = files.known(votes, columns)
        votes = _without_invalid(command, votes, known, least_share)
        model = DawidSkene(one_coin=one_coin, max_iter=max_iter, random_state=seed).fit(votes, gold=known)
        judges = judge_table(model, preferences)
        _save(command, model, judges)
        title = command.title(path)
        about_page = {"votes": votes, "gold": known, "preferences": preferences, "title": title}
        command.report(lambda page: jury_report(model, page, **about_page))
    command.show(*_verdict(model, judges, title), *_doubt_tables(model, n_doubtful, "Items to give to a person"))
    command.answer(lambda: _crowd_result(model, judges, "accuracy"))
    command.draw("--figure", lambda path: dependence(model).savefig(path))


def _jury_votes(
    command: Command, path: Path, columns: Mapping[str, str | None], *, pairs: bool, wide: bool | None
) -> tuple[Mapping[str, np.ndarray], Preferences | None]:
    """Return votes, and the preferences that they are from if rows are choices between two answers."""
    from codiag.models.crowd import pairs_in, preference_votes, votes_in

    source = command.source(path)
    if not pairs:
        votes, omission = votes_in(source, columns, wide=wide, skip_missing=True)
        command.note(omission)
        repeated = votes["label"].size / len({*zip(votes["task"].tolist(), votes["worker"].tolist(), strict=True)})
        if repeated >= 2:
            command.note(
                f"judges have {repeated:.1f} votes on an item on average; if several columns name an item, list them: "
                "--task a,b"
            )
        return votes, None
    table, omission = pairs_in(source, columns)
    command.note(omission)
    preferences = preference_votes(table)
    command.note(_about_invalid(preferences.invalid, table["choice"].size, "they are not first, second or tie"))
    return preferences.votes, preferences


def _without_invalid(
    command: Command, votes: Mapping[str, np.ndarray], known: Any, least_share: float
) -> Mapping[str, np.ndarray]:
    from codiag.models.crowd import valid_votes

    valid, invalid = valid_votes(votes, least_share=least_share, keep=() if known is None else known[1])
    reason = f"each is less than {least_share:g} of all; --least-share 0 makes them classes"
    command.note(_about_invalid(invalid, votes["label"].size, reason))
    return valid


def _about_invalid(invalid: Mapping[Any, int], n_votes: int, reason: str) -> str:
    """Return a sentence about votes that were set aside; empty if there are none."""
    if not invalid:
        return ""
    labels = ", ".join(f"{str(name)[:40]!r} ({count})" for name, count in list(invalid.items())[:FEW])
    more = f" and {len(invalid) - FEW} more" if len(invalid) > FEW else ""
    return f"{sum(invalid.values())} of {n_votes} votes are invalid and set aside: {labels}{more}; {reason}"


def _save(command: Command, model: DawidSkene, workers: Mapping[str, np.ndarray]) -> None:
    from codiag.io import write_table
    from codiag.models.crowd import column_names, user_columns

    command.save("--out", lambda path: write_table(path, model.label_table()))
    command.save("--workers", lambda path: write_table(path, user_columns(workers, column_names(model))))


def _crowd_result(model: DawidSkene, workers: Mapping[str, np.ndarray], sort: str) -> dict[str, Any]:
    """Return labels, workers and families for JSON; confusion matrices have rows by true class."""
    from codiag.models.crowd import label_columns
    from codiag.plotting import sorted_workers

    tasks = label_columns(model)
    shown_columns = {name: column for name, column in workers.items() if not name.startswith("p(")}
    rows = rows_of_columns(shown_columns | {"confusion": list(model.confusion_matrices_)})
    return {
        "n_votes": int(np.sum(workers["votes"])),
        "classes": [
            {"label": name, "share": share}
            for name, share in zip(model.classes_.tolist(), np.asarray(model.priors_).tolist(), strict=True)
        ],
        "tasks": [
            {"task": task, "label": label, "probability": probability, "probabilities": every}
            for task, label, probability, every in zip(
                *(tasks[name] for name in ("task", "label", "probability")), np.asarray(model.probas_), strict=True
            )
        ],
        "workers": [rows[place] for place in sorted_workers(workers, sort).tolist()],
        "families": [list(names) for names in model.families_],
        "effective_votes": model.effective_votes_,
        "effective_votes_interval": model.effective_votes_interval_,
    }


def _worker_table(model: DawidSkene, name: str, sort: str) -> Table:
    from codiag.models.crowd import column_names, worker_columns
    from codiag.plotting import sorted_workers

    columns = worker_columns(model)
    texts = {
        column_names(model)[1]: _cells(columns["worker"], shown),
        "votes": _cells(columns["votes"], str),
        "right": _cells(columns["accuracy"], "{:.3f}".format),
        "+-": _cells(columns["standard_error"], "{:.3f}".format),
        **_intervals(columns),
    }
    return _listed(f"{name}: {model.workers_.size} workers", texts, sorted_workers(columns, sort))


def _verdict(model: DawidSkene, judges: Mapping[str, np.ndarray], name: str) -> list[Table | str]:
    """Return who can be trusted, who thinks alike, and how many independent judges there are."""
    from codiag.reports import families_in_words, worth_of

    texts = {
        "judge": _cells(judges["worker"], shown),
        "votes": _cells(judges["votes"], str),
        "right": _cells(judges["accuracy"], "{:.3f}".format),
        **_intervals(judges),
        "weight": _cells(judges["weight"], "{:.2f}".format),
        "family": _cells(judges["family"], lambda family: str(family) if family else "alone"),
    }
    if "position_bias" in judges:
        biases = zip(judges["position_bias"], judges["bias_standard_error"], strict=True)
        texts["first side"] = ["" if np.isnan(bias) else f"{bias:+.3f} +- {error:.3f}" for bias, error in biases]
    order = np.argsort(-judges["accuracy"], kind="stable")
    heading = f"{name}: {model.workers_.size} judges, {model.tasks_.size} items. Who can be trusted"
    table = _listed(heading, texts, order)
    lines = families_in_words(model) or ["No two judges think alike."]
    alike = "\n".join(["Who thinks alike", *(f"  {shown(line)}" for line in lines)])
    return [table, alike, f"How many judges it takes\n  [bold]{shown(worth_of(model))}[/bold]"]


def _cells(column: np.ndarray, written: Callable[[Any], str]) -> list[str]:
    return [written(cell) for cell in column.tolist()]


def _intervals(columns: Mapping[str, np.ndarray]) -> dict[str, list[str]]:
    """Return the column of intervals, by a heading with their level."""
    from codiag.models.crowd import HIGH, LEVEL, LOW

    ends = zip(columns[LOW], columns[HIGH], strict=True)
    return {f"{round(100 * LEVEL)} % interval": [f"{low:.3f} to {high:.3f}" for low, high in ends]}


def _listed(heading: str, texts: Mapping[str, Sequence[str]], order: np.ndarray) -> Table:
    """Return a table of workers, in this order, with as many as fit on a screen."""
    first, *numbers = texts
    table = table_of(heading, [shown(first)], numbers)
    for place in order[:SHOWN].tolist():
        table.add_row(*(column[place] for column in texts.values()))
    if order.size > SHOWN:
        table.add_row(f"... {order.size - SHOWN} more", *("" for _ in numbers))
    return table


def _doubt_tables(model: DawidSkene, n_doubtful: int, title: str) -> list[Table]:
    """Return a table of the tasks whose labels are least certain; none if it is to have no rows."""
    from codiag.models.crowd import column_names, doubt_columns, user_columns

    if not n_doubtful:
        return []
    columns = user_columns(doubt_columns(model, min(n_doubtful, model.tasks_.size)), column_names(model))
    first, *others = columns
    table = table_of(title, [shown(first)], [shown(name) for name in others])
    for row in zip(*(column.tolist() for column in columns.values()), strict=True):
        table.add_row(*(f"{cell:.3f}" if isinstance(cell, float) else shown(cell) for cell in row))
    return [table]
