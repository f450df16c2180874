"""Stand-in for what issue 29 adds to `DawidSkene`: families, dependence, effective votes and weights.

Remove this file, its two lines in conftest.py, and the TODO in src/codiag/reports/_alike.py once the model has these
attributes: `install` does nothing then.
"""

from __future__ import annotations

from functools import wraps
from types import SimpleNamespace

import numpy as np
from scipy.sparse.csgraph import connected_components

from codiag.models import DawidSkene
from codiag.models.crowd import as_votes

TABLES = ("builtins", "numpy", "pandas", "polars", "pyarrow")
LEAST_SHARED, ALIKE, MOST_CELLS = 5, 0.3, 10**7


def install():
    """Let fitted models have the attributes, unless they do by themselves."""
    learn, worker_table = DawidSkene.learn, DawidSkene.worker_table

    @wraps(learn)
    def learn_dependence(self, data, gold=None):
        found = learn(self, data, gold)
        if not hasattr(self, "families_") and type(data).__module__.partition(".")[0] in TABLES:
            add_dependence(self, data)
        return found

    @wraps(worker_table)
    def table_with_families(self):
        table = worker_table(self)
        if "family" in table or not hasattr(self, "families_"):
            return table
        family = {name: place for place, names in enumerate(self.families_, 1) for name in names.tolist()}
        columns = {name: table.pop(name) for name in list(table)[:6]}
        columns |= {"family": np.array([family.get(name, 0) for name in self.workers_.tolist()])}
        return columns | {"weight": self._weight_of_votes} | table

    DawidSkene.learn, DawidSkene.worker_table = learn_dependence, table_with_families


def add_dependence(model, data):
    """Add the attributes by correlations of residuals, and Kish's effective number: right in kind, not in detail."""
    try:
        votes = as_votes(data, model.missing)
    except (TypeError, ValueError):  # parts of a table, which were read already
        return
    n_workers, k = votes.workers.size, votes.classes.size
    if n_workers * votes.tasks.size * k > MOST_CELLS:
        return
    counts = np.zeros((n_workers, votes.tasks.size, k))
    np.add.at(counts, (votes.worker, votes.task, votes.label), 1)
    seen = counts.sum(axis=2) > 0
    expected = np.einsum("wgc,tc->wtg", model._run.model.confusions, model._run.classes)
    residual = np.where(seen[..., None], counts - expected, 0)
    shared = np.einsum("wt,vt->wv", seen.astype(float), seen.astype(float))
    cross = np.einsum("wtg,vtg->wv", residual, residual)
    sizes = np.einsum("wtg,vt->wv", residual**2, seen.astype(float))
    with np.errstate(divide="ignore", invalid="ignore"):
        dependence = np.clip(cross / np.sqrt(sizes * sizes.T), -1, 1)
    dependence[shared < LEAST_SHARED] = np.nan
    np.fill_diagonal(dependence, 1.0)
    group = connected_components(np.nan_to_num(dependence) > ALIKE, directed=False)[1]
    members = [np.flatnonzero(group == number) for number in range(group.max() + 1)]
    model.families_ = [votes.workers[places] for places in members if places.size > 1]
    model.dependence_, model._dependence = dependence, SimpleNamespace(matrix=dependence)
    model._weight_of_votes = 1 / np.maximum(np.nan_to_num(dependence), 0).sum(axis=1)
    model.effective_votes_ = float(model._weight_of_votes.sum())
    model.effective_votes_interval_ = model.effective_votes_ * np.array([0.9, 1.1])
