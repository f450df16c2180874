"""What the experiments share: errors of methods on one tensor, and tables of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from codiag.diagonalize import QRJ1D, Jacobi
from codiag.experiments.reports import Panel, spread
from codiag.experiments.runs import Cell, Record, Values
from codiag.factorize import factorize
from codiag.methods import ALS, NLS, NOJD, OJD, TPM, Auto, Lathauwer, Method
from codiag.metrics import factor_error, nearest_error
from codiag.synthetic import Problem
from codiag.tensors import symmetrize

NEAREST = " (nearest)"
"""Marks the authors' measure: for each true factor the nearest estimate, which several may share."""


def grid(quick_axes: Mapping[str, Sequence[Any]], n_trials: int) -> list[Cell]:
    """Return all combinations of the axes, trials outermost."""
    places = [dict(zip(quick_axes, values, strict=True)) for values in itertools.product(*quick_axes.values())]
    return [{**place, "trial": trial} for trial in range(n_trials) for place in places]


def orthogonal_methods(size: int, *, symmetric: bool = True) -> dict[str, Method]:
    """Return the paper's orthogonal methods with the authors' settings, and ours."""
    n_projections = 5 if size < 100 else 10
    # Of large matrices the default diagonalizer finds the same minimum in seconds, of others it knows both sides.
    jacobi = Jacobi() if symmetric and size < 100 else None
    return {
        "OJD0": OJD(plug_in=False, n_projections=n_projections, diagonalizer=jacobi, whiten=False),
        "OJD1": OJD(n_projections=n_projections, diagonalizer=jacobi, whiten=False),
        "TPM": TPM(n_restarts=1),
        "Lathauwer": Lathauwer(),
        "ALS": ALS(),
        "Auto": Auto(),
    }


def free_methods(size: int) -> dict[str, Method]:
    """Return the paper's non-orthogonal methods with the authors' settings, and ours."""
    qrj = QRJ1D(max_sweeps=200) if size < 50 else None
    return {
        "NOJD0": NOJD(plug_in=False, n_projections=2 * size, diagonalizer=qrj),
        "NOJD1": NOJD(n_projections=2 * size, diagonalizer=qrj),
        "Lathauwer": Lathauwer(),
        "ALS": ALS(),
        "NLS": NLS(max_replacements=0),
        "Auto": Auto(),
    }


def errors_of(problem: Problem, methods: Mapping[str, Method], symmetric: bool, seed: int) -> Values:
    """Return the errors of methods and of the oracle on one tensor; NaN where a method does not apply.

    Starts are drawn apart from the problem, whose seed this is.
    """
    rank = problem.weights.size
    tensor = symmetrize(problem.tensor) if symmetric else problem.tensor
    start = int(np.random.default_rng([seed, 1]).integers(2**31))
    oracle = NLS(init=(problem.weights, problem.factors), max_replacements=0, max_sweeps=1000)
    values = {}
    for name, method in {**methods, "oracle": oracle}.items():
        try:
            factors = factorize(tensor, rank, method=method, symmetric=symmetric, seed=start).factors
        except ValueError:  # too large for the method
            values[name] = values[name + NEAREST] = float("nan")
            continue
        values[name] = factor_error(factors, problem)
        values[name + NEAREST] = nearest_error(factors, problem)
    return values


def names_of(records: Iterable[Record], ending: str = "") -> list[str]:
    """Return the names of values with this ending, without it, in order."""
    names = dict.fromkeys(name for record in records for name in record.values)
    if ending:
        return [name.removesuffix(ending) for name in names if name.endswith(ending)]
    return [name for name in names if not name.endswith(")")]


def select(records: Iterable[Record], **place: Any) -> list[Record]:
    """Return the records at a place on some axes."""
    return [record for record in records if all(record.cell[axis] == value for axis, value in place.items())]


def axis(records: Iterable[Record], name: str) -> list[Any]:
    """Return the places on an axis, in order."""
    return list(dict.fromkeys(record.cell[name] for record in records))


def median_of(records: Iterable[Record], name: str) -> float:
    """Return the median over trials; NaN where there is none."""
    values = [record.values[name] for record in records if name in record.values]
    return float(np.nanmedian(values)) if np.any(np.isfinite(values)) else float("nan")


def error_panel(records: Sequence[Record], along: str, title: str, x_label: str, ending: str = NEAREST) -> Panel:
    """Return errors of all methods along an axis."""
    series = []
    for name in names_of(records, ending):
        points = {
            place: [record.values[name + ending] for record in select(records, **{along: place})]
            for place in axis(records, along)
        }
        if any(np.any(np.isfinite(values)) for values in points.values()):
            series.append(spread(name, points))
    return Panel(title, x_label, "error of factors (median, quartiles)", series, x_log=True)


def shown(value: float, digits: int = 3) -> str:
    """Return a number for a table; a dash where there is none."""
    return f"{value:.{digits}g}" if np.isfinite(value) else "-"
