"""Fits under a loss that have no finite optimum, since components separate the entries without error."""

from __future__ import annotations

import numpy as np

from codiag._arrays import to_host
from codiag.least_squares import NEGLIGIBLE
from codiag.result._factorization import Factorization
from codiag.tensors import is_large


def separation(fit: Factorization) -> str:
    """Return a sentence on what has no best finite model: an index whose entries are all one extreme, or entries.

    Empty if the fit has converged, or its loss has a best finite model for every entry.
    """
    problem, loss = fit.problem, fit.problem.loss
    if fit.converged or loss is None or not loss.infinite_at or not problem.has_data:
        return ""
    if not problem.tensor.holds_entries or is_large(problem.tensor.shape):
        return ""
    entries, known = to_host(problem.tensor.to_dense()), to_host(problem.observed_mask())
    for mode, size in enumerate(entries.shape):
        for index in range(size):
            values = np.take(entries, index, axis=mode)[np.take(known, index, axis=mode)]
            extreme = next((value for value in loss.infinite_at if values.size > 0 and np.all(values == value)), None)
            if extreme is not None:
                return (
                    f"Index {index} of mode {mode} holds nothing but {extreme:g}, for which {loss!r} has no best "
                    "finite model: leave it out, or bound components by constraints=codiag.constraints.Ridge(...)."
                )
    means = loss.mean(to_host(fit.to_tensor()))
    is_sure = sum(known & (entries == value) & (np.abs(means - value) < NEGLIGIBLE) for value in loss.infinite_at)
    n_sure = int(np.sum(is_sure))
    if n_sure == 0:
        return ""
    return (
        f"Components separate {n_sure} of {int(np.sum(known))} entries without error, so that {loss!r} has no best "
        "finite model: lower the rank, or bound components by constraints=codiag.constraints.Ridge(...)."
    )
