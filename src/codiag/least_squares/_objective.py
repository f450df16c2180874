"""What is minimized: the interface of objectives, and the unknowns and constraints that they share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property, partial
from typing import ClassVar, TypeAlias

import numpy as np
from array_api_compat import is_numpy_array

from codiag._arrays import (
    Array,
    array_namespace,
    asarray_like,
    is_complex,
    real_part,
    signs_of,
    squared_magnitudes,
    to_double,
    to_host,
)
from codiag.constraints import Constraint, Penalties, penalties_of, penalty_slopes, penalty_value, ridge_strengths
from codiag.least_squares._components import merged_modes
from codiag.least_squares._operators import CurvatureOperator, GaussNewtonOperator, PenalizedOperator, ProjectedOperator
from codiag.least_squares._parametrization import Parametrization
from codiag.least_squares._rank_one import N_TERMS
from codiag.problem import Problem
from codiag.tensors import FactoredTensor, Tensor

Terms: TypeAlias = Sequence[FactoredTensor]
"""Components, one in each."""


class Objective(ABC):
    r"""What components of a problem minimize: half a squared distance, or half the deviance of a loss, and ridges.

    A point is one array of all unknowns; ``parametrization`` says where in it the factors are. An implementation says
    what the objective and its derivatives are; constraints are the same for all.

    Parameters
    ----------
    problem : Problem
        What is to be solved.
    start : FactoredTensor, optional
        The start of the minimization: at even orders, components of a symmetric tensor keep its signs.
    """

    is_quadratic: ClassVar[bool]
    """Whether the objective is quadratic in the sum of components, so that noise has one variance in all entries."""

    steps_name: str
    """What steps are called in the log."""

    def __init__(self, problem: Problem, start: FactoredTensor | None = None) -> None:
        self.problem, self.tensor, self.entries = problem, problem.tensor, problem.entries
        self.parametrization = Parametrization(problem.tensor.shape, None, problem.shared)
        if start is not None and problem.symmetric is True and start.symmetric:
            self.parametrization = Parametrization.of(start)

    @property
    def expected_share(self) -> float | None:
        """The share of the Gauss-Newton matrix of the complete tensor that steps may rely on; None if they may not."""
        return None

    @property
    def is_multiplicative(self) -> bool:
        """Whether multiplicative steps apply."""
        return False

    @property
    @abstractmethod
    def noise_variance(self) -> float:
        """The part of the objective that one parameter fits by chance, per unit objective; 0 if it is not known."""

    @property
    @abstractmethod
    def squared_norm(self) -> float:
        """Twice the objective without components: what there is to explain."""

    @abstractmethod
    def distance(self, components: FactoredTensor) -> float:
        """Return twice the objective of components, without ridges."""

    @abstractmethod
    def value_and_gradient(self, point: Array, *, far: bool = False) -> tuple[float, Array]:
        """Return the objective and its gradient, in one pass; with `far`, rounding errors do not matter."""

    @abstractmethod
    def curvature(self, point: Array) -> CurvatureOperator:
        """Return the Gauss-Newton matrix, or the Fisher information, at a point, without ridges and constraints."""

    @abstractmethod
    def mean_information(self, components: FactoredTensor) -> float:
        """Return the mean weight of all entries in the curvature, missing ones included."""

    @abstractmethod
    def residual(self, components: FactoredTensor) -> Tensor:
        """Return what components leave of the tensor, on a scale on which noise has one variance in all entries."""

    @abstractmethod
    def squared_residual(self, components: FactoredTensor, value: float | None = None) -> float:
        """Return the sum of squares of the residual; `value` is the objective, if it is known."""

    @abstractmethod
    def terms(self, components: FactoredTensor, n: int = N_TERMS, residual: Tensor | None = None) -> Terms:
        """Return rank-one terms along which the objective falls fastest; `residual` is that of components, if known."""

    @abstractmethod
    def linearized(self, components: FactoredTensor) -> Problem:
        """Return the problem of least squares that a step from components solves."""

    def estimated(self, components: FactoredTensor) -> Problem:
        """Return the problem, with numbers that its loss leaves open estimated from components."""
        return self.problem

    def is_far(self, squared_distance: float) -> bool:
        """Return whether so large a squared distance is known to the tolerance without subtracting entries exactly."""
        return False

    def relative_error(self, components: FactoredTensor, value: float | None = None) -> float:
        """Return the root of the share of the squared norm that components leave.

        It is computed from the value of the objective if that is known, and holds no ridges.
        """
        is_known = value is not None and not self.has_ridges and not self.penalties
        distance = 2 * float(value or 0.0) if is_known else self.distance(components)
        return math.sqrt(distance / self.squared_norm) if self.squared_norm > 0 else 0.0

    def value(self, point: Array) -> float:
        """Return the objective at a point."""
        return self.distance(self.parametrization.components(point)) / 2 + self._ridge(point)

    def _with_ridge(self, gradient: Array, point: Array) -> Array:
        """Return the gradient of the objective, ridges included."""
        if self.penalties:
            gradient = gradient + self.parametrization.accumulate(
                penalty_slopes(self.penalties, self.parametrization.expand(point))
            )
        return gradient if self._strengths is None else gradient + self._strengths * point

    def _ridge(self, point: Array) -> float:
        value = penalty_value(self.penalties, self.parametrization.expand(point)) if self.penalties else 0.0
        if self._strengths is None:
            return value
        return value + float(array_namespace(point).sum(self._strengths * squared_magnitudes(point))) / 2

    def step_curvature(self, point: Array, gradient: Array) -> CurvatureOperator:
        """Return the matrix of a step, restricted to free unknowns: that of the complete tensor if few are missing."""
        multiple = 1.0 if self.is_quadratic and self.entries is None else self.expected_share
        if multiple is None:
            return self.restricted(self.curvature(point), gradient)
        ridge = self.step_ridge
        operator = GaussNewtonOperator(self.parametrization, point, multiple=multiple, ridge=ridge or 0.0)
        if ridge is not None and self.is_free and not self.penalties:
            return operator
        return self.restricted(operator, gradient, has_ridges=ridge is not None)

    def restricted(
        self, curvature: CurvatureOperator, gradient: Array, *, has_ridges: bool = False
    ) -> CurvatureOperator:
        """Return a curvature with ridges, on the unknowns that constraints leave free to move against a gradient."""
        if self.problem.constraints is None:
            return curvature
        curvature = PenalizedOperator(curvature, self.penalties) if self.penalties else curvature
        tangent = partial(self.tangent, curvature.point) if self.is_manifold else None
        strengths = None if has_ridges else self._strengths
        free = self.free_variables(curvature.point, gradient)
        is_whole = strengths is None and tangent is None and is_numpy_array(free) and bool(np.all(free))
        return curvature if is_whole else ProjectedOperator(curvature, free, strengths, tangent)

    @cached_property
    def supports_gauss_newton(self) -> bool:
        """Whether all constraints support Gauss-Newton steps, and some factor is to be found."""
        if self.all_fixed:
            return False
        return all(constraint is None or constraint.supports_gauss_newton for constraint in self._constraints)

    @cached_property
    def all_fixed(self) -> bool:
        """Whether all factors are fixed, so that only weights are to be found."""
        return all(constraint is not None and constraint.is_fixed for constraint in self._constraints)

    def free_variables(self, point: Array, gradient: Array) -> Array:
        """Return one for unknowns that constraints leave free to move against a gradient, zero for the others."""
        xp = array_namespace(point)
        factors, slopes = (
            self.parametrization.factors(point + 0 * gradient),
            self.parametrization.factors(gradient),
        )  # one or a stack
        ones = [xp.ones_like(real_part(factor)) for factor in factors]
        triples = zip(self._of_factors, factors, slopes, strict=True)
        return _stacked([
            one if rule is None else real_part(rule.free_variables(factor, slope))
            for one, (rule, factor, slope) in zip(ones, triples, strict=True)
        ])  # fmt: skip

    def tangent(self, point: Array, move: Array) -> Array:
        """Return the part of a move that is tangent to curved sets of factors."""
        triples = zip(
            self._of_factors, self.parametrization.factors(point), self.parametrization.factors(move), strict=True
        )
        return _stacked([part if rule is None else rule.tangent(factor, part) for rule, factor, part in triples])

    def projected(self, point: Array) -> Array:
        """Return the nearest point that satisfies the constraints."""
        if self.problem.constraints is None:
            return point
        pairs = zip(self._of_factors, self.parametrization.factors(point), strict=True)
        return _stacked([factor if rule is None else rule.project(factor) for rule, factor in pairs])

    @property
    def _of_factors(self) -> list[Constraint | None]:
        """The constraint of each factor of the layout."""
        return [self._constraints[group[0]] for group in self.parametrization.groups]

    @property
    def _constraints(self) -> Sequence[Constraint | None]:
        return self.problem.constraints or (None,) * self.tensor.order

    @cached_property
    def is_free(self) -> bool:
        """Whether no constraint excludes any factor."""
        return not any(constraint is not None and constraint.is_hard for constraint in self._constraints)

    @cached_property
    def is_manifold(self) -> bool:
        """Whether some set of factors is a curved surface."""
        return any(constraint is not None and constraint.is_manifold for constraint in self._constraints)

    @cached_property
    def uniform_ridge(self) -> float | None:
        """Ridge strength of all unknowns, if ridges are equal in all modes; None otherwise."""
        strengths = set(ridge_strengths(self._constraints))
        return strengths.pop() * len(self.parametrization.groups[0]) if len(strengths) == 1 else None

    @property
    def step_ridge(self) -> float | None:
        """Ridge strength that the Gauss-Newton matrix can include, that of all unknowns; None if they differ."""
        return None if self.parametrization.shared else self.uniform_ridge

    @cached_property
    def penalties(self) -> Penalties:
        """The penalties on components, with their modes."""
        return penalties_of(self._constraints)

    def penalty_matrix(self, point: Array) -> np.ndarray:
        """Return the second derivative of quadratic penalties at a point, relative to the mean weight of entries."""
        quadratic = [(mode, rule) for mode, rule in self.penalties if rule.penalty_degree == 2]
        matrix = PenalizedOperator(self.curvature(point), quadratic).penalty_matrix
        return np.asarray(to_host(matrix) / self.problem.data.mean_weight)

    @property
    def has_ridges(self) -> bool:
        """Whether ridges bound the components."""
        return self._strengths is not None

    @cached_property
    def _strengths(self) -> Array | None:
        """Ridge strengths of the rows of unknowns, (D, 1); None if all are zero."""
        strengths = ridge_strengths(self._constraints)
        if not any(strengths):
            return None
        shape, reference = self.tensor.shape, self.tensor.reference
        totals = [(shape[group[0]], sum(strengths[mode] for mode in group)) for group in self.parametrization.groups]
        rows = np.concatenate([np.full((size, 1), strength) for size, strength in totals])
        return asarray_like(rows, real_part(to_double(reference)))

    def feasible(self, components: FactoredTensor) -> FactoredTensor:
        """Return components near these that satisfy the constraints, with sizes in the factors and weights of one.

        Factors of modes that share one are averaged. Of the two signs of a column, the one that projection changes less
        is taken. The sign of the component goes to a mode whose columns may have either sign.
        """
        xp = array_namespace(components.weights)
        groups = self.problem.groups
        for group in groups:
            components = merged_modes(components, group) if len(group) > 1 else components
            rule = self._constraints[group[0]]
            order = None if rule is None else rule.order_of(components.factors[group[0]])
            components = components if order is None else components.columns(order)
        scale, ones = xp.abs(components.weights) ** (1 / components.order), xp.ones_like(components.weights)
        total = signs_of(components.weights)
        if is_complex(components.factors[0]):
            return self._feasible_phases(components.changed(lambda factor, _: factor * scale, total))
        of_mode: dict[int, Array] = {}
        for group in groups:
            factor = components.factors[group[0]] * scale
            plus, minus = (self._projected(sign * factor, group[0]) for sign in (1, -1))
            kept = xp.linalg.vector_norm(plus - factor, axis=0) <= xp.linalg.vector_norm(minus + factor, axis=0)
            total = xp.where(kept, total, total * (-1.0) ** len(group))
            of_mode |= dict.fromkeys(group, xp.where(kept, plus, minus))
        for group in reversed(groups):
            if len(group) % 2 and self._allows_sign_change(group[0]):
                of_mode |= dict.fromkeys(group, of_mode[group[0]] * total)
                break
        factors = [of_mode[mode] for mode in range(components.order)]
        if self.problem.symmetric is True:
            return FactoredTensor(total if components.order % 2 == 0 else ones, factors, symmetric=True)
        return FactoredTensor(ones, factors, symmetric=False)

    def _feasible_phases(self, components: FactoredTensor) -> FactoredTensor:
        """Return complex components that satisfy the constraints, with weights of one.

        The phases of weights go to the last factor that may take them.
        """
        ones = array_namespace(components.weights).ones_like(components.weights)
        of_mode = dict(enumerate(self.project(components.factors)))
        for group in reversed(self.problem.groups):
            if self._allows_sign_change(group[0]):
                of_mode |= dict.fromkeys(group, of_mode[group[0]] * components.weights ** (1 / len(group)))
                break
        factors = [of_mode[mode] for mode in range(components.order)]
        return FactoredTensor(ones, factors, symmetric=self.problem.symmetric is True)

    def _allows_sign_change(self, mode: int) -> bool:
        constraint = self._constraints[mode]
        return constraint is None or constraint.allows_sign_change

    def project(self, factors: Sequence[Array]) -> list[Array]:
        """Return the nearest factors that satisfy the constraints."""
        return [self._projected(factor, mode) for mode, factor in enumerate(factors)]

    def _projected(self, factor: Array, mode: int) -> Array:
        constraint = self._constraints[mode]
        return factor if constraint is None else constraint.project(factor)


def _stacked(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else array_namespace(parts[0]).concat(parts, axis=-2)
