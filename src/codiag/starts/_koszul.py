r"""A start for ranks above the size of the modes, at order three: kernels of Koszul flattenings, and diagonalization.

Project the first mode to :math:`n = 2 p + 1` dimensions, :math:`X_j = \sum_i \alpha_{ij} b_i c_i^\top`. The matrix
with blocks :math:`\pm X_j` for :math:`e_j \wedge e_l = \pm e_h`, with forms l of degree p and h of degree p + 1, is

.. math:: \sum_i W(\alpha_i)^\top \otimes b_i c_i^\top, \qquad W(\alpha)\, y = \alpha \wedge y,

of rank :math:`\binom{2p}{p} k` if that is less than its size. A vector y of its left kernel is a linear map from b to
forms of degree p with :math:`\alpha_i \wedge y(b_i) = 0` for every component. With :math:`\alpha_i = P a_i` these
equations are linear in :math:`a_i b_i^\top`. The matrices that satisfy the equations of several projections P are
spanned by the :math:`a_i b_i^\top`, which are the matrices of rank one among them. Forms of degree p suffice for
:math:`k < (2 p + 1) / (p + 1)` times the modes that are not projected.

References
----------
P. K. Kothari, A. Moitra and A. S. Wein, "Overcomplete tensor decomposition via Koszul-Young flattenings", 2024.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from codiag._arrays import like, to_host
from codiag.diagonalize import UWEDGE
from codiag.least_squares import ROUNDING, split_columns, with_best_weights
from codiag.problem import Log
from codiag.starts._rank_one_span import MAX_UNKNOWNS, gram_null_space
from codiag.starts._slices import Roles, components_from_sides
from codiag.tensors import DenseTensor, FactoredTensor


class Flattening(NamedTuple):
    """The degree of forms, and the number of projections whose equations determine the components."""

    degree: int
    n_projections: int


def koszul_roles(shape: Sequence[int], rank: int, *, symmetric: bool) -> Roles | None:
    """Choose the mode that is projected (columns) and the mode that is estimated with it (rows), or return None."""
    if len(shape) != 3:
        return None
    smallest, middle, largest = sorted(range(3), key=lambda mode: shape[mode])
    roles = Roles((largest,), (smallest,), (middle,))
    return None if flattening(shape, roles, rank, symmetric=symmetric) is None else roles


def flattening(shape: Sequence[int], roles: Roles, rank: int, *, symmetric: bool) -> Flattening | None:
    r"""Return the degree, one or two, with the largest kernel; None if both are empty.

    If the tensor is symmetric, :math:`y(b) = P b \wedge w` is in the kernel for all components and gives no equation.
    """
    rows, projected, others = (shape[role[0]] for role in roles)
    unknowns = math.comb(rows + 1, 2) if symmetric else rows * projected
    if max(math.comb(rank + 1, 2), unknowns) > MAX_UNKNOWNS or rank >= unknowns:
        return None
    best, largest = None, 0.0
    for degree in (1, 2):
        n_forms, n_directions = math.comb(2 * degree + 1, degree), 2 * degree + 1
        filled = math.comb(2 * degree, degree) * rank
        kernel = n_forms * rows - filled - (math.comb(n_directions, degree - 1) if symmetric else 0)
        if kernel <= 0 or filled > n_forms * others or n_directions > projected or n_forms * rows > MAX_UNKNOWNS:
            continue
        n_equations = kernel * n_forms  # of a projection
        n_projections = 2 * math.ceil((projected - 1) / (2 * degree))
        n_projections = max(n_projections, math.ceil(2 * (unknowns - rank) / n_equations))
        if n_directions == projected:  # all projections are equivalent
            n_projections = 1
        share = kernel / (n_forms * rows)
        enough = n_equations * n_projections >= unknowns - rank
        if enough and share > largest:
            best, largest = Flattening(degree, n_projections), share
    return best


@cache
def wedge_signs(size: int, first: int, second: int) -> np.ndarray:
    """Return the signs [h, l, m] of products h of basis forms l and m of degrees `first` and `second`."""
    forms = [list(combinations(range(size), degree)) for degree in (first + second, first, second)]
    index_of = {form: index for index, form in enumerate(forms[0])}
    signs = np.zeros([len(basis) for basis in forms])
    for l, left in enumerate(forms[1]):
        for m, right in enumerate(forms[2]):
            if not set(left) & set(right):
                n_swaps = sum(i > j for i in left for j in right)
                signs[index_of[tuple(sorted(left + right))], l, m] = (-1) ** n_swaps
    return signs


def koszul_start(core: DenseTensor, roles: Roles, rank: int, rng: np.random.Generator, log: Log) -> FactoredTensor:
    """Return components of a core of order three, or raise `numpy.linalg.LinAlgError` if equations are too few."""
    plan = flattening(core.shape, roles, rank, symmetric=core.symmetric)
    if plan is None:
        raise np.linalg.LinAlgError("no flattening has a kernel")
    entries = to_host(core.to_dense()).transpose(roles.columns + roles.rows + roles.others)
    span = _rank_one_span(koszul_equations(entries, rank, plan, rng), rank, symmetric=core.symmetric)
    fit = UWEDGE(fallback=False)(gram_null_space(span), seed=rng)
    log.add("diagonalize Koszul equations", fit.n_sweeps, fit.off_diagonal_share, _flops(entries.shape, rank, plan))
    products = np.einsum("rab,rt->abt", span, fit.factor).reshape(-1, rank)
    projected, rows = split_columns(like(products, core.reference), span.shape[1:])
    if core.symmetric:
        return with_best_weights(core, [rows] * 3)
    return components_from_sides(core, roles, rows, projected)


def koszul_equations(entries: np.ndarray, rank: int, plan: Flattening, rng: np.random.Generator) -> np.ndarray:
    r"""Return the Gram matrix (a, b, a, b) of the equations :math:`P a \wedge y(b) = 0` of random projections P.

    It is a sum over an orthonormal basis of each kernel, computed from the projector onto the kernel.
    """
    wedge, (size, rows) = wedge_signs(2 * plan.degree + 1, 1, plan.degree), entries.shape[:2]
    n_forms = wedge.shape[2]
    gram = np.zeros((size * size, rows * rows))
    for _ in range(plan.n_projections):
        projection = np.linalg.qr(rng.standard_normal((size, 2 * plan.degree + 1)))[0]
        kernel = koszul_kernel(np.tensordot(projection, entries, (0, 0)), rank, plan.degree)
        forms = np.einsum("hjl,aj->hla", wedge, projection)
        products = np.tensordot(forms, forms, (0, 0)).transpose(0, 2, 1, 3)
        gram += products.reshape(n_forms**2, -1).T @ kernel.transpose(0, 2, 1, 3).reshape(n_forms**2, -1)
    return gram.reshape(size, size, rows, rows).transpose(0, 2, 1, 3)


def koszul_kernel(matrices: np.ndarray, rank: int, degree: int) -> np.ndarray:
    """Return the projector (forms, b, forms, b) onto the left kernel of the flattening of n matrices."""
    wedge, size = wedge_signs(2 * degree + 1, 1, degree), matrices.shape[1]
    n_forms = wedge.shape[2]
    flat = np.einsum("hjl,jbc->lbhc", wedge, matrices, optimize=True).reshape(n_forms * size, -1)
    last = n_forms * size - math.comb(2 * degree, degree) * rank - 1
    vectors = eigh(flat @ flat.T, subset_by_index=(0, last), check_finite=False)[1]
    return np.asarray((vectors @ vectors.T).reshape(n_forms, size, n_forms, size))


def _rank_one_span(gram: np.ndarray, rank: int, *, symmetric: bool) -> np.ndarray:
    """Return the matrices (rank, a, b), symmetric or not, that satisfy the equations best."""
    size, rows = gram.shape[:2]
    i, j = np.triu_indices(size) if symmetric else np.divmod(np.arange(size * rows), rows)
    scale = np.where(i == j, 0.5, math.sqrt(0.5)) if symmetric else np.ones(len(i))
    system = gram[i, j][:, i, j]
    if symmetric:
        half = gram[i, j] + gram[j, i]
        system = (half[:, i, j] + half[:, j, i]) * np.outer(scale, scale)
    values, vectors = eigh(system, subset_by_index=(0, rank), check_finite=False)
    if not values[rank] > ROUNDING * np.trace(system) / len(i):
        raise np.linalg.LinAlgError("too few equations for the components")
    span = np.zeros((rank, size, rows))
    span[:, i, j] = vectors[:, :rank].T * scale
    return span + span.transpose(0, 2, 1) if symmetric else span


def _flops(shape: Sequence[int], rank: int, plan: Flattening) -> float:
    size, rows, others = shape
    n_forms = math.comb(2 * plan.degree + 1, plan.degree)
    kernel = (n_forms * rows) ** 2 * n_forms * (2 * others + 4 / 3 * rows)
    projection = kernel + 2.0 * (n_forms * size * rows) ** 2
    return plan.n_projections * projection + 4 / 3 * (size * rows) ** 3 + 2.0 * rank**4 * rows**2 + rank**6 / 6
