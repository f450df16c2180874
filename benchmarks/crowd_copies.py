"""Workers who copy from each other: how often pairs are named that do not, those that do, and what it is worth.

``CODIAG_DATA_DIR=... python -m benchmarks.crowd_copies [named labels real]``
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.crowd_workers import KINDS
from benchmarks.measure import run_parts, table
from codiag.datasets import load_crowd
from codiag.models import DawidSkene
from codiag.models.crowd import (
    Run,
    Votes,
    as_prior,
    as_votes,
    detect_copies,
    run_with_estimated_prior,
    start_from_majority,
    with_shared_votes,
)

SEEDS = range(20)
N_TASKS, N_WORKERS, PER_TASK = 400, 40, 8


def copying_crowd(
    seed: int,
    k: int,
    *,
    kind: str = "rates by class, 0.5 to 0.9",
    groups: int = 0,
    size: int = 2,
    rate: float = 1.0,
    hardness: float = 0.0,
) -> tuple[tuple[np.ndarray, ...], np.ndarray, set[tuple[int, int]]]:
    """Return votes, the truth of the tasks, and the pairs that copy: groups of workers who see what the first sees.

    The others of a group give the label of the first on a share of the tasks, `rate`. Where tasks are hard, the share
    of workers who are mistaken in the same way varies over tasks, with a standard deviation of the logit `hardness`.
    """
    rng = np.random.default_rng([seed, k, groups, size, round(100 * rate), round(100 * hardness)])
    truth = rng.integers(0, k, N_TASKS)
    errors = KINDS[kind](N_WORKERS, k, rng)
    chances = errors.transpose(2, 0, 1)[truth]  # task, worker, given
    if hardness:
        same = 1 / (1 + np.exp(4 - hardness * rng.standard_normal(N_TASKS)))[:, None, None]
        attractor = np.eye(k)[(truth + rng.integers(1, k, N_TASKS)) % k][:, None]
        chances = (1 - same) * chances + same * attractor
    label = np.minimum(np.sum(np.cumsum(chances, axis=2) < rng.random((N_TASKS, N_WORKERS, 1)), axis=2), k - 1)
    seen = rng.random((N_TASKS, N_WORKERS)) < PER_TASK / N_WORKERS
    pairs = set()
    for group in range(groups):
        members = range(group * size, (group + 1) * size)
        for member in members[1:]:
            copied = rng.random(N_TASKS) < rate
            seen[:, member] = seen[:, members[0]]
            label[copied, member] = label[copied, members[0]]
        pairs |= {(one, other) for one in members for other in members if one < other}
    task, worker = np.nonzero(seen)
    return (task, worker, label[task, worker]), truth, pairs


def named() -> str:
    """How often pairs are named that do not copy, and that do."""
    rows = [_counts(f"none; {kind}", kind=kind) for kind in KINDS]
    rows += [_counts(f"none; hard tasks, {hardness:g}", hardness=hardness) for hardness in (1.0, 2.0, 3.0)]
    rates = (0.2, 0.4, 0.6, 0.8, 1.0)
    rows += [_counts(f"three pairs, {rate:g} of the tasks", groups=3, rate=rate) for rate in rates]
    rows += [_counts(f"a group of {size}, 0.8 of the tasks", groups=1, size=size, rate=0.8) for size in (3, 5)]
    rows.append(_counts("three pairs, 0.6 of the tasks; hard tasks, 2", groups=3, rate=0.6, hardness=2.0))
    headings = (
        "who copies",
        "2 classes: crowds with a wrong pair",
        "pairs named",
        "4 classes: the same",
        "pairs named",
    )
    return (
        f"## Workers who copy\n{N_TASKS} tasks, {N_WORKERS} workers, {PER_TASK} votes a task, or what copiers add: a "
        "copier sees the tasks of another worker, about 80, and gives the same label on a share of them. In how many "
        f"of {len(SEEDS)} crowds any pair is named that does not copy, at most one in twenty by design, and the share "
        "of the copying pairs that are named. Hard tasks draw all workers to the same mistake.\n\n"
        + table(headings, rows)
    )


def _counts(name: str, **options: Any) -> tuple[str, ...]:
    cells = []
    for k in (2, 4):
        wrong, right, n_pairs = 0, 0, 0
        for seed in SEEDS:
            votes, _, pairs = copying_crowd(seed, k, **options)
            coded = as_votes(votes)
            found = {
                tuple(coded.workers[pair].tolist()) for pair in detect_copies(coded, _run(coded), _run).reported.pairs
            }
            wrong, right, n_pairs = wrong + bool(found - pairs), right + len(found & pairs), n_pairs + len(pairs)
        cells += [f"{wrong} of {len(SEEDS)}", f"{right / n_pairs:.2f}" if n_pairs else ""]
    return (name, *cells)


def _run(votes: Votes) -> Run:
    """Do as `DawidSkene(init="majority")`, without standard errors, which take most of its time."""
    prior = as_prior(votes, "estimated", "estimated", 0.0, one_coin=False)
    return run_with_estimated_prior(votes, start_from_majority(votes), prior, 100, 1e-6)[0]


def labels() -> str:
    """What sharing the weight of a vote is worth."""
    rows = []
    for groups, size, rate in ((3, 2, 1.0), (2, 3, 0.8), (2, 3, 1.0), (1, 5, 0.8)):
        cells: list[str] = []
        for k in (2, 4):
            scores = []
            for seed in SEEDS:
                votes, truth, _ = copying_crowd(seed + 100, k, groups=groups, size=size, rate=rate)
                coded = as_votes(votes)
                run = _run(coded)
                pairs = detect_copies(coded, run, _run).accepted
                again = _run(with_shared_votes(coded, pairs)) if len(pairs) else run
                found = [np.argmax(one.classes, axis=1) for one in (run, again)]
                scores.append([100 * np.mean(one == truth[coded.tasks]) for one in found])
            cells += [f"{score:.2f}" for score in np.mean(scores, axis=0)]
        rows.append((f"{groups} of {size}", f"{rate:g}", *cells))
    headings = ("groups", "of the tasks", "2 classes: count", "share", "4 classes: count", "share")
    return (
        "## Labels where workers copy\nAccuracy in per cent with the votes of copiers counted in full, and sharing the "
        f"weight of one where they are found; the crowds above, mean of {len(SEEDS)}.\n\n" + table(headings, rows)
    )


def real() -> str:
    """Pairs that are named in real crowds."""
    rows = []
    for name in ("bluebird", "rte", "dog", "web"):
        model = DawidSkene(random_state=0).fit(load_crowd(name).votes)
        rows.append((name, model.workers_.size, len(model.copies_)))
    return "## Copies in real crowds\nPairs of workers that are named.\n\n" + table(("", "workers", "pairs"), rows)


PARTS: dict[str, Callable[[], str]] = {"named": named, "labels": labels, "real": real}

if __name__ == "__main__":
    run_parts("crowd_copies", PARTS)
