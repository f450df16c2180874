"""Sweeps over pairs of rows, and the classical method of joint diagonalization by plane rotations.

A sweep transforms every pair (p, q) of rows and columns once. It consists of rounds of disjoint pairs, which are
transformed all at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from array_api_compat import device

from codiag._arrays import (
    Array,
    array_namespace,
    asarray_like,
    conjugate,
    epsilon,
    identity,
    is_complex,
    is_hermitian,
    is_mutable,
    real_part,
    squared_magnitudes,
    to_host,
    to_namespace,
)
from codiag.diagonalize._base import Diagonalizer
from codiag.diagonalize._fixed_point import Iterate

Round = tuple[Array, Array]
"""Index arrays p and q of disjoint pairs (p_i, q_i), p_i < q_i."""


def round_robin(size: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return rounds of disjoint pairs that together hold every pair of `size` indices once (the circle method)."""
    n_seats = size + size % 2
    circle = np.arange(1, n_seats)
    rounds = []
    for turn in range(n_seats - 1):
        seats = np.concatenate([[0], np.roll(circle, turn)])
        first, second = seats[: n_seats // 2], seats[::-1][: n_seats // 2]
        present = (first < size) & (second < size)
        pairs = np.sort(np.stack([first, second])[:, present], axis=0)
        rounds.append((pairs[0], pairs[1]))
    return rounds


def on_device(rounds: list[tuple[np.ndarray, np.ndarray]], reference: Array) -> list[Round]:
    """Move the index arrays to the device of the matrices."""
    xp = array_namespace(reference)
    return [(xp.asarray(p, device=device(reference)), xp.asarray(q, device=device(reference))) for p, q in rounds]


def paired_layout(stack: Array) -> Array:
    """Return a copy of the stack as (d, d, n), in which rows and columns are contiguous blocks of n entries.

    Sweeps change it in place. The copy is on the host if the library of the stack has immutable arrays.
    """
    stack = stack if is_mutable(stack) else to_host(stack)
    xp = array_namespace(stack)
    n, rows, columns = stack.shape
    # A plain copy would keep the strides of the view; flattening reorders the entries.
    flat = xp.reshape(xp.permute_dims(stack, (1, 2, 0)), (-1,))
    return xp.reshape(xp.asarray(flat, copy=True), (rows, columns, n))


def transform_pairs(
    entries: Array, inverse: Array, pairs: Round, matrix: tuple[Array, Array, Array, Array], *, hermitian: bool = False
) -> None:
    """Replace rows and columns (p, q) by (a p + b q, c p + d q), in place, and rows of the inverse factors likewise.

    The columns of Hermitian matrices take the conjugate coefficients.
    """
    p, q = pairs
    a, b, c, d = matrix
    for target in (inverse, entries):
        shape = (-1,) + (1,) * (target.ndim - 1)
        first, second = target[p], target[q]
        target[p] = a.reshape(shape) * first + b.reshape(shape) * second
        target[q] = c.reshape(shape) * first + d.reshape(shape) * second
    if hermitian:
        a, b, c, d = (conjugate(coefficient) for coefficient in matrix)
    first, second = entries[:, p], entries[:, q]
    entries[:, p] = a[:, None] * first + b[:, None] * second
    entries[:, q] = c[:, None] * first + d[:, None] * second


def pair_entries(entries: Array, pairs: Round) -> tuple[Array, Array, Array]:
    """Return (D_l)_pp, (D_l)_qq and (D_l)_pq of every pair, each (n_pairs, n)."""
    p, q = pairs
    return entries[p, p], entries[q, q], entries[p, q]


def repeat(sweep: Callable[[int], float], entries: Array, tol: float, max_sweeps: int) -> tuple[int, bool]:
    """Repeat a numbered sweep until its largest change is below tolerance; return the number and whether it is."""
    n_sweeps, converged = 0, False
    while n_sweeps < max_sweeps and not converged:
        converged = sweep(n_sweeps) < max(tol, 4 * epsilon(entries))
        n_sweeps += 1
    return n_sweeps, converged


def balance_rows(entries: Array, inverse: Array) -> None:
    """Scale every component to unit diagonal energy, in place: the off-diagonal energy depends on the scale of rows."""
    xp = array_namespace(entries)
    index = xp.arange(inverse.shape[0], device=device(inverse))
    energy = xp.sum(squared_magnitudes(entries[index, index]), axis=1)
    scale = xp.where(energy > 0, energy, xp.ones_like(energy)) ** -0.25
    entries *= scale[:, None, None]
    entries *= scale[None, :, None]
    inverse *= scale[:, None]


@dataclass(frozen=True, kw_only=True)
class Jacobi(Diagonalizer):
    r"""Orthogonal joint diagonalization by Jacobi rotations, the paper's orthogonal method.

    Each rotation maximizes the diagonal energy of its pair in closed form,
    :math:`\theta = \tfrac14 \mathrm{atan2}(2 g_1^\top g_2,\ \|g_1\|^2 - \|g_2\|^2)` with
    :math:`g_1 = d_p - d_q` and :math:`g_2 = 2 D_{pq}`. Rotations of complex pairs have a phase as well, and follow from
    an eigenvector of a real 3 x 3 matrix. The optima of disjoint pairs do not depend on each other, so
    that a whole round of them is applied at once.

    Parameters
    ----------
    rank : int, optional
        Number of components, as in `Diagonalizer`.
    tol : float
        Stop when the largest entry of the relative step falls below it.
    max_sweeps : int
        Steps or sweeps before giving up, as in `Diagonalizer`.

    See Also
    --------
    OrthogonalNewton : The same minimum in fewer steps, and the default.
    UWEDGE : For factors that are not orthogonal.

    Notes
    -----
    **Assumptions.** Matrices that are symmetric or Hermitian, and orthonormal factors.

    **Complexity.** :math:`O(n d^3)` operations a sweep, in passes over memory rather than matrix products; fewer than
    ten sweeps with small noise.

    **Guarantees.** No rotation increases the off-diagonal energy, and quadratic convergence without noise.

    **Limitations.** Fails to be fast: `OrthogonalNewton` finds the same factors in a fraction of the time. It has one
    start, and may end at a local minimum with large noise.

    References
    ----------
    J.-F. Cardoso and A. Souloumiac, "Jacobi angles for simultaneous diagonalization", SIAM J. Matrix Anal. Appl. 17(1),
    1996.

    Examples
    --------
    >>> from codiag.diagonalize import Jacobi
    >>> fit = Jacobi()([[[0, 1], [1, 0]], [[0, 2], [2, 0]]])
    >>> abs(fit.diagonals).round(12).tolist()
    [[1.0, 1.0], [2.0, 2.0]]
    """

    max_sweeps: int = 100
    complex_kinds: ClassVar[tuple[str, ...]] = ("hermitian", "symmetric")
    orthogonal = True

    def sweep_flops(self, n: int, size: int) -> float:
        return 2.0 * size * n * (size * size - size * (size - 1) / 2)

    def iterate(self, stack: Array, rng: np.random.Generator) -> Iterate:
        size = stack.shape[1]
        entries = paired_layout(stack)
        inverse = identity(size, entries)
        rounds = on_device(round_robin(size), entries)
        hermitian = is_hermitian(stack)
        n_sweeps, converged = repeat(
            lambda _: rotation_sweep(entries, inverse, rounds, hermitian=hermitian),
            entries,
            self.tol,
            self.max_sweeps,
        )
        inverse = to_namespace(inverse, stack)
        return Iterate(inverse, inverse, n_sweeps, converged)


def rotation_sweep(entries: Array, inverse: Array, rounds: list[Round], *, hermitian: bool = False) -> float:
    """Rotate every pair once, in place; return the largest angle."""
    xp = array_namespace(entries)
    largest = []
    for pairs in rounds:
        cos, sin, angles = _rotations(*pair_entries(entries, pairs), hermitian=hermitian)
        largest.append(xp.max(xp.abs(angles)))
        matrix = (cos, sin, -conjugate(sin), conjugate(cos))
        transform_pairs(entries, inverse, pairs, matrix, hermitian=hermitian)
    return float(xp.max(xp.stack(largest)))


def _rotations(first: Array, second: Array, cross: Array, *, hermitian: bool) -> tuple[Array, Array, Array]:
    """Return the cosine, the sine, complex if the matrices are, and the angle of the best rotation of every pair."""
    xp = array_namespace(first)
    if not is_complex(first):
        theta = _angles(first, second, cross)
        return xp.cos(theta), xp.sin(theta), theta
    x, y, z = _directions(to_host(first), to_host(second), to_host(cross), hermitian=hermitian)
    cos = np.sqrt((1 + x) / 2)
    sin = (y + 1j * z) / (2 * cos)
    return asarray_like(cos, first), asarray_like(sin, first), asarray_like(np.abs(sin), real_part(first))


def _directions(first: np.ndarray, second: np.ndarray, cross: np.ndarray, *, hermitian: bool) -> np.ndarray:
    r"""Return unit vectors (3, n_pairs) :math:`(c^2 - |s|^2, 2 c\, \mathrm{Re}\, s, 2 c\, \mathrm{Im}\, s)`.

    They are the leading eigenvectors of :math:`\sum_l g g^\top` if the matrices are Hermitian, where
    :math:`(d_p - d_q)` becomes :math:`v^\top g` with :math:`g = (d_p - d_q, 2\, \mathrm{Re} D_{pq}, 2\, \mathrm{Im}
    D_{pq})` (Cardoso and Souloumiac, 1996), and the last ones of :math:`\mathrm{Re} \sum_l \bar g g^\top` if they are
    symmetric, where :math:`D_{pq}` becomes :math:`v^\top g` with :math:`g = (D_{pq}, (d_q - d_p) / 2, i (d_p + d_q) /
    2)`. The components of the smaller diagonals stay where they are: the first entry is not negative.
    """
    if hermitian:
        vectors = np.stack([(first - second).real, 2 * cross.real, 2 * cross.imag], axis=1)
    else:
        vectors = np.stack([cross, (second - first) / 2, 0.5j * (first + second)], axis=1)
    values, basis = np.linalg.eigh(np.real(np.conj(vectors) @ np.swapaxes(vectors, 1, 2)))
    direction, gap = basis[:, :, 2], values[:, 2] - values[:, 1]
    if not hermitian:
        direction, gap = basis[:, :, 0], values[:, 1] - values[:, 0]
    direction = direction * np.where(direction[:, :1] < 0, -1, 1)
    # As for real pairs; the matrix of symmetric ones also holds the sum of the diagonals, with its rounding errors.
    size = np.sum(np.abs(first) ** 2 + np.abs(second) ** 2, axis=1)
    resolved = gap > (100 * epsilon(first)) ** (2 if hermitian else 1) * size
    directions: np.ndarray = np.where(resolved[:, None], direction, [1.0, 0.0, 0.0]).T
    return directions


def _angles(first: Array, second: Array, cross: Array) -> Array:
    xp = array_namespace(first)
    apart, across = first - second, 2 * cross
    on = xp.sum(apart * apart, axis=1) - xp.sum(across * across, axis=1)
    off = 2 * xp.sum(apart * across, axis=1)
    # Diagonals that differ by rounding errors only, even after the rotation, do not determine an angle.
    size = xp.sum(first * first + second * second, axis=1)
    resolved = xp.hypot(on, off) > (100 * epsilon(first)) ** 2 * size
    return xp.where(resolved, 0.25 * xp.atan2(off, on), xp.zeros_like(on))
