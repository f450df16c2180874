r"""The objective of coupled sets, :math:`\sum_n \|T_n - [\![ w_n; A_m, m \in n ]\!]\|^2 / (2 \sigma_n^2)`.

Unknowns are the factors of all named modes, one above the other, and the weights, a row for each set. A set is a tensor
with another mode of size one, whose factor is its row of weights; values, gradients and curvatures of the sets add up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from codiag._arrays import Array
from codiag._coupled._sets import Sets
from codiag.constraints import Constraint
from codiag.least_squares import (
    TINY,
    CurvatureOperator,
    LeastSquares,
    Parametrization,
    UnrestrictedOperator,
    hadamard_gram,
)
from codiag.problem import Problem
from codiag.tensors import FactoredTensor


@dataclass(frozen=True, eq=False)
class RuleOfWeights(Constraint):
    """Weights that are not negative, in sets whose factors are all bounded from below, and weights that are zero.

    Parameters
    ----------
    bounded : array of bool of shape (n_sets, 1)
        Which sets.
    absent : array of bool of shape (n_sets, rank)
        Which components a set does not have.
    """

    supports_gauss_newton: ClassVar[bool] = True

    bounded: np.ndarray
    absent: np.ndarray

    def project(self, factor: Array) -> Array:
        return np.where(self.absent | (self.bounded & (factor < 0)), 0.0, factor)

    def free_variables(self, factor: Array, slope: Array) -> Array:
        return np.where(self.absent | (self.bounded & (factor <= 0) & (slope >= 0)), 0.0, 1.0)


class Member(NamedTuple):
    """One set in the unknowns: its objective, its rows there, and its precision."""

    objective: LeastSquares
    rows: np.ndarray
    precision: float


class CoupledObjective(LeastSquares):
    """Half the squared distances of all sets over their noise variances.

    Parameters
    ----------
    problem : Problem
        Without data, of the sizes of all named modes and the number of sets: constraints and rank.
    sets : Sets
    variances : array of shape (n_sets,)
        Of the noise.
    """

    steps_name = "coupled least squares"

    def __init__(self, problem: Problem, sets: Sets, variances: np.ndarray) -> None:
        super().__init__(problem)
        self.sets = sets
        ends = np.cumsum([0, *sets.sizes])
        self.members = [
            Member(
                LeastSquares(one),
                np.concatenate([*(np.arange(ends[m], ends[m + 1]) for m in modes), [ends[-1] + i]]),
                1 / float(variances[i]),
            )
            for i, (one, modes) in enumerate(zip(sets.problems, sets.modes, strict=True))
        ]

    @cached_property
    def squared_norm(self) -> float:
        return sum(member.precision * member.objective.squared_norm for member in self.members)

    @property
    def noise_variance(self) -> float:
        spare = int(self.sets.n_observed.sum()) - self.sets.n_parameters(self.problem.rank)
        return 2 / spare if spare > 1 else 0.0

    def distances(self, point: Array) -> np.ndarray:
        """Return the squared distance of each set, without its precision."""
        return np.array([2 * one.objective.value(point[one.rows]) for one in self.members])

    def distance(self, components: FactoredTensor) -> float:
        distances = self.distances(self.parametrization.vectorize(components, balanced=False))
        return float(distances @ [member.precision for member in self.members])

    def value_and_gradient(self, point: Array, *, far: bool = False) -> tuple[float, Array]:
        value, gradient = 0.0, np.zeros_like(point)
        for objective, rows, precision in self.members:
            own, slope = objective.value_and_gradient(point[rows], far=far)
            value += precision * own
            gradient[rows] += precision * slope
        return value, gradient

    def curvature(self, point: Array) -> CurvatureOperator:
        return CoupledOperator(self.parametrization, point, self.members)

    def step_curvature(self, point: Array, gradient: Array) -> CurvatureOperator:
        return self.restricted(self.curvature(point), gradient)


class CoupledOperator(UnrestrictedOperator):
    """The sum of the Gauss-Newton matrices of all sets, times their precisions.

    The preconditioner solves the damped equations of every row by itself.
    """

    visits_entries = True

    def __init__(self, parametrization: Parametrization, point: Array, members: Sequence[Member]) -> None:
        self.point, self.parametrization = point, parametrization
        self._parts = [(one.objective.curvature(point[one.rows]), one.rows, one.precision) for one in members]
        self._grams = np.zeros((*point.shape, point.shape[1]))
        for objective, rows, precision in members:
            self._grams[rows] += precision * row_grams(objective, point[rows])
        diagonal = np.einsum("dii->di", self._grams)
        places = parametrization.factor_of_row
        means = np.stack([diagonal[places == place].mean(axis=0) for place in range(int(places[-1]) + 1)])
        self.scales = (np.maximum(means, 1e-12 * means.max()) + TINY)[places]

    def product(self, move: Array) -> Array:
        image = np.zeros_like(move)
        for curvature, rows, precision in self._parts:
            image[rows] += precision * curvature.product(move[rows])
        return image

    def matrix(self) -> Array:
        size, rank = self.point.shape
        matrix = np.zeros((size, rank, size, rank))
        for curvature, rows, precision in self._parts:
            own = curvature.matrix().reshape(rows.size, rank, rows.size, rank)
            matrix[rows[:, None], :, rows, :] += precision * own.transpose(0, 2, 1, 3)
        return matrix.reshape(size * rank, size * rank)

    def preconditioner(self, damping: float) -> Callable[[Array], Array]:
        unit = np.eye(self.point.shape[1])
        inverses = np.linalg.inv(self._grams + (damping * self.scales)[:, :, None] * unit)
        return lambda move: (inverses @ move[:, :, None])[:, :, 0]


def row_grams(objective: LeastSquares, point: Array) -> np.ndarray:
    """Return the equations of every row of the factors of a set, if all else is known."""
    factors = objective.parametrization.expand(point)
    if objective.entries is not None:
        return np.concatenate([objective.entries.row_grams(factors, mode) for mode in range(len(factors))])
    grams = [hadamard_gram(factors, [mode]) for mode in range(len(factors))]
    return np.repeat(np.stack(grams), [len(factor) for factor in factors], axis=0)
