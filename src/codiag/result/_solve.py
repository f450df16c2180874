"""Solve a problem with a method, without warnings, and bring the estimate into the form of a result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from array_api_compat import device

from codiag._arrays import (
    Array,
    adjoint,
    array_namespace,
    asarray_like,
    conjugate,
    epsilon,
    few_threads,
    is_complex,
    largest_signs,
    on_host,
    real_part,
    signs_of,
    to_double,
    to_host,
    to_namespace,
)
from codiag._checks import as_generator
from codiag.constraints import Constraint
from codiag.least_squares import DEGENERATE_RATIO, LeastSquares, largest_product, unit_components
from codiag.methods import Method, checked_fit
from codiag.problem import Estimate, Problem
from codiag.reduction import prepared, safe_scale
from codiag.result._factorization import Factorization
from codiag.result._linearization import deviance_of, kept, relative_error_of
from codiag.result._separation import separation
from codiag.result._strengths import has_open_strengths, with_strengths, without_penalties
from codiag.search import joins, one_sided_modes, search_together
from codiag.tensors import FactoredTensor, is_large

HOST_WORK = 2**21
"""Entries times rank up to which a tensor on an accelerator is copied to the host and solved there: products with all
of its entries then take less time on the host than launching them on the accelerator."""


def solve(problem: Problem, method: Method, rng: Any = None) -> Factorization:
    """Run `factorize` without issuing warnings; `warning_message` returns the text of the warning."""
    if has_open_strengths(problem):
        rng = as_generator(rng, apart=True)
        plain = solve(without_penalties(problem), method, rng)
        problem = with_strengths(problem, plain._components, rng)
    if _is_faster_on_host(problem, method):
        return _in_library_of(solve(problem.on_host(), method, rng), problem)
    with few_threads(largest_product(problem)):
        rng = as_generator(rng, apart=True)
        ready = prepared(problem, as_given=method.has_per_index_options)
        fit = as_factorization(ready.unscaled(checked_fit(method, ready.problem, rng)), ready.stored)
        if ready.rows is None:
            return fit
        return replace(fit, factors=ready.whole(fit.factors, problem.tensor.shape), problem=kept(problem))


def solve_together(problems: Sequence[Problem], rngs: Sequence[Any]) -> list[Factorization | None]:
    """Solve problems by the default method, those of one shape and rank together; None for those that `solve` must."""
    found: list[Factorization | None] = [None] * len(problems)
    groups: dict[Any, list[int]] = {}
    for place, problem in enumerate(problems):
        if joins(problem) and _is_in_range(problem):
            reference = problem.tensor.reference
            kind = (array_namespace(reference).__name__, str(reference.dtype), str(device(reference)))
            groups.setdefault((problem.tensor.shape, problem.rank, one_sided_modes(problem), kind), []).append(place)
    for places in groups.values():
        known = [problems[place].in_double_precision() for place in places]
        try:
            estimates = search_together(known, [as_generator(rngs[place], apart=True) for place in places])
        except np.linalg.LinAlgError:  # of one of them; each is then solved by itself
            continue
        for place, estimate in zip(places, estimates, strict=True):
            found[place] = None if estimate is None else as_factorization(estimate, problems[place])
    return found


def _is_in_range(problem: Problem) -> bool:
    """Return whether powers of the entries neither overflow nor underflow."""
    return 0 < problem.data.squared_norm < math.inf and safe_scale(problem) == 1


def _is_faster_on_host(problem: Problem, method: Method) -> bool:
    """Return whether a problem on an accelerator is so small that the host solves it faster, copies included."""
    if on_host(problem.tensor.reference) or method.has_per_index_options or problem.loss is not None:
        return False
    has_arrays = any(rule is not None and rule.is_fixed for rule in problem.constraints or ())
    is_stored = problem.tensor.holds_entries and not is_large(problem.tensor.shape)
    return is_stored and not has_arrays and math.prod(problem.tensor.shape) * problem.rank <= HOST_WORK


def _in_library_of(fit: Factorization, problem: Problem) -> Factorization:
    """Return a fit that the host has computed in the library and on the device of the tensor."""
    reference = problem.tensor.reference
    return replace(
        fit,
        weights=to_namespace(fit.weights, reference if is_complex(fit.weights) else real_part(reference)),
        factors=tuple(to_namespace(factor, reference) for factor in fit.factors),
        problem=kept(problem),
    )


def warning_message(fit: Factorization, method: Method) -> str | None:
    """Return the text of the warning about a fit, or None if there is nothing to warn of."""
    largest, norm, separated = float(np.max(np.abs(to_host(fit.weights)))), whole_norm(fit), separation(fit)
    if separated:
        return f"{type(method).__name__} did not converge. {separated}"
    tensor = f"a tensor of {' x '.join(map(str, fit.shape))}"
    if largest > DEGENERATE_RATIO * norm or (fit.converged and _has_large_degenerate_pair(fit)):
        return (
            f"the fit is degenerate: components grow and compensate each other (largest weight {largest:.2g}, norm of "
            f"{tensor} {norm:.2g}), so there may be no best fit with rank {fit.rank}. "
            "Bound it by constraints='nonnegative', 'orthogonal' or codiag.constraints.Ridge(...), or lower the rank"
        )
    if fit.converged:
        return None
    n_iter = sum(stage.n_iter for stage in fit.history)
    return (
        f"{type(method).__name__} did not converge in {n_iter} iterations on {tensor} with rank {fit.rank}; the best "
        f"fit is returned, relative error {fit.relative_error:.3g}. A lower rank may be easier to find"
    )


def _has_large_degenerate_pair(fit: Factorization) -> bool:
    """Return whether two components with more energy than the tensor are degenerate."""
    weights = np.abs(to_double(to_host(fit.weights)))
    pairs = degenerate_pairs(weights, congruences(fit))
    return any(weights[i] ** 2 + weights[j] ** 2 > whole_norm(fit) ** 2 for i, j, _ in pairs)


DEGENERATE = 0.15
"""Share of the energy of two components up to which their sum counts as cancelled: for two of equal weight, a product
of cosines of -0.85, the value at which chemometrics calls a solution degenerate."""


def as_factorization(estimate: Estimate, problem: Problem) -> Factorization:
    """Return the components of an estimate in their final form, with their error."""
    problem, unobserved = problem.with_loss(estimate.loss or problem.loss), problem.unobserved_rows()
    components = canonical(_with_rows(estimate.components, unobserved, 0.0), problem)
    fit = Factorization(
        weights=components.weights,
        factors=_with_rows(components, unobserved, math.nan).factors,
        converged=bool(estimate.converged),
        history=tuple(estimate.history),
        problem=kept(problem),
        **_quality(estimate, components, problem),
    )
    return replace(fit, converged=False) if _diverges(fit) else fit


def _quality(estimate: Estimate, components: FactoredTensor, problem: Problem) -> dict[str, Any]:
    """Return the fields of a result that say how well components fit."""
    if problem.loss is not None and not problem.loss.has_covariance:
        relative_error, norm = relative_error_of(problem, components)
        deviance = deviance_of(problem, components)
    else:
        objective, deviance = LeastSquares(problem.with_loss(None)), None
        relative_error = math.sqrt(_distance(objective, estimate, components) / objective.squared_norm)
        norm = math.sqrt(objective.squared_norm / problem.data.mean_weight)
    return {"relative_error": relative_error, "_norm": norm, "_deviance": deviance}


def _diverges(fit: Factorization) -> bool:
    """Return whether components grow without bound, as where there is no best fit; ridges bound them."""
    is_bounded = any(rule is not None and rule.ridge for rule in fit.problem.constraints or ())
    largest, rounding = float(np.max(np.abs(to_host(fit.weights)))), 1e3 * epsilon(fit.factors[0])
    return not is_bounded and fit.relative_error > rounding and largest > DEGENERATE_RATIO * whole_norm(fit)


def _with_rows(components: FactoredTensor, rows: Sequence[np.ndarray], value: float) -> FactoredTensor:
    """Return components with the same value in some rows of the factors."""
    if not any(chosen.any() for chosen in rows):
        return components

    def changed(factor: Array, mode: int) -> Array:
        chosen = asarray_like(rows[mode].astype(np.float64), real_part(factor))[:, None] > 0
        return array_namespace(factor).where(chosen, array_namespace(factor).full_like(factor, value), factor)

    return components.changed(changed)


def _distance(objective: LeastSquares, estimate: Estimate, components: FactoredTensor) -> float:
    """Return the squared distance of the final components, measured unless the estimate knows it.

    In single precision it is measured, too, where rounding the components to that may show in it.
    """
    known, reference = estimate.squared_distance, components.weights
    rounding = epsilon(reference) if epsilon(reference) > 1e-10 else 0.0
    if known is None or rounding**2 * objective.squared_norm > 1e-8 * known:
        return objective.distance(components)
    return known


def canonical(components: FactoredTensor, problem: Problem) -> FactoredTensor:
    """Give components unit columns, one sign and one order, in the precision of the tensor."""
    xp = array_namespace(components.weights)
    unit = unit_components(components)
    unit = unit.changed(lambda factor, _: _without_zero_columns(factor))
    constraints = problem.constraints or (None,) * unit.order
    orders = (rule.order_of(factor) for rule, factor in zip(constraints, unit.factors, strict=True) if rule is not None)
    known = next((order for order in orders if order is not None), None)
    falling = xp.argsort(xp.abs(unit.weights), descending=True, stable=True)
    unit = unit.columns(to_host(falling).tolist() if known is None else known)
    weights = unit.weights
    if not (problem.symmetric is True and unit.symmetric):
        signs = _mode_signs(unit, problem)
        weights = weights * conjugate(math.prod(signs))
    elif is_complex(weights):
        signs, weights = [signs_of(weights) ** (1 / unit.order)], xp.abs(weights)
    elif not _allows_signs(constraints[0]):
        signs = [xp.ones_like(weights)]
    elif unit.order % 2:
        signs, weights = [signs_of(weights)], xp.abs(weights)
    else:
        signs = [largest_signs(unit.factors[0])]
    reference = problem.tensor.reference
    if is_complex(weights) and not any(rule is not None and not rule.allows_sign_change for rule in constraints):
        weights = real_part(weights)
    weights = to_namespace(weights, reference if is_complex(weights) else real_part(reference))
    return unit.changed(lambda factor, mode: to_namespace(factor * signs[mode], reference), weights)


def _without_zero_columns(factor: Array) -> Array:
    """Give components that vanish, whose weight is zero, a unit column all the same: the first axis."""
    xp = array_namespace(factor)
    vanishes = xp.astype(xp.linalg.vector_norm(factor, axis=0) == 0, factor.dtype)
    first = asarray_like(np.eye(factor.shape[0], 1), factor)
    return factor + first * vanishes


def _mode_signs(unit: FactoredTensor, problem: Problem) -> list[Array]:
    """Return signs for the columns of every mode that make weights positive and largest entries, too.

    The last free mode makes up for the others; where constraints leave none free, signs stay as they are. Modes that
    share a factor have one sign.
    """
    constraints = problem.constraints or (None,) * unit.order
    groups = problem.groups if problem.shared else [(mode,) for mode in range(unit.order)]
    free = [group for group in groups if _allows_signs(constraints[group[0]])]
    last = next((group for group in reversed(free) if len(group) % 2), None)
    total = signs_of(unit.weights)
    signs = [array_namespace(total).ones_like(total)] * unit.order
    for group in free:
        if group == last:
            continue
        for mode in group:
            phases = largest_signs(unit.factors[mode])
            signs[mode], total = conjugate(phases), total * phases
    for mode in last or ():
        signs[mode] = total
    return signs


def _allows_signs(constraint: Constraint | None) -> bool:
    return constraint is None or constraint.allows_sign_change


def whole_norm(fit: Factorization) -> float:
    """Return the norm of a tensor whose other entries are as large as those observed, on average.

    Of a loss other than least squares it is that of the fit, since entries may be in other units.
    """
    if fit._deviance is not None:
        return math.sqrt(fit._components.squared_norm())
    return fit._norm * math.sqrt(math.prod(fit.shape) / (fit.problem.n_observed or 1))


def congruences(fit: Factorization) -> np.ndarray:
    """Return the products of the cosines between components over all modes (rank, rank), signed by their weights."""
    factors = [to_double(to_host(factor)) for factor in fit._components.factors]
    signs = signs_of(to_double(to_host(fit.weights)))
    cosines = np.prod([adjoint(factor) @ factor for factor in factors], axis=0) * np.outer(conjugate(signs), signs)
    return np.asarray(real_part(cosines))


def degenerate_pairs(weights: np.ndarray, cosines: np.ndarray) -> tuple[tuple[int, int, float], ...]:
    """Return the pairs of components whose sum holds next to nothing of their energy, with their congruence."""
    apart = weights[:, None] ** 2 + weights**2
    together = apart + 2 * cosines * np.outer(weights, weights)
    cancels = np.triu((apart > 0) & (together <= DEGENERATE * apart), 1)
    return tuple((int(i), int(j), float(cosines[i, j])) for i, j in zip(*np.nonzero(cancels), strict=True))
