"""What noise does to components under constraints, or where only some entries were observed, to first order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from array_api_compat import array_namespace

from codiag._array import Array, double, like, to_host
from codiag._problem import Problem
from codiag.constraints import Fixed
from codiag.constraints._base import NEARLY_SINGULAR
from codiag.methods.least_squares._objective import LeastSquares
from codiag.tensors import FactoredTensor
from codiag.theory._sensitivity import Sensitivity, of_present

MOST_UNKNOWNS = 3000
"""Unknowns up to which the covariance of all of them is computed: 70 MB, and some ten seconds."""

STIFF = 1e-10
"""Curvature, relative to the largest, of moves that change nothing observed, where one is needed to go on."""


def restricted_sensitivity(components: FactoredTensor, problem: Problem) -> Sensitivity:
    r"""Return how noise moves the components of a fit whose problem has constraints, or says what was observed.

    The covariance for noise of variance :math:`1 / o_j` in the entry of weight :math:`o_j` is
    :math:`(J^\top O J + \Lambda)^{-1}` on the unknowns that constraints leave free. :math:`\Lambda` holds the strengths
    of ridges: the covariance is that of a posterior, which counts what ridges hold back, too. A move that changes
    factors but nothing observed makes their errors infinite. Size that goes from one mode of a component to another
    does not change unit factors. With more than 3000 free unknowns, errors that may be finite are not computed: NaN.
    """
    present = np.flatnonzero(to_host(components.weights))
    if present.size < components.rank:
        return of_present(components, present, lambda rest: restricted_sensitivity(rest, problem))
    known = components.changed(lambda factor, _: double(factor), double(components.weights))
    unknowns = Unknowns.of(LeastSquares(problem, known), known)
    rows, loose = unknowns.undetermined()
    if np.count_nonzero(unknowns.free) > MOST_UNKNOWNS:
        factors, worth = np.full(loose.shape, np.nan), np.full(known.rank, np.nan)
        n_parameters = problem.n_parameters - float(np.count_nonzero(~unknowns.free))
    else:
        factors, worth, n_parameters = _propagated(unknowns)
    return Sensitivity(np.where(loose, np.inf, factors), worth, n_parameters, rows)


@dataclass(frozen=True, eq=False)
class Unknowns:
    """The unknowns of a fit on the host, (D, k): their values, which are free, and where the factors stand in them."""

    objective: LeastSquares
    point: Array
    values: np.ndarray
    free: np.ndarray
    ridges: np.ndarray
    places: list[np.ndarray]  # by modes, (d, k): numbers of the unknowns
    grams: np.ndarray | None  # (D, k, k): the equations of every row for itself, unless all entries were observed

    @classmethod
    def of(cls, objective: LeastSquares, components: FactoredTensor) -> Unknowns:
        layout, entries = objective.layout, objective.problem.entries
        point = _scaled_as_fitted(objective, components)
        factors = layout.expanded(point)
        values = to_host(point)
        numbers = layout.expanded(like(np.arange(1.0, values.size + 1).reshape(values.shape), point))
        places = [np.rint(np.abs(to_host(part))).astype(int) - 1 for part in numbers]
        xp = array_namespace(point)
        strengths = _strengths(objective.problem)
        parts = [xp.full_like(factor, strength) for factor, strength in zip(factors, strengths, strict=True)]
        ridges = to_host(layout.folded(parts, signed=False))
        free, grams = to_host(objective.free(point, 0 * point)) > 0, None
        if entries is not None:
            grams = to_host(layout.folded_rows([entries.row_grams(factors, mode) for mode in range(len(factors))]))
            # What stands at a bound with no entry that holds it there may be anywhere.
            movable = to_host(objective.free(point, 0 * point - 1)) > 0
            free |= movable & (np.diagonal(grams, axis1=1, axis2=2) == 0)
        return cls(objective, point, values, free, ridges, places, grams)

    def undetermined(self) -> tuple[tuple[tuple[int, ...], ...], np.ndarray]:
        """Return the rows of each mode that their entries do not determine, given all others, and whose factors vary.

        Held against the mean over rows, their equations are singular on the unknowns that are free.
        """
        loose = np.zeros((len(self.places), self.values.shape[1]), dtype=bool)
        if self.grams is None:
            return ((),) * len(self.places), loose
        identity = np.eye(self.values.shape[1])
        matrices = self.grams + self.ridges[:, :, None] * identity
        scales = np.sqrt(np.mean(np.diagonal(matrices, axis1=1, axis2=2), axis=0))
        matrices = matrices / np.where(scales > 0, scales, 1) / np.where(scales > 0, scales, 1)[:, None]
        both = self.free[:, :, None] & self.free[:, None, :]
        eigenvalues, vectors = np.linalg.eigh(np.where(both, matrices, identity))
        null = eigenvalues <= NEARLY_SINGULAR
        moved = self.free & (np.einsum("dij,dj->di", vectors**2, null) > 1e-6)
        rows = []
        for mode, places in enumerate(self.places):
            own = moved.ravel()[places]
            rows.append(tuple(np.flatnonzero(own.any(axis=1)).tolist()))
            loose[mode] = own.any(axis=0)
        return tuple(rows), loose


def _strengths(problem: Problem) -> list[float]:
    constraints = problem.constraints or (None,) * problem.tensor.order
    return [0.0 if constraint is None else constraint.ridge for constraint in constraints]


def _scaled_as_fitted(objective: LeastSquares, components: FactoredTensor) -> Array:
    """Return the unknowns, the size of components divided among modes as ridges do it: without any, evenly."""
    point, problem = objective.layout.pack(components), objective.problem
    strengths = np.array(_strengths(problem))
    if objective.layout.signs is not None or not strengths.any():
        return point
    sizes = np.ones((components.order, components.rank))
    moving = []
    for mode, constraint in enumerate(problem.constraints or ()):
        if isinstance(constraint, Fixed):
            given = to_host(constraint.factor)
            norms = np.linalg.norm(given, axis=0)
            cosines = to_host(components.factors[mode]).T @ (given / np.where(norms > 0, norms, 1))
            sizes[mode] = norms[np.argmax(np.abs(cosines), axis=1)]
        else:
            moving.append(mode)
    # At a minimum, the strength times the squared size of a component is the same in all modes.
    shares = np.sqrt(strengths[moving]) if np.all(strengths[moving] > 0) else np.ones(len(moving))
    rest = np.abs(to_host(components.weights)) / np.prod(sizes, axis=0)
    sizes[moving] = (rest * np.prod(shares)) ** (1 / max(len(moving), 1)) / shares[:, None]
    factors = [to_host(factor) for factor in objective.layout.factors(point)]
    scaled = [factor * (size / np.linalg.norm(factor, axis=0)) for factor, size in zip(factors, sizes, strict=True)]
    return like(np.concatenate(scaled), point)


def _propagated(unknowns: Unknowns) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the errors of the factors, what components are worth, and how many parameters were determined."""
    index = np.flatnonzero(unknowns.free)
    curvature = to_host(unknowns.objective.curvature(unknowns.point).matrix())[np.ix_(index, index)]
    matrix = curvature + np.diag(unknowns.ridges.ravel()[index])
    scales = np.sqrt(np.diagonal(matrix))
    scales = np.where(scales > 0, scales, 1)
    eigenvalues, vectors = np.linalg.eigh(matrix / scales / scales[:, None])
    largest = eigenvalues[-1] if index.size else 1.0
    kept = eigenvalues > largest * index.size * np.finfo(np.float64).eps
    vectors = vectors / scales[:, None]
    covariance = (vectors[:, kept] / eigenvalues[kept]) @ vectors[:, kept].T
    n_parameters = float(np.sum(covariance * curvature))
    null = np.linalg.qr(vectors[:, ~kept])[0]
    errors = _factor_errors(unknowns, covariance, null)
    softened = covariance + vectors[:, ~kept] @ vectors[:, ~kept].T / (STIFF * largest)
    return errors, _worth(unknowns, softened), n_parameters


def _factor_errors(unknowns: Unknowns, covariance: np.ndarray, null: np.ndarray) -> np.ndarray:
    """Return the standard errors of unit factors, infinite where moves that nothing observed holds back change them."""
    order = np.full(unknowns.values.size, -1)
    order[unknowns.free.ravel()] = np.arange(covariance.shape[0])
    errors = np.zeros((len(unknowns.places), unknowns.values.shape[1]))
    for mode, places in enumerate(unknowns.places):
        for i, column in enumerate(places.T):
            held, rows = order[column] >= 0, order[column][order[column] >= 0]
            values = unknowns.values.ravel()[column]
            unit = (values / np.linalg.norm(values))[held]
            moves = null[rows] - np.outer(unit, unit @ null[rows])
            own = covariance[np.ix_(rows, rows)]
            variance = np.trace(own) - unit @ own @ unit
            infinite = np.sum(moves**2) > 1e-6
            errors[mode, i] = np.inf if infinite else np.sqrt(max(variance, 0)) / np.linalg.norm(values)
    return errors


def _worth(unknowns: Unknowns, covariance: np.ndarray) -> np.ndarray:
    """Return by how much the distance would grow without a component; infinite for one of which nothing is free."""
    index = np.flatnonzero(unknowns.free)
    component = index % unknowns.values.shape[1]
    worth = np.full(unknowns.values.shape[1], np.inf)
    for i in np.unique(component):
        own = np.flatnonzero(component == i)
        values = unknowns.values.ravel()[index[own]]
        n_modes = sum(bool(unknowns.free.ravel()[places[:, i]].any()) for places in unknowns.places)
        worth[i] = max(values @ np.linalg.solve(covariance[np.ix_(own, own)], values), 0) / n_modes**2
    return worth
