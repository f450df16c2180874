"""The single topic model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codiag.experiments.paper.trials import axis, grid, median_of, select, shown
from codiag.experiments.reports import Finding, Panel, Report, Series, spread
from codiag.experiments.runs import Cell, Experiment, Record, Values
from codiag.metrics import factor_error
from codiag.models import SingleTopic

PAPER = {"OJD0": 0.05, "OJD1": 0.055, "TPM": 0.62, "Lathauwer": 0.65}
METHODS = {"OJD0": "ojd0", "OJD1": "ojd1", "TPM": "tpm", "Lathauwer": "lathauwer", "NOJD1": "nojd1", "Auto": None}
D, K, LENGTH = 50, 10, 10


def _cells(quick: bool) -> list[Cell]:
    return grid({"documents": [20_000] if quick else [10_000, 100_000, 1_000_000]}, 4 if quick else 50)


def _measure(cell: Cell, seed: int) -> Values:
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.ones(D), K)
    sizes = rng.multinomial(cell["documents"], rng.dirichlet(np.full(K, 5.0)))
    counts = np.concatenate([rng.multinomial(LENGTH, topic, size) for topic, size in zip(topics, sizes, strict=True)])
    counts = counts.astype(np.int16)[rng.permutation(cell["documents"])]
    values = {}
    for name, method in METHODS.items():
        model = SingleTopic(K, method=method, random_state=int(rng.integers(2**31))).fit(counts)
        values[name] = factor_error(model.components_.T, topics.T)
    return values


def _report(records: Sequence[Record]) -> Report:
    sizes = axis(records, "documents")
    names = list(METHODS)
    rows = [
        [name, *(shown(median_of(select(records, documents=n), name)) for n in sizes), shown(PAPER.get(name, np.nan))]
        for name in names
    ]
    series = [
        spread(name, {n: [r.values[name] for r in select(records, documents=n)] for n in sizes}) for name in names
    ]
    series += [Series(f"{name}, paper", [sizes[0]], [value], kind="paper") for name, value in PAPER.items()]
    last = select(records, documents=sizes[-1])
    ours, theirs = (min(median_of(last, name) for name in pair) for pair in (("OJD0", "OJD1"), ("TPM", "Lathauwer")))
    finding = Finding(
        "OJD0 0.05 and OJD1 0.055, against TPM 0.62 and Lathauwer 0.65",
        f"with {sizes[-1]:,} documents: best OJD {ours:.3f}, the better of TPM and Lathauwer {theirs:.3f}",
        "yes" if theirs > 5 * ours else "partly" if theirs > 1.1 * ours else "no",
    )
    notes = [
        "The paper gives neither the number of documents nor their length, nor how topics uniform on the sphere are "
        "made into distributions; here topics are uniform on the simplex and documents have ten words.",
    ]
    panel = Panel(f"single topics, d = {D}, k = {K}", "documents", "error of unit topics", series, x_log=True)
    return Report(["method", *(f"{n:,} documents" for n in sizes), "the paper"], rows, [panel], [finding], notes)


TOPIC = Experiment(
    "topic",
    "Single topic model",
    "d = 50, k = 10: errors of OJD0 0.05, OJD1 0.055, TPM 0.62, Lathauwer 0.65.",
    "sampling: documents of ten words, one topic each",
    _cells,
    _measure,
    _report,
)
