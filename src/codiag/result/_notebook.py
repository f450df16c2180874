"""The table of a fit in notebooks: weights, standard errors, and the index at which every component is largest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from codiag._arrays import to_host
from codiag._text import html_table
from codiag.labels import Labels

if TYPE_CHECKING:
    from codiag.result._factorization import Factorization

QUICK = 1000
"""Number of parameters up to which standard errors are computed for display; above, only if known (chosen by time)."""


def fit_html(fit: Factorization) -> str:
    """Return a table for notebooks, a row for each component."""
    labels = fit.labels or Labels.counted(len(fit.shape))
    columns: dict[str, Iterable[object]] = {"component": range(fit.rank)}
    columns["weight"] = [f"{float(weight):.4g}" for weight in to_host(fit.weights)]
    n_parameters = sum(min(size, fit.rank) if fit.problem is None else size for size in fit.shape) * fit.rank
    errors = fit.standard_errors if "sensitivity" in vars(fit) or n_parameters <= QUICK else None
    for mode in [0] if fit.symmetric else range(len(fit.shape)):
        name = "all modes" if fit.symmetric else labels.names[mode]
        index = labels.index(mode, fit.shape[mode])
        peaks = index[np.argmax(np.abs(to_host(fit.factors[mode])), axis=0)]
        columns[f"{name}: largest at"] = peaks.astype(str) if peaks.dtype.kind in "mM" else peaks.tolist()
        if errors is not None:
            columns[f"{name}: standard error"] = [f"{error:.2g}" for error in errors[mode]]
    return html_table(repr(fit), columns)
