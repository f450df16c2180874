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

import numpy as np

from codiag._arrays import Array, array_namespace, conjugate, real_part
from codiag.least_squares._normal_equations import NormalEquations, RowEquations, gram_products, solved_rows
from codiag.least_squares._tolerances import TINY

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
