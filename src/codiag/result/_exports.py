"""Factorizations as labelled arrays and tables of other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from codiag._arrays import to_host
from codiag.labels import Labels

if TYPE_CHECKING:
    from codiag.result._factorization import Factorization

RESERVED = ("component", "weights")
"""Names that a dataset has of its own."""


def as_dataset(fit: Factorization) -> Any:
    """Return what `Factorization.to_xarray` does."""
    from xarray import Dataset

    labels = fit.labels or Labels.counted(len(fit.shape))
    taken = next((name for name in labels.names if name in RESERVED), None)
    if taken is not None:
        raise ValueError(
            f"names of modes must be others than {' and '.join(RESERVED)}, which the dataset has of its own; got "
            f"{labels.names}. Rename {taken!r} before the fit, or use to_frames"
        )
    variables: dict[str, Any] = {"weights": ("component", to_host(fit.weights))}
    coords: dict[str, Any] = {"component": np.arange(fit.rank)}
    for name, own, factor in zip(labels.names, labels.values, fit.factors, strict=True):
        variables[f"factor_{name}"] = ((name, "component"), to_host(factor))
        coords |= {} if own is None else {name: own}
    about = {"relative_error": fit.relative_error, "norm": fit.norm, "converged": int(fit.converged)}
    return Dataset(variables, coords, about)


def as_frames(fit: Factorization) -> dict[str, Any]:
    """Return what `Factorization.to_frames` does."""
    from pandas import DataFrame, Index, RangeIndex

    labels, frames = fit.labels or Labels.counted(len(fit.shape)), {}
    columns = RangeIndex(fit.rank, name="component")
    for mode, (name, factor) in enumerate(zip(labels.names, fit.factors, strict=True)):
        index = Index(labels.index(mode, fit.shape[mode]), name=name)
        frames[name] = DataFrame(to_host(factor), index, columns)
    return frames
