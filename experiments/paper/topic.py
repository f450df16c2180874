"""The single topic model (claim 17)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codiag import factor_error
from codiag.extending import Method
from codiag.methods import NOJD, OJD, TPM
from codiag.problem import Problem
from codiag.result import solve
from codiag.tensors import symmetrize
from experiments.claims import Claim, Ruling, Trials, of_parts
from experiments.estimators.limits import GramLathauwer
from experiments.paper.trials import grid, history, n_trials, panel_of, table_of
from experiments.records import Cell, Record, Values, select
from experiments.reports import Figure, Panel, Report, Series
from experiments.runs import Experiment

PAPER = {"OJD0": 0.05, "OJD1": 0.055, "TPM": 0.62, "Lathauwer": 0.65}
READINGS = ("absolute values", "squares", "simplex")
SIZES = (10_000, 100_000, 1_000_000)
METHODS = ("OJD0", "OJD1", "TPM", "Lathauwer", "NOJD1", "TPM, not whitened")
D, K = 50, 10
TOL = 0.25


def _cells(quick: bool) -> list[Cell]:
    cells = grid({"reading": READINGS, "documents": SIZES}, 50)
    return [cell for cell in cells if not quick or (cell["trial"] < 3 and cell["documents"] < 10**6)]


def topics(reading: str, rng: np.random.Generator) -> np.ndarray:
    """Return distributions over words as columns, from points that are uniform on the sphere, or on the simplex."""
    points = rng.standard_normal((D, K))
    if reading == "simplex":
        return rng.dirichlet(np.ones(D), K).T
    points = np.abs(points) if reading == "absolute values" else points**2
    return np.asarray(points / points.sum(axis=0))


def moments(columns: np.ndarray, n_documents: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the second and third moments of documents of three words, each of one topic, all as likely."""
    size, rank = columns.shape
    counts = np.zeros(size**3)
    for topic, n in enumerate(rng.multinomial(n_documents, np.full(rank, 1 / rank))):
        words = rng.choice(size, (n, 3), p=columns[:, topic])
        counts += np.bincount(words @ np.array([size**2, size, 1]), minlength=size**3)
    third = symmetrize(counts.reshape((size,) * 3) / n_documents)
    return third.sum(axis=2), third


def _measure(cell: Cell, seed: int) -> Values:
    rng = np.random.default_rng(seed)
    columns = topics(cell["reading"], rng)
    second, third = moments(columns, cell["documents"], rng)
    methods: dict[str, Method] = {
        "OJD0": OJD(plug_in=False),
        "OJD1": OJD(),
        "TPM": TPM(n_restarts=1),
        "Lathauwer": GramLathauwer(),
        "NOJD1": NOJD(plug_in="inverse"),
        "TPM, not whitened": TPM(n_restarts=1),
    }
    start = int(rng.integers(2**31))
    values: Values = {}
    for name, method in methods.items():
        try:
            whitens = method.needs_orthogonal and "not whitened" not in name
            problem = Problem(third, K, second_moment=second if whitens else None, symmetric=True)
            fit = solve(problem, method, start)
        except ValueError:
            values[name] = float("nan")
            continue
        values[name] = factor_error(fit.factors[0], columns)
    return values


def _report(records: Sequence[Record]) -> Report:
    panels = []
    for reading in READINGS:
        here = select(records, reading=reading)
        if here:
            plain = panel_of(here, METHODS, "documents", reading, "documents", "mean error of topics", x_log=True)
            marks = [Series(f"{name}, paper", [2e6], [value], kind="paper") for name, value in PAPER.items()]
            panels.append(
                Panel(plain.title, plain.x_label, plain.y_label, [*plain.series, *marks], x_log=True, y_log=True)
            )
    story = (
        "Mean error of topics against the number of documents, by the way in which points of a sphere become topics; "
        f"{n_trials(records)} trials a place, bars of two standard errors."
    )
    axes = {"reading": "topics from", "documents": "documents"}
    notes = [
        "Documents have three words, as in section 2.2 of the paper; it does not say how many documents "
        "there were, nor "
        "how points that are uniform on the sphere become distributions. Stars mark the values it prints."
    ]
    return Report(
        [Figure("Single topics", story, panels, "section-8-single-topic-model")],
        [table_of(records, axes, METHODS, "Mean errors")],
        notes,
    )


def _values_and_order(trials: Trials) -> Ruling:
    best, told, ordered, exact = np.inf, "", False, False
    for reading in READINGS:
        for documents in SIZES:
            means = {name: trials.mean(name, reading=reading, documents=documents) for name in PAPER}
            distance = float(np.mean([abs(np.log(means[name] / PAPER[name])) for name in PAPER]))
            in_order = max(means["OJD0"], means["OJD1"]) * 1.1 < min(means["TPM"], means["Lathauwer"])
            ordered |= in_order
            exact |= all(abs(means[name] / PAPER[name] - 1) <= TOL for name in PAPER)
            if distance < best:
                best = distance
                told = f"closest: {reading}, {documents:,} documents: " + ", ".join(
                    f"{name} {mean:.3f}" for name, mean in means.items()
                )
    return Ruling(told, of_parts(ordered, exact))


TOPIC = Experiment(
    "topic",
    "Section 8: single topic model",
    "50 words, 10 topics, documents of three words; 10,000 to 1,000,000 documents; topics from points of the sphere by "
    "absolute values or by squares, or uniform on the simplex. The noise is that of sampling.",
    _cells,
    _measure,
    _report,
    history(20, 50),
)
CLAIMS = [
    Claim(17, "topic", _values_and_order),
]
