"""The effect of noise on the components of a least-squares fit, to first order.

`sensitivity` handles free components and complete tensors, `restricted_sensitivity` constraints and missing entries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from scipy.linalg import get_lapack_funcs

from codiag._arrays import (
    Array,
    adjoint,
    asarray_like,
    conjugate,
    is_complex,
    real_part,
    squared_magnitudes,
    to_double,
    to_host,
)
from codiag._text import ReprMixin
from codiag.constraints import NEARLY_SINGULAR, ridge_strengths
from codiag.least_squares import GaussNewtonOperator, LeastSquares, Parametrization
from codiag.problem import Problem, groups_of, n_independent_entries, n_parameters
from codiag.result import fixed_sizes
from codiag.tensors import FactoredTensor

if TYPE_CHECKING:
    from codiag.result import Factorization

MOVED = 1e-4
"""Squared share of a null direction in a component from which the data does not determine it."""

WELL_CONDITIONED = 1e-9
"""Smallest eigenvalue, relative to the largest, above which no direction is taken for null: far above rounding."""

MOST_UNKNOWNS = 500
"""Unknowns up to which the covariance of all of them is computed, in some tens of milliseconds."""


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity(ReprMixin):
    r"""How white noise of unit variance moves components, and the unique contribution of each.

    Attributes
    ----------
    entries : tuple of arrays of shape (d_m, rank)
        Standard deviations of the entries of unit factors; infinite where the data leaves them free, NaN where there
        were too many of them to compute.
    unique_contributions : array of shape (rank,)
        By how much the squared distance would grow without a component, once all others have moved to make up for it.
    n_parameters : float
        Number of parameters that the data determines; those that ridges shrink count in part.
    undetermined : tuple of tuples of int
        Mode by mode, the rows of the factors for which too little was observed.
    weights : array of shape (rank,)
        Standard deviations of the weights, all factors being unknown too.
    """

    entries: tuple[np.ndarray, ...]
    unique_contributions: np.ndarray
    n_parameters: float
    undetermined: tuple[tuple[int, ...], ...]
    weights: np.ndarray

    @cached_property
    def factors(self) -> np.ndarray:
        r"""The same of columns, :math:`(E\|\delta a_{mi}\|^2)^{1/2}`, shape (n_modes, rank)."""
        squares = np.stack([_sum_of_known(errors**2) for errors in self.entries])
        infinite = np.stack([np.any(np.isinf(errors), axis=0) for errors in self.entries])
        return np.where(infinite, np.inf, np.sqrt(squares))


def unknown_sensitivity(components: FactoredTensor) -> Sensitivity:
    """Return the answer for unknowns that are too many."""
    entries = tuple(np.full((size, components.rank), np.nan) for size in components.shape)
    unknown, n_known = np.full(components.rank, np.nan), float(components.rank * (sum(components.shape) - 2))
    return Sensitivity(entries, unknown, n_known, ((),) * components.order, unknown)


def _sum_of_known(squares: np.ndarray) -> np.ndarray:
    """Return sums over the rows that are numbers; NaN if none is."""
    return np.where(np.all(np.isnan(squares), axis=0), np.nan, np.nansum(squares, axis=0))


def sensitivity_of(fit: Factorization) -> Sensitivity:
    """Return how noise moves the components of a fit; unknown if that depends on a problem which it does not have."""
    if fit._restricted is not None:
        return restricted_sensitivity(fit._components, fit._restricted)
    is_plain = (
        fit._deviance is None and fit.problem.constraints is None and fit.problem.n_observed == math.prod(fit.shape)
    )
    return sensitivity(fit._components) if is_plain else unknown_sensitivity(fit._components)


def noise_level(fit: Factorization) -> float:
    """Return the noise standard deviation of a fit; NaN without residual degrees of freedom.

    Of complex entries it is the root of the mean squared magnitude.
    """
    problem = fit._restricted
    if fit._deviance is not None:
        weight = 1.0 if problem is None else problem.data.mean_weight
        return math.sqrt(fit.deviance.dispersion / weight)
    if problem is None:
        groups, n_missing = (
            groups_of(bool(fit._symmetric), len(fit.shape)),
            math.prod(fit.shape) - (fit.problem.n_observed or 0),
        )
        spare: float = n_independent_entries(fit.shape, groups) - n_missing - n_parameters(fit.shape, groups, fit.rank)
    else:
        spare = problem.n_independent / problem.numbers_per_entry - fit._sensitivity.n_parameters
    return fit.relative_error * fit._norm / math.sqrt(spare) if spare > 0 else math.nan


def sensitivity(components: FactoredTensor) -> Sensitivity:
    r"""Return how noise of unit variance moves components, and the unique contribution of each.

    The covariance is the inverse of the Gauss-Newton matrix H. Moves of a factor out of the range of all factors of its
    mode do not mix with any others, and have the covariance :math:`\Gamma_m^{-1}` in each such dimension. The rest is a
    problem in the coordinates of the ranges. The unique contribution of a component :math:`t_i` is its squared distance
    from the tangent space of all others, :math:`p_i^\top (H^{-1})_{ii}^{-1} p_i / N^2`, since :math:`J_i p_i = N t_i`
    for its scaled factors :math:`p_i`.
    """
    present = np.flatnonzero(to_host(components.weights))
    if present.size < components.rank:
        return of_present(components, present, sensitivity)
    parametrization = Parametrization.of(components)
    scaled = parametrization.factors(to_double(to_host(parametrization.vectorize(components))))
    signs = None if parametrization.signs is None else to_host(parametrization.signs)
    bases, inner, curvature, covariance, free = within_ranges(scaled, signs, components.order)
    rows, spreads = 0, []
    for basis, reduced, gram in zip(bases, inner, curvature.own, strict=True):
        size = reduced.shape[0]
        block = covariance[rows : rows + size, :, rows : rows + size, :]
        across, other = _across(block, reduced), conjugate(basis)
        inside = real_part(np.einsum("ra,iab,rb->ri", basis, across, other, optimize=True))
        own = real_part(np.diag(np.linalg.pinv(gram, hermitian=True)))
        outside = (1 - np.sum(squared_magnitudes(basis), axis=1))[:, None] * own
        spread = np.sqrt(np.maximum(inside + outside, 0)) / np.linalg.norm(reduced, axis=0)
        spreads.append(np.where(free, np.inf, spread))
        rows += size
    entries = tuple(spreads * (components.order if signs is not None else 1))
    unique_contributions = _unique_contributions(covariance, np.concatenate(inner), components.order)
    n_known = float(n_parameters(components.shape, parametrization.groups, components.rank))
    repeats = components.order // len(inner)
    weights = np.abs(to_host(components.weights)) * weight_errors(covariance, inner, repeats)
    return Sensitivity(
        entries, unique_contributions, n_known, ((),) * components.order, np.where(free, np.inf, weights)
    )


def within_ranges(
    factors: Sequence[np.ndarray], signs: np.ndarray | None, order: int = 0
) -> tuple[list[np.ndarray], list[np.ndarray], GaussNewtonOperator, np.ndarray, np.ndarray]:
    """Return bases of the ranges of factors, the factors there, the Gauss-Newton matrix, its inverse and what is free.

    The inverse is (D, k, D, k), in the coordinates of the bases; what is free are the components that null directions
    of the matrix move, but for size that goes from one mode of a component to another.
    """
    bases = [_range(factor) for factor in factors]
    inner = [adjoint(basis) @ factor for basis, factor in zip(bases, factors, strict=True)]
    shape = tuple(factor.shape[0] for factor in inner) if signs is None else (inner[0].shape[0],) * order
    curvature = GaussNewtonOperator(Parametrization(shape, signs), np.concatenate(inner))
    matrix = curvature.matrix()
    if signs is None:
        matrix = matrix + _scaling(inner, curvature.own[0])
    covariance, free = _inverse(matrix, inner[0].shape[1])
    return bases, inner, curvature, covariance, free


def _range(factor: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the range of a factor, (d, min(d, k))."""
    return np.linalg.qr(factor)[0] if factor.shape[0] > factor.shape[1] else np.eye(factor.shape[0])


def of_present(
    components: FactoredTensor, present: np.ndarray, compute: Callable[[FactoredTensor], Sensitivity]
) -> Sensitivity:
    """Return the answer where some components have no weight: they could be anything, and contribute nothing."""
    entries = tuple(np.full((size, components.rank), np.inf) for size in components.shape)
    unique_contributions, weights = np.zeros(components.rank), np.full(components.rank, np.inf)
    if present.size == 0:
        return Sensitivity(entries, unique_contributions, 0.0, ((),) * components.order, weights)
    rest = compute(components.columns(present.tolist()))
    unique_contributions[present], weights[present] = rest.unique_contributions, rest.weights
    for errors, known in zip(entries, rest.entries, strict=True):
        errors[:, present] = known
    return replace(rest, entries=entries, unique_contributions=unique_contributions, weights=weights)


def _inverse(matrix: np.ndarray, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the inverse as (D, k, D, k), null directions as stiff as rounding, and which components these move."""
    definite = _definite_inverse(matrix)
    if definite is not None:
        return definite.reshape(-1, rank, matrix.shape[0] // rank, rank), np.zeros(rank, dtype=bool)
    values, vectors = np.linalg.eigh(matrix)
    rounding = values[-1] * matrix.shape[0] * np.finfo(np.float64).eps
    moved = np.sum(squared_magnitudes(vectors[:, values <= rounding]), axis=1).reshape(-1, rank)
    free = np.sum(moved, axis=0) > MOVED
    inverse = (vectors / np.maximum(values, rounding)) @ adjoint(vectors)
    return inverse.reshape(-1, rank, matrix.shape[0] // rank, rank), free


def _definite_inverse(matrix: np.ndarray) -> np.ndarray | None:
    """Return the inverse by Cholesky's factor, a tenth of the work, or None where a direction may be null."""
    factorize, condition, invert = get_lapack_funcs(("potrf", "pocon", "potri"), (matrix,))
    root, failed = factorize(matrix, lower=1)
    if failed or not condition(root, np.linalg.norm(matrix, 1), uplo="L")[0] > WELL_CONDITIONED:
        return None
    lower = np.tril(invert(root, lower=1)[0])
    return np.asarray(lower + adjoint(np.tril(lower, -1)))


def _unique_contributions(covariance: np.ndarray, point: np.ndarray, order: int) -> np.ndarray:
    blocks = np.einsum("aibi->iab", covariance)
    solved = np.linalg.solve(blocks, point.T[:, :, None])[:, :, 0]
    return np.maximum(np.sum(real_part(solved * conjugate(point).T), axis=1), 0) / order**2


def weight_errors(covariance: np.ndarray, factors: list[np.ndarray], repeats: int = 1) -> np.ndarray:
    r"""Return relative errors of weights :math:`\prod_m \|p_m\|`; the logarithm has slopes :math:`p_m / \|p_m\|^2`."""
    lengths = [np.sum(squared_magnitudes(factor), axis=0) for factor in factors]
    slopes = repeats * np.concatenate([factor / length for factor, length in zip(factors, lengths, strict=True)])
    variances = real_part(np.einsum("ai,aibi,bi->i", conjugate(slopes), covariance, slopes))
    variances = variances / (2 if is_complex(covariance) else 1)  # of the real part
    return np.asarray(np.sqrt(np.maximum(variances, 0)))


def _across(block: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Return the covariance of each column at right angles to itself; along itself it only changes the weight."""
    unit = factor / np.linalg.norm(factor, axis=0)
    across = np.eye(factor.shape[0]) - unit.T[:, :, None] * conjugate(unit).T[:, None, :]
    return across @ np.einsum("aibi->iab", block) @ across


def _scaling(factors: list[np.ndarray], gram: np.ndarray) -> np.ndarray:
    """Return a term that fixes what the data leaves free: size moved from one mode of a component to another.

    It is as stiff as the data is for moves of the component that change the tensor.
    """
    rank = factors[0].shape[1]
    ends = np.cumsum([factor.size for factor in factors])
    moves = []
    for i in range(rank):
        columns = []
        for factor, end in zip(factors, ends, strict=True):
            column = np.zeros(ends[-1], factor.dtype)
            column[end - factor.size : end].reshape(factor.shape)[:, i] = factor[:, i]
            columns.append(column)
        shifts = [column - columns[0] for column in columns[1:]]
        moves += [np.sqrt(gram[i, i]) * shift / max(np.linalg.norm(shift), 1e-300) for shift in shifts]
    free = np.stack(moves, axis=1)
    return free @ adjoint(free)


def restricted_sensitivity(components: FactoredTensor, problem: Problem) -> Sensitivity:
    r"""Return how noise moves the components of a fit whose problem has constraints, or says what was observed.

    The covariance for noise of variance :math:`1 / o_j` in the entry of weight :math:`o_j`, relative to the mean, is
    :math:`(J^\top O J + \Lambda)^{-1}` on the unknowns that constraints leave free. :math:`\Lambda` holds the strengths
    of ridges: the covariance is that of a posterior, which counts what ridges shrink, too. A move that changes
    factors but nothing observed makes their errors infinite. Size that goes from one mode of a component to another
    does not change unit factors. With more than 500 free unknowns, errors that may be finite are not computed: NaN.
    """
    present = np.flatnonzero(to_host(components.weights))
    if present.size < components.rank:
        return of_present(components, present, lambda rest: restricted_sensitivity(rest, problem))
    known = components.changed(lambda factor, _: to_double(factor), to_double(components.weights))
    unknowns = Unknowns.of(LeastSquares(problem, known), known)
    if np.count_nonzero(unknowns.free) > MOST_UNKNOWNS:
        entries = [np.full(numbers.shape, np.nan) for numbers in unknowns.numbers]
        unique_contributions = weights = np.full(known.rank, np.nan)
        n_parameters = problem.n_parameters - float(np.count_nonzero(~unknowns.free))
    else:
        entries, unique_contributions, n_parameters, relative = _propagated(unknowns)
        weights = np.abs(to_host(known.weights)) * relative
    loose = [unknowns.loose.ravel()[numbers] for numbers in unknowns.numbers]
    errors = tuple(np.where(is_loose, np.inf, known) for is_loose, known in zip(loose, entries, strict=True))
    for of_mode, rows in zip(errors, problem.unobserved_rows(), strict=True):
        of_mode[rows] = np.nan
    undetermined = tuple(tuple(np.flatnonzero(is_loose.any(axis=1)).tolist()) for is_loose in loose)
    return Sensitivity(errors, unique_contributions, n_parameters, undetermined, weights)


@dataclass(frozen=True, eq=False)
class Unknowns:
    """The unknowns of a fit on the host, (D, k): their values, which are free, and where the factors stand in them."""

    objective: LeastSquares
    point: Array
    values: np.ndarray
    free: np.ndarray
    ridges: np.ndarray
    loose: np.ndarray  # those that too few entries were observed to determine, whatever all other rows are
    numbers: list[np.ndarray]  # by mode, (d, k): the number of the unknown of each entry

    @classmethod
    def of(cls, objective: LeastSquares, components: FactoredTensor) -> Unknowns:
        parametrization, entries = objective.parametrization, objective.problem.entries
        point = _scaled_as_fitted(objective, components)
        factors = parametrization.expand(point)
        values = to_host(point)
        numbers = parametrization.expand(asarray_like(np.arange(1.0, values.size + 1).reshape(values.shape), point))
        numbers = [np.rint(np.abs(to_host(part))).astype(int) - 1 for part in numbers]
        xp = array_namespace(point)
        strengths = _strengths(objective.problem)
        mean = objective.problem.data.mean_weight
        parts = [xp.full_like(factor, strength / mean) for factor, strength in zip(factors, strengths, strict=True)]
        ridges = to_host(real_part(parametrization.accumulate(parts, signed=False)))
        free = to_host(objective.free_variables(point, 0 * point)) > 0
        loose = np.zeros_like(free)
        if entries is not None:
            grams = to_host(
                parametrization.accumulate_rows([entries.row_grams(factors, mode) for mode in range(len(factors))])
            )
            # What stands at a bound with no entry that holds it there may be anywhere.
            movable = to_host(objective.free_variables(point, 0 * point - 1)) > 0
            grams = grams / mean
            free |= movable & (np.diagonal(grams, axis1=1, axis2=2) == 0)
            tied = _tied(objective, values.shape)
            unobserved = objective.problem.unobserved_rows()
            parts = [
                xp.ones_like(f) * asarray_like(rows[:, None], f) for f, rows in zip(factors, unobserved, strict=True)
            ]
            free &= to_host(parametrization.accumulate(parts, signed=False)) == 0
            loose = _loose(grams, free, ridges) & ~tied
        return cls(objective, point, values, free, ridges, loose, numbers)


def _tied(objective: LeastSquares, shape: tuple[int, int]) -> np.ndarray:
    """Return the unknowns whose rows are tied together by a curved constraint: no row of them stands for itself."""
    tied = np.zeros(shape, dtype=bool)
    constraints = objective.problem.constraints or (None,) * objective.tensor.order
    for group, part in zip(objective.parametrization.groups, objective.parametrization.factors(tied), strict=True):
        part[:] = (known := constraints[group[0]]) is not None and (known.is_manifold or known.ties_rows)
    return tied


def _directions(unknowns: Unknowns, index: np.ndarray) -> np.ndarray | None:
    """Return an orthonormal basis of the moves of free unknowns along curved sets, or None where there are none."""
    objective, point = unknowns.objective, unknowns.point
    if not objective.is_manifold:
        return None
    projector = np.empty((index.size, index.size))
    for column, number in enumerate(index):
        move = np.zeros(unknowns.values.size)
        move[number] = 1
        image = objective.tangent(point, asarray_like(move.reshape(unknowns.values.shape), point))
        projector[:, column] = to_host(image).ravel()[index]
    values, vectors = np.linalg.eigh((projector + projector.T) / 2)
    return vectors[:, values > 0.5]


def _loose(grams: np.ndarray, free: np.ndarray, ridges: np.ndarray) -> np.ndarray:
    """Return the unknowns of rows whose equations are singular on what is free, held against the mean over rows."""
    identity = np.eye(free.shape[1])
    matrices = grams + ridges[:, :, None] * identity
    scales = np.sqrt(np.mean(real_part(np.diagonal(matrices, axis1=1, axis2=2)), axis=0))
    scales = np.where(scales > 0, scales, 1)
    both = free[:, :, None] & free[:, None, :]
    values, vectors = np.linalg.eigh(np.where(both, matrices / scales / scales[:, None], identity))
    return free & (np.einsum("dij,dj->di", squared_magnitudes(vectors), values <= NEARLY_SINGULAR) > 1e-6)


def _strengths(problem: Problem) -> list[float]:
    return ridge_strengths(problem.constraints or (None,) * problem.tensor.order)


def _scaled_as_fitted(objective: LeastSquares, components: FactoredTensor) -> Array:
    """Return the unknowns, the size of components divided among modes as ridges do it: without any, evenly."""
    point, problem = objective.parametrization.vectorize(components), objective.problem
    strengths = np.array(_strengths(problem))
    if objective.parametrization.signs is not None or not strengths.any():
        return point
    sizes = np.ones((components.order, components.rank))
    moving = []
    for mode, constraint in enumerate(problem.constraints or ()):
        if constraint is not None and constraint.is_fixed:
            sizes[mode] = fixed_sizes(to_host(components.factors[mode]), constraint)
        else:
            moving.append(mode)
    # At a minimum, the strength times the squared size of a component is the same in all modes.
    shares = np.sqrt(strengths[moving]) if np.all(strengths[moving] > 0) else np.ones(len(moving))
    rest = np.abs(to_host(components.weights)) / np.prod(sizes, axis=0)
    sizes[moving] = (rest * np.prod(shares)) ** (1 / max(len(moving), 1)) / shares[:, None]
    first = [group[0] for group in objective.parametrization.groups]
    factors = [to_host(factor) for factor in objective.parametrization.factors(point)]
    scaled = [
        factor * (size / np.linalg.norm(factor, axis=0)) for factor, size in zip(factors, sizes[first], strict=True)
    ]
    return asarray_like(np.concatenate(scaled), point)


class Inverse(NamedTuple):
    """The inverse curvature of a fit on its free unknowns.

    Attributes
    ----------
    covariance : array of shape (n, n)
        For white noise of unit variance, without the directions that the data leaves free.
    null : array of shape (n, n_null)
        An orthonormal basis of these directions.
    softened : array of shape (n, n)
        The covariance with these directions, which are soft.
    n_parameters : float
        How many parameters the data determines.
    """

    covariance: np.ndarray
    null: np.ndarray
    softened: np.ndarray
    n_parameters: float


def _propagated(unknowns: Unknowns) -> tuple[list[np.ndarray], np.ndarray, float, np.ndarray]:
    """Return errors of entries, contributions of components, how much was determined, and errors of weights."""
    covariance, null, softened, n_parameters = inverse_of(unknowns)
    errors, weights = entry_errors(unknowns, covariance, null), relative_weight_errors(unknowns, covariance, null)
    return errors, _restricted_contributions(unknowns, softened), n_parameters, weights


def inverse_of(unknowns: Unknowns, curvature: np.ndarray | None = None) -> Inverse:
    """Invert the curvature on the free unknowns, with ridges, and along curved sets; by default that of the problem."""
    index = np.flatnonzero(unknowns.free)
    if curvature is None:
        curvature = to_host(unknowns.objective.curvature(unknowns.point).matrix())
        curvature = curvature / unknowns.objective.problem.data.mean_weight
    curvature = curvature[np.ix_(index, index)]
    directions = _directions(unknowns, index)
    matrix = curvature + np.diag(unknowns.ridges.ravel()[index])
    if unknowns.objective.penalties:
        matrix = matrix + unknowns.objective.penalty_matrix(unknowns.point)[np.ix_(index, index)]
    matrix = matrix if directions is None else directions.T @ matrix @ directions
    scales = np.sqrt(real_part(np.diagonal(matrix)))
    scales = np.where(scales > 0, scales, 1)
    eigenvalues, vectors = np.linalg.eigh(matrix / scales / scales[:, None])
    largest = float(eigenvalues[-1]) if index.size else 0.0
    largest = largest if largest > 0 else 1.0  # all are zero where nothing is determined
    determined = eigenvalues > largest * index.size * np.finfo(np.float64).eps
    vectors = vectors / scales[:, None]
    vectors = vectors if directions is None else directions @ vectors
    covariance = (vectors[:, determined] / eigenvalues[determined]) @ adjoint(vectors[:, determined])
    n_parameters = float(np.sum(real_part(covariance * curvature.T)))
    null = np.linalg.qr(vectors[:, ~determined])[0]
    softened = covariance + vectors[:, ~determined] @ adjoint(vectors[:, ~determined]) / (WELL_CONDITIONED * largest)
    return Inverse(covariance, null, softened, n_parameters)


def entry_errors(unknowns: Unknowns, covariance: np.ndarray, null: np.ndarray) -> list[np.ndarray]:
    """Return the standard errors of the entries of unit factors, infinite where moves that change nothing observed are.

    Rows that are not determined take no part in the length of a column: those of all others stay finite.
    """
    order = np.full(unknowns.values.size, -1)
    order[unknowns.free.ravel()] = np.arange(covariance.shape[0])
    loose, values = unknowns.loose.ravel(), unknowns.values.ravel()
    errors = [np.zeros(numbers.shape) for numbers in unknowns.numbers]
    for of_mode, numbers in zip(errors, unknowns.numbers, strict=True):
        for i, column in enumerate(numbers.T):
            rows = np.flatnonzero((order[column] >= 0) & ~loose[column])
            known = column[~loose[column]]
            unit = values[column[rows]] / max(np.linalg.norm(values[known]), 1e-300)
            across = np.eye(rows.size) - np.outer(unit, conjugate(unit))
            index = order[column[rows]]
            own = covariance[np.ix_(index, index)]
            variances = real_part(np.einsum("ab,bc,ca->a", across, own, across, optimize=True))
            of_mode[rows, i] = np.sqrt(np.maximum(variances, 0)) / np.linalg.norm(values[column])
            if np.sum(squared_magnitudes(across @ null[index])) > 1e-6:
                of_mode[:, i] = np.inf
    return errors


def relative_weight_errors(unknowns: Unknowns, covariance: np.ndarray, null: np.ndarray) -> np.ndarray:
    """Return the errors of weights relative to them, infinite where moves that change nothing observed change them."""
    slopes = np.zeros((unknowns.values.size, unknowns.values.shape[1]), unknowns.values.dtype)
    for numbers in unknowns.numbers:
        factor = unknowns.values.ravel()[numbers]
        lengths = np.maximum(np.sum(squared_magnitudes(factor), axis=0), 1e-300)
        np.add.at(slopes, (numbers, np.arange(factor.shape[1])), factor / lengths)
    slopes = slopes[unknowns.free.ravel()]
    steepest = np.maximum(np.max(np.abs(slopes), axis=0, initial=0), 1e-300)  # of components of next to no weight
    slopes = slopes / steepest
    variances = real_part(np.einsum("ai,ab,bi->i", conjugate(slopes), covariance, slopes, optimize=True))
    errors = steepest * np.sqrt(np.maximum(variances, 0) / (2 if is_complex(covariance) else 1))  # of the real part
    lengths = np.sum(squared_magnitudes(slopes), axis=0)
    moved = np.sum(squared_magnitudes(adjoint(null) @ slopes), axis=0) > 1e-6 * np.maximum(lengths, 1e-300)
    return np.where(moved, np.inf, errors)


def _restricted_contributions(unknowns: Unknowns, covariance: np.ndarray) -> np.ndarray:
    """Return by how much the distance would grow without a component; infinite for one of which nothing is free."""
    index = np.flatnonzero(unknowns.free)
    component = index % unknowns.values.shape[1]
    unique_contributions = np.full(unknowns.values.shape[1], np.inf)
    for i in np.unique(component):
        members = np.flatnonzero(component == i)
        values = unknowns.values.ravel()[index[members]]
        n_modes = sum(bool(unknowns.free.ravel()[numbers[:, i]].any()) for numbers in unknowns.numbers)
        solved = np.linalg.lstsq(covariance[np.ix_(members, members)], values, rcond=None)[0]
        unique_contributions[i] = max(float(np.vdot(values, solved).real), 0.0) / n_modes**2
    return unique_contributions
