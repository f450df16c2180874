r"""Alternating sweeps from many starts at once, or of many tensors of one shape.

All members are swept together: a mode takes one product of the unfolded tensor with the columnwise Kronecker products
of all members, and a stack of small solutions. Each member is extrapolated, by a step that grows while its objective
falls (Ang, Cohen, Gillis and Hien, "Accelerating block coordinate descent for nonnegative tensor factorization", Numer.
Linear Algebra Appl. 28(5), 2021).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from codiag._arrays import Array, adjoint, array_namespace, conjugate, identity, matrix_transpose, real_part
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
        Weights of the entries of one tensor relative to the largest, zero for missing ones. What is missing is filled
        with the model of each member before every sweep (expectation maximization).

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
        self._n, self._rank = factors[0].shape[0], factors[0].shape[2]
        self._one_sided, self._bases = one_sided or (False,) * order, bases or (None,) * order
        # Free factors come last: they turn the sign of components that one-sided factors could only remove.
        self._modes = sorted(range(order), key=lambda mode: not self._one_sided[mode])
        self._turns_signs = not all(self._one_sided)
        self._entries, self._shares = entries, shares
        self._is_shared = entries.ndim == order and shares is None
        self._best, self._solved = list(factors), list(factors)
        self._factors, self._inner, self._grams = list(factors), list(factors), list(factors)
        for mode, factor in enumerate(factors):
            self._set(mode, factor)
        self.objectives = real_part(factors[0][:, 0, 0]) * 0 + math.inf
        self._step, self._most = 0 * factors[0][:, 0, 0].real + 0.5, 0 * factors[0][:, 0, 0].real + 1
        self._filled = entries if shares is None else self._fill()[1]
        self._sides = self._unfolded(self._filled)

    def sweep(self, n_sweeps: int) -> Array:
        """Take sweeps, and return the objectives of all members."""
        xp, last = array_namespace(self._factors[0]), self._modes[-1]
        for _ in range(n_sweeps):
            solved = list(self._solved)
            for mode in self._modes:
                gram = math.prod((own for other, own in enumerate(self._grams) if other != mode), start=1.0)
                product = self._product(mode)
                factor = solved[mode] = self._solution(mode, product, gram)
                if mode != last:
                    moved = factor + self._step[:, None, None] * (factor - self._solved[mode])
                    if self._one_sided[mode]:  # a component that is zero in one mode would stay so in all
                        moved = xp.where(moved > 0, moved, 0 * moved)
                        moved = xp.where(xp.max(moved, axis=1, keepdims=True) > 0, moved, factor)
                    factor = moved
                self._set(mode, factor)
            if self._shares is None:
                fitted = real_part(xp.sum(product * conjugate(self._factors[last]), axis=(1, 2)))
                self._accept(real_part(xp.sum(gram * self._grams[last], axis=(1, 2))) / 2 - fitted, solved)
            else:
                values, filled = self._fill()
                kept = xp.reshape(self._accept(values, solved), (-1, *(1 for _ in self._bases)))
                self._filled = xp.where(kept, filled, self._filled)
                self._sides = self._unfolded(self._filled)
        return self.objectives

    def _unfolded(self, entries: Array) -> list[Array]:
        """Return the unfoldings of the tensor along each mode, or of the tensor of each member."""
        xp, order, sides = array_namespace(entries), len(self._bases), []
        first = tuple(entries.shape[: entries.ndim - order])
        for mode in range(order - 1):
            axes = [*range(len(first)), *(other + len(first) for other in self._others(mode, first=True))]
            sides.append(xp.reshape(xp.permute_dims(entries, axes), (*first, entries.shape[len(first) + mode], -1)))
        return [*sides, matrix_transpose(xp.reshape(entries, (*first, -1, entries.shape[-1])))]

    def _others(self, mode: int, *, first: bool = False) -> list[int]:
        """Return all modes but one, which may come first."""
        return [mode] * first + [other for other in range(len(self._bases)) if other != mode]

    def _fill(self) -> tuple[Array, Array]:
        """Return the objectives, and the tensors in which the models of the members fill what is missing."""
        xp, shares = array_namespace(self._entries), self._shares
        assert shares is not None
        rows = _kronecker(self._factors[1:])
        model = xp.reshape(self._factors[0] @ matrix_transpose(rows), (-1, *self._entries.shape))
        gap = shares * (self._entries - model)
        axes = tuple(range(1, gap.ndim))
        # Of weights below one the root belongs to each of the two gaps.
        roots = xp.where(shares > 0, shares, 0 * shares + 1)
        total = xp.sum(shares * real_part(self._entries * conjugate(self._entries)))
        return (xp.sum(real_part(gap * conjugate(gap)) / roots, axis=axes) - total) / 2, model + gap

    def _accept(self, values: Array, solved: list[Array]) -> Array:
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
            self._set(mode, self._best[mode])
        return has_gained

    def select(self, places: Sequence[int]) -> None:
        """Continue with some of the members."""
        xp = array_namespace(self._factors[0])
        index = xp.asarray(list(places))

        def taken(values: Array) -> Array:
            return xp.take(values, index, axis=0)

        self._sides = self._sides if self._is_shared else [taken(side) for side in self._sides]
        self._filled = self._filled if self._is_shared else taken(self._filled)
        self.objectives, self._step, self._most = taken(self.objectives), taken(self._step), taken(self._most)
        self._n = len(places)
        for parts in (self._best, self._solved, self._factors, self._inner, self._grams):
            parts[:] = [taken(part) for part in parts]

    def member(self, place: int) -> list[Array]:
        """Return the factors of a member."""
        return [factor[place, :, :] for factor in self._best]

    def _set(self, mode: int, factor: Array) -> None:
        """Set the factors of a mode, in the coordinates of the entries, too, and their Gram matrices."""
        basis = self._bases[mode]
        self._factors[mode], self._grams[mode] = factor, adjoint(factor) @ factor
        self._inner[mode] = factor if basis is None else adjoint(basis) @ factor

    def _product(self, mode: int) -> Array:
        """Return the products of the unfolded tensor with the columnwise Kronecker products of all other factors."""
        xp, basis = array_namespace(self._factors[0]), self._bases[mode]
        others = [conjugate(self._inner[other]) for other in self._others(mode)]
        if self._is_shared:  # of all members as columns of one matrix
            columns = [xp.reshape(xp.permute_dims(other, (1, 0, 2)), (1, other.shape[1], -1)) for other in others]
            flat = self._sides[mode] @ _kronecker(columns)[0, :, :]
            product = xp.permute_dims(xp.reshape(flat, (-1, self._n, self._rank)), (1, 0, 2))
        else:
            product = self._sides[mode] @ _kronecker(others)
        return product if basis is None else basis @ product

    def _solution(self, mode: int, product: Array, gram: Array) -> Array:
        """Return the factors of a mode by least squares; if they are one-sided, each column at its best for the others.

        Singular equations are solved as if they were not quite so.
        """
        xp = array_namespace(product)
        if not self._one_sided[mode]:
            sizes = sum(real_part(gram[:, i, i]) for i in range(self._rank))
            matrix = gram + (TOLERANCE * sizes + TINY)[:, None, None] * identity(self._rank, gram)
            return matrix_transpose(xp.linalg.solve(matrix, matrix_transpose(product)))
        factor = self._factors[mode]
        for i in range(self._rank):
            step = product[:, :, i] - (factor @ gram[:, :, i, None])[:, :, 0]
            best = factor[:, :, i] + step / (gram[:, i, i, None] + TINY)
            if self._turns_signs:
                best = xp.where(xp.max(best, axis=1, keepdims=True) > 0, best, -best)
            best = xp.where(best > 0, best, 0 * best)
            factor = xp.concat([factor[:, :, :i], best[:, :, None], factor[:, :, i + 1 :]], axis=2)
        return factor


def _kronecker(factors: Sequence[Array]) -> Array:
    """Return the columnwise Kronecker products of stacks of factors, (n, d_0 d_1 ..., k)."""
    xp, rows = array_namespace(factors[0]), factors[0]
    for factor in factors[1:]:
        product = rows[:, :, None, :] * factor[:, None, :, :]
        rows = xp.reshape(product, (rows.shape[0], -1, rows.shape[2]))
    return rows
