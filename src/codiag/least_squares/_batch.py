r"""Alternating sweeps from many starts at once, or of many tensors of one shape.

All members are swept together: a mode takes one product of the unfolded tensor with the columnwise Kronecker products
of all members, and a stack of small solutions. Each member is extrapolated, by a step that grows while its objective
falls (Ang, Cohen, Gillis and Hien, "Accelerating block coordinate descent for nonnegative tensor factorization", Numer.
Linear Algebra Appl. 28(5), 2021).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from array_api_compat import is_numpy_array

from codiag._arrays import Array, adjoint, array_namespace, conjugate, identity, matrix_transpose, real_part
from codiag.least_squares._tolerances import TINY, TOLERANCE

FIRST_STEP, GROWTH, DECAY = 0.5, 1.05, 1.5
"""Extrapolation of the first sweep, its growth after a sweep that gained, and its decay after one that did not."""


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
    row_weights : array of shape (n, d_0), optional
        Weights of the indices of the first mode, by member.
    shares : array of shape (d_0, d_1, ...), optional
        Weights of the entries of one tensor relative to the largest, zero for missing ones. What is missing is filled
        with the model of each member before every sweep (expectation maximization).
    """

    def __init__(
        self,
        entries: Array,
        factors: Sequence[Array],
        one_sided: Sequence[bool] = (),
        bases: Sequence[Array | None] = (),
        row_weights: Array | None = None,
        shares: Array | None = None,
    ) -> None:
        order = len(factors)
        self._n, self._rank = factors[0].shape[0], factors[0].shape[2]
        self._one_sided, self._bases = one_sided or (False,) * order, bases or (None,) * order
        self._row_weights, self._entries, self._shares = row_weights, entries, shares
        self._is_shared = entries.ndim == order and shares is None
        self._sides = self._unfolded(entries) if shares is None else []
        self._last = list(factors)  # where the last sweep that gained has ended, before it was extrapolated
        self._factors, self._inner, self._grams = list(factors), list(factors), list(factors)
        for mode, factor in enumerate(factors):
            self._set(mode, factor)
        ones = 1 + 0 * real_part(factors[0][:, 0, 0])
        self.objectives = self._reference = ones * math.inf
        self._step, self._most = ones * FIRST_STEP, ones

    def sweep(self, n_sweeps: int) -> Array:
        """Take sweeps, and return half the squared distances of all members, without half the squared norms."""
        xp, last = array_namespace(self._factors[0]), len(self._factors) - 1
        for _ in range(n_sweeps):
            before = list(self._last)
            if self._shares is not None:
                self._fill()
            for mode in range(last + 1):
                gram = math.prod((own for other, own in enumerate(self._grams) if other != mode), start=1.0)
                product = self._product(mode)
                solved = self._last[mode] = self._solved(mode, product, gram)
                if mode < last:
                    moved = solved + self._step[:, None, None] * (solved - before[mode])
                    solved = xp.where(moved > 0, moved, 0 * moved) if self._one_sided[mode] else moved
                self._set(mode, solved)
            fitted = real_part(xp.sum(product * conjugate(self._factors[last]), axis=(1, 2)))
            values = real_part(xp.sum(gram * self._grams[last], axis=(1, 2))) / 2 - fitted
            self._accept(values if self._shares is None else values + self._filled, before)
        return self.objectives

    def _unfolded(self, entries: Array) -> list[Array]:
        """Return the unfoldings of the tensor along each mode, or of the tensor of each member."""
        xp, order, sides = array_namespace(entries), len(self._bases), []
        first = entries.ndim - order
        for mode in range(order):
            axes = [mode + first, *(other + first for other in range(order) if other != mode)]
            turned = xp.permute_dims(entries, [0, *axes] if first else axes)
            sides.append(xp.reshape(turned, (*turned.shape[: first + 1], -1)))
        return sides

    def _fill(self) -> None:
        """Fill what is missing with the model of each member; its squares belong to the distance that is minimized."""
        xp, shape = array_namespace(self._entries), self._entries.shape
        rows = self._factors[1]
        for factor in self._factors[2:]:
            rows = xp.reshape(rows[:, :, None, :] * factor[:, None, :, :], (self._n, -1, self._rank))
        model = xp.reshape(self._factors[0] @ matrix_transpose(rows), (self._n, *shape))
        shares = self._shares
        assert shares is not None
        filled = (shares * self._entries)[None, ...] + (1 - shares) * model
        axes = tuple(range(1, filled.ndim))
        energy = real_part(xp.sum(filled * conjugate(filled), axis=axes))
        gap = self._entries[None, ...] - model
        lost = real_part(xp.sum(shares * (1 - shares) * gap * conjugate(gap), axis=axes))
        total = real_part(xp.sum(shares * self._entries * conjugate(self._entries)))
        self._filled, self._sides = (energy + lost - total) / 2, self._unfolded(filled)

    def _accept(self, values: Array, before: list[Array]) -> None:
        """Keep members that have gained, and extrapolate them further; set others back."""
        xp = array_namespace(values)
        has_gained = values <= self._reference
        self._most = xp.where(has_gained, xp.minimum(self._most * math.sqrt(GROWTH), 0 * values + 1), self._step)
        self._step = xp.where(has_gained, xp.minimum(self._step * GROWTH, self._most), self._step / DECAY)
        self.objectives = xp.where(has_gained, values, self.objectives)
        self._reference = xp.where(has_gained, values, 0 * values + math.inf)
        kept, lengths = has_gained[:, None, None], []
        for mode, factor in enumerate(before):
            self._last[mode] = xp.where(kept, self._last[mode], factor)
            self._factors[mode] = xp.where(kept, self._factors[mode], factor)
            lengths.append(xp.linalg.vector_norm(self._last[mode], axis=1, keepdims=True) + TINY)
        mean = math.prod(lengths[1:], start=lengths[0]) ** (1 / len(lengths))
        for mode, length in enumerate(lengths):  # components have one size in all modes
            self._last[mode] = self._last[mode] * (mean / length)
            self._set(mode, self._factors[mode] * (mean / length))

    def keep(self, places: Sequence[int]) -> None:
        """Keep some of the members."""
        xp = array_namespace(self._factors[0])
        index = xp.asarray(list(places))

        def taken(values: Array) -> Array:
            return xp.take(values, index, axis=0)

        self._sides = self._sides if self._is_shared else [taken(side) for side in self._sides]
        self._row_weights = None if self._row_weights is None else taken(self._row_weights)
        self.objectives, self._reference = taken(self.objectives), taken(self._reference)
        self._step, self._most, self._n = taken(self._step), taken(self._most), len(places)
        for parts in (self._last, self._factors, self._inner, self._grams):
            parts[:] = [taken(part) for part in parts]

    def member(self, place: int) -> list[Array]:
        """Return the factors of a member."""
        return [factor[place, :, :] for factor in self._last]

    def _set(self, mode: int, factor: Array) -> None:
        """Set the factors of a mode, in the coordinates of the entries, too, and their Gram matrices."""
        basis, weighted = self._bases[mode], factor
        if mode == 0 and self._row_weights is not None:
            weighted = self._row_weights[:, :, None] * factor
        self._factors[mode], self._grams[mode] = factor, adjoint(factor) @ weighted
        self._inner[mode] = weighted if basis is None else adjoint(basis) @ weighted

    def _product(self, mode: int) -> Array:
        """Return the products of the unfolded tensor with the columnwise Kronecker products of all other factors."""
        xp, basis = array_namespace(self._factors[0]), self._bases[mode]
        others = [conjugate(inner) for other, inner in enumerate(self._inner) if other != mode]
        shape = (self._n, self._rank)
        if self._is_shared:  # of all members as columns of one matrix
            parts = [xp.permute_dims(other, (1, 0, 2)) for other in others]
            rows = parts[0]
            for part in parts[1:]:
                rows = xp.reshape(rows[:, None, :, :] * part[None, :, :, :], (-1, *shape))
            flat = self._sides[mode] @ xp.reshape(rows, (rows.shape[0], -1))
            product = xp.permute_dims(xp.reshape(flat, (-1, *shape)), (1, 0, 2))
        else:
            rows = others[0]
            for other in others[1:]:
                rows = xp.reshape(rows[:, :, None, :] * other[:, None, :, :], (self._n, -1, self._rank))
            product = self._sides[mode] @ rows
        return product if basis is None else basis @ product

    def _solved(self, mode: int, product: Array, gram: Array) -> Array:
        """Return the factors of a mode by least squares; if they are one-sided, each column at its best for the others.

        Singular equations are solved as if they were not quite so.
        """
        xp = array_namespace(product)
        if not self._one_sided[mode]:
            sizes = sum(real_part(gram[:, i, i]) for i in range(self._rank))
            matrix = gram + (TOLERANCE * sizes + TINY)[:, None, None] * identity(self._rank, gram)
            return matrix_transpose(xp.linalg.solve(matrix, matrix_transpose(product)))
        factor = xp.asarray(self._factors[mode], copy=True)
        columns = [] if is_numpy_array(factor) else [factor[:, :, i] for i in range(self._rank)]
        for i in range(self._rank):
            current = xp.stack(columns, axis=-1) if columns else factor
            step = product[:, :, i] - (current @ gram[:, :, i, None])[:, :, 0]
            best = current[:, :, i] + step / (gram[:, i, i, None] + TINY)
            best = xp.where(best > 0, best, 0 * best)
            if columns:
                columns[i] = best
            else:
                factor[:, :, i] = best
        return xp.stack(columns, axis=-1) if columns else factor
