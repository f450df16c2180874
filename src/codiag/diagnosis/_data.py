"""What the data itself shows: entries and samples that carry a component alone, or lie far out of line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from codiag._arrays import is_complex, squared_magnitudes, to_double, to_host
from codiag.least_squares import TINY, strongest_terms
from codiag.problem import Problem

if TYPE_CHECKING:
    from codiag.result import Factorization

ALONE = 0.9
"""Share of the energy of a component from which one entry, or one sample, carries it alone."""

FAR = 10.0
"""Robust standard deviations beyond which an entry is out of line, if it has `MUCH` of the squared residual, too."""

MUCH = 0.1
"""Share of the squared residual in one entry that matters to a fit, of a hundred entries or more."""

LOUD = 3.0
"""Root mean square of the residual of a sample, relative to the median of all, from which it is out of line."""


class Entry(NamedTuple):
    """An entry that is out of line.

    Attributes
    ----------
    place : tuple of int
        Its index.
    value : float
    z : float
        Its residual in robust standard deviations.
    component : int or None
        The component that it carries alone.
    is_code : bool
        Whether the value looks like a code for missing entries, such as -999.
    """

    place: tuple[int, ...]
    value: float
    z: float
    component: int | None
    is_code: bool


def lone_entries(
    weights: np.ndarray, factors: Sequence[np.ndarray], seen: np.ndarray | None = None
) -> dict[int, tuple[int, ...]]:
    """Return the components of some weight that one entry carries alone, with its index.

    Entries that were not observed do not count: a component may be as large there as it likes.
    """
    found = {}
    for r in np.flatnonzero(weights).tolist():
        columns = [squared_magnitudes(factor[:, r]) for factor in factors]
        if seen is None or seen.all():
            place = tuple(int(np.argmax(column)) for column in columns)
            share = math.prod(float(np.max(column)) for column in columns)
        else:
            squares = np.where(seen, reduce(np.multiply.outer, columns), 0.0)
            place = tuple(map(int, np.unravel_index(np.argmax(squares), seen.shape)))
            share = float(squares[place]) / max(float(np.sum(squares)), TINY)
        if share > ALONE:
            found[r] = place
    return found


def lone_samples(factors: Sequence[np.ndarray]) -> dict[tuple[int, int], int]:
    """Return the samples, mode and index, that carry a component alone, with that component.

    Of fewer than five indices, one may carry a component by chance.
    """
    found = {}
    for mode, factor in enumerate(factors):
        if factor.shape[0] < 5:
            continue
        squares = squared_magnitudes(factor)
        for r in np.flatnonzero(np.max(squares, axis=0) > ALONE).tolist():
            found[mode, int(np.argmax(squares[:, r]))] = r
    return found


def codes_of(problem: Problem) -> list[tuple[int, ...]]:
    """Return the entries that hold a code for missing values: nines, far from all other entries."""
    values = to_host(problem.tensor.to_dense())
    if is_complex(values):
        return []
    known = problem.observed_mask()
    observed = to_double(values)[known]
    if observed.size < 10:
        return []
    center, found = float(np.median(observed)), list[tuple[int, ...]]()
    for code in (float(np.min(observed)), float(np.max(observed))):
        is_nines = abs(code) >= 9 and code == int(code) and set(str(abs(int(code)))) == {"9"}
        rest = observed[observed != code]
        if is_nines and rest.size and abs(code - center) > 5 * float(np.max(np.abs(rest - center))):
            found += [tuple(index) for index in np.argwhere(known & (values == code)).tolist()]
    return found


def entries_out_of_line(
    fit: Factorization, residual: np.ndarray, seen: np.ndarray, contributions: np.ndarray
) -> list[Entry]:
    """Return entries that carry a component alone, hold a code, or have much of the squared residual, largest first.

    A component that an entry carries must contribute more than noise: one too many may be the largest of its entries.
    """
    factors = [to_double(to_host(factor)) for factor in fit._components.factors]
    sizes = np.abs(residual)
    scale = float(np.median(sizes[seen])) / 0.6745
    problem = fit._data
    assert problem is not None  # which has the residual
    carried = lone_entries(to_host(fit.weights), factors, seen).items()
    are_small = contributions * problem.data.mean_weight <= (FAR * scale) ** 2
    if fit._deviance is not None:  # which is not in units of entries
        are_small[:] = False
    alone = {index: r for r, index in carried if seen[index] and not are_small[r]}
    total = float(np.sum(sizes**2))
    codes = codes_of(problem)
    places = [*alone, *codes]
    while np.count_nonzero(seen) >= 100 and len(places) < 20:  # terms of the residual that are single entries
        weights, columns = strongest_terms(residual[None])
        place = lone_entries(weights, [column.T for column in columns]).get(0)
        if place is None or not sizes[place] > FAR * scale or not sizes[place] ** 2 > MUCH * total:
            break
        places.append(place)
        residual = residual.copy()
        residual[place] = 0
    values = to_double(to_host(problem.tensor.to_dense()))
    found = {
        index: Entry(
            index,
            float(np.real(values[index])),
            float(sizes[index] / scale) if scale > 0 else math.nan,
            alone.get(index),
            index in codes,
        )
        for index in dict.fromkeys(places)
    }
    return sorted(found.values(), key=lambda entry: -abs(entry.value))[:20]


def loudness(residual: np.ndarray, seen: np.ndarray) -> list[np.ndarray]:
    """Return the root mean square of the residual of each index of each mode, relative to the median of the mode."""
    found = []
    for mode in range(residual.ndim):
        others = tuple(other for other in range(residual.ndim) if other != mode)
        counts = np.sum(seen, axis=others)
        sizes = np.sqrt(np.sum(squared_magnitudes(residual), axis=others) / np.maximum(counts, 1))
        median = float(np.median(sizes[counts > 0])) if np.any(counts > 0) else 0.0
        found.append(np.where(counts > 0, sizes / median if median > 0 else 0.0, np.nan))
    return found


def leverages(factor: np.ndarray) -> np.ndarray:
    """Return the leverages of the rows of a factor, shape (d,): the diagonal of the projection onto its columns."""
    left, values, _ = np.linalg.svd(factor, full_matrices=False)
    nonzero = values > max(factor.shape) * np.finfo(float).eps * values[0]
    return np.asarray(np.sum(squared_magnitudes(left[:, nonzero]), axis=1))


def empty_rows(fit: Factorization) -> list[list[int]]:
    """Return, mode by mode, the indices all of whose entries are zero."""
    problem = fit._data
    if problem is None or problem.tensor.shape != fit.shape:
        return [[] for _ in fit.shape]
    is_zero, known = to_host(problem.tensor.to_dense()) == 0, problem.observed_mask()
    axes = range(is_zero.ndim)
    rest_of = [tuple(other for other in axes if other != mode) for mode in axes]
    return [np.flatnonzero(np.all(is_zero | ~known, axis=rest) & np.any(known, axis=rest)).tolist() for rest in rest_of]
