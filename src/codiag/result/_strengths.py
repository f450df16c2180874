"""Strengths of penalties, by held-out entries."""

from __future__ import annotations

import math

import numpy as np

from codiag._arrays import to_double, to_host
from codiag.least_squares import ROUGH, minimize
from codiag.problem import Problem
from codiag.tensors import FactoredTensor

STRENGTHS = 10.0 ** np.arange(-2, 5)
"""What is tried for penalties that are quadratic, and times the residual for others."""
N_FOLDS, HELD_OUT = 3, 0.1
"""Sets of held-out entries, and the share of entries in each."""


def has_open_strengths(problem: Problem) -> bool:
    """Return whether some strength is "auto"."""
    return any(rule is not None and rule.is_open for rule in problem.constraints or ())


def without_penalties(problem: Problem) -> Problem:
    """Return the problem with strengths of zero where they are "auto"."""
    rules = problem.constraints or ()
    return problem.with_constraints(tuple(None if rule is None else rule.with_strength(0.0) for rule in rules))


def with_strengths(problem: Problem, start: FactoredTensor, rng: np.random.Generator) -> Problem:
    """Return the problem with the strengths that predict held-out entries best, mode by mode."""
    if problem.loss is not None:
        raise ValueError("constraints with strength='auto' are for least squares; give a number under a loss")
    entries, observed = to_double(to_host(problem.tensor.to_dense())), np.argwhere(problem.observed_mask())
    residual = entries[tuple(observed.T)] - to_double(to_host(start.to_dense()))[tuple(observed.T)]
    size = max(int(HELD_OUT * len(observed)), 1)
    folds = [observed[rng.choice(len(observed), size, replace=False)] for _ in range(N_FOLDS)]
    rules = list(problem.constraints or ())
    for mode, rule in enumerate(rules):
        if rule is None or not rule.is_open:
            continue
        unit = math.sqrt(float(np.mean(residual**2))) if rule.penalty_degree == 1 else 1.0
        errors = np.zeros(len(STRENGTHS))
        for fold in folds:
            train, end = without_penalties(problem.without_entries(list(map(tuple, fold)))), start
            for place, strength in enumerate(STRENGTHS * unit):
                tried = [other.with_strength(0.0) if other is not None else None for other in rules]
                tried[mode] = rule.with_strength(float(strength))
                end = minimize(train.with_constraints(tuple(tried)), end, ROUGH).components
                found = to_double(to_host(end.to_dense()))
                errors[place] += float(np.sum((entries - found)[tuple(fold.T)] ** 2))
        rules[mode] = rule.with_strength(float(unit * STRENGTHS[int(np.argmin(errors))]))
    return problem.with_constraints(tuple(rules))
