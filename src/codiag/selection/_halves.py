"""Two halves of a tensor: whether they have the same components, and whether one predicts the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from array_api_compat import array_namespace

from codiag._arrays import Array, like, pick, to_host
from codiag.least_squares import LeastSquares
from codiag.metrics import match_components
from codiag.problem import Problem, most_components
from codiag.result import Factorization
from codiag.selection._scan import Scan, scan
from codiag.tensors import DenseTensor, FactoredTensor, is_large

GROUPS = 4
"""Groups of columns, each of which is left out in turn where the rows of a half are to be predicted."""

LEAST_ROWS = 4
"""Rows of a mode that halves need: two each."""


@dataclass(frozen=True, eq=False)
class Halves:
    """What the halves of a tensor say of every rank.

    Attributes
    ----------
    congruence : dict of int to float
        The least over components of the mean cosine between what the two halves find, in the modes they share.
    errors : dict of int to array of shape (n_blocks,)
        Squared errors of the blocks that were left out, relative to the squared norm of all blocks.
    """

    congruence: dict[int, float]
    errors: dict[int, np.ndarray]


def split_halves(found: Scan, ranks: Sequence[int], rng: np.random.Generator) -> Halves:
    r"""Fit both halves of a tensor, along its first mode, and predict blocks of each from the other.

    Factors of all modes but the first are taken from one half. Rows of the other half get their scores by least
    squares from some of their columns, and what these predict for the other columns is held against the data: nothing
    of a block that is left out was used, neither for its rows nor for its columns. A tensor too large for that is
    represented by its core, turned at random, which leaves white noise white and spreads every component evenly over
    all rows.

    References
    ----------
    A. B. Owen and P. O. Perry, "Bi-cross-validation of the SVD and the nonnegative matrix factorization", Ann. Appl.
    Stat. 3(2), 2009. R. A. Harshman and M. E. Lundy, "The PARAFAC model for three-way factor analysis and
    multidimensional scaling", in Research Methods for Multimode Data Analysis, 1984.
    """
    problem = _formed(found, rng)
    if problem is None or max(problem.tensor.shape) < LEAST_ROWS:
        return Halves({}, {})
    shape = problem.tensor.shape
    mode = 0 if shape[0] >= LEAST_ROWS else int(np.argmax(shape))
    order = rng.permutation(shape[mode])
    rows = [np.sort(order[: order.size // 2]), np.sort(order[order.size // 2 :])]
    parts = [part for own in rows if (part := _part(problem, {mode: own})) is not None]
    ranks = [rank for rank in ranks if all(rank <= most_components(part.tensor.shape) for part in parts)]
    if len(parts) < 2 or not ranks:
        return Halves({}, {})
    fits = [scan(part.with_rank(max(ranks)), ranks, rng, polish=False).fits for part in parts]
    congruence = {rank: _congruence(fits[0][rank], fits[1][rank], mode) for rank in ranks}
    return Halves(congruence, _held_out(parts, fits, mode, rng))


def _formed(found: Scan, rng: np.random.Generator) -> Problem | None:
    """Return the problem with entries to choose from: all of them, or those of the core; None where there are none."""
    problem = found.problem
    if not found.space.is_complete and found.space.dense is None:
        core = found.space.core
        turns = [np.linalg.qr(rng.standard_normal((size, size)))[0] for size in core.shape]
        turned = core.without_symmetry().compress(*[like(turn, core.reference) for turn in turns])
        return problem.with_tensor(turned)
    if is_large(problem.tensor.shape):
        return None
    entries, observed = problem.tensor.to_dense(), problem.observed
    if problem.entries is not None and observed is None:
        observed = like(problem.observed_mask().astype(np.float64), entries)
    return problem.with_part(DenseTensor.of(entries, symmetric=False), observed, problem.constraints)


def _part(problem: Problem, rows: Mapping[int, np.ndarray]) -> Problem | None:
    """Ask the same of some slices of a tensor; None where nothing is known there."""
    entries, observed = problem.tensor.to_dense(), problem.observed
    constraints = list(problem.constraints or (None,) * problem.tensor.order)
    for mode, chosen in rows.items():
        entries = pick(entries, chosen, mode)
        observed = None if observed is None else pick(observed, chosen, mode)
        own = constraints[mode]
        constraints[mode] = None if own is None else own.on_rows(chosen)
    xp = array_namespace(entries)
    if not bool(xp.any(entries != 0)) or (observed is not None and not bool(xp.any(observed > 0))):
        return None
    return problem.with_part(DenseTensor.of(entries, symmetric=False), observed, tuple(constraints))


def _congruence(one: Factorization, other: Factorization, mode: int) -> float:
    """Return the geometric mean over modes of the cosines between components, for the pair that differs most."""
    shared = [place for place in range(len(one.factors)) if place != mode]
    first, second = ([to_host(fit.factors[place]) for place in shared] for fit in (one, other))
    matched = match_components(first, second).factors
    cosines = [np.abs(np.sum(to_host(a) * to_host(b), axis=0)) for a, b in zip(matched, second, strict=True)]
    return float(np.min(np.prod(cosines, axis=0)) ** (1 / len(shared)))


def _held_out(
    parts: Sequence[Problem], fits: Sequence[Mapping[int, Factorization]], mode: int, rng: np.random.Generator
) -> dict[int, np.ndarray]:
    """Return the errors of blocks of each half as the other predicts them, by rank."""
    sizes = [size if place != mode else 0 for place, size in enumerate(parts[0].tensor.shape)]
    other = int(np.argmax(sizes))
    if sizes[other] < 2:
        return {}
    columns = rng.permutation(sizes[other])
    groups = [np.sort(group) for group in np.array_split(columns, min(GROUPS, sizes[other]))]
    errors: dict[int, list[float]] = {rank: [] for rank in fits[0]}
    total = 0.0
    for half, known in zip(reversed(parts), fits, strict=True):
        for group in groups:
            kept = np.setdiff1d(columns, group)
            seen, block = _part(half, {other: kept}), _part(half, {other: group})
            if seen is None or block is None:
                continue
            total += LeastSquares(block).squared_norm
            for rank, fit in known.items():
                errors[rank].append(_prediction_error(fit, seen, block, (mode, other), (kept, group)))
    return {rank: np.array(values) / total for rank, values in errors.items() if total > 0}


def _prediction_error(
    fit: Factorization,
    seen: Problem,
    block: Problem,
    modes: tuple[int, int],
    columns: tuple[np.ndarray, np.ndarray],
) -> float:
    """Return the squared distance of a block from what factors predict, with the scores of its rows from others."""
    mode, other = modes
    factors: list[Array] = list(fit.factors)
    inside, outside = (pick(factors[other], own, 0) for own in columns)
    xp = array_namespace(inside)
    factors[mode] = xp.ones((seen.tensor.shape[mode], fit.rank), dtype=inside.dtype)
    factors[other] = inside
    factors[mode] = LeastSquares(seen).solve_mode(factors, mode)
    factors[other] = outside
    predicted = FactoredTensor(xp.ones_like(fit.weights), factors, symmetric=False)
    return LeastSquares(block).distance(predicted)
