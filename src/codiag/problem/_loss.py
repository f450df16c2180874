"""Losses of a problem: the constraints that they imply, and what they do not go with."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from codiag._arrays import Array, array_namespace, asarray_like, is_complex, to_host
from codiag.constraints import Combined, Constraint, Constraints, NonNegative
from codiag.losses import Loss
from codiag.problem._observed import ObservedTensor
from codiag.tensors import FactoredTensor, is_large

if TYPE_CHECKING:
    from codiag.problem._problem import Problem


def implied_constraints(loss: Loss | None, given: Constraints, order: int) -> Constraints:
    """Return non-negative factors if a loss needs them and no constraints are given, or penalties alone."""
    if loss is None or not loss.needs_nonnegative:
        return given
    if given is None:
        return (NonNegative(),) * order
    return tuple(rule if rule is None or rule.is_hard else Combined((NonNegative(), rule)) for rule in given)


def check_loss(loss: Loss | None, data: ObservedTensor, constraints: Constraints) -> None:
    """Raise if the entries, the constraints or the storage of a tensor do not go with a loss."""
    if loss is None or loss.has_covariance:
        return
    tensor, name = data.tensor, type(loss).__name__
    if loss.needs_nonnegative and not all(map(_is_nonnegative, constraints or (None,))):
        raise ValueError(
            f"constraints must be non-negative in all modes for {loss!r}; leave them out, or change the link"
        )
    if any(rule is not None and not rule.supports_gauss_newton for rule in constraints or ()):
        raise ValueError(f"constraints must support steps for loss {name}; use those of codiag.constraints, or no loss")
    if is_large(tensor.shape) and not tensor.holds_entries:
        raise ValueError(f"loss {name} needs a tensor in memory; got {tensor!r}. Use a part of it, or no loss")
    entries = data.listed_entries
    if entries.has_zeros and loss.zero_gradient is None and is_large(tensor.shape):
        raise ValueError(
            f"loss {name} needs all entries, and {tensor!r} is too large to fill; use loss='poisson', or for zeros "
            "and ones codiag.losses.Bernoulli('rate')"
        )
    values = to_host(entries.values)
    values = values if entries.weights is None else values[to_host(entries.weights) > 0]
    least, largest = float(np.min(values, initial=np.inf)), float(np.max(values, initial=-np.inf))
    loss.check(min(least, 0.0) if entries.has_zeros else least, max(largest, 0.0) if entries.has_zeros else largest)


def absent_as(loss: Loss | None) -> str:
    """Return what combinations of labels are that a table does not list: zeros of counts, else missing entries."""
    return "zero" if loss is not None and loss.scales_with_mean else "missing"


def for_storage(loss: Loss, data: ObservedTensor) -> Loss:
    """Return the loss that a name stands for, by whether zeros that are not listed are too many to be visited."""
    other = loss.for_unlisted_zeros()
    is_sparse = other is not loss and is_large(data.tensor.shape) and data.listed_entries.has_zeros
    return other if is_sparse else loss


def check_complex(loss: Loss | None, data: ObservedTensor, constraints: Constraints) -> None:
    """Raise if a complex tensor has a loss, or constraints that order numbers."""
    if not is_complex(data.tensor.reference):
        if any(is_complex(getattr(rule, "factor", np.zeros(0))) for rule in constraints or ()):
            raise ValueError("constraints must fix real factors of a real tensor; got a complex factor")
        return
    parts = "Factorize real and imaginary parts as one more mode of size two, or absolute values"
    if loss is not None:
        raise ValueError(f"tensor must be real for loss={loss!r}; a complex one is fitted by least squares. {parts}")
    refused = [rule for rule in constraints or () if rule is not None and not rule.allows_complex]
    if refused:
        raise ValueError(f"constraints of a complex tensor must be Fixed or Ridge; got {refused[0]!r}. {parts}")


def _is_nonnegative(rule: Constraint | None) -> bool:
    if rule is None:
        return False
    return rule.is_cone or (rule.is_fixed and bool(np.all(to_host(rule.project(np.zeros((1, 1)))) >= 0)))


def as_least_squares(problem: Problem) -> tuple[Problem, Callable[[FactoredTensor], FactoredTensor]]:
    r"""Return least squares whose components are near those of a loss, and the way back to components of the loss.

    If the variance of entries grows with their mean, each row is divided by the root of its mean: entries then have
    equal variances as far as means are products over modes, and non-negative factors stay non-negative. Factors of a
    large tensor are free, since its core has no signs.
    """
    loss, entries = problem.loss, problem.listed_entries
    values = entries.values if loss is None else loss.working_response(entries.values)
    is_cone = all(rule is not None and rule.is_cone for rule in problem.constraints or (None,))
    if loss is None or not loss.scales_with_mean or not is_cone or problem.symmetric:
        return problem.with_weights(entries.tensor_of(values), problem.weights), lambda components: components
    ones = [asarray_like(np.ones((size, 1)), values) for size in entries.shape]
    sums, counts = (
        entries.slopes(entries.times_weights(part), ones)
        for part in (values, array_namespace(values).ones_like(values))
    )
    if entries.has_zeros:
        counts = ones
    scales = [_inverse_roots(total, count) for total, count in zip(sums, counts, strict=True)]
    scaled = values * entries.model(scales)

    def back(components: FactoredTensor) -> FactoredTensor:
        return components.changed(lambda factor, mode: factor / scales[mode])

    tensor = entries.tensor_of(scaled)
    is_free = is_large(entries.shape) and entries.has_zeros
    return problem.with_tensor(tensor) if is_free else problem.with_weights(tensor, problem.weights), back


def _inverse_roots(sums: Array, counts: Array) -> Array:
    """Return the inverse roots of means by row plus the mean of all rows.

    The latter keeps rows of few events from standing out, as in spectral clustering (Qin and Rohe, "Regularized
    spectral clustering under the degree-corrected stochastic blockmodel", 2013).
    """
    xp = array_namespace(sums)
    means = sums / xp.where(counts > 0, counts, xp.ones_like(counts))
    return (means / xp.mean(means) + 1) ** -0.5


def interior(components: FactoredTensor, constraints: Constraints) -> FactoredTensor:
    """Return components near others with no zeros in non-negative factors, so that no entry is excluded."""

    def raised(factor: Array, mode: int) -> Array:
        rule = None if constraints is None else constraints[mode]
        if rule is None or not rule.is_cone:
            return factor
        xp = array_namespace(factor)
        least = 1e-3 * xp.mean(xp.abs(factor), axis=0) + 1e-12
        return xp.where(factor > least, factor, xp.zeros_like(factor) + least)

    return components.changed(raised)
