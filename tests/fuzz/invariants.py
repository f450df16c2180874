"""What must be true of results, whatever the input was."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from codiag import Factorization

from .arrays import Held
from .case import Check
from .reference import Point, best_als, composed, descend, error_of, sweep

Problems = Iterator[tuple[str, str]]
MAY_BE_NAN = {"distance", "noise", "objective", "standard_errors", "stages", "core_errors", "confusion_spread_"}
MAY_BE_NAN |= {"dependence_"}  # of workers who share too few tasks
MAY_BE_NAN |= {"congruence", "core_consistency", "residual_excess", "smallest_ratio"}  # of the evidence for a rank
MAY_BE_NAN |= {"replication"}
MAY_BE_NAN |= {
    f"{name}_standard_errors_" for name in ("components", "doc_topic_prior", "emissionprob", "startprob", "transmat")
}
"""Parts of results that are documented to be NaN or infinite where there is nothing to say."""
LARGEST = 400, 90
"""Entries and unknowns up to which gradients and reference fits are computed."""
NEGLIGIBLE = 0.05
"""Variances of the noise by which a fit that has converged may still be improved: a quarter of a standard error."""


def not_finite(value: Any, name: str = "result", depth: int = 0) -> str:
    """Return which part of a result is NaN or infinite, or nothing."""
    if isinstance(value, float | np.floating):
        return "" if math.isfinite(value) else f"{name} is {value}"
    if sparse.issparse(value):
        return not_finite(value.data, name, depth + 1)
    if isinstance(value, np.ndarray):
        good = value.dtype.kind not in "fc" or bool(np.all(np.isfinite(value)))
        return "" if good else f"{name} holds {int(np.sum(~np.isfinite(value)))} of {value.size} NaN or infinite"
    if depth > 3:
        return ""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        if isinstance(value, Factorization):  # rows that were never observed are NaN
            parts["factors"] = [factor[~np.all(np.isnan(factor), axis=1)] for factor in map(np.asarray, value.factors)]
    elif isinstance(value, list | tuple):
        parts = {f"{name}[{place}]": part for place, part in enumerate(value)}
    elif isinstance(value, dict):
        parts = {str(key): part for key, part in value.items()}
    else:
        parts = {
            key: part for key, part in getattr(value, "__dict__", {}).items() if key.endswith("_") and key[0] != "_"
        }
    found = (not_finite(part, key, depth + 1) for key, part in parts.items() if key not in MAY_BE_NAN)
    return next(filter(None, found), "")


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
        yield from about_error(fit.relative_error, entries, weights, factors, held)
        if claims and entries.size <= LARGEST[0] and rank * sum(entries.shape) <= LARGEST[1]:
            yield from about_minimum(fit, entries, weights, factors, claims, seed)

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
    bad = not_finite([weights, factors, fit.relative_error, fit.norm])
    if bad:
        yield "not finite", bad
        return
    lengths = np.array([np.linalg.norm(factor.astype(np.float64), axis=0) for factor in factors])
    worst = float(np.max(np.abs(lengths - 1)))
    if worst > (1e-5 if held.precision == "float32" else 1e-10):
        yield "unit columns", f"a column is {worst:.2g} away from length one"
    sizes = np.abs(weights.astype(np.float64))
    if np.any(np.diff(sizes) > 0):
        yield "order", f"weights are not largest first: {sizes[:5]}"
    if np.any(weights < 0) and not (fit.symmetric and len(factors) % 2 == 0):
        yield "order", "a weight is negative"


def about_error(
    claimed: float, entries: np.ndarray, weights: np.ndarray, factors: Sequence[np.ndarray], held: Held
) -> Problems:
    """The relative error is what the components leave over."""
    true = float(np.linalg.norm(entries - composed(weights, factors)))
    cancel = max(1.0, float(np.sum(np.abs(weights))))
    if held.precision == "float32":
        allowed = 1e-3 * true + 5e-6 * cancel
    else:
        allowed = 1e-6 * true + (1e-12 if held.entrywise else 3e-7) * cancel
    if abs(claimed - true) > allowed:
        yield "relative_error", f"{claimed:.3g} is claimed, {true:.3g} is true ({held.describe()})"


def about_minimum(
    fit: Any, entries: np.ndarray, weights: np.ndarray, factors: list[np.ndarray], claims: str, seed: int
) -> Problems:
    """A fit that says it has converged is where it says; the default is not much worse than plain methods."""
    rng = np.random.default_rng(seed)
    point = Point.of(weights, factors, fit.symmetric)
    true = float(np.linalg.norm(entries - composed(weights, factors)))
    if claims == "best":
        best = _reference_error(entries, fit, rng)
        if true > best + 0.05:
            yield (
                "worse than ALS",
                f"relative error {true:.3f}, plain least squares {best:.3f}, converged={fit.converged}",
            )
    if not fit.converged:
        return
    if claims == "sweep":
        yield from _about_sweep(fit, entries, point, true)
        return
    value = true**2 / 2
    _, after = descend(entries, point, 8)
    if value - after > _negligible(fit, entries, weights, value):
        spare = _spare(fit)
        gain = (value - after) * max(spare, 1) / (2 * value)
        line = f"converged, but 8 steps lower the relative error from {true:.6g} to {math.sqrt(2 * after):.6g}"
        yield "not converged", f"{line}, {gain:.2g} variances"
    ends = [descend(entries, point.shaken(1e-2, rng), 20, exact=False)[1] for _ in range(3)]
    lowest = math.sqrt(2 * min(ends))
    if true - lowest > 1e-3:
        yield "saddle", f"converged at {true:.4f}; shaken a little, it falls to {lowest:.4f}"


def _reference_error(entries: np.ndarray, fit: Any, rng: np.random.Generator) -> float:
    if not fit.symmetric:
        return best_als(entries, fit.rank, rng)
    values = []
    for _ in range(3):
        factor = rng.standard_normal((entries.shape[0], fit.rank))
        signs = np.ones(fit.rank) if entries.ndim % 2 else rng.choice([-1.0, 1.0], fit.rank)
        values.append(descend(entries, Point([factor / 2], signs, entries.ndim), 25, exact=False)[1])
    return min(1.0, math.sqrt(2 * min(values)))


def _about_sweep(fit: Any, entries: np.ndarray, point: Point, true: float) -> Problems:
    if fit.symmetric:
        return
    after = error_of(entries, sweep(entries, list(point.factors)))
    if true - after > 3e-6 + (1e-4 if str(np.asarray(fit.weights).dtype) == "float32" else 0.0):
        yield "not converged", f"converged, but one sweep lowers the relative error from {true:.8g} to {after:.8g}"


def _spare(fit: Any) -> int:
    """Return how many more entries than unknowns there are."""
    sizes = [factor.shape[0] for factor in fit.factors]
    if fit.symmetric:
        return math.comb(sizes[0] + len(sizes) - 1, len(sizes)) - fit.rank * sizes[0]
    return math.prod(sizes) - fit.rank * (sum(sizes) - len(sizes) + 1)


def _negligible(fit: Any, entries: np.ndarray, weights: np.ndarray, value: float) -> float:
    """Return the decrease that noise, or rounding, makes meaningless; below 1e-9 fits are exact."""
    precision = float(np.finfo(np.asarray(fit.weights).dtype).eps)
    rounding = max(1e-9, 100 * precision) * max(1.0, float(np.sum(np.abs(weights))))
    return NEGLIGIBLE * 2 * value / max(_spare(fit), 1) + rounding**2 / 2


def simplex(array: Any, axis: int, name: str) -> Problems:
    """Probabilities are not negative and sum to one."""
    values = np.asarray(array, dtype=np.float64)
    if not np.all(np.isfinite(values)):
        yield "not finite", f"{name} holds NaN or infinite entries"
    elif values.size and (values.min() < -1e-12 or np.max(np.abs(values.sum(axis=axis) - 1)) > 1e-6):
        yield (
            "probabilities",
            f"{name} is not on the simplex: least {values.min():.2g}, sums {values.sum(axis=axis)[:3]}",
        )


def has_shape(array: Any, shape: tuple[int, ...], name: str) -> Problems:
    """An array has the shape that was promised."""
    if np.shape(array) != shape:
        yield "shape", f"{name} must have shape {shape}; it has {np.shape(array)}"


def largest_first(weights: Any, name: str) -> Problems:
    """Weights fall."""
    if np.any(np.diff(np.asarray(weights)) > 1e-12):
        yield "order", f"{name} must be largest first: {np.asarray(weights)[:5]}"
