"""What a factorization is, in tables and words."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.table import Table

import codiag
from codiag._arrays import to_host
from codiag.cli.commands import table_of
from codiag.cli.terminal import shown
from codiag.labels import Labels

SHOWN = 30
"""Components that fit on a screen."""
STRONGEST = 2
"""Labels of a mode that are shown of each component."""


def about_fit(fit: codiag.Factorization) -> list[RenderableType]:
    """Return a table of weights with standard errors, one of labels where there are any, and the diagnosis in words."""
    tables = [_weight_table(fit)] if fit.labels is None else [_weight_table(fit), _label_table(fit, fit.labels)]
    return [*tables, "\n".join(shown(line) for line in str(fit.diagnose()).splitlines())]


def factor_table(fit: codiag.Factorization) -> dict[str, list[Any]]:
    """Return the entries of all factors in columns, a row for each, in the labels of the data."""
    labels = fit.labels or Labels.counted(len(fit.shape))
    weights = to_host(fit.weights).tolist()
    columns: dict[str, list[Any]] = {
        name: [] for name in ("component", "weight", "mode", "label", "value", "standard_error")
    }
    for mode, (factor, errors) in enumerate(zip(fit.factors, fit.entry_standard_errors, strict=True)):
        index = labels.index(mode, fit.shape[mode])
        for component, weight in enumerate(weights):
            n = len(index)
            columns["component"] += [component] * n
            columns["weight"] += [weight] * n
            columns["mode"] += [labels.names[mode]] * n
            columns["label"] += index.tolist() if index.dtype.kind != "M" else index.astype(str).tolist()
            columns["value"] += to_host(factor)[:, component].tolist()
            columns["standard_error"] += np.asarray(errors)[:, component].tolist()
    return columns


def _weight_table(fit: codiag.Factorization) -> Table:
    names = (fit.labels or Labels.counted(len(fit.shape))).names
    caption = "+-: standard error of the weight; then, mode by mode, of the unit factors"
    table = table_of("", [], ["component", "weight", "+-", *map(shown, names)], caption=caption)
    rows = zip(to_host(fit.weights).tolist(), fit.weight_standard_errors, fit.standard_errors.T, strict=True)
    for index, (weight, own, by_mode) in enumerate(rows):
        if index == SHOWN:
            break
        table.add_row(str(index), f"{weight:.6g}", _error(own), *map(_error, by_mode))
    if fit.rank > SHOWN:
        table.add_row("...", f"{fit.rank - SHOWN} more, down to {float(fit.weights[-1]):.6g}")
    return table


def _label_table(fit: codiag.Factorization, labels: Labels) -> Table:
    table = table_of("strongest labels of each component", ["", *map(shown, labels.names)], [])
    factors = [to_host(factor) for factor in fit.factors]
    for component in range(min(fit.rank, SHOWN)):
        cells = []
        for mode, factor in enumerate(factors):
            index = labels.index(mode, fit.shape[mode])
            first = np.argsort(-np.abs(factor[:, component]), kind="stable")[:STRONGEST]
            cells.append(", ".join(shown(index[place]) for place in first))
        table.add_row(str(component), *cells)
    return table


def _error(value: float) -> str:
    return "unknown" if np.isnan(value) else f"{value:.2g}"
