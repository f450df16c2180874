"""The report of a jury."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from codiag.models.crowd import (
    HIGH,
    LOW,
    class_names,
    held_out_calibration,
    label_columns,
    with_position_bias,
    worker_columns,
)
from codiag.plotting import MUTED, OURS, dependence, dependence_height, name_axes, shown
from codiag.reports._alike import MOST_NAMES, families_in_words, in_words, worth_of
from codiag.reports._crowd import DOUBTFUL, doubtful_tasks, guessing_workers, unfinished
from codiag.reports._html import note, panels, report, sentences, separate_panels, table

if TYPE_CHECKING:
    from codiag.models.crowd import DawidSkene, Preferences

LEAST_VOICES = 3
"""Number of families and of judges who stand alone from which votes determine the accuracy of each."""
MOST_DRAWN = 40
"""Largest number of judges in a figure."""
INDEPENDENT = "No two judges think alike: each is wrong in its own way."
NOTICEABLE = 0.03
"""Position bias below which there is no advice, however certain it is."""
ITEMS = (
    "The items whose labels are least certain, with the most probable label and the next; the file that --out, or "
    "doubt_table() in Python, gives has all of them. After labels of random items, a person's time is best spent here."
)
PAIRS = (
    "Items are pairs of answers, shown in both orders. The vote of a judge is the answer that it prefers in both, and "
    "a tie if the order decides. If labels are called A and B, the name of each item says which answer is which."
)


def jury_report(
    model: DawidSkene,
    path: str | Path | None = None,
    *,
    votes: Any = None,
    gold: Any = None,
    preferences: Preferences | None = None,
    title: str = "A jury",
) -> str:
    """Return a page about a jury: which judges to trust, who thinks alike, how many they are worth, and what is unsure.

    Parameters
    ----------
    model : DawidSkene
        Fitted to the votes of judges, with the known classes `gold` if there are any.
    path : str or Path, optional
        A file to write the page to, such as ``"report.html"``; one that exists is replaced.
    votes, gold : as for `codiag.models.DawidSkene.fit`, optional
        The votes and the known classes, if probabilities of labels are to be compared with these. The model is then
        fitted twice more, without the classes that it is compared with.
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
    codiag.plotting.dependence : The figure of judges who think alike, alone.
    codiag.reports.crowd_report : A page about a crowd of workers, with their confusion matrices.

    Examples
    --------
    >>> from codiag.models import DawidSkene
    >>> from codiag.reports import jury_report
    >>> from codiag.synthetic import crowd_votes, worker_confusions
    >>> votes = crowd_votes(200, worker_confusions(9, 2, seed=0), seed=1).votes
    >>> page = jury_report(DawidSkene(random_state=0).fit(votes))
    >>> page.startswith("<!doctype html>"), "Who can be trusted" in page
    (True, True)
    """
    if gold is not None and votes is None:
        raise ValueError("votes must be given with gold, as the model has to be fitted to them once more; got None")
    judges = judge_table(model, preferences)
    certainty = label_columns(model)["probability"]
    facts = {"judges": f"{len(judges['worker']):,}", "items": f"{certainty.size:,}"}
    facts |= {
        "votes": f"{int(np.sum(judges['votes'])):,}",
        "independent votes an item": f"{model.effective_votes_:.1f}",
    }
    facts |= {"items for a person": f"{int(np.sum(certainty < DOUBTFUL)):,}"}
    sections = {
        "In short": sentences(_summary(model, judges, certainty)),
        "Who can be trusted": _trust(model, judges),
        "Who thinks alike": _alike(model, judges),
        "How many judges it takes": sentences([worth_of(model), *_voices(model, judges)]),
        "How sure the labels are": _certainties(model, certainty, votes, gold),
        "What would help": sentences(_advice(model, judges, gold), "Nothing to note: the labels can be used."),
        "Items to give to a person": note(ITEMS) + doubtful_tasks(model, "Items to give to a person", "item"),
    }
    lead = "Several judges voted on the same items. Which label is right, and what each judge adds, from their votes."
    return report(title, lead, facts, sections, path)


def judge_table(model: DawidSkene, preferences: Preferences | None) -> dict[str, np.ndarray]:
    """Return the table of workers, with their position bias if there are preferences."""
    workers = worker_columns(model)
    return workers if preferences is None else with_position_bias(workers, preferences.position_bias)


def _summary(model: DawidSkene, judges: dict[str, np.ndarray], certainty: np.ndarray) -> list[str]:
    best = int(np.argmax(judges["accuracy"]))
    doubtful = int(np.sum(certainty < DOUBTFUL))
    lines = [
        f"{len(judges['worker']):,} judges gave {int(np.sum(judges['votes'])):,} votes on {certainty.size:,} items. "
        f"The possible labels are {in_words(class_names(model.classes_))}.",
        f"{worth_of(model)} Judges who make the same mistakes count less than judges who make their own.",
        f"Most often right is {judges['worker'][best]}, by these votes on {_interval(judges, best)} of the items.",
        *(families_in_words(model, MOST_NAMES)[:MOST_NAMES] or [INDEPENDENT]),
        f"The labels have a mean certainty of {np.mean(certainty):.2f}, which supposes that the judges are not all "
        "wrong in the same way. "
        + (
            f"{doubtful:,} of {certainty.size:,} are below {DOUBTFUL}; a person should look at these."
            if doubtful
            else f"None is below {DOUBTFUL}."
        ),
    ]
    if "position_bias" in judges:
        lines.insert(1, PAIRS)
    if model.diagnostics_.reason:
        lines.append(f"With caution: {model.diagnostics_.reason}.")
    return lines


def _interval(judges: dict[str, np.ndarray], place: int) -> str:
    accuracy, low, high = (100 * float(judges[name][place]) for name in ("accuracy", LOW, HIGH))
    return f"{accuracy:.0f} % ({low:.0f} to {high:.0f} %)"


def _trust(model: DawidSkene, judges: dict[str, np.ndarray]) -> str:
    order = np.argsort(-judges["accuracy"], kind="stable")
    columns: dict[str, Sequence[object]] = {
        "judge": judges["worker"].tolist(),
        "votes": judges["votes"].tolist(),
        "right": [f"{value:.3f}" for value in judges["accuracy"]],
        "90 % interval": [f"{low:.3f} to {high:.3f}" for low, high in zip(judges[LOW], judges[HIGH], strict=True)],
        "independence of a vote": [f"{value:.2f}" for value in judges["weight"]],
        "family": ["alone" if value == 0 else str(value) for value in judges["family"]],
    }
    reading = (
        "Right is the share of items on which a judge gives the right label, as estimated from all votes, with an "
        "interval that holds it in 90 % of cases. Independence is not accuracy: a vote of 1 is one that nobody else "
        "repeats, right or wrong, and votes of judges who think alike share it. Labels follow from both."
    )
    if "position_bias" in judges:
        columns["position bias"] = [
            "not measured" if np.isnan(bias) else f"{bias:+.3f} ± {error:.3f}"
            for bias, error in zip(judges["position_bias"], judges["bias_standard_error"], strict=True)
        ]
        reading += (
            " The position bias is how much more often than in half of the cases a judge prefers the answer that it is "
            "shown first, with its standard error; 0 is right."
        )
    rows = [tuple(column[place] for column in columns.values()) for place in order.tolist()]
    listed = table("Judges", list(columns), rows, words=["judge", "family"])
    return note(reading) + listed + _accuracy_panel(model, judges, order[:MOST_DRAWN])


def _accuracy_panel(model: DawidSkene, judges: dict[str, np.ndarray], order: np.ndarray) -> str:
    """Return a figure of the most accurate judges, the best on top, with intervals."""
    accuracy, low, high = (judges[name][order] for name in ("accuracy", LOW, HIGH))
    with separate_panels(1, height=1.0 + 0.17 * max(order.size, 6)) as grid:
        axis, chance = grid[0, 0], 1 / len(model.classes_)
        bars = np.maximum(np.stack([accuracy - low, high - accuracy]), 0)
        axis.errorbar(accuracy, range(order.size), xerr=bars, fmt="o", color=OURS, ecolor=MUTED, ms=4)
        axis.axvline(chance, color=MUTED, linestyle="--", linewidth=1)
        name_axes(axis, "share of items on which it is right", "")
        axis.set_yticks(range(order.size), [shown(judges["worker"][place], 16) for place in order])
        axis.set(xlim=(0, 1.02), ylim=(order.size - 0.5, -0.5))
        words = "Share of items on which each judge is right, with intervals, the best judge on top"
        return panels(grid, [words], "Judges with 90 % intervals. Dashed: guessing.")


def _alike(model: DawidSkene, judges: dict[str, np.ndarray]) -> str:
    with separate_panels(1, height=dependence_height(len(judges["worker"]))) as grid:
        dependence(model, axes=grid)
        words = "Matrix of the correlations of judges beyond the labels, with frames around judges who think alike"
        caption = (
            "Do two judges make the same mistakes? Red: more often than by chance; always on the diagonal, where a "
            "judge meets itself. Pale: as often. Blue: less often. Gray: they share too few items to tell. Frames are "
            "around families of judges who think alike. A correlation of 0 is none, 1 is the same votes."
        )
        figure = panels(grid, [words], caption)
    return sentences(families_in_words(model), INDEPENDENT) + figure


def _voices(model: DawidSkene, judges: dict[str, np.ndarray]) -> list[str]:
    lines = ["If no two judges made the same mistakes more often than by chance, each would be worth one."]
    if model.families_:
        members = [np.flatnonzero(judges["family"] == number + 1) for number in range(len(model.families_))]
        best = [places[np.argmax(judges["accuracy"][places])] for places in members]
        names = judges["worker"][[*best, *np.flatnonzero(judges["family"] == 0)]].tolist()
        lines.append(
            f"There are {len(names)} different voices: families, and judges who stand alone. The smallest jury that "
            f"has them all is the best judge of each family and all who stand alone: {in_words(names, MOST_DRAWN)}. "
            "The other members of a family add what they do not have in common with it."
        )
    lines.append("More judges that resemble those of a family add little; a judge unlike all others adds most.")
    return lines


def _certainties(model: DawidSkene, certainty: np.ndarray, votes: Any, gold: Any) -> str:
    mean = float(np.mean(certainty))
    claim = f"The mean certainty of a label is {mean:.2f}: about {100 * mean:.0f} % of the labels should be right."
    calibration = None if gold is None else held_out_calibration(model, votes, gold)
    if calibration is None:
        few = "Too few labels are known" if gold is not None else "No labels are known"
        return sentences(
            [claim, f"{few}, and votes alone cannot show whether they are: known labels can."]
        ) + _certainty_panel(certainty)
    rows = [
        (f"{low:.2f} to {high:.2f}", n_tasks, f"{claimed:.3f}", f"{right:.3f}")
        for low, high, n_tasks, claimed, right in zip(*calibration.values(), strict=True)
    ]
    n_known, n_right = calibration["tasks"].sum(), calibration["tasks"] @ calibration["right"]
    checked = (
        f"Of {n_known:,} items with known labels, {100 * n_right / n_known:.0f} % get the right one if it is not given "
        f"to the model, and their mean certainty is {calibration['tasks'] @ calibration['probability'] / n_known:.2f}."
    )
    headings = ["certainty", "items", "mean certainty", "share right"]
    reading = note(
        "The last two columns agree if certainties are right. Known labels are held out, one half at a time."
    )
    listed = table("Certainty and known labels", headings, rows, words=["certainty"])
    return sentences([claim, checked]) + reading + listed + _certainty_panel(certainty)


def _certainty_panel(certainty: np.ndarray) -> str:
    with separate_panels(1) as grid:
        axis = grid[0, 0]
        axis.hist(certainty, bins=np.linspace(0, 1, 21), color=OURS, alpha=0.85)
        axis.set_xlim(0, 1)
        name_axes(axis, "certainty of the label", "items")
        return panels(grid, ["Number of items against the certainty of their labels"], "How certain the labels are.")


def _advice(model: DawidSkene, judges: dict[str, np.ndarray], gold: Any) -> list[str]:
    advice = []
    n_voices = len(model.families_) + int(np.sum(judges["family"] == 0))
    if n_voices < LEAST_VOICES or model.effective_votes_ < 2:
        advice.append(
            "Other judges: these have too few independent voices to show which of them are right. Add judges that are "
            "unlike them, such as models of another maker, or people."
        )
    elif model.families_:
        advice.append("Other judges in place of some in the largest family: judges unlike all others add most.")
    if gold is None:
        advice.append(
            "Known labels, first of all: a person's labels of about a hundred items, drawn at random, show which "
            "judges are right, and whether certainties are. Judges who are all wrong in the same way cannot be "
            "recognized otherwise. Then the items below, one by one."
        )
    if "position_bias" in judges:
        biased = np.flatnonzero(
            (np.abs(judges["position_bias"]) > NOTICEABLE)
            & (np.abs(judges["position_bias"]) > 2 * judges["bias_standard_error"])
        )
        sides = [f"{judges['worker'][i]} ({judges['position_bias'][i]:+.2f})" for i in biased.tolist()]
        if sides:
            advice.append(f"Both orders for each pair: the side matters to {in_words(sides)}.")
    return advice + guessing_workers(judges, 1 / len(model.classes_)) + unfinished(model)
