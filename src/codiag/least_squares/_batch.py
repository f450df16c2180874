r"""Alternating sweeps from many starts at once, or of many tensors of one shape.

All members are swept together: a mode takes one product of the unfolded tensor with the columnwise Kronecker products
of all members, and a stack of small solutions. If entries are missing or weighted, every row has its own matrix: the
unfolded weights times the products of pairs of columns, for all members in one product, too. Each member is
extrapolated, by a step that grows while its objective falls (Ang, Cohen, Gillis and Hien, "Accelerating block
coordinate descent for nonnegative tensor factorization", Numer. Linear Algebra Appl. 28(5), 2021).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np

from codiag._arrays import (
    Array,
    adjoint,
    array_namespace,
    conjugate,
    identity,
    is_complex,
    matrix_transpose,
    real_part,
)
from codiag.least_squares._tolerances import TINY, TOLERANCE

STEP_GROWTH = 1.05
"""Growth of the extrapolation after a sweep that gained; it falls by a third after one that did not."""


class Batch:
    """Members of a batch: sets of factors, of one tensor or of a tensor each.

    Parameters
    ----------
    entries : array of shape (d_0, d_1, ...), or (n, d_0, d_1, ...)
        The tensor of all members, or one for each.
    factors : sequence of arrays of shape (n, d_m, k)
        Where sweeps begin.
    one_sided : sequence of bool, optional
        Modes whose factors are not negative.
    bases : sequence of arrays of shape (D_m, d_m), or None
        For modes along which the entries are compressed though factors are one-sided: these are (n, D_m, k).
    shares : array of shape (d_0, d_1, ...), optional
        Weights of the entries of one tensor, zero for missing ones. They replace `bases`.

    Attributes
    ----------
    objectives : array of shape (n,)
        Half the squared distances of the members, without half the squared norm of the tensor.
    """

    def __init__(
        self,
        entries: Array,
        factors: Sequence[Array],
        one_sided: Sequence[bool] = (),
        bases: Sequence[Array | None] = (),
        shares: Array | None = None,
    ) -> None:
        order = len(factors)
        self._one_sided = one_sided or (False,) * order
        self._turns_signs = not all(self._one_sided)
        self._best, self._solved, self._factors = list(factors), list(factors), list(factors)
        self._equations: NormalEquations | RowEquations
        if shares is None:
            stacked = entries[None, ...] if entries.ndim == order else entries
            self._equations = NormalEquations(stacked, one_sided, bases=bases)
        else:
            self._equations = RowEquations(entries, shares, one_sided)
        self._modes = self._equations.modes
        zeros = 0 * real_part(factors[0][:, 0, 0])
        self.objectives, self._step, self._most = zeros + math.inf, zeros + 0.5, zeros + 1

    def sweep(self, n_sweeps: int) -> Array:
        """Take sweeps, and return the objectives of all members."""
        xp, last = array_namespace(self._factors[0]), self._modes[-1]
        for _ in range(n_sweeps):
            solved = list(self._solved)
            for mode in self._modes:
                gram, product = self._equations.of(mode, self._factors)
                begin = self._factors[mode] if self._one_sided[mode] else None
                factor = solved[mode] = solved_rows(gram, product, begin, turns_signs=self._turns_signs)
                if mode != last:
                    moved = factor + self._step[:, None, None] * (factor - self._solved[mode])
                    if self._one_sided[mode]:  # a component that is zero in one mode would stay so in all
                        moved = xp.where(moved > 0, moved, 0 * moved)
                        moved = xp.where(xp.max(moved, axis=1, keepdims=True) > 0, moved, factor)
                    factor = moved
                self._factors[mode] = factor
            slope = gram_products(gram, factor) / 2 - product
            self._accept(real_part(xp.sum(slope * conjugate(factor), axis=(1, 2))), solved)
        return self.objectives

    def _accept(self, values: Array, solved: list[Array]) -> None:
        """Keep members that have gained, and extrapolate them further; set others back to their best point."""
        xp = array_namespace(values)
        has_gained = values <= self.objectives
        self._most = xp.where(has_gained, xp.minimum(self._most * math.sqrt(STEP_GROWTH), 0 * values + 1), self._step)
        self._step = xp.where(has_gained, xp.minimum(self._step * STEP_GROWTH, self._most), self._step / 1.5)
        self.objectives = xp.where(has_gained, values, self.objectives)
        kept = has_gained[:, None, None]
        self._best = [xp.where(kept, *pair) for pair in zip(self._factors, self._best, strict=True)]
        self._solved = [xp.where(kept, *pair) for pair in zip(solved, self._best, strict=True)]
        lengths = [xp.linalg.vector_norm(factor, axis=1, keepdims=True) + TINY for factor in self._best]
        mean = math.prod(lengths[1:], start=lengths[0]) ** (1 / len(lengths))
        for mode, length in enumerate(lengths):  # components have one size in all modes
            self._solved[mode] = self._solved[mode] * (mean / length)
            self._best[mode] = self._best[mode] * (mean / length)
        self._factors = list(self._best)

    def select(self, places: Sequence[int]) -> None:
        """Continue with some of the members."""
        xp = array_namespace(self._factors[0])
        index = xp.asarray(list(places))

        def taken(values: Array) -> Array:
            return xp.take(values, index, axis=0)

        self._equations.select(np.asarray(places))
        self.objectives, self._step, self._most = taken(self.objectives), taken(self._step), taken(self._most)
        for parts in (self._best, self._solved, self._factors):
            parts[:] = [taken(part) for part in parts]

    def member(self, place: int) -> list[Array]:
        """Return the factors of a member."""
        return [factor[place, :, :] for factor in self._best]


class _Counted:
    """The order in which modes are solved, and how often the rows of one of them count."""

    def __init__(self, shape: Sequence[int], one_sided: Sequence[bool], counts: Array | None, mode: int) -> None:
        signs = self.one_sided = tuple(one_sided) or (False,) * len(shape)
        # Free factors come last: they turn the sign of components that one-sided factors could only remove.
        self.modes = sorted(range(len(shape)), key=lambda other: (not signs[other], shape[other]))
        self._counts, self._mode = counts, mode

    def counted(self, mode: int, factor: Array) -> Array:
        """Return the factors of a mode with each row as often as it counts."""
        return factor if self._counts is None or mode != self._mode else factor * self._counts[:, :, None]

    def select(self, kept: np.ndarray) -> None:
        """Continue with some of the members."""
        if self._counts is not None:
            xp = array_namespace(self._counts)
            self._counts = xp.take(self._counts, xp.asarray(kept), axis=0)


class NormalEquations(_Counted):
    """The normal equations of members for complete tensors: one matrix for all rows of a mode.

    Parameters
    ----------
    entries : array of shape (g, d_0, d_1, ...)
        Tensors. Each has n / g of the n members, one after the other.
    one_sided : sequence of bool, optional
        Modes whose factors are not negative; they are solved first.
    counts : array of shape (n, d_m), optional
        How often a member counts the rows of a mode.
    mode : int
        The mode of `counts`.
    bases : sequence of arrays of shape (D_m, d_m), or None
        For modes along which the entries are compressed though factors are not.
    """

    def __init__(
        self,
        entries: Array,
        one_sided: Sequence[bool] = (),
        counts: Array | None = None,
        mode: int = 0,
        bases: Sequence[Array | None] = (),
    ) -> None:
        order = entries.ndim - 1
        super().__init__((1,) * order, one_sided, counts, mode)
        self._n_tensors, self._bases = entries.shape[0], bases or (None,) * order
        self._known: list[tuple[Array, Array, Array] | None] = [None] * order
        xp, self._sides = array_namespace(entries), list[Array]()
        for own in range(order - 1):
            axes = [0, own + 1, *(other + 1 for other in self._others(own))]
            shape = (self._n_tensors, entries.shape[own + 1], -1)
            self._sides.append(xp.reshape(xp.permute_dims(entries, axes), shape))
        self._sides.append(matrix_transpose(xp.reshape(entries, (self._n_tensors, -1, entries.shape[-1]))))

    def of(self, mode: int, factors: Sequence[Array]) -> tuple[Array, Array]:
        """Return the Gram matrices of a mode (n, k, k), and its right-hand sides (n, d_m, k)."""
        xp, basis, (n, _, rank) = array_namespace(factors[0]), self._bases[mode], factors[0].shape
        held = [self._held(other, factors[other]) for other in self._others(mode)]
        columns = [_beside(conjugate(inside), self._n_tensors) for inside, _ in held]
        product = self._sides[mode] @ columnwise_kronecker(columns)
        if n != self._n_tensors:
            product = xp.permute_dims(
                xp.reshape(product, (self._n_tensors, -1, n // self._n_tensors, rank)), (0, 2, 1, 3)
            )
            product = xp.reshape(product, (n, -1, rank))
        gram = math.prod((own for _, own in held[1:]), start=held[0][1])
        return gram, product if basis is None else basis @ product

    def select(self, kept: np.ndarray) -> None:
        """Continue with some of the members, of one tensor or of a tensor each."""
        super().select(kept)
        self._known = [None] * len(self._sides)
        if self._n_tensors > 1:
            xp = array_namespace(self._sides[0])
            self._sides = [xp.take(side, xp.asarray(kept), axis=0) for side in self._sides]
            self._n_tensors = len(kept)

    def _held(self, mode: int, factor: Array) -> tuple[Array, Array]:
        """Return factors of a mode in the coordinates of the entries, and their Gram matrices."""
        known, basis = self._known[mode], self._bases[mode]
        if known is None or known[0] is not factor:
            counted = self.counted(mode, factor)
            known = (factor, counted if basis is None else adjoint(basis) @ counted, adjoint(factor) @ counted)
            self._known[mode] = known
        return known[1:]

    def _others(self, mode: int) -> list[int]:
        return [other for other in range(len(self._bases)) if other != mode]


class RowEquations(_Counted):
    """The normal equations of every row of members, for entries of one tensor with weights, zero for missing ones.

    The last mode is contracted once a sweep, for all others.

    Parameters
    ----------
    entries, shares : arrays of shape (d_0, d_1, ...)
    one_sided : sequence of bool, optional
        Modes whose factors are not negative; they are solved first.
    counts, mode : optional
        As of `NormalEquations`.
    """

    def __init__(
        self,
        entries: Array,
        shares: Array,
        one_sided: Sequence[bool] = (),
        counts: Array | None = None,
        mode: int = 0,
    ) -> None:
        super().__init__(entries.shape, one_sided, counts, mode)
        xp, modes = array_namespace(entries), self.modes
        weighted = xp.where(shares > 0, entries * shares, 0 * entries)
        shapes = [entries.shape[mode] for mode in modes]
        self._first = tuple(shapes[:-1])
        self._sides = [
            xp.reshape(xp.permute_dims(part, modes), (-1, shapes[-1])) for part in (shares + 0 * weighted, weighted)
        ]
        self._contracted: list[Array] = []
        self._known: dict[int, tuple[Array, Array, Array]] = {}

    def of(self, mode: int, factors: Sequence[Array]) -> tuple[Array, Array]:
        """Return the matrices of all rows (n, d_m, k, k), and the right-hand sides (n, d_m, k)."""
        n, _, rank = factors[0].shape
        place, found = self.modes.index(mode), []
        held = [None if other == mode else self._held(other, factors[other]) for other in self.modes]
        if place == 0:
            assert held[-1] is not None
            self._contracted = [side @ last for side, last in zip(self._sides, held[-1], strict=True)]
        for number, side in enumerate(self._sides):
            columns = [None if parts is None else parts[number] for parts in held]
            if place == len(self._first):
                rows = columnwise_kronecker([part[None] for part in columns[:-1] if part is not None])
                found.append(matrix_transpose(side) @ rows[0, :, :])
            else:
                found.append(self._summed(number, columns[:-1]))
        pairs, product = (_members(part, (n, part.shape[0], part.shape[1] // n)) for part in found)
        return squares_of(pairs, rank), product

    def _held(self, mode: int, factor: Array) -> tuple[Array, Array]:
        """Return the products of pairs of columns of all members, and the columns."""
        known = self._known.get(mode)
        if known is None or known[0] is not factor:
            parts = (_columns(self.counted(mode, part)) for part in (pairs_of(factor), conjugate(factor)))
            known = self._known[mode] = (factor, *parts)
        return known[1:]

    def _summed(self, number: int, columns: Sequence[Array | None]) -> Array:
        """Return the contraction along all modes but one and the last."""
        summed = self._contracted[number]
        xp, summed = array_namespace(summed), array_namespace(summed).reshape(summed, (*self._first, summed.shape[1]))
        for other in reversed(range(len(columns))):
            part, ones = columns[other], (1,) * (summed.ndim - 2 - other)
            if part is not None:
                summed = xp.sum(summed * xp.reshape(part, (-1, *ones, part.shape[1])), axis=other)
        return summed

    def select(self, kept: np.ndarray) -> None:
        """Continue with some of the members."""
        super().select(kept)
        self._known = {}


def _columns(factors: Array) -> Array:
    """Return the factors of all members side by side, (d, n k)."""
    return _beside(factors, 1)[0, :, :]


def _beside(factor: Array, n_tensors: int) -> Array:
    """Return the factors of all members of a tensor side by side, (g, d, n k / g)."""
    xp, (n, size, rank) = array_namespace(factor), factor.shape
    if n == n_tensors:
        return factor
    split = xp.reshape(factor, (n_tensors, n // n_tensors, size, rank))
    return xp.reshape(xp.permute_dims(split, (0, 2, 1, 3)), (n_tensors, size, -1))


def _members(columns: Array, shape: Sequence[int]) -> Array:
    """Return what stands side by side, (d, n k), as a stack (n, d, k)."""
    xp = array_namespace(columns)
    return xp.permute_dims(xp.reshape(columns, (-1, shape[0], shape[2])), (1, 0, 2))


@cache
def _numbers_of_pairs(rank: int, has_phases: bool) -> tuple[list[int], list[int], list[int]]:
    """Return the columns of all pairs, each pair once if columns are real, and which pair each entry of a matrix is."""
    kept = [(i, j) for i in range(rank) for j in range(0 if has_phases else i, rank)]
    places = {pair: place for place, pair in enumerate(kept)}
    index = [places[(i, j) if (i, j) in places else (j, i)] for i in range(rank) for j in range(rank)]
    return [i for i, _ in kept], [j for _, j in kept], index


def pairs_of(factors: Array) -> Array:
    """Return the products of pairs of columns, each once if they are real."""
    xp = array_namespace(factors)
    left, right, _ = (xp.asarray(numbers) for numbers in _numbers_of_pairs(factors.shape[2], is_complex(factors)))
    return conjugate(xp.take(factors, left, axis=2)) * xp.take(factors, right, axis=2)


def squares_of(pairs: Array, rank: int) -> Array:
    """Return matrices (..., k, k) of the sums over pairs of columns."""
    xp = array_namespace(pairs)
    index = xp.asarray(_numbers_of_pairs(rank, is_complex(pairs))[2])
    return xp.reshape(xp.take(pairs, index, axis=-1), (*pairs.shape[:-1], rank, rank))


def solved_rows(
    gram: Array, product: Array, start: Array | None = None, *, turns_signs: bool = False, share: float = TOLERANCE
) -> Array:
    """Return the factors of a mode by least squares, or columns of one sign, each from a start at its best for others.

    Singular equations are solved as if they were not quite so: a share of their trace is added to the diagonal.
    """
    xp, rank = array_namespace(product), product.shape[2]
    if start is None:
        sizes = sum(real_part(gram[..., i, i]) for i in range(rank))
        matrix = gram + (share * sizes + TINY)[..., None, None] * identity(rank, gram)
        if gram.ndim == 4:
            return xp.linalg.solve(matrix, product[..., None])[..., 0]
        return matrix_transpose(xp.linalg.solve(matrix, matrix_transpose(product)))
    columns = [start[:, :, i] for i in range(rank)]
    for i in range(rank):
        row = gram[..., i, :] if gram.ndim == 4 else gram[:, None, i, :]
        fitted = sum(row[..., j] * columns[j] for j in range(rank))
        best = columns[i] + (product[:, :, i] - fitted) / (row[..., i] + TINY)
        if turns_signs:
            best = xp.where(xp.max(best, axis=1, keepdims=True) > 0, best, -best)
        columns[i] = xp.where(best > 0, best, 0 * best)
    return xp.stack(columns, axis=2)


def gram_products(gram: Array, factors: Array) -> Array:
    """Return the products of rows of factors with the Gram matrix of all of them, or of each."""
    return factors @ matrix_transpose(gram) if gram.ndim == 3 else (gram @ factors[..., None])[..., 0]


def columnwise_kronecker(factors: Sequence[Array]) -> Array:
    """Return the columnwise Kronecker products of stacks of factors, (n, d_0 d_1 ..., k)."""
    xp, rows = array_namespace(factors[0]), factors[0]
    for factor in factors[1:]:
        product = rows[:, :, None, :] * factor[:, None, :, :]
        rows = xp.reshape(product, (rows.shape[0], -1, rows.shape[2]))
    return rows
