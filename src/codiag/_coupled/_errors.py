r"""Standard errors of coupled components, and what each explains in one set that nothing else can.

Columns have unit length and move at right angles to themselves; sizes are in the weights, a row for each set. On these
unknowns :math:`\sum_n J_n^\top J_n / \sigma_n^2` has no null directions, and its inverse is the covariance. Moves of a
factor out of the range of its columns are coupled to nothing if its sets are complete.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from codiag._coupled._objective import CoupledObjective, row_grams
from codiag._coupled._sets import Sets
from codiag.least_squares import GaussNewtonOperator, Parametrization

MOST_UNKNOWNS = 4000
"""Unknowns up to which the covariance is computed, in some ten seconds."""


@dataclass(frozen=True, eq=False)
class CoupledErrors:
    """Standard errors, and the tests of `CoupledFit.presence`.

    Attributes
    ----------
    entries : list of arrays of shape (d_m, rank)
        Of unit factors; infinite where the data leaves them free, NaN where unknowns are too many.
    weights : array of shape (n_sets, rank)
    contributions : array of shape (n_sets, rank)
        By how much the squared distance of all sets, in noise variances, would grow without a component in a set.
    """

    entries: list[np.ndarray]
    weights: np.ndarray
    contributions: np.ndarray


def errors_of(
    objective: CoupledObjective, factors: list[np.ndarray], weights: np.ndarray, known_rows: list[np.ndarray]
) -> CoupledErrors:
    """Return the errors at a minimum with unit factors; `known_rows` says which rows of the factors are determined."""
    point = np.concatenate([*factors, weights])
    frames = _frames(objective, factors)
    inner = [frame.T @ factor for frame, factor in zip(frames, factors, strict=True)]
    free = objective.parametrization.factors(objective.free_variables(point, 0 * point))
    present = [np.any(weights[objective.sets.containing(mode)] != 0, axis=0) for mode in range(len(factors))]
    free = [part * (seen[:, None] & has) for part, seen, has in zip(free, known_rows, present, strict=False)]
    free.append(objective.parametrization.factors(objective.free_variables(point, 0 * point))[-1])
    tangents, places = _tangents(inner, free, frames, weights, _fixed_directions(weights, objective.sets))
    if len(places) > MOST_UNKNOWNS:
        nothing = np.full(weights.shape, np.nan)
        return CoupledErrors([np.full(factor.shape, np.nan) for factor in factors], nothing, nothing)
    matrix = tangents.T @ _curvature(objective, point, inner) @ tangents
    root, loose = _inverse_root(matrix)
    entries, outside = [], _outside(objective, point)
    rank, rows = weights.shape[1], np.cumsum([0, *(len(part) for part in inner)])
    spread = (tangents @ root).reshape(-1, rank, root.shape[1])
    is_loose = (np.abs(tangents[:, loose]).sum(axis=1) > 1e-6).reshape(-1, rank)
    for mode, frame in enumerate(frames):
        part = slice(rows[mode], rows[mode + 1])
        squares = np.sum(np.einsum("dq,qrm->drm", frame, spread[part]) ** 2, axis=2)
        beyond = np.maximum(1 - np.sum(frame**2, axis=1), 0.0)[:, None] * outside[mode]
        entries.append(np.where((frame != 0) @ is_loose[part], np.inf, np.sqrt(squares + beyond)))
    of_weights = np.where(is_loose[rows[-1] :], np.inf, np.sqrt(np.sum(spread[rows[-1] :] ** 2, axis=2)))
    return CoupledErrors(entries, of_weights, _contributions(objective, point, inner, tangents, places))


def _frames(objective: CoupledObjective, factors: list[np.ndarray]) -> list[np.ndarray]:
    """Return orthonormal bases of the ranges of factors that are free in complete sets, else unit matrices."""
    sets, rules = objective.sets, objective.problem.constraints or ()
    frames = []
    for mode, factor in enumerate(factors):
        is_whole = rules[mode] is None and all(sets.is_complete[i] for i in sets.containing(mode))
        is_long = factor.shape[0] > factor.shape[1]
        frames.append(np.linalg.qr(factor)[0] if is_whole and is_long else np.eye(factor.shape[0]))
    return frames


def single_matrices(weights: np.ndarray, sets: Sets) -> Iterator[tuple[int, int, int, np.ndarray, np.ndarray]]:
    """Yield matrices with components that no other set has: place, shared mode, own mode, these and the others."""
    n_sets = np.count_nonzero(weights, axis=0)
    for place, modes in enumerate(sets.modes):
        apart, common = (np.flatnonzero((weights[place] != 0) & chosen) for chosen in (n_sets == 1, n_sets > 1))
        shared = [mode for mode in modes if len(sets.containing(mode)) > 1]
        if len(modes) == 2 and len(shared) == 1 and apart.size and common.size:
            yield place, shared[0], modes[1 - modes.index(shared[0])], apart, common


def _fixed_directions(weights: np.ndarray, sets: Sets) -> dict[tuple[int, int], np.ndarray]:
    """Return the components to which a column stays orthogonal, by mode and component: see `separated`."""
    found = single_matrices(weights, sets)
    return {(mode, int(r)): common for _, mode, _, apart, common in found for r in apart}


def _tangents(
    inner: list[np.ndarray],
    free: list[np.ndarray],
    frames: list[np.ndarray],
    weights: np.ndarray,
    fixed: Mapping[tuple[int, int], np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """Return the moves of unit columns at right angles to themselves, then of weights, and their (mode, component)."""
    (n_sets, rank), n_rows = weights.shape, sum(len(part) for part in inner)
    blocks, places, start = [], [], 0
    for mode, (part, frame) in enumerate(zip(inner, frames, strict=True)):
        for r in range(rank):
            seen = free[mode][:, r] > 0 if len(frame) == len(part) else np.full(len(part), free[mode][:, r].any())
            held = part[seen][:, [r, *fixed.get((mode, r), ())]]
            basis = np.linalg.svd(held)[0][:, held.shape[1] :]
            block = np.zeros((n_rows + n_sets, rank, basis.shape[1]))
            block[start + np.flatnonzero(seen), r] = basis
            blocks.append(block.reshape((n_rows + n_sets) * rank, basis.shape[1]))
            places += [(mode, r)] * basis.shape[1]
        start += len(part)
    for i in range(n_sets):
        for r in np.flatnonzero(free[-1][i]).tolist():
            block = np.zeros((n_rows + n_sets, rank, 1))
            block[n_rows + i, r] = 1.0
            blocks.append(block.reshape(-1, 1))
            places.append((len(inner) + i, r))
    return np.concatenate(blocks, axis=1), np.array(places)


def _curvature(objective: CoupledObjective, point: np.ndarray, inner: list[np.ndarray]) -> np.ndarray:
    """Return the Gauss-Newton matrix in the coordinates of the ranges."""
    sets, rank = objective.sets, point.shape[1]
    rows = np.cumsum([0, *(len(part) for part in inner)])
    size = rows[-1] + len(sets)
    matrix = np.zeros((size, rank, size, rank))
    for i, member in enumerate(objective.members):
        modes = sets.modes[i]
        own = np.concatenate([*(np.arange(rows[m], rows[m + 1]) for m in modes), [rows[-1] + i]])
        if sets.is_complete[i]:
            small = np.concatenate([*(inner[m] for m in modes), point[[len(point) - len(sets) + i]]])
            shape = (*(len(inner[m]) for m in modes), 1)
            curvature = GaussNewtonOperator(Parametrization(shape, None), small).matrix()
        else:
            curvature = member.objective.curvature(point[member.rows]).matrix()
        block = curvature.reshape(own.size, rank, own.size, rank).transpose(0, 2, 1, 3)
        matrix[own[:, None], :, own, :] += member.precision * block
    return matrix.reshape(size * rank, size * rank)


def _inverse_root(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a root of the inverse, and which directions the data leaves free."""
    scales = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    values, vectors = np.linalg.eigh(matrix / scales / scales[:, None])
    least = max(len(values), 1) * np.finfo(np.float64).eps * np.max(values, initial=1.0)
    loose = np.sum(vectors[:, values <= least] ** 2, axis=1) > 1e-6
    loose |= np.diag(matrix) <= 1e-300
    return vectors / np.sqrt(np.maximum(values, least)) / scales[:, None], loose


def _outside(objective: CoupledObjective, point: np.ndarray) -> list[np.ndarray]:
    """Return the variances of columns in each direction out of the range of their factor."""
    grams = np.zeros((*point.shape, point.shape[1]))
    for one, rows, precision in objective.members:
        grams[rows] += precision * row_grams(one, point[rows])
    firsts = np.cumsum([0, *objective.sets.sizes])[:-1]
    return [np.diag(np.linalg.pinv(grams[row], hermitian=True)) for row in firsts]


def _contributions(
    objective: CoupledObjective, point: np.ndarray, inner: list[np.ndarray], tangents: np.ndarray, places: np.ndarray
) -> np.ndarray:
    """Return the squared distance of every component in every set from what the others can explain.

    These are all moves of the model in which its weight in this set is zero.
    """
    n_sets, n_modes = len(objective.sets), len(inner)
    found = np.zeros((n_sets, point.shape[1]))
    for number, (mode, r) in enumerate(places.tolist()):
        if mode < n_modes:
            continue
        row = len(point) - n_sets + mode - n_modes
        without = point.copy()
        without[row, r] = 0.0
        matrix = tangents.T @ _curvature(objective, without, inner) @ tangents
        others = np.arange(len(places)) != number
        root, _ = _inverse_root(matrix[np.ix_(others, others)])
        rest = matrix[number, number] - np.sum((matrix[number, others] @ root) ** 2)
        found[mode - n_modes, r] = point[row, r] ** 2 * max(float(rest), 0.0)
    return found
