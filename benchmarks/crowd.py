"""Labels from crowds: crowd-kit beside us, and simulated workers.

``CODIAG_DATA_DIR=... python -m benchmarks.crowd [default held-out sparse simulated regimes votes]``

The table of the paper: ``python -m experiments run crowd``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from benchmarks.measure import megabytes, run_parts, table, timed
from codiag.datasets import load_crowd
from codiag.models import DawidSkene
from codiag.models.crowd import Votes, as_votes
from codiag.synthetic import crowd_votes, worker_confusions

NAMES = ("web", "rte", "bluebird", "dog")
SPARSE = (
    (4.6, 0.5, (4.0, 2.0)),
    (4.6, 0.5, (3.0, 2.0)),
    (4.6, 0.2, (4.0, 2.0)),
    (2.5, 0.5, (4.0, 2.0)),
    (9.0, 0.5, (3.0, 2.0)),
)
"""Votes a task, share of the second class, and Beta distribution of the rates, for large crowds with few votes each."""


def default() -> str:
    """One default for all sets against crowd-kit, in the same process."""
    import pandas as pd
    from crowdkit.aggregation import DawidSkene as CrowdKit

    rows = []
    for name in ("bluebird", "rte", "dog", "web"):
        data = load_crowd(name)
        frame = pd.DataFrame(data.votes)
        ours = [timed(partial(DawidSkene(random_state=seed).fit, frame), time.process_time) for seed in range(20)]
        theirs = [timed(partial(CrowdKit(n_iter=100).fit, frame), time.process_time) for _ in range(5)]
        scores = [100 * data.accuracy(fit.labels_.index, fit.labels_) for fit, _ in ours]
        baseline = theirs[0][0].labels_
        times = median(seconds for _, seconds in ours[1:]), median(seconds for _, seconds in theirs[1:])
        rows.append(
            (
                name,
                f"{median(scores):.2f} ({min(scores):.2f}-{max(scores):.2f})",
                f"{100 * data.accuracy(baseline.index, baseline):.2f}",
                f"{times[0]:.3f}",
                f"{times[1]:.3f}",
                f"{times[1] / times[0]:.1f}",
            )
        )
    return (
        "## One default for all sets\nAccuracy in per cent over tasks with a truth: `DawidSkene()` over 20 seeds, "
        "median (range), and crowd-kit's `DawidSkene(n_iter=100)`, both from a pandas frame; seconds of processor "
        "time. What is believed of a worker is estimated from the crowd itself; no truth is used.\n\n"
        + table(("", "codiag", "crowd-kit", "codiag s", "crowd-kit s", "times faster"), rows)
    )


def held_out() -> str:
    """Which smoothing predicts votes that were held out; no truth is needed."""
    kinds: dict[str, dict[str, Any]] = {f"{s:g}": {"smoothing": s} for s in (0.1, 0.3, 0.5, 1.0, 2.0)}
    kinds["estimated (default)"] = {"smoothing": "estimated"}
    rows = []
    for name in (*NAMES, "anesthesia"):
        votes = as_votes(load_crowd(name).votes)
        means = [np.mean([_predicted(votes, options, seed) for seed in range(5)]) for options in kinds.values()]
        best = int(np.argmax(means))
        rows.append((name, *(f"**{m:.4f}**" if i == best else f"{m:.4f}" for i, m in enumerate(means))))
    return (
        "## Votes held out\nMean log-probability of a tenth of the votes, given the rest, by smoothing; five seeds; EM "
        "from the majority, to have one start for all. Estimated: by the kinds of workers the crowd shows.\n\n"
        + table(("", *kinds), rows)
    )


def _predicted(votes: Votes, options: dict[str, Any], seed: int) -> float:
    hidden = np.random.default_rng(seed).random(votes.task.size) < 0.1
    matrix_votes = tuple(column[~hidden] for column in (votes.task, votes.worker, votes.label))
    model = DawidSkene(init="majority", max_iter=200, **options).fit(matrix_votes)
    task, worker, label = (column[hidden] for column in (votes.task, votes.worker, votes.label))
    known = np.isin(task, model.tasks_) & np.isin(worker, model.workers_) & np.isin(label, model.classes_)
    rows = np.searchsorted(model.tasks_, task[known]), np.searchsorted(model.workers_, worker[known])
    cells = model.confusion_matrices_[rows[1], np.searchsorted(model.classes_, label[known])]
    return float(np.mean(np.log(np.sum(model.probas_[rows[0]] * cells, axis=1))))


def simulated() -> str:
    """Consistency, and likelihoods beside those of EM from the truth."""
    rows: list[tuple[object, ...]] = []
    for k in (2, 3, 4, 5):
        gaps = [_gap(k, seed) for seed in range(13 if k < 4 else 12)]
        there = f"{sum(gap < 1e-3 for gap in gaps)} of {len(gaps)}"
        rows.append((k, *_by_size(k, 0), *_by_size(k, 100), there, f"{max(gaps):.1e}"))
    sizes = ("1e4", "1e5", "slope")
    return (
        "## Simulated workers\n60 workers, each on 20 % of the tasks, right with probability 0.5 to 0.9, one in five "
        "adversarial. Mean absolute error of confusion matrices, moments alone and after EM (smoothing 1), three seeds "
        "each, and the "
        "slope in the number of tasks; then how often EM from moments ends within 1e-3 per vote of the likelihood of "
        "EM from the truth (10,000 tasks), and the largest gap.\n\n"
        + table(("classes", "moments, 1e3", *sizes, "EM, 1e3", *sizes, "ends there", "largest gap"), rows)
    )


def _by_size(k: int, rounds: int) -> list[str]:
    """Return mean errors of confusion matrices by the number of tasks, and their slope."""
    sizes, errors = (1000, 10_000, 100_000), []
    for n in sizes:
        runs = [_crowd(k, seed, n=n) for seed in range(3)]
        fits = [DawidSkene(max_iter=rounds, smoothing=1.0, random_state=0).fit(run.votes) for run in runs]
        errors.append(
            np.mean([np.abs(f.confusion_matrices_ - r.confusions).mean() for f, r in zip(fits, runs, strict=True)])
        )
    return [*(f"{error:.4f}" for error in errors), f"{np.polyfit(np.log(sizes), np.log(errors), 1)[0]:.2f}"]


def _gap(k: int, seed: int) -> float:
    """Return by how much EM from moments ends below EM from the truth, in likelihood per vote."""
    run = _crowd(k, seed)
    options: dict[str, Any] = {"smoothing": 0.0, "max_iter": 500, "tol": 1e-9, "random_state": seed}
    fit, beside = (DawidSkene(init=init, **options).fit(run.votes) for init in ("moments", run.confusions))
    return float((beside.log_likelihood_ - fit.log_likelihood_) / run.votes[0].size)


def _crowd(k: int, seed: int, n: int = 10_000) -> Any:
    return crowd_votes(n, worker_confusions(60, k, adversarial=0.2, rng=[seed, 1]), density=0.2, rng=[seed, 2])


def regimes() -> str:
    """Crowds for which the majority is a bad start."""
    rows = []
    for kind, k, errors_of in _regimes():
        gaps = []
        for seed in range(10):
            errors = errors_of(seed)
            votes = crowd_votes(5000, errors, density=0.25, rng=[seed, 2]).votes
            options: dict[str, Any] = {"smoothing": 0.01, "max_iter": 500, "tol": 1e-7}
            fits = [
                DawidSkene(init=init, random_state=seed, **options).fit(votes)
                for init in (errors, "moments", "majority")
            ]
            gaps.append([(fits[0].log_likelihood_ - fit.log_likelihood_) / votes[0].size for fit in fits[1:]])
        ours, theirs = np.array(gaps).T
        rows.append(
            (
                kind,
                k,
                f"{np.sum(ours > 1e-3)} of 10",
                f"{ours.max():.1e}",
                f"{np.sum(theirs > 1e-3)} of 10",
                f"{theirs.max():.1e}",
            )
        )
    return (
        "## Where the majority leads astray\n5000 tasks, 40 workers on a quarter of them each. How often EM ends more "
        "than 1e-3 per vote below the likelihood of EM from the truth, and the largest gap, started from moments and "
        "from the majority.\n\n" + table(("crowd", "classes", "from moments", "gap", "from the majority", "gap"), rows)
    )


def _regimes() -> Iterator[tuple[str, int, Callable[[int], np.ndarray]]]:
    def honest(k: int, seed: int) -> np.ndarray:
        return worker_confusions(40, k, rng=[seed, 1])

    def most_shift(k: int, seed: int) -> np.ndarray:
        return worker_confusions(40, k, adversarial=0.6, rng=[seed, 1])

    def most_copy(k: int, seed: int) -> np.ndarray:
        errors = honest(k, seed)
        errors[:30] *= 0.1
        errors[:30, 0] += 0.9
        return errors

    def own_names(k: int, seed: int) -> np.ndarray:
        rng = np.random.default_rng([seed, 9])
        return np.stack([one[rng.permutation(k)] for one in honest(k, seed)])

    kinds = {
        "60 % give the label after the true one": most_shift,
        "75 % give label 0 nine times in ten": most_copy,
        "every worker has names of their own for the classes": own_names,
    }
    for kind, make in kinds.items():
        for k in (2, 5, 8):
            yield kind, k, partial(make, k)


def sparse_crowd(seed: int, per_task: float, share: float, skill: tuple[float, float]) -> tuple[Any, np.ndarray]:
    """Return votes of 760 workers on 20,000 tasks of two classes, and the truth; most workers have few votes."""
    n_tasks, n_workers = 20_000, 760
    rng = np.random.default_rng([seed, round(10 * per_task), round(100 * share), round(10 * skill[0])])
    appetite = np.exp(rng.normal(0, 1.8, n_workers))
    counts = np.clip(rng.poisson(appetite / appetite.sum() * n_tasks * per_task), 1, n_tasks)
    truth = (rng.random(n_tasks) < share).astype(int)
    right = rng.beta(*skill, (n_workers, 2))
    worker = np.repeat(np.arange(n_workers), counts)
    task = np.concatenate([rng.choice(n_tasks, count, replace=False) for count in counts])
    correct = rng.random(task.size) < right[worker, truth[task]]
    return {"task": task, "worker": worker, "label": np.where(correct, truth[task], 1 - truth[task])}, truth


def sparse() -> str:
    """Large crowds in which most workers have few votes."""
    import pandas as pd
    from crowdkit.aggregation import DawidSkene as CrowdKit
    from crowdkit.aggregation import MajorityVote

    rows = []
    for per_task, share, skill in SPARSE:
        scores = []
        for seed in range(5):
            votes, truth = sparse_crowd(seed, per_task, share, skill)
            frame = pd.DataFrame(votes)
            fits = [model.fit_predict(frame) for model in (DawidSkene(random_state=0), CrowdKit(100), MajorityVote())]
            scores.append([100 * np.mean(fit.to_numpy() == truth[fit.index.to_numpy()]) for fit in fits])
        ours, theirs, majority = np.array(scores).T
        few = np.median(np.bincount(votes["worker"]))
        worst = f"{np.min(ours - theirs):+.2f}"
        cells = (f"{ours.mean():.2f}", f"{theirs.mean():.2f}", f"{majority.mean():.2f}", worst)
        rows.append((f"{per_task:g}", f"{few:.0f}", f"{share:g}", "Beta({:g}, {:g})".format(*skill), *cells))
    headings = (
        "votes a task",
        "a worker, median",
        "share of class 1",
        "rates by class",
        "codiag",
        "crowd-kit",
        "majority",
    )
    return (
        "## Most workers with few votes\n20,000 tasks of two classes, 760 workers; the numbers of votes are log-normal "
        "over workers, and a worker is right with a probability of its own for each class. Accuracy in per cent: "
        "`DawidSkene()`, crowd-kit's `DawidSkene(n_iter=100)` and its `MajorityVote`; means of five seeds, and the "
        "worst difference from crowd-kit of any.\n\n" + table((*headings, "worst difference"), rows)
    )


def million() -> str:
    """A million votes."""
    errors = worker_confusions(1000, 5, adversarial=0.1, rng=0)
    run = crowd_votes(100_000, errors, density=0.01, rng=1)
    before = megabytes()
    model, seconds = timed(lambda: DawidSkene(random_state=0).fit(run.votes), time.process_time)
    after = megabytes()
    right = np.mean(model.labels_ == run.truth[model.tasks_])
    return (
        f"## A million votes\n{run.votes[0].size:,} votes of 1,000 workers on 100,000 tasks of 5 classes: "
        f"{seconds:.1f} s of processor time from arrays, {after:.0f} MB at most ({before:.0f} before fitting, the "
        f"making of the votes included), {100 * right:.2f} % of the labels right."
    )


PARTS: dict[str, Callable[[], str]] = {
    "default": default,
    "held-out": held_out,
    "sparse": sparse,
    "simulated": simulated,
    "regimes": regimes,
    "votes": million,
}

if __name__ == "__main__":
    run_parts("crowd", PARTS)
