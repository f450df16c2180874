"""Accuracy of workers: do intervals hold the truth, and are workers with few votes judged fairly?

``CODIAG_DATA_DIR=... python -m benchmarks.crowd_workers [intervals few-votes]``
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.measure import run_parts, table
from codiag.datasets import load_crowd
from codiag.models import DawidSkene
from codiag.synthetic import worker_confusions

BANDS = {"1-2": (1, 2), "3-9": (3, 9), "10-29": (10, 29), "30-99": (30, 99), "100 and more": (100, 10**9)}
SIZES = ((40, 300, 5), (100, 400, 3), (100, 1500, 6))  # workers, tasks, votes a task
REPEATS = 2


def intervals() -> str:
    """How often intervals of 90 % hold the true accuracy, by crowd and number of votes."""
    held: dict[str, list[list[np.ndarray]]] = {band: [] for band in BANDS}
    rows = []
    for kind, make in KINDS.items():
        found = [_simulated(make, k, size, seed) for k in (2, 3, 4, 5) for size in SIZES for seed in range(REPEATS)]
        parts = [np.concatenate([one[band] for one in found]) for band in BANDS]
        for band, part in zip(BANDS, parts, strict=True):
            held[band].append([part])
        rows.append((kind, *(f"{part[:, 0].mean():.3f} ({part.shape[0]})" for part in parts)))
    together = [np.concatenate([part for (part,) in held[band]]) for band in BANDS]
    rows.append(("**all**", *(f"**{part[:, 0].mean():.3f}** ({part.shape[0]})" for part in together)))
    rows.append(("accuracy, reported", *(f"{part[:, 1].mean():.3f}" for part in together)))
    rows.append(("accuracy, true", *(f"{part[:, 2].mean():.3f}" for part in together)))
    return (
        "## Intervals of worker accuracy\nHow often `worker_accuracy_interval_` (0.9) holds the true accuracy of a "
        "simulated worker, by the number of votes the worker gave, and how many workers there were. Crowds of 2, 3, 4 "
        "and 5 classes; 40 workers with 5 votes a task on 300 tasks, 100 with 3 on 400, and 100 with 6 on 1500; the "
        f"numbers of votes are log-normal over workers; {REPEATS} crowds each.\n\n" + table(("crowd", *BANDS), rows)
    )


def few_votes() -> str:
    """Reported accuracy beside the share of votes that are right, on real crowds."""
    rows = []
    for name in ("dog", "rte", "web", "bluebird"):
        data = load_crowd(name)
        truth = dict(zip(data.truth["task"].tolist(), data.truth["truth"].tolist(), strict=True))
        model = DawidSkene(random_state=0).fit(data.votes)
        old = DawidSkene(random_state=0, smoothing=1.0).fit(data.votes)
        known = np.array([task in truth for task in data.votes["task"].tolist()])
        task, worker, label = (data.votes[key][known] for key in ("task", "worker", "label"))
        right = label == np.array([truth[one] for one in task.tolist()])
        place = np.searchsorted(model.workers_, worker)
        n_right = np.bincount(place, weights=right, minlength=model.workers_.size)
        n_votes = np.bincount(place, minlength=model.workers_.size)
        for band, (least, most) in BANDS.items():
            some = (n_votes >= least) & (n_votes <= most)
            if np.any(some):
                means = [one.worker_accuracy_[some].mean() for one in (model, old)]
                rate = (n_right[some] / n_votes[some]).mean()
                rows.append((name, band, int(some.sum()), f"{means[0]:.3f}", f"{rate:.3f}", f"{means[1]:.3f}"))
    return (
        "## Workers with few votes\nMean `worker_accuracy_` of real workers, by the number of votes they gave on tasks "
        "with a truth, beside the mean share of these votes that are right, and what one vote added to every cell "
        "(`smoothing=1.0`) reports.\n\n"
        + table(("", "votes", "workers", "reported", "right", "reported, smoothing 1"), rows)
    )


def _simulated(make: Callable[..., np.ndarray], k: int, size: tuple[int, int, int], seed: int) -> dict[str, np.ndarray]:
    """Return for every band whether intervals hold, the accuracy reported, and the true one."""
    n_workers, n_tasks, per_task = size
    rng = np.random.default_rng([seed, k, n_workers, n_tasks])
    errors = make(n_workers, k, rng)
    priors = rng.dirichlet(np.full(k, 5.0))
    appetite = np.exp(rng.normal(0, 1.6, n_workers))
    wanted = rng.poisson(appetite / appetite.sum() * n_tasks * per_task)
    counts = np.clip(wanted, 1, n_tasks)
    truth = rng.choice(k, n_tasks, p=priors)
    worker = np.repeat(np.arange(n_workers), counts)
    task = np.concatenate([rng.choice(n_tasks, count, replace=False) for count in counts])
    ladder = np.cumsum(errors, axis=1)[worker, :, truth[task]]
    label = np.minimum(np.sum(ladder < rng.random((worker.size, 1)), axis=1), k - 1)
    model = DawidSkene(random_state=seed).fit((task, worker, label))
    rates = np.einsum("wcc,c->w", errors, priors)
    low, high = model.worker_accuracy_interval_.T
    seen = np.stack([(low <= rates) & (rates <= high), model.worker_accuracy_, rates], axis=1)
    return {band: seen[(counts >= least) & (counts <= most)] for band, (least, most) in BANDS.items()}


def _one_rate(rates: np.ndarray, k: int) -> np.ndarray:
    rates = rates[:, None, None]
    return np.where(np.eye(k, dtype=bool), rates, (1 - rates) / (k - 1))


def _columns(n_workers: int, k: int, rng: np.random.Generator) -> np.ndarray:
    alphas = np.where(np.eye(k, dtype=bool), 6.0, 2 / (k - 1))
    return np.stack([rng.dirichlet(alpha, n_workers) for alpha in alphas], axis=2)


def _spammers(n_workers: int, k: int, rng: np.random.Generator) -> np.ndarray:
    """Return a quarter of spammers, half of whom guess and half of whom always give one label, nearly."""
    errors = _one_rate(rng.beta(8, 2, n_workers), k)
    for worker in np.flatnonzero(rng.random(n_workers) < 0.25):
        if rng.random() < 0.5:
            errors[worker] = 1 / k
        else:
            errors[worker] = 0.02
            errors[worker, rng.integers(k)] = 1 - 0.02 * (k - 1)
    return errors


def _adversarial(n_workers: int, k: int, rng: np.random.Generator) -> np.ndarray:
    errors = worker_confusions(n_workers, k, adversarial=0.15, rng=int(rng.integers(2**31)))
    return errors[rng.permutation(n_workers)]


KINDS: dict[str, Callable[..., Any]] = {
    "one rate each, 0.5 to 0.95": lambda n, k, rng: _one_rate(rng.uniform(0.5, 0.95, n), k),
    "one rate each, Beta(6, 2)": lambda n, k, rng: _one_rate(rng.beta(6, 2, n), k),
    "Dirichlet columns": _columns,
    "rates by class, 0.5 to 0.9": lambda n, k, rng: worker_confusions(n, k, rng=int(rng.integers(2**31))),
    "the same, 15 % adversarial": _adversarial,
    "a quarter spammers": _spammers,
}
PARTS: dict[str, Callable[[], str]] = {"intervals": intervals, "few-votes": few_votes}

if __name__ == "__main__":
    run_parts("crowd_workers", PARTS)
