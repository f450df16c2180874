"""The report of labels from a crowd."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from codiag.models.crowd import (
    HIGH,
    LEVEL,
    LOW,
    class_names,
    column_names,
    doubt_columns,
    label_columns,
    user_columns,
    worker_columns,
)
from codiag.plotting import MUTED, OURS, log_axis, name_axes, sorted_workers
from codiag.reports._alike import families_in_words
from codiag.reports._html import folded, note, panels, report, sentences, separate_panels, shaded, side_by_side, table

if TYPE_CHECKING:
    from codiag.models.crowd import DawidSkene

DOUBTFUL = 0.8
"""Probability of a label below which its task counts as doubtful."""
CERTAIN = 0.999
"""Probability of a label from which its task is not listed."""
MOST_TASKS, MOST_WORKERS, MOST_MATRICES, MOST_NAMES = 20, 30, 8, 10
"""Largest numbers of tasks, workers and confusion matrices in a list of the report, and of names in a sentence."""
INTERVAL = f"{round(100 * LEVEL)} % interval"
MOST_CLASSES = 12
"""Largest number of classes for which confusion matrices are shown."""


def crowd_report(
    model: DawidSkene, path: str | Path | None = None, *, sort: str = "votes", title: str = "Labels from a crowd"
) -> str:
    """Return a page about labels from a crowd: the least certain tasks, the workers, and their confusion matrices.

    Parameters
    ----------
    model : DawidSkene
        Fitted to votes.
    path : str or Path, optional
        A file to write the page to, such as ``"report.html"``; one that exists is replaced.
    sort : {"votes", "accuracy"}
        The order of workers: those with most votes first, or the least accurate first.
    title : str
        Title of the page, such as the name of a file.

    Returns
    -------
    str
        HTML with embedded figures, without scripts and without links to other files.

    See Also
    --------
    codiag.models.DawidSkene : The model of the report.
    codiag.plotting.confusions : The figure alone.

    Examples
    --------
    >>> from codiag.models import DawidSkene
    >>> from codiag.reports import crowd_report
    >>> from codiag.synthetic import crowd_votes, worker_confusions
    >>> votes = crowd_votes(200, worker_confusions(9, 2, seed=0), seed=1).votes
    >>> page = crowd_report(DawidSkene(random_state=0).fit(votes))
    >>> page.startswith("<!doctype html>"), "Tasks most in doubt" in page
    (True, True)
    """
    tasks, workers = label_columns(model), worker_columns(model)
    sorted_workers(workers, sort)  # refuses any other order before the work
    n_doubtful = int(np.sum(tasks["probability"] < DOUBTFUL))
    n_tasks, n_workers = len(tasks["task"]), len(workers["worker"])
    facts = {"tasks": f"{n_tasks:,}", "workers": f"{n_workers:,}", "votes": f"{int(np.sum(workers['votes'])):,}"}
    facts |= {"classes": str(len(model.classes_)), "tasks in doubt": f"{n_doubtful:,}"}
    sections = {
        "Classes": _classes(model, tasks),
        "Tasks most in doubt": doubtful_tasks(model, "Tasks most in doubt"),
        "Workers": _workers(model, workers, sort),
        "Confusions": _confusions(model, workers, sort),
        "What to try": sentences(_advice(model, tasks, workers), "Nothing to note: the labels can be used."),
    }
    lead = "The most probable label of every task and the accuracy of the workers, estimated from their votes."
    return report(title, lead, facts, sections, path)


def _classes(model: DawidSkene, tasks: dict[str, np.ndarray]) -> str:
    names = class_names(model.classes_)
    labels = np.asarray(tasks["label"])
    counts = [int(np.sum(labels == name)) for name in model.classes_]
    rows = [(name, f"{share:.3f}", count) for name, share, count in zip(names, model.priors_, counts, strict=True)]
    return table("Classes", ["class", "share", "tasks with this label"], rows, words=["class"])


def doubtful_tasks(model: DawidSkene, title: str, task: str = "task") -> str:
    """Return a table of the tasks with the least probable labels, and the second most probable label of each.

    Tasks are called as in the user's table, and `task` if they are called task there.
    """
    columns = doubt_columns(model, min(MOST_TASKS, len(model.tasks_)))
    listed = columns["probability"] < CERTAIN
    if not np.any(listed):
        return sentences([f"None: every label has a probability of {CERTAIN} or more."])
    names = dict(zip(model.classes_.tolist(), class_names(model.classes_), strict=True))
    shown = {
        key: [
            names[cell] if key.endswith("label") else f"{cell:.3f}" if key.endswith("probability") else cell
            for cell in column[listed].tolist()
        ]
        for key, column in columns.items()
    }
    called, *others = column_names(model)
    named = user_columns(shown, [task if called == "task" else called, *others])
    words = [name for name, key in zip(named, shown, strict=True) if key in ("task", "label", "next label")]
    return table(title, list(named), list(zip(*named.values(), strict=True)), words=words)


def _workers(model: DawidSkene, workers: dict[str, np.ndarray], sort: str) -> str:
    busiest, worst = sorted_workers(workers, "votes"), sorted_workers(workers, "accuracy")
    name = column_names(model)[1]
    if busiest.size <= MOST_WORKERS:
        return _worker_panels(model, workers) + _worker_rows(workers, sorted_workers(workers, sort), name)
    parts = [
        (f"The {MOST_WORKERS} workers with most votes", _worker_rows(workers, busiest[:MOST_WORKERS], name)),
        (f"The {MOST_WORKERS} least accurate workers", _worker_rows(workers, worst[:MOST_WORKERS], name)),
    ]
    (title, first), (other_title, second) = parts[::-1] if sort == "accuracy" else parts
    return _worker_panels(model, workers) + note(title) + first + folded(other_title, second)


def _worker_rows(workers: dict[str, np.ndarray], order: np.ndarray, name: str) -> str:
    columns = (workers[key][order] for key in ("worker", "votes", "accuracy", "standard_error", LOW, HIGH))
    rows = [
        (worker, n_votes, f"{accuracy:.3f}", f"{error:.3f}", f"{low:.3f} to {high:.3f}")
        for worker, n_votes, accuracy, error, low, high in zip(*columns, strict=True)
    ]
    headings = [name, "votes", "right", "standard error", INTERVAL]
    return table("Workers", headings, rows, words=[name])


def _worker_panels(model: DawidSkene, workers: dict[str, np.ndarray]) -> str:
    """Return figures: accuracy with intervals against the number of votes, and the probabilities of the labels."""
    votes, accuracy = workers["votes"], workers["accuracy"]
    with separate_panels(2) as grid:
        crowd, labels = grid[0]
        bars = np.maximum(np.stack([accuracy - workers[LOW], workers[HIGH] - accuracy]), 0)
        crowd.errorbar(votes, accuracy, yerr=bars, fmt="o", color=OURS, ecolor=MUTED, ms=3, elinewidth=0.8)
        crowd.axhline(1 / len(model.classes_), color=MUTED, linestyle="--", linewidth=1)
        if votes.max() > 20 * max(votes.min(), 1):
            log_axis(crowd.xaxis, np.maximum(votes, 1).tolist())
        crowd.set_ylim(0, 1.02)
        name_axes(crowd, "votes given", "share of right votes")
        labels.hist(label_columns(model)["probability"], bins=np.linspace(0, 1, 21), color=OURS, alpha=0.85)
        labels.set_xlim(0, 1)
        name_axes(labels, "probability of the label", "tasks")
        descriptions = ["Share of right votes against the number of votes, for every worker, with intervals"]
        descriptions.append("Number of tasks against the probability of their labels")
        caption = f"Every worker with a {INTERVAL} (dashed: guessing), and the probabilities of the labels."
        return panels(grid, descriptions, caption)


def _confusions(model: DawidSkene, workers: dict[str, np.ndarray], sort: str) -> str:
    """Return confusion matrices: of all workers, or of those with most votes and of the least accurate."""
    names = class_names(model.classes_)
    if len(names) > MOST_CLASSES:
        return sentences([f"Confusion matrices of {len(names)} classes are too large to be shown; see confusion_."])
    cells = np.array([[workers[f"p({given}|{true})"] for given in names] for true in names])

    def drawn(order: np.ndarray) -> str:
        titles = [f"{workers['worker'][worker]}: {workers['accuracy'][worker]:.2f} right" for worker in order]
        return side_by_side(
            shaded(title, names, names, cells[:, :, worker]) for title, worker in zip(titles, order, strict=True)
        )

    reading = note("Rows are true classes, columns the labels given: every row has sum one.")
    if len(workers["worker"]) <= 2 * MOST_MATRICES:
        return reading + drawn(sorted_workers(workers, sort))
    parts = [
        note(f"The {MOST_MATRICES} workers with most votes") + drawn(sorted_workers(workers, "votes")[:MOST_MATRICES]),
        note(f"The {MOST_MATRICES} least accurate workers")
        + drawn(sorted_workers(workers, "accuracy")[:MOST_MATRICES]),
    ]
    return reading + "".join(parts[::-1] if sort == "accuracy" else parts)


def _advice(model: DawidSkene, tasks: dict[str, np.ndarray], workers: dict[str, np.ndarray]) -> list[str]:
    advice, doubtful = [], int(np.sum(tasks["probability"] < DOUBTFUL))
    if doubtful:
        advice.append(
            f"{doubtful:,} of {len(tasks['task']):,} labels have a probability below {DOUBTFUL}: further votes are "
            "most useful on these tasks, which are listed first under tasks most in doubt."
        )
    advice += guessing_workers(workers, 1 / len(model.classes_))
    advice += [f"{line} Their votes share a weight." for line in families_in_words(model, MOST_NAMES)[:MOST_NAMES]]
    if model.diagnostics_.reason:
        advice.append(f"The estimate started from the majority vote, not from moments: {model.diagnostics_.reason}.")
    return advice + unfinished(model)


def guessing_workers(workers: dict[str, np.ndarray], chance: float) -> list[str]:
    """Return sentences about workers who are wrong more often than by guessing, or may be."""
    advice = []
    worse = np.flatnonzero(workers[HIGH] < chance)
    if worse.size:
        advice.append(f"Wrong more often than by guessing: {listed(workers, worse)}. Did they mistake the labels?")
    guessing = np.flatnonzero((workers[LOW] <= chance) & (workers[HIGH] >= chance))
    if guessing.size:
        advice.append(f"Possibly no better than guessing: {listed(workers, guessing)}. More votes would decide.")
    return advice


def unfinished(model: DawidSkene) -> list[str]:
    """Return a sentence if expectation maximization did not converge."""
    if model.diagnostics_.converged is not False:
        return []
    return [f"Expectation maximization did not converge in {len(model.loss_history_)} steps: allow more."]


def listed(workers: dict[str, np.ndarray], indices: np.ndarray) -> str:
    """Return the names of workers, those with most votes first."""
    order = indices[np.argsort(-workers["votes"][indices], kind="stable")]
    more = f" and {order.size - MOST_NAMES} more" if order.size > MOST_NAMES else ""
    return ", ".join(str(name) for name in workers["worker"][order[:MOST_NAMES]]) + more
