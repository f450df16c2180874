r"""More components than modes measure, at order three: Koszul flattenings, quadratic equations, a diagonalization.

Project the first mode to :math:`n = 2 p + 1` dimensions, :math:`X_j = \sum_i \alpha_{ij} b_i c_i^\top`. The matrix that
has :math:`\pm X_j` where :math:`e_j \wedge e_l = \pm e_h`, for forms l of degree p and h of degree p + 1, is

.. math:: \sum_i W(\alpha_i)^\top \otimes b_i c_i^\top, \qquad W(\alpha)\, y = \alpha \wedge y,

of rank :math:`\binom{2p}{p} k` where that is less than its size. A vector y of its left kernel is a linear map from b
to forms of degree p with :math:`\alpha_i \wedge y(b_i) = 0` for every component: :math:`y(b_i)` is divisible by
:math:`\alpha_i`. So :math:`y(b_i) \wedge z(b_i) = 0` for any two, which is linear in :math:`b_i b_i^\top`. Symmetric
matrices that satisfy these equations for several projections are spanned by the :math:`b_i b_i^\top`, the matrices of
rank one among them.

References
----------
P. K. Kothari, A. Moitra and A. S. Wein, "Overcomplete tensor decomposition via Koszul-Young flattenings", 2024.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from codiag._array import like, to_host
from codiag._estimate import Log
from codiag.diagonalize import UWEDGE
from codiag.methods._joint import off_diagonal_share
from codiag.methods._rank_one_span import MOST_UNKNOWNS, gram_null_space
from codiag.methods._slices import Roles, components_from_sides
from codiag.methods.least_squares._components import with_best_weights
from codiag.tensors import DenseTensor, FactoredTensor

MOST_ROWS = 1100
"""Size of a flattening: its kernel is found in half a second."""

MOST_SIZE = 64
"""Size of the mode whose equations are collected, in an array of its fourth power: 134 megabytes."""

SPARE = 0.09
"""Share of a flattening that its kernel should have, or noise hides it: forms of higher degree leave more, and cost."""


class Flattening(NamedTuple):
    """The degree of forms, and the number of projections whose equations determine the components."""

    degree: int
    n_projections: int


def koszul_roles(shape: Sequence[int], rank: int) -> Roles | None:
    """Choose the mode whose factors are found first (rows) and the one to project (columns), or None if none will do.

    Columns of the other factor must be no more than five thirds of the smaller of the modes that are not projected.
    """
    if len(shape) != 3:
        return None
    smallest, middle, largest = sorted(range(3), key=lambda mode: shape[mode])
    roles = Roles((largest,), (smallest,), (middle,))
    return None if flattening(shape, roles, rank) is None else roles


def flattening(shape: Sequence[int], roles: Roles, rank: int) -> Flattening | None:
    """Return the lowest degree whose kernel is not small, or the one with the largest where all are; None if empty."""
    rows, projected, others = (shape[role[0]] for role in roles)
    if math.comb(rank + 1, 2) > MOST_UNKNOWNS or rows > MOST_SIZE:
        return None
    best, largest = None, 0.0
    for degree in (1, 2, 3):
        n_forms, n_directions = math.comb(2 * degree + 1, degree), 2 * degree + 1
        ranks = math.comb(2 * degree, degree) * rank
        kernel = n_forms * rows - ranks
        pairs = math.comb(kernel + 1 - degree % 2, 2)  # the square of a form of odd degree is zero anyway
        if n_directions > projected or n_forms * rows > MOST_ROWS or ranks > n_forms * others or pairs == 0:
            continue
        wanted = math.comb(rows + 1, 2) - rank
        n_projections = max(
            math.ceil((projected - 1) / (2 * degree)) + 2, math.ceil(2 * wanted / (pairs * n_directions))
        )
        if n_directions == projected:  # all projections are one
            n_projections = 1
        share = kernel / (n_forms * rows)
        enough = n_projections * pairs * n_directions >= wanted and n_projections <= 20 * projected
        if enough and share > largest and (degree < 3 or largest < SPARE):
            best, largest = Flattening(degree, n_projections), share
    return best


@lru_cache(maxsize=8)
def _wedge(size: int, first: int, second: int) -> np.ndarray:
    """Return the signs of products of forms: [h, l, m] of those of degrees `first` and `second` of so many vectors."""
    sides = [list(combinations(range(size), degree)) for degree in (first + second, first, second)]
    place = {form: index for index, form in enumerate(sides[0])}
    signs = np.zeros([len(side) for side in sides])
    for l, left in enumerate(sides[1]):
        for m, right in enumerate(sides[2]):
            if not set(left) & set(right):
                swaps = sum(one > other for one in left for other in right)
                signs[place[tuple(sorted(left + right))], l, m] = (-1) ** swaps
    return signs


def koszul_start(core: DenseTensor, roles: Roles, rank: int, rng: np.random.Generator, log: Log) -> FactoredTensor:
    """Return components of a core of order three, or raise `numpy.linalg.LinAlgError` where equations are too few."""
    plan = flattening(core.shape, roles, rank)
    if plan is None:
        raise np.linalg.LinAlgError("no flattening has a kernel")
    entries = to_host(core.to_dense()).transpose(roles.columns + roles.rows + roles.others)
    projections = [_orthonormal_rows(2 * plan.degree + 1, entries.shape[0], rng) for _ in range(plan.n_projections)]
    kernels = [_kernel(np.tensordot(rows, entries, 1), rank, plan.degree) for rows in projections]
    span = _symmetric_span(kernels, rank, plan.degree)
    fit = UWEDGE(fallback=False)(gram_null_space(span), seed=rng)
    log.add("diagonalize Koszul equations", fit.n_sweeps, off_diagonal_share(fit), _flops(entries.shape, rank, plan))
    values, vectors = np.linalg.eigh(np.einsum("rij,rt->tij", span, fit.factor))
    first = vectors[np.arange(rank), :, np.argmax(np.abs(values), axis=1)].T
    if core.symmetric:
        return with_best_weights(core, [like(first, core.reference)] * 3)
    second = _projected_factor(projections, kernels, first, plan.degree)
    return components_from_sides(core, roles, like(first, core.reference), like(second, core.reference))


def _orthonormal_rows(n: int, size: int, rng: np.random.Generator) -> np.ndarray:
    return np.asarray(np.linalg.qr(rng.standard_normal((size, n)))[0].T)


def _kernel(matrices: np.ndarray, rank: int, degree: int) -> np.ndarray:
    """Return the projector (forms, b, forms, b) onto the left kernel of the flattening of n matrices."""
    wedge, size = _wedge(2 * degree + 1, 1, degree), matrices.shape[1]
    n_forms = wedge.shape[2]
    flat = np.einsum("hjl,jbc->lbhc", wedge, matrices, optimize=True).reshape(n_forms * size, -1)
    last = n_forms * size - math.comb(2 * degree, degree) * rank - 1
    vectors = eigh(flat @ flat.T, subset_by_index=(0, last), check_finite=False)[1]
    return np.asarray((vectors @ vectors.T).reshape(n_forms, size, n_forms, size))


def _symmetric_span(kernels: Sequence[np.ndarray], rank: int, degree: int) -> np.ndarray:
    r"""Return symmetric matrices (rank, b, b) that nearly satisfy :math:`y(b) \wedge z(b) = 0` for y, z in the kernels.

    Equations are summed over orthonormal y and z: products of entries of the projectors onto the kernels.
    """
    size = kernels[0].shape[1]
    gram = np.zeros((size * size, size * size))
    for signs in _wedge(2 * degree + 1, degree, degree):
        left, right = np.nonzero(signs)
        ordered = left < right  # (l, m) and (m, l) give the same, but for the order of rows
        first, second, sign = left[ordered], right[ordered], signs[left, right]
        for kernel in kernels:
            one = kernel[first][:, :, left].transpose(0, 2, 1, 3) * np.outer(sign[ordered], sign)[:, :, None, None]
            two = kernel[second][:, :, right].transpose(0, 2, 1, 3)
            gram += one.reshape(-1, size * size).T @ two.reshape(-1, size * size)
    gram = gram.reshape(size, size, size, size)  # [a, c, b, d] for the entries (a, b) and (c, d) of two matrices
    i, j = np.triu_indices(size)
    half = gram[i, :, j, :] + gram[j, :, i, :]
    scale = np.where(i == j, 0.5, math.sqrt(0.5))
    system = (half[:, i, j] + half[:, j, i]) * np.outer(scale, scale)
    found = eigh((system + system.T) / 2, subset_by_index=(0, rank), check_finite=False)
    if not found[0][rank] > 1e-12 * np.trace(system) / len(i):
        raise np.linalg.LinAlgError("too few equations tell the components apart")
    span = np.zeros((rank, size, size))
    span[:, i, j] = found[1][:, :rank].T * scale
    return span + span.transpose(0, 2, 1)


def _projected_factor(
    projections: Sequence[np.ndarray], kernels: Sequence[np.ndarray], first: np.ndarray, degree: int
) -> np.ndarray:
    r"""Return the unit columns a that nearly satisfy :math:`P a \wedge y(b) = 0` for y in the kernels, given b."""
    wedge = _wedge(2 * degree + 1, 1, degree)
    total = np.zeros((first.shape[1], projections[0].shape[1], projections[0].shape[1]))
    for rows, kernel in zip(projections, kernels, strict=True):
        images = np.einsum("bt,lbmd,dt->tlm", first, kernel, first, optimize=True)
        forms = np.einsum("hjl,ja->hla", wedge, rows)
        total += np.einsum("hla,tlm,hme->tae", forms, images, forms, optimize=True)
    return np.asarray(np.linalg.eigh(total)[1][:, :, 0].T)


def _flops(shape: Sequence[int], rank: int, plan: Flattening) -> float:
    n_forms, size = math.comb(2 * plan.degree + 1, plan.degree), shape[1]
    terms = (2 * plan.degree + 1) * math.comb(2 * plan.degree, plan.degree) ** 2 / 2
    each = (n_forms * size) ** 3 * 4 / 3 + 2 * (n_forms * size) ** 2 * n_forms * shape[2] + 2 * terms * size**4
    return plan.n_projections * each + size**6 / 6 + 2.0 * rank**4 * size**2 + rank**6 / 6
