r"""A start for symmetric tensors of even order with many components: power iterations in the span of the flattening.

The flattening of a symmetric tensor of order 2n to a matrix of n and n modes is :math:`\sum_i w_i b_i b_i^\top`, where
:math:`b_i = a_i^{\otimes n}`. Up to :math:`\binom{d + n - 1}{n} - d` components, generic :math:`a_i` are the only unit
vectors x whose powers :math:`x^{\otimes n}` lie in its range S: the maxima of
:math:`f(x) = \|P_S x^{\otimes n}\|^2` with :math:`f = 1`. Many starts climb at once, as products of matrices:

.. math:: x \leftarrow (P_S x^{\otimes n})\, x^{\otimes (n - 1)} + \gamma x, \qquad
    \gamma = \sqrt{2 (n - 1) f (1 - f) / n},

scaled to unit length, and Newton's method finishes. With this shift f is convex near x, so that it rises: the Hessian
is at least :math:`2 n (n - 1)\, u^\top G u`, where :math:`G = (P_S x^{\otimes n})\, x^{\otimes (n - 2)}`; the part of
:math:`P_S x^{\otimes n}` orthogonal to :math:`x^{\otimes n}` has norm :math:`\sqrt{f (1 - f)}`, and the symmetrized
:math:`x^{\otimes (n - 2)} \otimes u \otimes u` has norm :math:`\binom{n}{2}^{-1/2}`.

With C the flattening in an orthonormal basis of S, :math:`b_i^\top C^{-1} b_j = \delta_{ij} / w_i`. So the components
that were not found yet lie in the subspace of S that is orthogonal to :math:`C^{-1} b_i` for those that were. The next
starts climb there, and Newton's method continues in S, so that errors do not accumulate.

References
----------
J. Kileel and J. M. Pereira, "Subspace power method for symmetric tensor decomposition", 2019.

T. G. Kolda and J. R. Mayo, "An adaptive shifted power method for computing generalized tensor eigenpairs", SIAM J.
Matrix Anal. Appl. 35(4), 2014.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from codiag._arrays import asarray_like, blocks, to_host
from codiag.least_squares import (
    BRIEF,
    BRIEF_STEP,
    NEGLIGIBLE,
    ROUGHEST,
    ROUNDING,
    SLOW,
    Limits,
    Log,
    SymmetricBasis,
    symmetric_basis,
    with_best_weights,
)
from codiag.starts._rank_one_span import MAX_UNKNOWNS
from codiag.starts._slices import Roles
from codiag.tensors import DenseTensor, FactoredTensor


def power_roles(shape: Sequence[int], rank: int, *, symmetric: bool) -> Roles | None:
    """Choose half of the modes for rows and half for columns; None if the range would hold other powers, too."""
    order = len(shape)
    if not symmetric or order % 2 > 0 or order < 4:
        return None
    n_elements = math.comb(shape[0] + order // 2 - 1, order // 2)
    if not 1 < rank <= n_elements - shape[0] or n_elements > MAX_UNKNOWNS:
        return None
    return Roles(tuple(range(order // 2)), tuple(range(order // 2, order)), ())


def power_start(core: DenseTensor, roles: Roles, rank: int, rng: np.random.Generator, log: Log) -> FactoredTensor:
    """Return components of a symmetric core of even order, or raise `numpy.linalg.LinAlgError` if its rank is lower."""
    size, order = core.shape[0], len(roles.rows)
    powers = symmetric_basis(size, order)
    entries = to_host(core.to_dense()).reshape(size**order, -1)
    places = powers.places
    values, basis = np.linalg.eigh(entries[np.ix_(places, places)] * np.outer(powers.scales, powers.scales))
    order_of_size = np.argsort(-np.abs(values))
    leading, noise = order_of_size[:rank], float(np.abs(values[order_of_size[rank]]))
    if not abs(values[leading[-1]]) > ROUNDING * abs(values[leading[0]]):
        raise np.linalg.LinAlgError("the flattening has a lower rank than there are components")
    factor, n_climbed = symmetric_powers_in_span(powers, basis[:, leading], values[leading], noise, rng)
    flops = 6.0 * len(places) ** 3 + 4.0 * n_climbed * (len(places) * rank + size**order)
    log.add("power iterations in the span", math.ceil(n_climbed / rank), 0.0, flops)
    return with_best_weights(core, [asarray_like(factor, core.reference)] * core.order)


def symmetric_powers_in_span(
    powers: SymmetricBasis, basis: np.ndarray, values: np.ndarray, noise: float, rng: np.random.Generator
) -> tuple[np.ndarray, int]:
    r"""Return unit vectors (d, k) whose powers lie in the span of k eigenvectors; and the number of iterations.

    Noise E in the flattening moves the span away from a component by :math:`P_\perp E\, C^{-1} b`, to first order. So
    maxima with :math:`1 - f \le \|E\|^2 \|C^{-1} b\|^2` are kept, where the largest eigenvalue that was left out
    stands for the norm of E. In each round as many random starts climb as components are left. If there is no such
    maximum among the ends, or after many rounds, the highest half of what is left is kept, so that rounds are few on
    any data.
    """
    rank, size = values.size, powers.elements.shape[0]
    found, inside, n_climbed, n_rounds = np.empty((size, 0)), np.eye(rank), 0, 0
    while found.shape[1] < rank:
        n_left = rank - found.shape[1]
        ends, n_iterations = power_iterations(powers, basis @ inside, rng.standard_normal((size, max(n_left, size))))
        ends, heights = settled(powers, basis, ends)
        coordinates = basis.T @ powers.of(ends)
        duals = coordinates / values[:, None]
        is_near = 1 - heights <= noise**2 * np.sum(duals**2, axis=0) + NEGLIGIBLE
        order = np.argsort(-heights - is_near)
        order = order[_distinct((coordinates.T @ duals)[np.ix_(order, order)])]
        n_near, n_rounds = int(np.sum(is_near[order])), n_rounds + 1
        n_kept = n_near if n_near > 0 and n_rounds < BRIEF.max_iter else (n_left + 1) // 2
        found, n_climbed = np.hstack([found, ends[:, order[: min(n_kept, n_left)]]]), n_climbed + n_iterations
        duals = basis.T @ powers.of(found) / values[:, None]
        inside = np.linalg.qr(duals, mode="complete")[0][:, found.shape[1] :]
    return found, n_climbed


def power_iterations(powers: SymmetricBasis, basis: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, int]:
    """Take power iterations from starts (d, n) until they are slow; return their number over all starts, too."""
    ends, order = starts / np.linalg.norm(starts, axis=0), powers.elements.ndim
    active, n_iterations = np.arange(ends.shape[1]), 0
    for _ in range(Limits().max_iter):
        vectors = ends[:, active]
        inside = basis.T @ powers.of(vectors)
        height = np.sum(inside**2, axis=0)
        shift = np.sqrt(2 * (order - 1) / order * np.maximum(height * (1 - height), 0.0))
        moved = powers.contracted(basis @ inside, vectors) + shift * vectors
        moved /= np.linalg.norm(moved, axis=0)
        ends[:, active] = moved
        n_iterations += active.size
        active = active[np.linalg.norm(moved - vectors, axis=0) > SLOW]
        if active.size == 0:
            break
    return ends, n_iterations


def settled(powers: SymmetricBasis, basis: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Take Newton steps to maxima (d, n), and return them with their heights; zero for those that were not reached."""
    ends, heights = starts.copy(), np.zeros(starts.shape[1])
    for part in blocks(starts.shape[1], starts.shape[0] * basis.shape[1]):
        vectors, sizes = starts[:, part], np.empty(0)
        for _ in range(4):  # slow iterations end a few hundredths away; every step squares that
            moves = newton_moves(powers, basis, vectors)
            sizes = np.linalg.norm(moves, axis=0)
            vectors = vectors + moves / np.maximum(sizes / ROUGHEST, 1.0)
            vectors = vectors / np.linalg.norm(vectors, axis=0)
        ends[:, part] = vectors
        heights[part] = np.where(sizes < BRIEF_STEP, np.sum((basis.T @ powers.of(vectors)) ** 2, axis=0), 0.0)
    return ends, heights


def newton_moves(powers: SymmetricBasis, basis: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    r"""Return Newton steps of f on the sphere from vectors (d, n).

    With :math:`B u = V^\top (x^{\otimes (n - 1)} \otimes u)`, V the basis of S, the gradient of :math:`f / 2n` is
    :math:`B^\top B x`, and its second derivative on the tangent space :math:`n B^\top B + (n - 1) G - f I`.
    """
    (size, n_vectors), order = vectors.shape, powers.elements.ndim
    others = powers_of_entries(vectors, order - 1)
    rows = (basis / powers.scales[:, None])[powers.elements.reshape(size, -1)]  # (d, d^(n - 1), k)
    images = np.tensordot(rows, others, (1, 0)).transpose(2, 1, 0)  # B of every vector, (n, k, d)
    inside = np.sum(images * vectors.T[:, None, :], axis=2)
    second = powers.contracted(basis @ inside.T, vectors, n_modes=2).reshape(size, size, n_vectors).transpose(2, 0, 1)
    hessian = order * np.swapaxes(images, 1, 2) @ images + (order - 1) * second
    hessian -= np.sum(inside**2, axis=1)[:, None, None] * np.eye(size)
    radial = vectors.T[:, :, None] * vectors.T[:, None, :]
    tangent = np.eye(size) - radial
    gradient = tangent @ (inside[:, None, :] @ images).transpose(0, 2, 1)
    return -np.linalg.solve(tangent @ hessian @ tangent - radial, gradient)[:, :, 0].T


def powers_of_entries(vectors: np.ndarray, order: int) -> np.ndarray:
    """Return all entries (d^n, n_vectors) of the powers of vectors."""
    result = np.ones((1, vectors.shape[1]))
    for _ in range(order):
        result = (result[:, None, :] * vectors).reshape(-1, vectors.shape[1])
    return result


def _distinct(products: np.ndarray) -> list[int]:
    """Return which of several ends differ from those before them, from products that vanish for two components."""
    sizes = np.sqrt(np.abs(np.diag(products)))
    are_alike = np.abs(products) > 0.5 * np.outer(sizes, sizes)
    kept: list[int] = []
    for index in range(sizes.size):
        if not np.any(are_alike[index, kept]):
            kept.append(index)
    return kept
