"""What users give for slices: lists, arrays, labelled arrays and data frames, checked and with their labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from codiag._arrays import to_host
from codiag._checks import as_rank, as_real_array
from codiag.labels import Labels, as_vector, is_table, is_xarray, read_labelled

NAMES = ("slice", "row", "column")
UNNAMED = Labels(NAMES, (None, None, None))


@dataclass(frozen=True, eq=False)
class Slices:
    """Matrices with the same columns.

    Attributes
    ----------
    matrix : array or sparse matrix of shape (n_rows, J)
        The slices below each other; NaN where an entry is missing.
    sizes : array of int (K,)
        The numbers of rows of the slices.
    labels : Labels
        Names of slices, rows and columns, and labels of slices and columns.
    rows : tuple of arrays (I_k,), or None
        Labels of the rows of each slice.
    """

    matrix: Any
    sizes: np.ndarray
    labels: Labels = UNNAMED
    rows: tuple[np.ndarray, ...] | None = None

    @property
    def width(self) -> int:
        return int(self.matrix.shape[1])

    @property
    def is_sparse(self) -> bool:
        return sparse.issparse(self.matrix)

    @cached_property
    def n_missing(self) -> int:
        return 0 if self.is_sparse else int(np.count_nonzero(np.isnan(self.matrix)))

    @property
    def n_observed(self) -> int:
        return int(self.matrix.shape[0]) * self.width - self.n_missing

    @cached_property
    def squared_norm(self) -> float:
        return float(np.nansum(np.square(self.matrix.data if self.is_sparse else self.matrix)))

    def split(self, rows: Any) -> list[np.ndarray]:
        """Return what there is of each row, slice by slice."""
        return np.split(rows, np.cumsum(self.sizes)[:-1])

    def per_slice(self, rows: np.ndarray) -> np.ndarray:
        """Return sums of what there is of each row, for each slice."""
        return np.asarray(np.add.reduceat(rows, np.cumsum(self.sizes) - self.sizes))

    def subset(self, chosen: np.ndarray) -> Slices:
        places = self.split(np.arange(self.matrix.shape[0]))
        return Slices(self.matrix[np.concatenate([places[k] for k in chosen])], self.sizes[chosen])

    @classmethod
    def of(cls, raw: Any, mask: Any = None) -> Slices:
        """Read and check what a user gives."""
        if isinstance(raw, Slices):
            return raw
        arrays, labels, rows = _read(raw)
        checked = [_as_slice(one, number) for number, one in enumerate(arrays)]
        if not checked:
            raise ValueError("slices must contain at least one slice; got none")
        for number, one in enumerate(checked):
            if one.shape[1] != checked[0].shape[1]:
                raise ValueError(
                    f"slices must all have the same columns; slice 0 has {checked[0].shape[1]} and slice {number} has "
                    f"{one.shape[1]}. Transpose those whose rows are shared, or keep the columns that all have"
                )
        if any(sparse.issparse(one) for one in checked):
            matrix = sparse.vstack(checked, "csr")
        else:
            matrix = np.concatenate(checked)
        if np.isnan(matrix.data if sparse.issparse(matrix) else 0.0).any():
            raise ValueError("slices must be finite if some are sparse; NaN is missing in arrays alone")
        found = cls(matrix, np.array([one.shape[0] for one in checked]), labels, rows)
        found = found if mask is None else found._masked(mask)
        if found.squared_norm == 0:
            raise ValueError("slices must not all be zero or missing")
        return found

    def _masked(self, mask: Any) -> Slices:
        if self.is_sparse:
            raise ValueError("mask must be None for sparse slices, whose zeros are observed; give arrays with NaN")
        masks = [to_host(one) for one in mask]
        shapes = [(size, self.width) for size in self.sizes]
        if [one.shape for one in masks] != shapes or any(one.dtype != bool for one in masks):
            raise ValueError("mask must have an array of bool for each slice, in its shape, true where an entry counts")
        return replace(self, matrix=np.where(np.concatenate(masks), self.matrix, np.nan))

    def check_rank(self, rank: Any) -> int:
        """Return the rank, or raise if no slice can have so many components."""
        found, n, most = as_rank(rank), self.sizes.size, int(self.sizes.max())
        if found is None:
            raise TypeError("rank must be an integer; got None. codiag.choose_rank(slices, model='parafac2') finds one")
        if found > min(most, self.width):
            raise ValueError(
                f"rank must be at most {min(most, self.width)}, the smaller of the numbers of columns ({self.width}) "
                f"and of rows of the longest slice ({most}); got {found}"
            )
        if found > 1 and n < 4:
            raise ValueError(
                f"slices must be at least four, since fewer do not determine components of PARAFAC2; got {n}. Use "
                "rank=1, or codiag.factorize if the rows of all slices are the same"
            )
        return found


def _read(raw: Any) -> tuple[Sequence[Any], Labels, Any]:
    """Return slices, labels, and labels of rows."""
    if hasattr(raw, "data_vars"):
        return _of_dataset(raw)
    if isinstance(raw, Mapping):
        return list(raw.values()), Labels(NAMES, (as_vector(list(raw)), None, None)), None
    if is_table(raw):
        return _of_table(raw)
    if isinstance(raw, str) or sparse.issparse(raw) or not hasattr(raw, "__len__"):
        raise TypeError(f"slices must be a list of matrices or an array of order three; got {type(raw).__name__}")
    if hasattr(raw, "ndim") and raw.ndim != 3:
        raise ValueError(f"slices must be an array of order three, slices first; got shape {tuple(raw.shape)}")
    if is_xarray(raw):
        plain, labels = read_labelled(raw)
        assert labels is not None
        rows = None if labels.values[1] is None else (labels.values[1],) * len(plain)
        return list(plain), replace(labels, values=(labels.values[0], None, labels.values[2])), rows
    frames = [one for one in raw if hasattr(one, "columns") and hasattr(one, "to_numpy")]
    if frames and len(frames) == len(raw):
        columns = [as_vector(list(one.columns)) for one in frames]
        if any(list(one) != list(columns[0]) for one in columns):
            raise ValueError("slices that are data frames must have the same columns in the same order; reindex them")
        return [one.to_numpy() for one in frames], Labels(NAMES, (None, None, columns[0])), None
    return list(raw), UNNAMED, None


def _of_dataset(raw: Any) -> tuple[Sequence[Any], Labels, Any]:
    """Read a dataset of xarray: a variable is a slice, and the dimension that all share has the columns."""
    names = list(raw.data_vars)
    shared = set.intersection(*(set(raw[name].dims) for name in names)) if names else set()
    if len(shared) != 1 or any(raw[name].ndim != 2 for name in names):
        raise ValueError(
            "slices, if a dataset of xarray, must be variables with two dimensions, of which one, that of the columns, "
            f"is common to all; got {len(shared)} common to all"
        )
    column = next(iter(shared))
    slices = [raw[name].transpose(..., column) for name in names]
    has_rows = all(one.dims[0] in one.coords for one in slices)
    rows = tuple(np.asarray(one.coords[one.dims[0]]) for one in slices) if has_rows else None
    columns = np.asarray(raw.coords[column]) if column in raw.coords else None
    return [one.data for one in slices], Labels(("slice", "row", str(column)), (as_vector(names), None, columns)), rows


def _of_table(raw: Any) -> tuple[Sequence[Any], Labels, Any]:
    """Read a long table of slice, row, column and value: a slice has the rows that are listed for it."""
    tensor, labels = read_labelled(raw)
    assert labels is not None
    if len(labels.names) != 3:
        raise ValueError(f"slices, if a table, must have columns of slice, row, column and value; got {labels.names}")
    if hasattr(tensor, "coords"):
        coords, values, shape = tensor.coords, tensor.values, tensor.shape
    else:
        coords, values, shape = np.stack(np.nonzero(~np.isnan(tensor))), tensor[~np.isnan(tensor)], tensor.shape
    listed, places = np.unique(coords[0] * shape[1] + coords[1], return_inverse=True)
    matrix = np.full((listed.size, shape[2]), np.nan)
    matrix[places, coords[2]] = values
    ends = np.cumsum(np.bincount(listed // shape[1], minlength=shape[0]))[:-1]
    rows = tuple(np.split(labels.index(1, shape[1])[listed % shape[1]], ends))
    return np.split(matrix, ends), replace(labels, values=(labels.values[0], None, labels.values[2])), rows


def _as_slice(raw: Any, number: int) -> Any:
    """Return a slice in double precision."""
    name = f"slices[{number}]"
    if sparse.issparse(raw):
        if raw.dtype.kind not in "biuf":
            raise TypeError(f"{name} must be real; got {raw.dtype}: use its real part")
        found = sparse.csr_array(raw, dtype=np.float64)
        values = found.data
    else:
        if isinstance(raw, np.ma.MaskedArray):
            raw = np.ma.filled(raw.astype(np.float64), np.nan)
        found = to_host(as_real_array(raw, name, "use its real part")).astype(np.float64)
        values = found
    if found.ndim != 2:
        raise ValueError(f"{name} must be a matrix; got {found.ndim} axes, shape {tuple(found.shape)}")
    if 0 in found.shape:
        raise ValueError(f"{name} must not be empty; got shape {tuple(found.shape)}. Leave this slice out")
    if np.isinf(values).any():
        raise ValueError(f"{name} must be finite; NaN is missing, in arrays that are not sparse. Replace infinities")
    return found
