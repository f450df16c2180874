"""The strongest rank-one terms of a tensor, or of many tensors at once, by power iterations from several starts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codiag._arrays import Array, adjoint, array_namespace, asarray_like, conjugate, normal_draws, to_host
from codiag.constraints import Constraint, Constraints
from codiag.least_squares._components import hadamard_gram, unit_columns
from codiag.least_squares._tolerances import BRIEF_SWEEPS, TINY
from codiag.tensors import FactoredTensor, Tensor, leading_eigenpairs

N_TERMS = 3
"""Terms of a residual that are tried. If all are near the noise, the strongest one may be noise."""

N_CANDIDATES = 8
"""Leading singular vectors of an unfolding that are starts of power iterations."""

UNLIKE = 0.5
"""Product of cosines below which two rank-one terms count as different: half of each is orthogonal to the other."""


def split_columns(columns: Array, sizes: Sequence[int]) -> list[Array]:
    """Return the unit factors of columns that are flattened rank-one tensors plus noise.

    Each factor is the leading singular vector of an unfolding, which is then contracted with it. Vectors that are
    computed separately need not belong together if singular values are equal.

    Parameters
    ----------
    columns : array of shape (d_0 d_1 ..., r)
    sizes : sequence of ints
        The modes d_0, d_1, ...

    Returns
    -------
    list of arrays of shape (d_m, r)
    """
    xp = array_namespace(columns)
    n = columns.shape[1]
    if len(sizes) == 1:
        return [unit_columns(columns)[0]]
    rest = xp.reshape(xp.matrix_transpose(columns), (n, sizes[0], -1))
    factors = []
    for size in sizes[1:]:
        leading = _leading_vectors(rest)
        factors.append(xp.matrix_transpose(leading))
        rest = xp.reshape((conjugate(leading)[:, None, :] @ rest)[:, 0, :], (n, size, -1))
    last = xp.matrix_transpose(rest[:, :, 0])
    return [*factors, unit_columns(last)[0]]


def _leading_vectors(matrices: Array) -> Array:
    """Return the leading left singular vectors of a stack of matrices (n, d, e), from the smaller Gram matrices."""
    xp = array_namespace(matrices)
    if matrices.shape[1] <= matrices.shape[2]:
        return xp.linalg.eigh(matrices @ adjoint(matrices))[1][:, :, -1]
    right = xp.linalg.eigh(adjoint(matrices) @ matrices)[1][:, :, -1]
    return xp.matrix_transpose(unit_columns(xp.matrix_transpose((matrices @ right[:, :, None])[:, :, 0]))[0])


def best_rank_one(tensor: Tensor) -> FactoredTensor:
    """Return the best rank-one fit to a tensor that power iterations from several starts find.

    Parameters
    ----------
    tensor : Tensor
        What is to be fitted.

    Returns
    -------
    FactoredTensor
        One component.

    See Also
    --------
    minimize : Several components at once.
    codiag.methods.TPM : One component after the other.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.extending import best_rank_one
    >>> from codiag.tensors import as_tensor
    >>> round(best_rank_one(as_tensor(np.ones((3, 4, 5)))).squared_norm(), 6)
    60.0
    """
    return distinct_terms(tensor, 1)[0]


def distinct_terms(tensor: Tensor, count: int = N_TERMS, constraints: Constraints = None) -> list[FactoredTensor]:
    """Return the strongest rank-one term of a tensor, and the next ones that are unlike those before.

    Columns have one sign in modes with a one-sided constraint; other constraints do not count.
    """
    one_sided = [rule if rule is not None and rule.is_cone else None for rule in constraints or ()]
    terms = _candidates(tensor) if not any(one_sided) else _one_sided_candidates(tensor, one_sided)
    strongest_first = np.argsort(-np.abs(to_host(terms.weights)), kind="stable").tolist()
    cosines = np.abs(to_host(hadamard_gram(terms.factors)))
    chosen: list[int] = []
    for index in strongest_first:
        if len(chosen) < count and all(cosines[index, other] < UNLIKE for other in chosen):
            chosen.append(index)
    return [terms.columns([index]) for index in chosen]


def _candidates(tensor: Tensor) -> FactoredTensor:
    """Return rank-one terms by power iterations from the leading singular vectors of the first unfolding.

    A symmetric tensor may vanish in all of these directions, so that as many random ones are added.
    """
    xp = array_namespace(tensor.reference)
    first = leading_eigenpairs(tensor, 0, N_CANDIDATES)[1]
    if tensor.symmetric:
        drawn = normal_draws(np.random.default_rng(0), (tensor.shape[0], N_CANDIDATES), tensor.reference)
        random = asarray_like(drawn / np.linalg.norm(drawn, axis=0), tensor.reference)
        return _power_iterations(tensor, [xp.concat([first, random], axis=1)] * tensor.order)
    rest = tensor.compress(conjugate(first), *[None] * (tensor.order - 1)).to_dense()
    columns = xp.matrix_transpose(xp.reshape(rest, (first.shape[1], -1)))
    return _power_iterations(tensor, [first, *split_columns(columns, tensor.shape[1:])])


def _one_sided_candidates(tensor: Tensor, one_sided: Sequence[Constraint | None]) -> FactoredTensor:
    """Return rank-one terms by projected power iterations, from free terms and from the largest entries.

    The best column of one sign is the projection of the best free one. No iteration lowers the weight of a term, which
    begins as the entry: above zero, unless no entry is.
    """
    xp = array_namespace(tensor.reference)
    free = _candidates(tensor).factors
    entries = to_host(tensor.to_dense())
    largest = np.unravel_index(np.argsort(-entries, axis=None, kind="stable")[:N_CANDIDATES], entries.shape)
    starts = []
    for mode, rule in enumerate(one_sided):
        axes = asarray_like(np.eye(entries.shape[mode])[:, largest[mode]], tensor.reference)
        starts.append(xp.concat([free[mode] if rule is None else xp.abs(free[mode]), axes], axis=1))
    return _power_iterations(tensor, starts, one_sided)


def _power_iterations(
    tensor: Tensor, factors: Sequence[Array], one_sided: Sequence[Constraint | None] = ()
) -> FactoredTensor:
    """Improve every component on its own; return the components with their best weights."""
    xp = array_namespace(factors[0])
    factors, rules = list(factors), one_sided or (None,) * tensor.order
    for _ in range(BRIEF_SWEEPS):
        if tensor.symmetric and not one_sided:
            others = [conjugate(factor) for factor in factors]
            image = tensor.mttkrp(others, 0)
            along = xp.sum(image * others[0], axis=0)
            shifted = image + along * factors[0] / 2  # plain iterations may oscillate (Kolda and Mayo, 2011)
            factors = [unit_columns(shifted)[0]] * tensor.order
            continue
        for mode in range(tensor.order):
            image, rule = tensor.mttkrp([conjugate(factor) for factor in factors], mode), rules[mode]
            factors[mode] = unit_columns(image if rule is None else rule.project(image))[0]
    others = [conjugate(factor) for factor in factors]
    weights = xp.sum(tensor.mttkrp(others, 0) * others[0], axis=0)
    if one_sided:
        weights = xp.where(weights > 0, weights, 0 * weights)
    return FactoredTensor(weights, factors, symmetric=tensor.symmetric and not one_sided)


def strongest_terms(stack: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the strongest rank-one term of each of a stack of tensors, by power iterations: weight and unit columns.

    Iterations begin at leading singular vectors of the unfoldings, and at the largest entry. All tensors are searched
    alike, so that their weights can be compared: of noise, they are a few per cent below the largest ones.

    Parameters
    ----------
    stack : array of shape (n, d_0, d_1, ...)

    Returns
    -------
    weights : array of shape (n,)
    factors : list of arrays of shape (n, d_m)
    """
    n, sizes = stack.shape[0], stack.shape[1:]
    units = np.max(np.abs(stack), axis=tuple(range(1, stack.ndim)), initial=TINY)
    stack = stack / units.reshape(-1, *[1] * len(sizes))  # squares of tiny entries would vanish
    sides = [
        np.ascontiguousarray(np.moveaxis(stack, mode + 1, 1)).reshape(n, size, -1) for mode, size in enumerate(sizes)
    ]
    corner = np.unravel_index(np.argmax(np.abs(stack).reshape(n, -1), axis=1), sizes)
    factors = []
    for side, row in zip(sides, corner, strict=True):
        axis = np.zeros((n, side.shape[1], 1), stack.dtype)
        axis[np.arange(n), row] = 1
        factors.append(np.concatenate([_singular_vectors(side), axis], axis=2))
    for _ in range(6):
        weights = _sweep(sides, factors)
    best = np.argmax(weights, axis=1)[:, None, None]
    factors = [np.take_along_axis(factor, best, axis=2) for factor in factors]
    for _ in range(BRIEF_SWEEPS // 3):
        weights = _sweep(sides, factors)
    return weights[:, 0] * units, [factor[:, :, 0] for factor in factors]


def _singular_vectors(side: np.ndarray, count: int = 4) -> np.ndarray:
    """Return leading left singular vectors of unfoldings (n, d, e); if there are too few, the last one again."""
    _, rows, columns = side.shape
    if rows <= columns:
        found = np.linalg.eigh(side @ adjoint(side))[1][:, :, : -count - 1 : -1]
    else:
        found = side @ np.linalg.eigh(adjoint(side) @ side)[1][:, :, : -count - 1 : -1]
        found = found / (np.linalg.norm(found, axis=1, keepdims=True) + TINY)
    return np.concatenate([found, *[found[:, :, -1:]] * (count - found.shape[2])], axis=2)


def _sweep(sides: list[np.ndarray], factors: list[np.ndarray]) -> np.ndarray:
    """Improve each mode in turn, in place, and return the weights."""
    weights = np.zeros(factors[0].shape[::2])
    for mode, side in enumerate(sides):
        others = [conjugate(factor) for other, factor in enumerate(factors) if other != mode]
        rows = others[0]
        for other in others[1:]:
            rows = (rows[:, :, None, :] * other[:, None, :, :]).reshape(rows.shape[0], -1, rows.shape[2])
        image = side @ rows
        weights = np.linalg.norm(image, axis=1)
        factors[mode] = image / (weights[:, None, :] + TINY)
    return weights
