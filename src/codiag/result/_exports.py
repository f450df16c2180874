"""Export the factors of a fit to xarray and to data frames."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from codiag._arrays import to_host
from codiag.labels import Labels

if TYPE_CHECKING:
    from codiag.result._factorization import Factorization

RESERVED = ("component", "weights")
"""Names in a dataset that no mode may have."""


def as_dataset(fit: Factorization) -> Any:
    """Return what `Factorization.to_xarray` does."""
    from xarray import Dataset

    labels = fit.labels or Labels.counted(len(fit.shape))
    taken = next((name for name in labels.names if name in RESERVED), None)
    if taken is not None:
        raise ValueError(
            f"names of modes must be others than {' and '.join(RESERVED)}, which are names in the dataset already; got "
            f"{labels.names}. Rename {taken!r} before the fit, or use to_frames"
        )
    variables: dict[str, Any] = {"weights": ("component", to_host(fit.weights))}
    coords: dict[str, Any] = {"component": np.arange(fit.rank)}
    for name, values, factor in zip(labels.names, labels.values, fit.factors, strict=True):
        variables[f"factor_{name}"] = ((name, "component"), to_host(factor))
        coords |= {} if values is None else {name: values}
    about = {"relative_error": fit.relative_error, "norm": fit.norm, "converged": int(fit.converged)}
    return Dataset(variables, coords, about)


def as_frames(fit: Factorization, library: str) -> dict[str, Any]:
    """Return what `Factorization.to_frames` does."""
    labels = fit.labels or Labels.counted(len(fit.shape))
    make = _pandas_frame if library == "pandas" else partial(_frame, import_module(library))
    return {
        name: make(name, labels.index(mode, fit.shape[mode]), to_host(factor))
        for mode, (name, factor) in enumerate(zip(labels.names, fit.factors, strict=True))
    }


def _pandas_frame(name: str, labels: np.ndarray, factor: np.ndarray) -> Any:
    from pandas import DataFrame, Index, RangeIndex

    return DataFrame(factor, Index(labels, name=name), RangeIndex(factor.shape[1], name="component"))


def _frame(library: Any, name: str, labels: np.ndarray, factor: np.ndarray) -> Any:
    """Return a frame of a library without row labels, which are then the first column."""
    import narwhals.stable.v1 as nw

    columns = {name: labels} | {f"component_{i}": factor[:, i] for i in range(factor.shape[1])}
    return nw.from_dict(columns, native_namespace=library).to_native()
