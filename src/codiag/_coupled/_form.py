"""From a minimum to the form of results: units of the data, order and signs of components."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codiag._coupled._errors import errors_of, single_matrices
from codiag._coupled._fit import CoupledFit, Test
from codiag._coupled._search import Found, Parts
from codiag._coupled._sets import Sets
from codiag.constraints import Constraint


def in_form(
    found: Found, sets: Sets, rules: Sequence[Constraint | None], tests: tuple[Test, ...] | None = None
) -> CoupledFit:
    """Return the result: in the units of the data, components that explain most first, with signs."""
    known_rows = [_observed_rows(sets, mode) for mode in range(len(sets.sizes))]
    parts = separated(_without_rows(found.end.parts, sets, known_rows), sets)
    order = np.argsort(-np.sum(parts.weights**2 / sets.n_observed[:, None], axis=0), kind="stable")
    order = order if tests is None else np.arange(order.size)
    factors, weights = [factor[:, order] for factor in parts.factors], parts.weights[:, order]
    weights = _signed(factors, weights, sets, rules)
    errors = errors_of(found.objective, factors, weights, known_rows)
    present = [np.any(weights[sets.containing(mode)] != 0, axis=0) for mode in range(len(factors))]
    hidden = [np.where(seen[:, None] & has, 0.0, np.nan) for seen, has in zip(known_rows, present, strict=True)]
    point = np.concatenate([*factors, weights])
    distances = found.objective.distances(point) / [member.objective.squared_norm for member in found.objective.members]
    return CoupledFit(
        weights * sets.scales[:, None],
        {name: factor + nan for name, factor, nan in zip(sets.labels.names, factors, hidden, strict=True)},
        np.sqrt(np.maximum(distances, 0.0)),
        sets.scales / np.sqrt([member.precision for member in found.objective.members]),
        found.end.converged,
        found.history,
        found.p_missed,
        sets,
        tuple(rules),
        {name: error + nan for name, error, nan in zip(sets.labels.names, errors.entries, hidden, strict=True)},
        errors.weights * sets.scales[:, None],
        errors.contributions,
        tests or (),
    )


def separated(parts: Parts, sets: Sets) -> Parts:
    """Make the columns of components that are in one matrix only orthogonal to those that it shares with other sets.

    A matrix does not tell how much of the shared columns they hold; the sum of components is the same.
    """
    factors, weights = [factor.copy() for factor in parts.factors], parts.weights.copy()
    for place, mode, other, apart, common in single_matrices(weights, sets):
        here, (left, right) = weights[place] != 0, (factors[mode], factors[other])
        right *= np.where(here, weights[place], 1.0)
        share = np.linalg.lstsq(left[:, common], left[:, apart], rcond=None)[0]
        left[:, apart] -= left[:, common] @ share
        right[:, common] += right[:, apart] @ share.T
        norms = np.stack([np.linalg.norm(factor, axis=0) for factor in (left, right)])
        norms = np.where(here & (norms > 0), norms, 1.0)
        left /= norms[0]
        right /= norms[1]
        weights[place, here] = np.prod(norms, axis=0)[here]
    return Parts(factors, weights)


def _observed_rows(sets: Sets, mode: int) -> np.ndarray:
    """Return which rows of a factor any observed entry belongs to."""
    seen = np.zeros(sets.sizes[mode], dtype=bool)
    for i in sets.containing(mode):
        known = np.moveaxis(~np.isnan(sets.arrays[i]), sets.modes[i].index(mode), 0)
        seen |= known.reshape(len(seen), -1).any(axis=1)
    return seen


def _without_rows(parts: Parts, sets: Sets, known_rows: Sequence[np.ndarray]) -> Parts:
    """Return unit factors with zeros in rows that nothing is known about."""
    kept = [factor * seen[:, None] for factor, seen in zip(parts.factors, known_rows, strict=True)]
    norms = np.stack([np.linalg.norm(factor, axis=0) for factor in kept])
    sizes = np.stack([np.prod(norms[list(modes)], axis=0) for modes in sets.modes])
    return Parts([factor / norm for factor, norm in zip(kept, norms, strict=True)], parts.weights * sizes)


def _signed(
    factors: list[np.ndarray], weights: np.ndarray, sets: Sets, rules: Sequence[Constraint | None]
) -> np.ndarray:
    """Make largest entries of factors positive, then weights, by modes that no earlier set has; in place."""
    weights, earlier = weights.copy(), set[int]()

    def flip(mode: int, signs: np.ndarray) -> None:
        if rules[mode] is None or rules[mode].allows_sign_change:  # type: ignore[union-attr]
            factors[mode] *= signs
            for i in sets.containing(mode):
                weights[i] *= signs

    for mode, factor in enumerate(factors):
        peaks = factor[np.argmax(np.abs(factor), axis=0), np.arange(factor.shape[1])]
        flip(mode, np.where(peaks < 0, -1.0, 1.0))
    for i, modes in enumerate(sets.modes):
        new = [m for m in modes if m not in earlier and (rules[m] is None or rules[m].allows_sign_change)]  # type: ignore[union-attr]
        if new:
            flip(new[-1], np.where(weights[i] < 0, -1.0, 1.0))
        earlier |= set(modes)
    return weights
