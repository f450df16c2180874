"""Replacing lost components: one that does little makes room for what the residual still holds.

Least squares gets stuck with one component on noise, or two on one, while another is left in the residual. There it
shows as a rank-one tensor larger than what a component, or the difference of two, takes off the objective.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codiag._array import to_host
from codiag._problem import Problem
from codiag.methods.least_squares._components import hadamard_gram, unit_components
from codiag.methods.least_squares._gauss_newton import Limits, Outcome, minimize
from codiag.methods.least_squares._objective import LeastSquares
from codiag.methods.least_squares._rank_one import distinct_components, merged
from codiag.methods.least_squares._residual import largest_square
from codiag.tensors import DenseTensor, FactoredTensor

ALIKE = 0.5
"""Product of cosines above which two components are candidates to be merged."""

NEWCOMERS = 3
"""Terms of the residual that are tried in place of a component: where all are near the noise, the largest may be it."""

MOST_NOISE = 1e-3
"""Share of the objective that counts as one variance of the noise at most, however few entries there are to tell it."""


def replace_components(
    problem: Problem, found: Outcome, limits: Limits, *, max_replacements: int
) -> tuple[Outcome, int]:
    """Replace components while the objective falls by more than noise explains; return how many were replaced."""
    negligible = 1e-24 * problem.tensor.squared_norm()
    for n_replaced in range(max_replacements):
        if found.objective < negligible:
            return found, n_replaced
        better = _replacement(problem, found, limits)
        if better is None:
            return found, n_replaced
        found = better
    return found, max_replacements


def _replacement(problem: Problem, found: Outcome, limits: Limits) -> Outcome | None:
    components = unit_components(found.components)
    objective = LeastSquares(problem, components)
    residual = objective.residual(components)
    if not _may_pay(components, residual):
        return None
    noise = min(objective.noise_variance, MOST_NOISE) * found.objective
    for cost, gain, start in _candidates(components, distinct_components(residual, NEWCOMERS)):
        if cost / 2 > gain:  # the others take over part of what is removed
            continue
        trial = minimize(problem, start, limits)
        if trial.objective < found.objective - noise:
            return trial
    return None


def _may_pay(components: FactoredTensor, residual: DenseTensor) -> bool:
    """Tell, at the price of one small product, whether the residual can hold as much as some component is worth."""
    likeness = abs(to_host(hadamard_gram(components.factors))) * (1 - np.eye(components.rank))
    return float(likeness.max()) >= ALIKE or float(removal_costs(components).min()) / 2 <= largest_square(residual)


def removal_costs(components: FactoredTensor) -> np.ndarray:
    """Return how much the squared distance grows without a unit component, the other weights fitted anew."""
    gram = to_host(hadamard_gram(components.factors))
    inverse: np.ndarray = np.linalg.pinv(gram, hermitian=True)
    return np.asarray(to_host(components.weights) ** 2 / np.maximum(np.diag(inverse), 1.0))


def _candidates(
    components: FactoredTensor, newcomers: Sequence[FactoredTensor]
) -> list[tuple[float, float, FactoredTensor]]:
    """Return (what the removal costs, what the newcomer brings, components with it instead), cheapest first."""
    k = components.rank
    gram = to_host(hadamard_gram(components.factors))
    gains = [float(newcomer.weights[0]) ** 2 for newcomer in newcomers]
    options: list[tuple[float, float, FactoredTensor]] = []
    costs = removal_costs(components)
    for i in np.argsort(costs)[:2].tolist():
        kept = components.columns([j for j in range(k) if j != i])
        options += [(float(costs[i]), gain, kept.joined(new)) for gain, new in zip(gains, newcomers, strict=True)]
    likeness = abs(gram) * (1 - np.eye(k))
    for _ in range(2 if k > 1 else 0):
        i, j = divmod(int(likeness.argmax()), k)
        if likeness[i, j] < ALIKE:
            break
        likeness[[i, j], :] = likeness[:, [i, j]] = 0
        one, cost = merged(components.columns([i, j]))
        kept = components.columns([other for other in range(k) if other not in (i, j)])
        options.append((cost, gains[0], kept.joined(one).joined(newcomers[0])))
    return sorted(options, key=lambda option: option[0])
