"""The page about a jury, and sentences about correlated judges, which the command line prints, too."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from codiag.models.crowd import HIGH, LOW
from codiag.plotting import MUTED, OURS, dependence, dependence_height, name_axes, shown
from codiag.reports._page import Panels, Table, panels, separate_panels, write_page

if TYPE_CHECKING:
    from codiag.models.jury import Jury, Preferences

UNCERTAIN = 0.8
"""Probability of a label below which its item counts as doubtful."""
MOST_ITEMS, MOST_DRAWN, MOST_NAMES = 20, 40, 6
"""Largest numbers of items that are listed, of judges in a figure, and of names in a sentence."""


def jury_report(
    model: Jury, path: str | Path | None = None, *, preferences: Preferences | None = None, title: str = "A jury"
) -> str:
    """Return a page about a jury: accuracies, correlated judges, effective number of annotators, uncertain items.

    Parameters
    ----------
    model : Jury
        Fitted to the votes of judges.
    path : str or Path, optional
        A file to write the page to, such as ``"report.html"``; one that exists is replaced.
    preferences : Preferences, optional
        The result of `codiag.io.preference_votes`, if the votes are from there: the page then has position biases.
    title : str
        Title of the page, such as the name of a file.

    Returns
    -------
    str
        HTML with embedded figures, without scripts and without links to other files.

    See Also
    --------
    codiag.models.Jury : The model of the page.
    codiag.plotting.dependence : The figure of correlated judges, alone.

    Examples
    --------
    >>> from codiag.models import Jury
    >>> from codiag.reports import jury_report
    >>> from codiag.synthetic import crowd_votes, worker_confusions
    >>> votes = crowd_votes(200, worker_confusions(9, 2, rng=0), rng=1).votes
    >>> page = jury_report(Jury(random_state=0).fit(votes))
    >>> page.startswith("<!doctype html>"), "Accuracy of the judges" in page
    (True, True)
    """
    if not hasattr(model, "n_effective_annotators_"):
        raise TypeError(f"model must be a fitted Jury; got {type(model).__name__}")
    table, names = model.worker_table(), ("worker", "votes", "accuracy", LOW, HIGH, "cluster", "weight")
    judges = {name: np.asarray(table[name]) for name in names}
    certainty = np.asarray(model.label_table()["probability"])
    facts = {
        "judges": f"{judges['worker'].size:,}",
        "items": f"{certainty.size:,}",
        "votes": f"{int(np.sum(judges['votes'])):,}",
        "independent votes an item": f"{model.n_effective_annotators_:.1f}",
        "uncertain labels": f"{int(np.sum(certainty < UNCERTAIN)):,}",
    }
    return write_page(
        "jury.html",
        path,
        title=title,
        facts=facts,
        model=model,
        classes=in_words(np.asarray(model.classes_).tolist(), MOST_DRAWN),
        effective=effective_annotators(model),
        clusters=clusters_in_words(model),
        copies=[f"{one} and {other}" for one, other in model.copies_],
        judges=_judge_table(judges, preferences),
        pairs=preferences is not None,
        ranking=None if preferences is None else _ranking_table(preferences.ranking),
        accuracies=_accuracy_panel(judges, 1 / len(model.classes_)),
        dependence=_dependence_panel(model),
        certainty=certainty,
        limit=UNCERTAIN,
        certainties=_certainty_panel(certainty),
        chance=_no_better_than_chance(judges, 1 / len(model.classes_)),
        items=_uncertain_items(model),
    )


def effective_annotators(model: Jury) -> str:
    """Return a sentence with the effective number of annotators."""
    low, high = np.asarray(model.effective_annotators_interval_).tolist()
    n_votes = float(np.sum(np.asarray(model.worker_table()["votes"]))) / len(model.tasks_)
    return (
        f"The {n_votes:.1f} votes that an item has on average hold the information of "
        f"{model.n_effective_annotators_:.1f} independent ones "
        f"({low:.1f} to {high:.1f})."
    )


def clusters_in_words(model: Jury, most: int | None = None) -> list[str]:
    """Return a sentence for each cluster: the names of `most` members, by default of all, and how alike they are."""
    workers, matrix, lines = np.asarray(model.workers_).tolist(), np.asarray(model.dependence_, dtype=float), []
    for number, names in enumerate(model.clusters_, 1):
        rows = [workers.index(name) for name in np.asarray(names).tolist()]
        pairs = matrix[np.ix_(rows, rows)][np.triu_indices(len(rows), 1)]
        known = pairs[~np.isnan(pairs)]
        extent = f"; their errors have a correlation of {np.mean(known):.2f}" if known.size else ""
        lines.append(f"Cluster {number}: {in_words([workers[row] for row in rows], most or len(rows))}{extent}.")
    return lines


def in_words(names: Sequence[object], most: int = MOST_NAMES) -> str:
    """Return names as a list in words, of which only the first are named if there are more than `most`."""
    words = [str(name) for name in names[:most]] + ([f"{len(names) - most} more"] if len(names) > most else [])
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _judge_table(judges: dict[str, np.ndarray], preferences: Preferences | None) -> Table:
    """Return the judges, the most accurate first."""
    columns: dict[str, Sequence[object]] = {
        "judge": judges["worker"].tolist(),
        "votes": judges["votes"].tolist(),
        "accuracy": [f"{value:.3f}" for value in judges["accuracy"]],
        "90 % interval": [f"{low:.3f} to {high:.3f}" for low, high in zip(judges[LOW], judges[HIGH], strict=True)],
        "independence": [f"{value:.2f}" for value in judges["weight"]],
        "cluster": ["none" if value == 0 else str(value) for value in judges["cluster"]],
    }
    if preferences is not None:
        columns["position bias"] = _position_biases(judges["worker"], preferences.position_bias)
    order = np.argsort(-judges["accuracy"], kind="stable").tolist()
    return Table(list(columns), [[column[i] for column in columns.values()] for i in order], ["judge", "cluster"])


def _ranking_table(ranking: Any) -> Table:
    """Return answers by strength, with intervals."""
    columns = zip(*(column.tolist() for column in ranking.values()), strict=True)
    rows = [
        [name, f"{strength:+.2f}", f"{low:+.2f} to {high:+.2f}", f"{won:.1%}", count]
        for name, strength, low, high, won, count in columns
    ]
    return Table(["answer", "strength", "95 % interval", "win rate", "choices"], rows, ["answer"])


def _position_biases(workers: np.ndarray, biases: Any) -> list[str]:
    names = np.asarray(biases["worker"]).tolist()
    values = zip(np.asarray(biases["position_bias"]), np.asarray(biases["standard_error"]), strict=True)
    listed = dict(zip(names, values, strict=True))
    return [
        "not measured" if np.isnan(listed.get(name, (np.nan,))[0]) else "{:+.3f} ± {:.3f}".format(*listed[name])
        for name in workers.tolist()
    ]


def _accuracy_panel(judges: dict[str, np.ndarray], chance: float) -> Panels:
    """Return a figure of the most accurate judges, the best on top, with intervals."""
    order = np.argsort(-judges["accuracy"], kind="stable")[:MOST_DRAWN]
    accuracy, low, high = (judges[name][order] for name in ("accuracy", LOW, HIGH))
    with separate_panels(1, height=1.0 + 0.17 * max(order.size, 6)) as grid:
        axis = grid[0, 0]
        bars = np.maximum(np.stack([accuracy - low, high - accuracy]), 0)
        axis.errorbar(accuracy, range(order.size), xerr=bars, fmt="o", color=OURS, ecolor=MUTED, ms=4)
        axis.axvline(chance, color=MUTED, linestyle="--", linewidth=1)
        name_axes(axis, "accuracy", "")
        axis.set_yticks(range(order.size), [shown(judges["worker"][i], 16) for i in order])
        axis.set(xlim=(0, 1.02), ylim=(order.size - 0.5, -0.5))
        return panels(grid, ["Accuracy of each judge, with intervals, the best judge on top"])


def _dependence_panel(model: Jury) -> Panels:
    with separate_panels(1, height=dependence_height(len(model.workers_))) as grid:
        dependence(model, axes=grid)
        return panels(grid, ["Matrix of the correlations of judges given the labels, with frames around clusters"])


def _certainty_panel(certainty: np.ndarray) -> Panels:
    with separate_panels(1) as grid:
        axis = grid[0, 0]
        axis.hist(certainty, bins=np.linspace(0, 1, 21), color=OURS, alpha=0.85)
        axis.set_xlim(0, 1)
        name_axes(axis, "probability of the label", "items")
        return panels(grid, ["Number of items against the probability of their labels"])


def _no_better_than_chance(judges: dict[str, np.ndarray], chance: float) -> str:
    """Return the names of judges whose intervals reach the accuracy of guessing, those with most votes first."""
    doubtful = np.flatnonzero(judges[LOW] <= chance)
    order = doubtful[np.argsort(-judges["votes"][doubtful], kind="stable")]
    return in_words(judges["worker"][order].tolist())


def _uncertain_items(model: Jury) -> Table:
    columns = model.least_confident(min(MOST_ITEMS, len(model.tasks_)))
    names = ["task", "votes", "label", "probability", "next label", "next probability"]
    cells = [np.asarray(columns[name]).tolist() for name in names]
    cells = [
        [f"{cell:.3f}" for cell in column] if name.endswith("probability") else column
        for name, column in zip(names, cells, strict=True)
    ]
    rows = list(zip(*cells, strict=True))
    return Table(["item", *names[1:]], rows, ["item", "label", "next label"])
