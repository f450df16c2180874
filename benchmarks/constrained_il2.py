"""Responses of cells to variants of interleukin 2, a data set of TensorLy, with the entries missing that are."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from benchmarks.constrained_baselines import Task, is_installed, warmed
from codiag.tensors import FactoredTensor
from experiments.records import Cell, Record, Values, combinations, select
from experiments.reports import Report, Table
from experiments.runs import Experiment

RANKS, SEEDS = range(2, 9), 10
BASELINES = {False: "TensorLy masked ALS, random start", True: "TensorLy multiplicative"}
"""TensorLy's method with a mask, where factors are free and where they are not negative."""


def experiment() -> Experiment:
    """Return the comparison with the best of ten runs of TensorLy as what the harness runs."""
    title = "IL-2 responses, 13 x 4 x 12 x 8, 3.8 % missing"
    return Experiment("il2", title, f"{title}.", _cells, _measured, _report)


def _cells(_: bool) -> list[Cell]:
    places = combinations({"nonnegative": list(BASELINES), "rank": list(RANKS), "seed": range(SEEDS)})
    found = [place | {"method": name} for place in places for name in ("codiag", BASELINES[place["nonnegative"]])]
    return found if is_installed("TensorLy") else []


@lru_cache(maxsize=1)
def _data() -> tuple[np.ndarray, np.ndarray]:
    from tensorly.datasets import load_IL2data

    tensor = np.asarray(load_IL2data().tensor)
    mask = np.isfinite(tensor)
    return np.where(mask, tensor, 0.0), mask.astype(float)


def _measured(cell: Cell, _: int) -> Values:
    """Return the relative error on what was observed, and CPU time."""
    tensor, mask = _data()
    task = Task(tensor, cell["rank"], mask, cell["nonnegative"], cell["seed"])
    work = warmed(cell["method"])
    begin = time.process_time()
    factors = work(task)
    seconds = time.process_time() - begin
    left = mask * (tensor - FactoredTensor(np.ones(task.rank), factors, symmetric=False).to_dense())
    return {"cpu": seconds, "error": float(np.linalg.norm(left) / np.linalg.norm(tensor))}


def _report(records: Sequence[Record]) -> Report:
    headings = (
        "rank",
        "codiag, best",
        "codiag, worst",
        "TensorLy, best of ten",
        "worst minus best",
        "CPU s, a run each",
    )
    tables = []
    for nonnegative, baseline in BASELINES.items():
        rows = []
        for rank in RANKS:
            ours, theirs = (
                select(records, nonnegative=nonnegative, rank=rank, method=name) for name in ("codiag", baseline)
            )
            if ours and theirs:
                rows.append((str(rank), *_figures(ours, theirs)))
        kind = "Non-negative" if nonnegative else "Free factors"
        tables.append(Table(f"{kind}, against {baseline}: relative error on what was observed", headings, rows))
    return Report([], tables)


def _figures(ours: Sequence[Record], theirs: Sequence[Record]) -> tuple[str, ...]:
    own, other = (np.array([one.values["error"] for one in records]) for records in (ours, theirs))
    best = float(np.nanmin(other)) if np.any(np.isfinite(other)) else math.nan
    cpu = [float(np.median([one.values["cpu"] for one in records])) for records in (ours, theirs)]
    errors = own.min(), own.max(), best
    return (*(f"{error:.6f}" for error in errors), f"{own.max() - best:+.1e}", f"{cpu[0]:.2f}, {cpu[1]:.2f}")
