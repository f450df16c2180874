"""Other forms of a fit: a dataset of xarray, a data frame, and the table that notebooks show."""

from __future__ import annotations

import math
from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from codiag._arrays import Array, take, to_host
from codiag._text import html_table
from codiag.labels import Labels

if TYPE_CHECKING:
    from codiag.result._factorization import Factorization

RESERVED = ("component", "weights")
"""Names in a dataset that no mode may have."""


def as_dataset(fit: Factorization, *, standard_errors: bool) -> Any:
    """Return what `Factorization.to_xarray` does."""
    from xarray import Dataset

    labels = fit.problem.labels or Labels.counted(len(fit.shape))
    taken = next((name for name in labels.names if name in RESERVED), None)
    if taken is not None:
        raise ValueError(
            f"names of modes must be others than {' and '.join(RESERVED)}, which are names in the dataset already; got "
            f"{labels.names}. Rename {taken!r} before the fit, or use to_table"
        )
    variables: dict[str, Any] = {"weights": ("component", to_host(fit.weights))}
    coords: dict[str, Any] = {"component": np.arange(fit.rank)}
    for mode, (name, values) in enumerate(zip(labels.names, labels.values, strict=True)):
        variables[f"factor_{name}"] = ((name, "component"), to_host(fit.factors[mode]))
        coords |= {} if values is None else {name: (name, values, labels.attributes[mode])}
    if standard_errors:
        variables["weights_standard_error"] = ("component", fit.weight_standard_errors)
        for name, errors in zip(labels.names, fit.entry_standard_errors, strict=True):
            variables[f"factor_{name}_standard_error"] = ((name, "component"), errors)
    about = {"relative_error": fit.relative_error, "norm": fit._norm, "converged": int(fit.converged)}
    return Dataset(variables, coords, about)


def long_columns(fit: Factorization, *, standard_errors: bool = True) -> dict[str, np.ndarray]:
    """Return the columns of a table with a row for each entry of each factor."""
    labels = fit.problem.labels or Labels.counted(len(fit.shape))
    bounds = fit.conf_int() if standard_errors else None
    parts: dict[str, list[np.ndarray]] = {name: [] for name in ("component", "weight", "mode", "label", "value")}
    parts |= {name: [] for name in ("standard_error", "low", "high") if bounds is not None}
    for mode, size in enumerate(fit.shape):
        parts["component"].append(np.repeat(np.arange(fit.rank), size))
        parts["weight"].append(np.repeat(to_host(fit.weights), size))
        parts["mode"].append(np.full(size * fit.rank, labels.names[mode]))
        parts["label"].append(np.tile(labels.index(mode, size), fit.rank))
        parts["value"].append(to_host(fit.factors[mode]).T.ravel())
        if bounds is not None:
            parts["standard_error"].append(fit.entry_standard_errors[mode].T.ravel())
            for name, bound in zip(("low", "high"), bounds.factors[mode], strict=True):
                parts[name].append(bound.T.ravel())
    if len({values.dtype.kind for values in parts["label"]}) > 1:
        parts["label"] = [values.astype(str) for values in parts["label"]]
    return {name: np.concatenate(values) for name, values in parts.items()}


def as_table(fit: Factorization, library: str, *, standard_errors: bool) -> Any:
    """Return what `Factorization.to_table` does."""
    import narwhals.stable.v1 as nw

    columns = long_columns(fit, standard_errors=standard_errors)
    return nw.from_dict(columns, native_namespace=import_module(library)).to_native()


def entries_at(fit: Factorization, indices: Any) -> Array:
    """Return what `Factorization.predict` does."""
    rows = np.asarray(indices)
    if rows.ndim != 2 or rows.shape[1] != len(fit.shape) or rows.dtype.kind not in "iu":
        raise ValueError(
            f"indices must be integers of shape (n, {len(fit.shape)}), a row for each entry; "
            f"got {rows.dtype} of shape {rows.shape}"
        )
    outside = np.flatnonzero(np.any((rows < 0) | (rows >= fit.shape), axis=1))
    if outside.size:
        index = tuple(rows[outside[0]].tolist())
        raise ValueError(f"indices must be from 0 to below {fit.shape}, the shape of the tensor; got {index}")
    picked = [take(factor, rows[:, mode], 0) for mode, factor in enumerate(fit.factors)]
    return math.prod(picked[1:], start=picked[0]) @ fit.weights


def as_array_of_samples(coefficients: np.ndarray, samples: Any, name: str) -> Any:
    """Return coefficients (n, rank) as an xarray.DataArray, with the coordinate of the samples along a mode."""
    from xarray import DataArray

    coords: dict[str, Any] = {"component": np.arange(coefficients.shape[1])}
    dimension = next(each for each in samples.dims if str(each) == name)
    if dimension in samples.coords:
        coords[dimension] = samples.coords[dimension]
    return DataArray(coefficients, coords, (dimension, "component"), attrs=samples.attrs)


def fit_html(fit: Factorization) -> str:
    """Return a table for notebooks, a row for each component."""
    labels = fit.problem.labels or Labels.counted(len(fit.shape))
    columns: dict[str, Iterable[object]] = {"component": range(fit.rank)}
    columns["weight"] = [f"{float(weight):.4g}" for weight in to_host(fit.weights)]
    errors = vars(fit).get("standard_errors")  # if they are known: showing a fit computes nothing
    for mode in [0] if fit._symmetric else range(len(fit.shape)):
        name = "all modes" if fit._symmetric else labels.names[mode]
        index = labels.index(mode, fit.shape[mode])
        peaks = index[np.argmax(np.abs(to_host(fit._components.factors[mode])), axis=0)]
        columns[f"{name}: largest at"] = peaks.astype(str) if peaks.dtype.kind in "mM" else peaks.tolist()
        if errors is not None:
            columns[f"{name}: standard error"] = [f"{error:.2g}" for error in errors[mode]]
    return html_table(repr(fit), columns)
