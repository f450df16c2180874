"""From a start to a minimum, for every problem."""

from __future__ import annotations

import math
from dataclasses import replace

from codiag.least_squares._alternating import alternate
from codiag.least_squares._gauss_newton import Limits, OptimizeResult, descend
from codiag.least_squares._generalized import objective_of
from codiag.least_squares._multiplicative import multiply
from codiag.least_squares._tolerances import (
    BRIEF_STEP,
    BRIEF_SWEEPS,
    NEGLIGIBLE,
    ROUGHEST,
)
from codiag.problem import Problem, interior
from codiag.tensors import FactoredTensor

ROUGH = Limits(max_iter=100, tol=NEGLIGIBLE, gain=ROUGHEST, rough=True)
"""Limits for a start: until two steps gain less than a tenth of a noise variance. Ends of one minimum then differ by a
fraction of a variance."""

BRIEF = replace(ROUGH, max_iter=BRIEF_SWEEPS, tol=BRIEF_STEP, max_products=BRIEF_SWEEPS)
"""Limits for a trial, or after a component was added: all others must only follow roughly."""


def minimize(problem: Problem, start: FactoredTensor, limits: Limits) -> OptimizeResult:
    """Minimize the objective of a problem from a start, which need not satisfy the constraints.

    Damped Gauss-Newton steps, after Levenberg and Marquardt, which are Fisher scoring if the problem has a loss; one
    factor at a time if a constraint does not support steps; multiplicative steps for sparse counts.

    Parameters
    ----------
    problem : Problem
        What is to be solved.
    start : FactoredTensor
        Components to start from, of the rank of the problem.
    limits : Limits
        When to stop.

    Returns
    -------
    Outcome
        The components, and why the steps ended.

    See Also
    --------
    LeastSquares : The objective.
    codiag.methods.NLS : The method that does this from several starts.

    Examples
    --------
    >>> import codiag
    >>> from codiag.extending import Limits, minimize
    >>> from codiag.tensors import FactoredTensor
    >>> planted = codiag.synthetic.noisy_tensor((5, 5, 5), 2, rng=0)
    >>> start = FactoredTensor(planted.weights, [factor + 0.1 for factor in planted.factors])
    >>> minimize(codiag.Problem(planted.tensor, 2), start, Limits()).converged
    True
    """
    start = start.on_host()  # steps are many small operations, for which an accelerator takes longer
    if problem.constraints is not None or problem.shared or (problem.symmetric and not start.symmetric):
        start = objective_of(problem, start).feasible(start)
    objective = objective_of(problem, start)
    if objective.is_quadratic and not objective.supports_gauss_newton:
        options = {"max_iter": limits.max_iter, "tol": limits.tol, "callback": limits.callback}
        return alternate(objective, start, **options)  # type: ignore[arg-type]
    if not objective.is_quadratic and not math.isfinite(objective.distance(start)):
        start = interior(start, problem.constraints)  # components that excluded no entry have left
    return (multiply if objective.is_multiplicative else descend)(objective, start, limits)  # type: ignore[arg-type]


def minimize_with_estimates(
    problem: Problem, start: FactoredTensor, limits: Limits, n_rounds: int = 1
) -> tuple[Problem, OptimizeResult]:
    """Minimize in turn with the estimation of numbers that a loss leaves open; return the problem with them, too."""
    known = objective_of(problem).estimated(start)
    result = minimize(known, start, limits)
    for _ in range(n_rounds):
        after = objective_of(problem).estimated(result.components)
        if after.loss is known.loss or limits.is_stopped:
            break
        value = objective_of(after).distance(result.components) / 2
        if abs(value - result.objective) <= NEGLIGIBLE * result.objective:
            break
        again = minimize(after, result.components, limits)
        known, result = after, again._replace(n_iter=result.n_iter + again.n_iter)
    return known, result


def are_orthogonal(problem: Problem) -> bool:
    """Return whether all modes have orthogonal columns."""
    return all(constraint is not None and constraint.is_orthogonal for constraint in problem.constraints or (None,))
