"""Data sets with named modes, of which some are shared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from codiag._arrays import to_host
from codiag._checks import as_real_array
from codiag.labels import Labels, read_labelled
from codiag.problem import Problem


@dataclass(frozen=True, eq=False)
class Sets:
    """Arrays in units of their root mean squares, NaN where an entry is missing.

    Attributes
    ----------
    names : tuple of str
        Of the sets.
    arrays : tuple of arrays
        In these units.
    scales : array of shape (n_sets,)
        The units: root mean squares.
    modes : tuple of tuples of int
        The named modes of each set.
    labels : Labels
        Of all named modes.
    sizes : tuple of int
        Of all named modes.
    """

    names: tuple[str, ...]
    arrays: tuple[np.ndarray, ...]
    scales: np.ndarray
    modes: tuple[tuple[int, ...], ...]
    labels: Labels
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, tensors: Any, modes: Any) -> Sets:
        """Return checked sets, whose labels along shared modes are matched."""
        if isinstance(tensors, Mapping):
            keys, tensors = tuple(map(str, tensors)), list(tensors.values())
        else:
            tensors = _as_list(tensors, "tensors", "a list, or a dict, of tensors and matrices")
            keys = tuple(map(str, range(len(tensors))))
        given = [None] * len(tensors) if modes is None else _as_list(modes, "modes", "a list of tuples of names")
        if len(given) != len(tensors) or not tensors:
            raise ValueError(
                f"modes must have a tuple of names for each of {len(tensors)} tensors, at least one; got {len(given)}"
            )
        read = [_read(raw, names, place) for place, (raw, names) in enumerate(zip(tensors, given, strict=True))]
        _check_coupling([names for _, names, _ in read])
        every = list(dict.fromkeys(name for _, names, _ in read for name in names))
        known = {name: _common_labels(name, read) for name in every}
        arrays = [_aligned(array, names, values, known) for array, names, values in read]
        sizes = {name: size for (_, names, _), array in zip(read, arrays, strict=True)
                 for name, size in zip(names, array.shape, strict=True)}  # fmt: skip
        norms = [math.sqrt(float(np.nanmean(array**2))) for array in arrays]
        if not all(norms):
            raise ValueError(f"tensors[{norms.index(0.0)}] must have entries other than zero")
        return cls(
            keys,
            tuple(array / norm for array, norm in zip(arrays, norms, strict=True)),
            np.array(norms),
            tuple(tuple(every.index(name) for name in names) for _, names, _ in read),
            Labels(tuple(every), tuple(known[name] for name in every)),
            tuple(sizes[name] for name in every),
        )

    def __len__(self) -> int:
        return len(self.arrays)

    @cached_property
    def n_observed(self) -> np.ndarray:
        """Numbers of observed entries."""
        return np.array([np.count_nonzero(~np.isnan(array)) for array in self.arrays])

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """One problem a set, with another mode of size one: its factor is the row of weights."""
        return tuple(Problem(array[..., None], 1) for array in self.arrays)

    @property
    def is_complete(self) -> list[bool]:
        """Whether no entry of a set is missing."""
        return [problem.entries is None for problem in self.problems]

    def containing(self, mode: int) -> list[int]:
        """Return the sets that have a mode."""
        return [i for i, own in enumerate(self.modes) if mode in own]

    def n_parameters(self, rank: int) -> int:
        """Return the number of parameters: unit columns of all modes, and weights."""
        return rank * (sum(self.sizes) - len(self.sizes) + len(self))


def _as_list(raw: Any, name: str, wanted: str) -> list[Any]:
    if isinstance(raw, str) or not isinstance(raw, Sequence):
        raise TypeError(f"{name} must be {wanted}; got {type(raw).__name__}")
    return list(raw)


def _read(raw: Any, names: Any, place: int) -> tuple[np.ndarray, tuple[str, ...], list[np.ndarray | None]]:
    """Return the entries of a set, the names of its modes, and their labels."""
    if all(hasattr(raw, name) for name in ("index", "columns", "to_numpy")) and len(names or ()) == 2:
        entries: Any = raw.to_numpy()
        labels: Labels | None = Labels(tuple(names), (np.asarray(raw.index), np.asarray(raw.columns)))
    else:
        entries, labels = read_labelled(raw)
    if hasattr(entries, "stored_mask"):  # one of our tensors
        stored = to_host(entries.to_dense())
        entries = np.where(entries.stored_mask(), stored, np.nan) if entries.is_partial else stored
    if isinstance(entries, np.ma.MaskedArray):
        entries = np.ma.filled(entries.astype(np.float64), np.nan)
    array = np.asarray(to_host(as_real_array(entries, f"tensors[{place}]", "use its real part")), dtype=np.float64)
    if names is None and labels is None:
        raise ValueError(f"modes must name the modes of tensors[{place}], as ('subject', 'time'): it has no labels")
    own = labels.names if names is None and labels is not None else tuple(map(str, _as_list(names, "modes", "tuples")))
    if len(own) != array.ndim or len(set(own)) < len(own) or array.ndim < 2:
        raise ValueError(
            f"modes[{place}] must have {array.ndim} different names, one for each mode of tensors[{place}], a matrix "
            f"or a tensor; got {own}"
        )
    if np.isinf(array).any() or np.isnan(array).all():
        raise ValueError(f"tensors[{place}] must have entries that are finite numbers; NaN are missing")
    return array, own, list(labels.values) if labels is not None else [None] * array.ndim


def _check_coupling(names: list[tuple[str, ...]]) -> None:
    """Raise unless all sets are connected by shared modes, and one of them is a tensor."""
    joined, rest = set(names[0]), list(range(1, len(names)))
    while any(joined & set(names[i]) for i in rest):
        joined |= set().union(*(names[i] for i in rest if joined & set(names[i])))
        rest = [i for i in rest if not joined & set(names[i])]
    if any(not joined & set(names[i]) for i in rest):
        raise ValueError(
            f"modes must connect all tensors; tensors[{rest[0]}] with {names[rest[0]]} shares none of them"
        )
    if max(map(len, names)) < 3:
        raise ValueError("tensors must have one of order three or more: components of matrices alone are not unique")


def _common_labels(name: str, read: Sequence[tuple[np.ndarray, tuple[str, ...], Any]]) -> np.ndarray | None:
    """Return the labels of a mode that any set has, in the order of appearance; None if some set has no labels."""
    uses = [
        (array.shape[names.index(name)], values[names.index(name)]) for array, names, values in read if name in names
    ]
    labels = [values for _, values in uses if values is not None]
    if len(labels) == len(uses):
        return np.array(list(dict.fromkeys(label for values in labels for label in values.tolist())), labels[0].dtype)
    sizes = {size for size, _ in uses}
    if len(sizes) > 1:
        raise ValueError(
            f"tensors must have equal sizes along the shared mode {name!r}, or labels that say which indices are the "
            f"same; got {sorted(sizes)}"
        )
    return labels[0] if labels else None


def _aligned(
    array: np.ndarray, names: tuple[str, ...], values: Any, known: Mapping[str, np.ndarray | None]
) -> np.ndarray:
    """Return entries at the common labels; those that a set does not have are missing."""
    for axis, (name, own) in enumerate(zip(names, values, strict=True)):
        wanted = known[name]
        if own is None or wanted is None or np.array_equal(own, wanted):
            continue
        places = {label: place for place, label in enumerate(own.tolist())}
        if len(places) < len(own):
            raise ValueError(f"labels along the shared mode {name!r} must be different; got {own.tolist()[:9]}")
        chosen = np.array([places.get(label, -1) for label in wanted.tolist()])
        array = np.take(array, chosen, axis=axis)
        array = np.where(np.expand_dims(chosen < 0, tuple(range(1, array.ndim - axis))), np.nan, array)
    return array
