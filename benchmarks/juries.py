"""Juries whose members are correlated: labels, calibration and intervals beside the majority.

``python -m benchmarks.juries [hard panels gold cost]``
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.judges import DrawnJury, jury_votes
from benchmarks.measure import run_parts, table
from codiag.models import DawidSkene, Jury

SEEDS, GOLD_SEEDS = 20, 2
"""Juries of every cell, without and with known classes."""
FIRST = 1000
"""Seed of the first jury of every cell; smaller ones served to write the program."""
EVEN, UNEVEN = (3, 3, 3, 3), (12, 4, 2, 2)
SETTINGS = [(0.2, 2, 1000), (0.2, 4, 1000), (0.6, 2, 1000), (0.6, 4, 300), (0.6, 4, 1000), (0.6, 5, 5000)]
SETTINGS += [(0.9, 2, 1000), (0.9, 4, 1000)]
"""What members of a cluster share, classes and tasks."""


def _cell(n_tasks: int, sizes: Sequence[int], n_classes: int, shared: float, **options: Any) -> dict[str, Any]:
    return {"n_tasks": n_tasks, "sizes": sizes, "n_classes": n_classes, "shared": shared, **options}


CELLS: dict[str, dict[str, Any]] = {
    f"{name}, shared {shared:g}, {k} classes, {n} tasks": _cell(n, sizes, k, shared)
    for name, sizes in (("even", EVEN), ("uneven", UNEVEN))
    for shared, k, n in SETTINGS
}
CELLS |= {
    "six duplicates and five alone, 4 classes": _cell(1000, (6, 1, 1, 1, 1, 1), 4, 0.95),
    "8, 3, 2 and an outsider, 4 classes": _cell(1000, (8, 3, 2), 4, 0.7, outsider=0.9),
    "8, 3, 2 and an outsider, 2 classes": _cell(1000, (8, 3, 2), 2, 0.7, outsider=0.9),
    "two clusters, 8 and 4, 4 classes": _cell(1000, (8, 4), 4, 0.7),
    "twelve alone, 4 classes": _cell(1000, (1,) * 12, 4, 0.0),
    "grades 0-3, 10, 5, 3, 2": _cell(1000, (10, 5, 3, 2), 4, 0.5, ordered=True),
    "grades 0-3, eight clusters of 2": _cell(1000, (2,) * 8, 4, 0.5, ordered=True),
    "grades 1-5, 10, 5, 3, 2 and an outsider": _cell(3000, (10, 5, 3, 2), 5, 0.8, ordered=True, outsider=0.8),
}


def majority(crowd: DrawnJury, k: int) -> np.ndarray:
    """Return the labels of the majority, ties at random."""
    counts = np.bincount(crowd.votes[0] * k + crowd.votes[2], minlength=crowd.truth.size * k).reshape(-1, k)
    return np.argmax(counts + 0.5 * np.random.default_rng(0).random(counts.shape), axis=1)


def calibration_error(probabilities: np.ndarray, truth: np.ndarray) -> float:
    """Return the mean difference between certainty and accuracy, over ten classes of certainty."""
    certainty, right = probabilities.max(axis=1), np.argmax(probabilities, axis=1) == truth
    bins = np.minimum((10 * certainty).astype(int), 9)
    return float(sum(abs(np.sum(right[bins == each] - certainty[bins == each])) for each in range(10)) / truth.size)


def _trial(options: dict[str, Any], seed: int) -> list[float]:
    crowd, k = jury_votes(**options, rng=seed), options["n_classes"]
    model = Jury(ordered=options.get("ordered", False), random_state=0).fit(crowd.votes)
    plain = DawidSkene(random_state=0).fit(crowd.votes)
    shares = np.bincount(crowd.truth, minlength=k) / crowd.truth.size
    accuracy = np.einsum("wcc,c->w", crowd.confusions, shares)
    low, high = model.worker_accuracy_interval_.T
    right = [100 * np.mean(labels == crowd.truth) for labels in (majority(crowd, k), plain.labels_, model.labels_)]
    return [
        *right,
        calibration_error(model.probas_, crowd.truth),
        np.mean((low <= accuracy) & (accuracy <= high)),
        model.n_effective_annotators_,
        len(model.clusters_),
    ]


def panels() -> str:
    """Labels of juries beside the majority and beside the model of independent workers."""
    rows = []
    for name, options in CELLS.items():
        results = [_trial(options, FIRST + seed) for seed in range(SEEDS)]
        vote, plain, ours, error, covered, votes, clusters = np.mean(results, axis=0)
        cells = f"{vote:.1f}", f"{plain:.1f}", f"{ours:.1f}", f"{ours - vote:+.1f}", f"{error:.3f}", f"{covered:.2f}"
        rows.append((name, *cells, f"{votes:.1f}", f"{clusters:.1f}"))
    head = ("jury", "majority", "independent", "codiag", "gain", "calibration", "covered", "votes", "clusters")
    return (
        f"## Juries that think alike\nMeans over {SEEDS} juries: accuracy in per cent of the "
        "majority, of `DawidSkene()` and of `Jury()`, ordered for grades; calibration error; share of the 90 % "
        "intervals that hold the accuracy of a judge; effective votes; clusters found.\n\n" + table(head, rows)
    )


HARD = [(1000, 10, 0.5, 0.6, 0.95), (400, 12, 0.3, 0.6, 0.9), (400, 8, 0.4, 0.55, 0.95)]
"""Items, judges, share of hard items, and accuracy on hard and on easy items."""


def _hard_trial(n: int, n_workers: int, share: float, low: float, high: float, seed: int) -> list[float]:
    rng = np.random.default_rng(seed)
    truth, rate = rng.integers(0, 2, n), np.where(rng.random(n) < share, low, high)
    votes = np.where(rng.random((n, n_workers)) < rate[:, None], truth[:, None], 1 - truth[:, None])
    found = np.mean(votes, axis=1) + 1e-3 * rng.standard_normal(n) > 0.5
    jury, plain = Jury(random_state=0).fit(votes), DawidSkene(random_state=0).fit(votes)
    right = [100 * np.mean(labels == truth) for labels in (found, plain.labels_, jury.labels_)]
    return [*right, len(jury.clusters_) > 0]


def hard() -> str:
    """Independent judges and items of different difficulty: there are no clusters, and the majority is best."""
    rows = []
    for setting in HARD:
        results = [_hard_trial(*setting, FIRST + seed) for seed in range(SEEDS)]
        n, n_workers, share, low, high = setting
        vote, plain, ours, clusters = np.mean(results, axis=0)
        name = f"{n} items, {n_workers} judges, {share:g} hard, {low:g}/{high:g}"
        rows.append((name, f"{vote:.2f}", f"{plain:.2f}", f"{ours:.2f}", f"{round(clusters * SEEDS)} of {SEEDS}"))
    head = ("crowd", "majority", "`DawidSkene()`", "`Jury()`", "with a cluster")
    return f"## Hard items\nAccuracy in per cent, means over {SEEDS} crowds.\n\n" + table(head, rows)


def _gold_trial(options: dict[str, Any], n_gold: int, seed: int) -> list[float]:
    crowd, k = jury_votes(**options, rng=seed), options["n_classes"]
    truth, labels = crowd.truth, crowd.votes[2].reshape(crowd.truth.size, -1)
    known = np.random.default_rng(seed).permutation(truth.size) < n_gold
    jury = Jury(ordered=options.get("ordered", False), random_state=0)
    without = jury.fit_predict(labels)
    model = jury.fit(labels, {int(t): int(truth[t]) for t in np.flatnonzero(known)})
    best = labels[:, np.argmax(np.mean(labels[known] == truth[known, None], axis=0))]
    found = majority(crowd, k), best, _naive_bayes(labels, truth, known, k), without, model.labels_
    return [100 * np.mean((each == truth)[~known]) for each in found]


def _naive_bayes(labels: np.ndarray, truth: np.ndarray, known: np.ndarray, k: int) -> np.ndarray:
    scores = np.log(np.bincount(truth[known], minlength=k) + 1.0) * np.ones((truth.size, 1))
    for column in labels.T:
        cells = np.ones((k, k))
        np.add.at(cells, (column[known], truth[known]), 1)
        scores += np.log(cells / cells.sum(axis=0))[column]
    return np.argmax(scores, axis=1)


def gold() -> str:
    """Known classes must help."""
    rows = []
    for name, options in CELLS.items():
        for n_gold in (100, 300, 1000):
            if n_gold >= options["n_tasks"]:
                continue
            results = [_gold_trial(options, n_gold, FIRST + seed) for seed in range(GOLD_SEEDS)]
            means = np.mean(results, axis=0)
            rows.append((name, n_gold, *(f"{mean:.1f}" for mean in means), f"{means[-1] - max(means[:3]):+.1f}"))
    head = ("jury", "known", "majority", "best judge", "naive Bayes", "codiag without", "codiag", "to the best")
    return (
        f"## Juries with known classes\nAccuracy in per cent on the other tasks, means over {GOLD_SEEDS} juries: the "
        "majority, the judge who is best on the known classes, naive Bayes by confusion matrices from these, "
        "`Jury()` without and with them, and the difference to the best of the first three.\n\n" + table(head, rows)
    )


def cost() -> str:
    """Seconds of processor time."""
    rows = []
    kinds: dict[str, Callable[[], Any]] = {
        "33 judges x 5,000, 4 classes": lambda: jury_votes(5000, (10, 8, 6, 5, 3, 1), 4, shared=0.5, rng=0),
        "33 judges x 5,000, grades": lambda: jury_votes(5000, (10, 8, 6, 5, 3, 1), 4, shared=0.5, ordered=True, rng=0),
        "20 judges x 50,000, 2 classes": lambda: jury_votes(50_000, (8, 5, 4, 2, 1), 2, rng=0),
    }
    for name, make in kinds.items():
        crowd = make()
        begin = time.process_time()
        model = Jury(ordered="grades" in name, random_state=0).fit(crowd.votes)
        rows.append((name, crowd.votes[0].size, f"{time.process_time() - begin:.1f}", len(model.clusters_)))
    return "## Cost of a jury\nOne thread.\n\n" + table(("jury", "votes", "seconds", "clusters"), rows)


if __name__ == "__main__":
    run_parts("juries", {"hard": hard, "panels": panels, "gold": gold, "cost": cost})
