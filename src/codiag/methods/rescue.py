"""Out of a local optimum: give a component that does little to what the residual still holds.

Least squares gets stuck with one component on noise, or two on one, while another is left in the residual. There it
shows as a rank-one tensor larger than what a component, or the difference of two, takes off the objective.
"""

from __future__ import annotations

import numpy as np

from codiag._array import to_host
from codiag.methods.base import hadamard_gram, unit_components
from codiag.methods.curvature import Parameters
from codiag.methods.gauss_newton import Limits, Outcome, minimize
from codiag.methods.rank_one import best_rank_one, merged
from codiag.tensors import DenseTensor, FactoredTensor

ALIKE = 0.5
"""Product of cosines above which two components are candidates to be merged."""

MOST_NOISE = 1e-3
"""Share of the objective that counts as one variance of the noise at most, however few entries there are to tell it."""


def rescue(tensor: DenseTensor, found: Outcome, limits: Limits, *, max_replacements: int) -> tuple[Outcome, int]:
    """Replace components while the objective falls by more than noise explains; return how many were replaced."""
    negligible = 1e-24 * tensor.squared_norm()
    for n_replaced in range(max_replacements):
        if found.objective < negligible:
            return found, n_replaced
        better = _replacement(tensor, found, limits)
        if better is None:
            return found, n_replaced
        found = better
    return found, max_replacements


def _replacement(tensor: DenseTensor, found: Outcome, limits: Limits) -> Outcome | None:
    components = unit_components(found.components)
    residual = DenseTensor.of(tensor.to_dense() - components.to_dense(), symmetric=tensor.symmetric)
    newcomer = best_rank_one(residual)
    gain = float(newcomer.weights[0]) ** 2
    noise = min(Parameters.of(components).noise_variance(components.rank), MOST_NOISE) * found.objective
    for cost, start in _candidates(components, newcomer):
        if cost / 2 > gain:  # the others take over part of what is removed
            break
        trial = minimize(tensor, start, limits)
        if trial.objective < found.objective - noise:
            return trial
    return None


def _candidates(components: FactoredTensor, newcomer: FactoredTensor) -> list[tuple[float, FactoredTensor]]:
    """Return (what the removal costs, components with the newcomer instead), cheapest first."""
    k = components.rank
    weights, gram = to_host(components.weights), to_host(hadamard_gram(components.factors))
    options: list[tuple[float, FactoredTensor]] = []
    weak = sorted(range(k), key=lambda i: abs(weights[i]))[:2]
    for i in weak:
        kept = components.columns([j for j in range(k) if j != i])
        options.append((float(weights[i] ** 2), kept.joined(newcomer)))
    likeness = abs(gram) * (1 - np.eye(k))
    for _ in range(2 if k > 1 else 0):
        i, j = divmod(int(likeness.argmax()), k)
        if likeness[i, j] < ALIKE:
            break
        likeness[[i, j], :] = likeness[:, [i, j]] = 0
        one, cost = merged(components.columns([i, j]))
        kept = components.columns([other for other in range(k) if other not in (i, j)])
        options.append((cost, kept.joined(one).joined(newcomer)))
    return sorted(options, key=lambda option: option[0])
