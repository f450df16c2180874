"""What the experiments share: errors of methods on one tensor, and tables and curves of their means."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from codiag import factor_error
from codiag.diagonalize import QRJ1D, UWEDGE, Jacobi
from codiag.extending import Method
from codiag.methods import ALS, NLS, NOJD, OJD, TPM, Auto
from codiag.metrics import nearest_error
from codiag.synthetic import PlantedTensor
from codiag.tensors import symmetrize
from experiments.claims import Trials, over
from experiments.estimators.limits import GramLathauwer, orthogonal_oracle
from experiments.estimators.slices import SD2
from experiments.fitting import silent_fit
from experiments.records import Cell, Record, Values, cell_key, combinations
from experiments.reports import Panel, Series, Table

NEAREST = " (nearest)"
"""Marks the authors' measure: for each true factor the nearest estimate, which several may share."""


def grid(axes: Mapping[str, Sequence[Any]], n_trials: int) -> list[Cell]:
    """Return all combinations of the axes, trials outermost."""
    return [{**place, "trial": trial} for trial in range(n_trials) for place in combinations(axes)]


def stage_of(trial: int, enough: int, wanted: int | None = None) -> float:
    """Return how late a trial may be run: the first `enough` between 0 and 1, the others between 4 and 5.

    Within a stage trials are spread evenly, so that all places have about equally many of theirs at any time. The
    stages between are for trials that take long.
    """
    if wanted is None or trial < enough:
        return trial / enough
    return 4 + (trial - enough) / (wanted - enough)


def history(enough: int, wanted: int | None = None) -> Callable[[Cell], float]:
    """Return `stage_of` as a function of a place, which can be sent to another process."""
    return partial(_stage_of_cell, enough=enough, wanted=wanted)


def _stage_of_cell(cell: Cell, enough: int, wanted: int | None) -> float:
    return stage_of(cell["trial"], enough, wanted)


def orthogonal_methods(size: int, rank: int, *, extras: bool) -> dict[str, Method]:
    """Return the paper's orthogonal methods with the authors' settings, and ours with `extras`.

    For 100 matrices of size 100 Jacobi takes minutes; the default diagonalizer finds the same minimum in seconds.
    """
    n_projections = 5 if size < 100 else 10
    jacobi = Jacobi(tol=1e-4) if rank < 100 else None
    methods: dict[str, Method] = {
        "OJD0": OJD(plug_in=False, n_projections=n_projections, diagonalizer=jacobi),
        "OJD1": OJD(n_projections=n_projections, diagonalizer=jacobi),
        "TPM": TPM(n_restarts=1),
    }
    return methods | ({"Auto": Auto()} if extras else {})


def free_methods(size: int, rank: int, *, extras: bool) -> dict[str, Method]:
    """Return the paper's non-orthogonal methods: QRJ1D with the authors' settings, UWEDGE beside it.

    For 200 matrices of size 100 QRJ1D takes minutes, and is left out.
    """
    methods: dict[str, Method] = {
        "NOJD0 (UWEDGE)": NOJD(plug_in=False, n_projections=2 * size, diagonalizer=UWEDGE()),
        "NOJD1 (factors, UWEDGE)": NOJD(n_projections=2 * size, plug_in=True, diagonalizer=UWEDGE()),
    }
    if rank < 100:
        method = QRJ1D(tol=1e-4, max_sweeps=200)
        methods |= {
            "NOJD0": NOJD(plug_in=False, n_projections=2 * size, diagonalizer=method),
            "NOJD1": NOJD(n_projections=2 * size, plug_in="inverse", diagonalizer=method),
            "NOJD1 (factors)": NOJD(n_projections=2 * size, plug_in=True, diagonalizer=method),
        }
    return methods | ({"Auto": Auto()} if extras else {})


def baselines(*, lathauwer: bool, als: bool, nls: bool, scaled: bool = False) -> dict[str, Method]:
    """Return baselines from random starts, those that can be run at a size."""
    methods: dict[str, Method] = {}
    if lathauwer:
        methods["Lathauwer"] = GramLathauwer()
    if scaled:
        methods["Lathauwer (scaled)"] = GramLathauwer(scaled=True)
    if als:
        methods["ALS"] = ALS()
    if nls:
        methods["NLS"] = NLS(max_replacements=0)
    return methods


def pencil_starts() -> dict[str, Method]:
    """Return least squares from the eigenvectors of one pair of projections, the default start of Tensorlab."""
    start = SD2(n_pairs=1)
    return {"ALS (pencil)": ALS(init=start), "NLS (pencil)": NLS(init=start, max_replacements=0)}


def errors_of(
    problem: PlantedTensor, methods: Mapping[str, Method], symmetric: bool, seed: int, *, oracles: Sequence[str] = ()
) -> Values:
    """Return the errors and CPU times of methods, and errors of oracles ("oracle", "orthogonal oracle"), on one tensor.

    Starts are drawn apart from the problem, whose seed this is. NaN where a method finds fewer components.
    """
    rank = problem.weights.size
    tensor = symmetrize(problem.tensor) if symmetric else problem.tensor
    start = int(np.random.default_rng([seed, 1]).integers(2**31))
    values: Values = {}
    for name, method in methods.items():
        begin = time.process_time()
        try:
            factors = silent_fit(tensor, rank, method=method, symmetric=symmetric, seed=start).factors
        except ValueError:
            values[name] = values[name + NEAREST] = float("nan")
            continue
        values[f"{name} seconds"] = round(time.process_time() - begin, 4)
        values[name], values[name + NEAREST] = factor_error(factors, problem), nearest_error(factors, problem)
    if "oracle" in oracles:
        oracle = NLS(init=(problem.weights, problem.factors), max_replacements=0, max_iter=300)
        values["oracle"] = factor_error(silent_fit(tensor, rank, method=oracle, symmetric=symmetric), problem)
    if "orthogonal oracle" in oracles:
        found = orthogonal_oracle(tensor, problem.factors, symmetric=symmetric)
        values["orthogonal oracle"] = factor_error(found, problem)
    return values


def axis(records: Sequence[Record], name: str) -> list[Any]:
    """Return the places on an axis, sorted."""
    return sorted({record.cell[name] for record in records if name in record.cell})


def names_of(records: Sequence[Record]) -> list[str]:
    """Return the names of values in order, those of the authors' measure and times left out."""
    names = dict.fromkeys(name for record in records for name in record.values)
    return [name for name in names if not name.endswith((NEAREST, " seconds"))]


def n_trials(records: Sequence[Record]) -> str:
    """Return in words how many trials the places of some records have."""
    places: dict[str, int] = {}
    for record in records:
        key = cell_key({name: value for name, value in record.cell.items() if name != "trial"})
        places[key] = places.get(key, 0) + 1
    least, largest = min(places.values(), default=0), max(places.values(), default=0)
    return f"{least:,}" if least == largest else f"{least:,} to {largest:,}"


Middle = Callable[[np.ndarray], Any]
"""The mean, as in the paper, or the median."""
FEWEST_FOR_BARS = 5
"""Trials below which a standard error says nothing."""


def curve(
    records: Sequence[Record], name: str, along: str, label: str | None = None, middle: Middle = np.mean
) -> Series:
    """Return means or medians along an axis, with bars of two standard errors where trials are enough for them."""
    trials = Trials(records)
    xs, middles, low, high = [], [], [], []
    for place in axis(records, along):
        found = trials.values(name, **{along: place})
        if found.size == 0:
            continue
        bar = _bar(found, middle) if found.size >= FEWEST_FOR_BARS else (middle(found), middle(found))
        xs.append(float(place))
        middles.append(float(middle(found)))
        low.append(max(float(bar[0]), middles[-1] / 10))
        high.append(float(bar[1]))
    return Series(label or name, xs, middles, low, high)


def _bar(found: np.ndarray, middle: Middle) -> tuple[float, float]:
    """Return the mean less and plus two standard errors; for the median those order statistics that stand for them."""
    if middle is np.median:
        ranks = np.round(found.size / 2 + np.sqrt(found.size) * np.array([-1, 1])).astype(int)
        low, high = np.sort(found)[np.clip(ranks, 0, found.size - 1)]
        return float(low), float(high)
    spread = 2 * found.std() / np.sqrt(found.size)
    return float(found.mean() - spread), float(found.mean() + spread)


def panel_of(
    records: Sequence[Record],
    names: Sequence[str],
    along: str,
    title: str,
    x_label: str,
    y_label: str,
    *,
    middle: Middle = np.mean,
    **options: Any,
) -> Panel:
    """Return the means or medians of some names along an axis; names without values are left out."""
    series = [one for name in names if (one := curve(records, name, along, middle=middle)).x]
    return Panel(title, x_label, y_label, series, **options)


def table_of(
    records: Sequence[Record], axes: Mapping[str, str], names: Sequence[str], title: str, middle: Middle = np.mean
) -> Table:
    """Return means or medians at every combination of the axes, with the number of trials there."""
    places = dict.fromkeys(tuple(record.cell[name] for name in axes) for record in records)
    trials = Trials(records)
    rows = []
    for place in sorted(places, key=lambda one: tuple(map(str, one)) if any(isinstance(p, str) for p in one) else one):
        where = dict(zip(axes, place, strict=True))
        cells = [shown(over(middle, trials.values(name, **where))) for name in names]
        rows.append(
            [
                *(shown(value) if isinstance(value, float) else str(value) for value in place),
                str(len(trials.at(**where))),
                *cells,
            ]
        )
    return Table(title, [*axes.values(), "trials", *names], rows)


def shown(value: float, digits: int = 3) -> str:
    """Return a number for a table; a dash where there is none."""
    return f"{value:.{digits}g}" if np.isfinite(value) else "-"
