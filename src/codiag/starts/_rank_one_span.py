"""A start for ranks above the size of two modes: the rank-one matrices in a space of matrices, by an eigenproblem.

References
----------
L. De Lathauwer, "A link between the canonical decomposition in multilinear algebra and simultaneous matrix
diagonalization", SIAM J. Matrix Anal. Appl. 28(3), 2006.

L. De Lathauwer, J. Castaing and J.-F. Cardoso, "Fourth-order cumulant-based blind identification of underdetermined
mixtures", IEEE Trans. Signal Process. 55(6), 2007.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from scipy.linalg import eigh

from codiag._arrays import asarray_like, to_host
from codiag.diagonalize import UWEDGE
from codiag.least_squares import Log, split_columns
from codiag.starts._slices import Roles, components_from_sides, symmetric_components
from codiag.tensors import DenseTensor, FactoredTensor

MAX_UNKNOWNS = 2100
"""Largest size rank (rank + 1) / 2 of the eigenproblem: rank 64, 35 MB and a few seconds."""


def rank_one_roles(shape: Sequence[int], rank: int, *, symmetric: bool) -> Roles | None:
    r"""Choose the modes of the matrices with the most equations per unknown; None if there are too few equations.

    Matrices of size I x J in a space of dimension k have :math:`k (k - 1) / 2` unknowns. The equations are the
    quadratic forms that vanish on matrices of rank one: :math:`\binom{I}{2} \binom{J}{2}`, or fewer if the tensor is
    symmetric.
    """
    unknowns = math.comb(rank, 2)
    if rank < 2 or math.comb(rank + 1, 2) > MAX_UNKNOWNS:
        return None
    best, largest = None, 1.0
    for roles in _symmetric_candidates(len(shape)) if symmetric else _candidates(len(shape)):
        rows, columns, others = (math.prod(shape[mode] for mode in role) for role in roles)
        if columns > rows:  # the transposed matrices cost less
            continue
        equations = math.comb(rows, 2) * math.comb(columns, 2)
        if symmetric:
            size, n_others, n_modes = shape[0], len(roles.others), len(roles.rows + roles.columns)
            others = math.comb(size + n_others - 1, n_others)
            inside = math.comb(size + n_modes - 1, n_modes)
            equations = math.comb(inside + 1, 2) - math.comb(size + 2 * n_modes - 1, 2 * n_modes)
        margin = min(equations / unknowns, others / rank)
        if margin >= 1 and (best is None or margin > largest):
            best, largest = roles, margin
    return best


def _candidates(order: int) -> Iterator[Roles]:
    for n_others in range(1, order - 1):
        for others in combinations(range(order), n_others):
            remaining = [mode for mode in range(order) if mode not in others]
            for n_columns in range(1, len(remaining) // 2 + 1):
                for columns in combinations(remaining, n_columns):
                    yield Roles(tuple(mode for mode in remaining if mode not in columns), columns, others)


def _symmetric_candidates(order: int) -> Iterator[Roles]:
    for n_modes in range(2, order):
        yield Roles(tuple(range(1, n_modes)), (0,), tuple(range(n_modes, order)))


def rank_one_start(core: DenseTensor, roles: Roles, rank: int, rng: np.random.Generator, log: Log) -> FactoredTensor:
    """Return the components whose rows and columns are the rank-one matrices in the range of the core's slices.

    Raises `numpy.linalg.LinAlgError` if the dimension of that range is below the rank.
    """
    stack = range_matrices(core, roles, rank)
    null = gram_null_space(stack)
    fit = UWEDGE(fallback=False)(null, rng=rng)
    if fit.factor.shape[1] < rank:
        raise np.linalg.LinAlgError(f"the equations determine {fit.factor.shape[1]} of {rank} components")
    flops = 2.0 * rank**4 * stack.shape[2] ** 2 + rank**6 / 6 + 2.0 * fit.n_sweeps * rank**4
    log.add("diagonalize rank-one equations", fit.n_sweeps, fit.off_diagonal_share, flops)
    products = asarray_like(np.einsum("rij,rt->ijt", stack, fit.factor).reshape(-1, rank), core.reference)
    if core.symmetric:
        return symmetric_components(core, products, len(roles.rows + roles.columns))
    rows, columns = split_columns(products, stack.shape[1:])
    return components_from_sides(core, roles, rows, columns)


def range_matrices(core: DenseTensor, roles: Roles, rank: int) -> np.ndarray:
    r"""Return matrices (rank, I, J) that span the dominant range of the core's slices, on the host.

    They are singular vectors scaled by the roots of their singular values. The matrix :math:`\sum_r f_r E_r`, f of unit
    norm, of a component of weight w then has norm :math:`\sqrt{w}` and noise :math:`\sigma / \sqrt{w}`, so that the
    noise in the equations, which are quadratic, is the same for all components.
    """
    sides = [tuple(core.shape[mode] for mode in role) for role in (roles.rows, roles.columns)]
    shape = tuple(math.prod(side) for side in sides)
    flat = to_host(core.to_dense()).transpose(roles.order).reshape(-1, math.prod(shape))
    if min(flat.shape) < rank:
        raise np.linalg.LinAlgError("fewer slices than components")
    _, sizes, right = np.linalg.svd(flat, full_matrices=False)
    if not sizes[rank - 1] > max(flat.shape) * np.finfo(np.float64).eps * sizes[0]:
        raise np.linalg.LinAlgError("the slices span fewer dimensions than there are components")
    return np.asarray((np.sqrt(sizes[:rank, None]) * right[:rank]).reshape(rank, *shape))


def gram_null_space(stack: np.ndarray) -> np.ndarray:
    r"""Return the symmetric matrices (k, k, k) that satisfy the rank-one equations of slices (k, I, J) best.

    :math:`\Phi(X, Y)_{ijkl} = x_{ik} y_{jl} + y_{ik} x_{jl} - x_{il} y_{jk} - y_{il} x_{jk}` vanishes at X = Y for
    matrices of rank one only. The system of all :math:`\Phi_{rs} = \Phi(E_r, E_s)` has about :math:`I^2 J^2 / 4` rows.
    The scalar products of its columns are traces of products of four slices,

    .. math:: \langle \Phi_{rs}, \Phi_{tu} \rangle / 4 = g_{rt} g_{su} + g_{ru} g_{st}
        - \mathrm{tr}(E_r^\top E_t E_s^\top E_u) - \mathrm{tr}(E_r^\top E_u E_s^\top E_t),

    which cost :math:`2 k^4 J^2` flops. Singular values below 1e-8 of the largest are lost.
    """
    k = stack.shape[0]
    products = np.tensordot(stack, stack, (1, 1)).transpose(0, 2, 1, 3)  # E_r^T E_t, (k, k, J, J)
    transposed = products.transpose(0, 1, 3, 2).reshape(k * k, -1)
    gram = np.trace(products, axis1=2, axis2=3)
    first, second = np.triu_indices(k)
    scale = np.where(first == second, 1.0, math.sqrt(2))  # an orthonormal basis of symmetric matrices
    system, start = np.empty((first.size, first.size)), 0
    for r in range(k):  # rows (r, s), s = r, r + 1, ...
        traces = (products[r].reshape(k, -1) @ transposed.T).reshape(k, k, k)[:, r:, :]  # [t, s, u]
        crossed = gram[r][:, None, None] * gram[r:, :][None] - traces
        rows = crossed[first, :, second] + crossed[second, :, first]
        system[start : start + k - r] = rows.T * scale[start : start + k - r, None] * scale
        start += k - r
    null = np.zeros((k, k, k))
    null[:, first, second] = eigh(system, subset_by_index=(0, k - 1), check_finite=False)[1].T / scale
    return null + np.triu(null, 1).transpose(0, 2, 1)
