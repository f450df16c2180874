r"""Multiplicative steps for non-negative factors of sparse counts, with Anderson acceleration.

If a loss is :math:`x \log(x / \eta) - x + \eta`, and events of a component have their indices drawn from distributions,
the step of expectation maximization multiplies every entry of a factor by the ratio of counts to model that it sees,
:math:`\sum_j (x_j / \eta_j) z_j`, and divides columns by their sums. The loss never rises, no factor becomes negative,
and only entries that are listed are visited, once a step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from codiag._arrays import Array, Extrapolation, array_namespace
from codiag.constraints import ridge_strengths
from codiag.least_squares._budget import step_seconds
from codiag.least_squares._gauss_newton import Limits, OptimizeResult
from codiag.least_squares._generalized import GeneralizedObjective
from codiag.least_squares._tolerances import BRIEF_SWEEPS, INSIGNIFICANT, ROUGHEST, ROUNDING, TINY
from codiag.tensors import FactoredTensor


def multiply(objective: GeneralizedObjective, start: FactoredTensor, limits: Limits) -> OptimizeResult:
    r"""Take multiplicative steps from a start without zeros; an accelerated one is kept if the loss is lower there.

    They end if what further steps would gain, extrapolated from the last steps, moves p parameters by 3 % of their
    standard errors: :math:`10^{-3} p / 2`.
    """
    parametrization, problem = objective.parametrization, objective.problem
    point = objective.projected(parametrization.vectorize(start, balanced=not problem.constraints))
    xp, path, arrived = array_namespace(point), Extrapolation(point), False
    value, image = _step(objective, point)
    values, enough, price = [value], INSIGNIFICANT * problem.n_parameters / 2, step_seconds(problem)
    while len(values) <= limits.max_iter and not arrived and not limits.is_stopped:
        if limits.budget is not None and limits.budget.spend(price) and len(values) > 1:
            break
        target = point + path.step(image - point)
        target = xp.where(target > ROUGHEST * point, target, ROUGHEST * point)
        ahead, further = _step(objective, target)
        if not ahead <= value:
            path.forget()
            target = image
            ahead, further = _step(objective, image)
        point, value, image = target, ahead, further
        values.append(value)
        arrived = _further_gain(values) <= enough
        if limits.callback is not None and limits.callback(parametrization.components(point), value):
            break
    return OptimizeResult(parametrization.components(point), value, len(values) - 1, arrived)


def _further_gain(values: Sequence[float]) -> float:
    """Return what further steps would gain, if gains fall as they did; infinite if they do not fall."""
    n = BRIEF_SWEEPS // 2
    if len(values) <= 2 * n:
        return 0.0 if len(values) > 2 and values[-3] - values[-1] <= ROUNDING * abs(values[-1]) else math.inf
    before, after = values[-2 * n - 1] - values[-n - 1], values[-n - 1] - values[-1]
    return after**2 / (before - after) if before > after else math.inf


def _step(objective: GeneralizedObjective, point: Array) -> tuple[float, Array]:
    """Return the loss at a point, and where the multiplicative step from there leads."""
    xp, factors = array_namespace(point), objective.parametrization.factors(point)
    value, ratios = objective.value_and_ratios(point)
    parts = [factor * ratio for factor, ratio in zip(factors, ratios, strict=True)]  # counts of indices, by component
    is_known = [rule is not None and rule.is_fixed for rule in objective.problem.constraints or ()]
    strengths = ridge_strengths(objective.problem.constraints or ())
    if any(strengths):
        return value, xp.concat(_shrunk(factors, parts, strengths, is_known))
    sums = [xp.sum(factor, axis=0) for factor in factors]
    sizes = [xp.sum(part, axis=0) for part in parts]
    free = [mode for mode, known in enumerate(is_known) if not known]
    fixed = [sums[mode] for mode, known in enumerate(is_known) if known]
    wanted = (sizes[free[0]] / math.prod(fixed, start=xp.ones_like(sizes[0]))) ** (1 / len(free))
    columns = [
        factors[mode] if is_known[mode] else part / (size + TINY) * wanted
        for mode, (part, size) in enumerate(zip(parts, sizes, strict=True))
    ]
    return value, xp.concat(columns)


def _shrunk(
    factors: Sequence[Array], parts: Sequence[Array], strengths: Sequence[float], is_known: Sequence[bool]
) -> list[Array]:
    r"""Return the factors that suit given counts n of indices best under ridges, after a few rounds over the modes.

    An entry x has the objective :math:`s x - n \log x + \lambda x^2 / 2` with s the product of the sums of the others.
    """
    xp, found = array_namespace(factors[0]), list(factors)
    for _ in range(BRIEF_SWEEPS):
        for mode in (mode for mode, known in enumerate(is_known) if not known):
            rest = math.prod(xp.sum(factor, axis=0) for other, factor in enumerate(found) if other != mode)
            found[mode] = 2 * parts[mode] / (rest + xp.sqrt(rest**2 + 4 * strengths[mode] * parts[mode]) + TINY)
    return found
