"""What must be true of results, whatever the input was."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse

import codiag
from codiag import Factorization

from .reference import best_als, composed, descend, residual, sweep

Problems = Iterator[tuple[str, str]]
Check = Callable[[Any, dict[str, Any]], Problems]
"""Looks at a result and the arguments that gave it, and yields (kind, one line) for whatever is false."""
MAY_BE_NAN = {
    "standard_deviation",
    "objective",
    "history",
    "replication",
    "congruence",
    "core_consistency",
    "residual_statistic",
    "dispersion",
    "dispersion_error",
}
MAY_BE_NAN |= {"smallest_ratio", "confusion_spread_"}
"""Parts of results that are documented to be NaN or infinite where there is nothing to say; and all standard errors."""
LARGEST = 400, 90
"""Entries and unknowns up to which gradients and reference fits are computed."""
NEGLIGIBLE = 0.05
"""Variances of the noise by which a fit that has converged may still be improved: a quarter of a standard error."""


@dataclasses.dataclass(frozen=True, eq=False)
class Held:
    """Entries in double precision, divided by `scale` where they are extreme, and the object that holds them."""

    data: Any
    dense: np.ndarray
    precision: str = "float64"
    scale: float = 1.0
    entrywise: bool = True  # whether the storage subtracts entry by entry, so that small errors are exact

    @property
    def moderate(self) -> bool:
        """Whether squares of the entries are numbers in the precision they are in."""
        limit = 1e130 if self.precision == "float64" else 1e13
        return 1 / limit < self.scale < limit


def not_finite(value: Any, name: str = "result", depth: int = 0) -> str:
    """Return which part of a result is NaN or infinite, or nothing."""
    if isinstance(value, float | np.floating):
        return "" if math.isfinite(value) else f"{name} is {value}"
    if isinstance(value, np.ndarray):
        good = value.dtype.kind not in "fc" or bool(np.all(np.isfinite(value)))
        return "" if good else f"{name} has {int(np.sum(~np.isfinite(value)))} of {value.size} NaN or infinite"
    if depth > 3:
        return ""
    named = [(key, part) for key, part in _parts(value, name) if key not in MAY_BE_NAN and "standard_error" not in key]
    return next(filter(None, (not_finite(part, key, depth + 1) for key, part in named)), "")


def _parts(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if sparse.issparse(value):
        yield name, value.data
    elif isinstance(value, Factorization):  # rows that were never observed are NaN
        yield from {"weights": value.weights, "relative_error": value.relative_error}.items()
        yield "factors", [factor[~np.all(np.isnan(factor), axis=1)] for factor in map(np.asarray, value.factors)]
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
    elif isinstance(value, list | tuple):
        yield from ((f"{name}[{place}]", part) for place, part in enumerate(value))
    elif isinstance(value, dict):
        yield from ((str(key), part) for key, part in value.items())
    else:  # an estimator
        own = getattr(value, "__dict__", {})
        yield from ((key, part) for key, part in own.items() if key.endswith("_") and key[0] != "_")


def finite(result: Any, arguments: dict[str, Any]) -> Problems:
    """All numbers of a result are numbers."""
    bad = not_finite(result)
    if bad:
        yield "not finite", bad


def about_fit(held: Held, rank: int, claims: str, seed: int) -> Check:
    """Return the check of a factorization: its form, its error, and what it claims about being a minimum.

    `claims` says what the method promises: "best" (no plain method does much better), "minimum", "sweep" (a sweep of
    alternating least squares gains next to nothing) or nothing.
    """

    def check(fit: Any, arguments: dict[str, Any]) -> Problems:
        problems = list(about_form(fit, held, rank))
        yield from problems
        if {"shape", "not finite"} & {kind for kind, _ in problems}:
            return
        norm = float(np.linalg.norm(held.dense))
        weights = np.asarray(fit.weights, dtype=np.float64) / held.scale / norm
        factors = [np.asarray(factor, dtype=np.float64) for factor in fit.factors]
        entries = held.dense / norm
        true = float(np.linalg.norm(entries - composed(weights, factors)))
        cancel = max(1.0, float(np.sum(np.abs(weights))))
        share, rounding = (1e-3, 5e-6) if held.precision == "float32" else (1e-6, 1e-12 if held.entrywise else 3e-7)
        if abs(fit.relative_error - true) > share * true + rounding * cancel:
            yield "relative_error", f"{fit.relative_error:.3g} is claimed, {true:.3g} is true"
        small = entries.size <= LARGEST[0] and rank * sum(entries.shape) <= LARGEST[1]
        if claims and small:
            point = [factor * np.abs(weights) ** (1 / len(factors)) for factor in factors]
            point[0] = point[0] * np.where(weights < 0, -1.0, 1.0)
            yield from about_minimum(fit, entries, point, claims, np.random.default_rng(seed))

    return check


def about_form(fit: Any, held: Held, rank: int) -> Problems:
    """Rank, shapes, precision, finite numbers, unit columns, order."""
    weights, factors = np.asarray(fit.weights), [np.asarray(factor) for factor in fit.factors]
    shapes = [factor.shape for factor in factors]
    if weights.shape != (rank,) or shapes != [(size, rank) for size in held.dense.shape]:
        yield "shape", f"{rank} components of {held.dense.shape} asked for; weights {weights.shape}, factors {shapes}"
        return
    kinds = {str(array.dtype) for array in (weights, *factors)}
    if kinds != {held.precision}:
        yield "dtype", f"{held.precision} in, {sorted(kinds)} out"
    bad = not_finite([weights, factors, fit.relative_error, fit._norm])
    if bad:
        yield "not finite", bad
        return
    worst = max(float(np.max(np.abs(np.linalg.norm(f.astype(np.float64), axis=0) - 1))) for f in factors)
    if worst > (1e-5 if held.precision == "float32" else 1e-10):
        yield "unit columns", f"a column is {worst:.2g} away from length one"
    sizes = np.abs(weights.astype(np.float64))
    if np.any(np.diff(sizes) > 0) or (np.any(weights < 0) and not (fit.symmetric and len(factors) % 2 == 0)):
        yield "order", f"weights are not largest first, or negative: {weights[:5]}"


def about_minimum(
    fit: Any, entries: np.ndarray, point: Sequence[np.ndarray], claims: str, rng: np.random.Generator
) -> Problems:
    """A fit that says it has converged is where it says; the default is not much worse than plain methods."""
    true = float(np.linalg.norm(residual(entries, point)))
    if claims == "best":
        best = best_als(entries, fit.rank, rng)
        if true > best + 0.05:
            yield "worse than ALS", f"relative error {true:.3f}, plain least squares {best:.3f}"
    if not fit.converged:
        return
    if claims == "sweep":
        after = float(np.linalg.norm(residual(entries, sweep(entries, point))))
        if true - after > 3e-6 + (1e-4 if str(np.asarray(fit.weights).dtype) == "float32" else 0.0):
            yield "not converged", f"converged, but one sweep lowers the relative error from {true:.8g} to {after:.8g}"
        return
    value, after = true**2 / 2, descend(entries, point, 8)
    if value - after > _negligible(fit, entries, value):
        yield "not converged", f"8 steps lower the relative error from {true:.6g} to {math.sqrt(2 * after):.6g}"
    scale = 1e-2 * max(1.0, *(np.linalg.norm(factor, axis=0).max() / np.sqrt(factor.shape[0]) for factor in point))
    shaken = [[factor + scale * rng.standard_normal(factor.shape) for factor in point] for _ in range(3)]
    lowest = math.sqrt(2 * min(descend(entries, near, 20) for near in shaken))
    if true - lowest > 1e-3:
        yield "saddle", f"converged at {true:.4f}; shaken a little, it falls to {lowest:.4f}"


def _negligible(fit: Any, entries: np.ndarray, value: float) -> float:
    """Return the decrease that noise, or rounding, makes meaningless; below 1e-9 fits are exact."""
    spare = max(entries.size - fit.rank * (sum(entries.shape) - entries.ndim + 1), 1)
    precision = float(np.finfo(np.asarray(fit.weights).dtype).eps)
    cancel = max(1.0, float(np.sum(np.abs(np.asarray(fit.weights, dtype=np.float64)))) / float(fit._norm))
    return NEGLIGIBLE * 2 * value / spare + (max(1e-9, 100 * precision) * cancel) ** 2 / 2


def about_itself(fit: Any, arguments: dict[str, Any]) -> Problems:
    """What a fit tells about itself is told in words and finite numbers; other libraries get copies of it."""
    if not_finite(fit):  # which is a finding by itself
        return
    yield from about_diagnosis(fit)
    if np.any(np.asarray(fit.standard_errors) < 0):
        yield "standard errors", "are negative"
    if fit.to_tensor().shape != fit.shape or not repr(fit):
        yield "shape", f"to_tensor has shape {fit.to_tensor().shape}, the fit {fit.shape}"
    if find_spec("tensorly"):
        host = [np.asarray(factor) for factor in fit.factors]
        weights, factors = codiag.io.to_tensorly(fit)
        pairs = [*combinations([weights, *factors], 2), *zip(factors, host, strict=True)]
        if any(np.shares_memory(one, other) for one, other in pairs):
            yield "copies", "to_tensorly shares memory"


def about_diagnosis(fit: Any) -> Problems:
    """A diagnosis is sentences, one verdict for each component, and never good of components that cancel."""
    found = fit.diagnose()
    if not all(line.endswith(".") and " " in line for line in str(found).split("\n")):
        yield "diagnosis", f"is not made of sentences: {found}"
    if len(found.advice) > 3 or str(found).count("try rank") != (found.advised_rank is not None):
        yield "diagnosis", f"has more than one advice: {found}"
    if len(found.verdicts) != fit.rank:
        yield "diagnosis", f"{len(found.verdicts)} verdicts for {fit.rank} components"
    weights = np.asarray(fit.weights, dtype=np.float64) / max(float(np.max(np.abs(fit.weights))), 1e-300)
    grams = [np.asarray(f, dtype=np.float64).T @ np.asarray(f, dtype=np.float64) for f in fit.factors]
    inner = np.outer(weights, weights) * np.prod(grams, axis=0)
    for i, j in combinations(range(fit.rank), 2):
        together, apart = inner[i, i] + inner[j, j] + 2 * inner[i, j], inner[i, i] + inner[j, j]
        if together < 0.1 * apart and "determined" in (found.verdicts[i], found.verdicts[j]):
            yield "diagnosis", f"components {i} and {j} cancel to {together / apart:.2g} and count as determined"


def same_again(refit: Callable[..., Any], held: Held) -> Check:
    """Return the check that the same seed gives the same bytes, and a multiple of an array as good a fit."""

    def check(fit: Any, given: dict[str, Any]) -> Problems:
        again = refit(**given)
        if np.asarray(again.weights).tobytes() != np.asarray(fit.weights).tobytes():
            yield "seed", f"the same seed gives other weights: {fit.weights} and {again.weights}"
        if isinstance(given["tensor"], np.ndarray) and held.precision == "float64" and held.scale == 1:
            scaled = refit(**given | {"tensor": given["tensor"] * 1024.0})
            if abs(scaled.relative_error - fit.relative_error) > 1e-3:
                yield "scale", f"{fit.relative_error:.4g} is {scaled.relative_error:.4g} of 1024 times the tensor"

    return check


def simplex(array: Any, axis: int, name: str) -> Problems:
    """Probabilities are not negative and sum to one."""
    values = np.asarray(array, dtype=np.float64)
    if not np.all(np.isfinite(values)):
        yield "not finite", f"{name} has NaN or infinite entries"
    elif values.size and (values.min() < -1e-12 or np.max(np.abs(values.sum(axis=axis) - 1)) > 1e-6):
        yield "probabilities", f"{name}: least {values.min():.2g}, sums {values.sum(axis=axis)[:3]}"


def has_shape(array: Any, shape: tuple[int, ...], name: str) -> Problems:
    """An array has the shape that was promised."""
    if np.shape(array) != shape:
        yield "shape", f"{name} must have shape {shape}; it has {np.shape(array)}"
