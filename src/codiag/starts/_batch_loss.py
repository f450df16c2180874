r"""Alternating sweeps for a loss from many starts at once: scoring, one mode after the other.

At the model :math:`\eta` of a member, entries :math:`\eta - \ell' / w` with the weights w, a bound of the second
derivative, are the least squares of which a sweep solves every row. The member moves towards the solution, by less
after a sweep that did not gain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from codiag._arrays import Array, array_namespace, identity, matrix_transpose
from codiag.least_squares import FIRST_DAMPING, columnwise_kronecker, pairs_of, solved_rows, squares_of
from codiag.losses import Loss


class LossBatch:
    """Members of a batch: sets of factors of one tensor, which are fitted under a loss.

    Parameters
    ----------
    entries : array of shape (d_0, d_1, ...)
    factors : sequence of arrays of shape (n, d_m, k)
        Where sweeps begin.
    one_sided : sequence of bool
        Modes whose factors are not negative.
    loss : Loss
    shares : array of shape (d_0, d_1, ...), optional
        Weights of the entries, zero for missing ones.

    Attributes
    ----------
    objectives : array of shape (n,)
        Half the deviances of the members.
    """

    def __init__(
        self,
        entries: Array,
        factors: Sequence[Array],
        one_sided: Sequence[bool],
        loss: Loss,
        shares: Array | None = None,
    ) -> None:
        self._entries, self._loss, self._one_sided, self._shares = entries, loss, one_sided, shares
        self._factors = list(factors)
        self._model, self.objectives = self._evaluated(self._factors)
        self._step = array_namespace(entries).ones_like(self.objectives)

    def sweep(self, n_sweeps: int) -> Array:
        """Take sweeps, and return the objectives of all members."""
        xp = array_namespace(self._entries)
        for _ in range(n_sweeps):
            step, towards = self._step[:, None, None], self._swept()
            moved = [old + step * (new - old) for old, new in zip(self._factors, towards, strict=True)]
            model, values = self._evaluated(moved)
            has_gained = values <= self.objectives
            self.objectives = xp.where(has_gained, values, self.objectives)
            self._step = xp.where(has_gained, xp.minimum(2 * self._step, xp.ones_like(values)), self._step / 2)
            kept = has_gained[:, None, None]
            self._factors = [xp.where(kept, *pair) for pair in zip(moved, self._factors, strict=True)]
            self._model = xp.where(xp.reshape(kept, (-1, *(1 for _ in self._one_sided))), model, self._model)
        return self.objectives

    def select(self, places: Sequence[int]) -> None:
        """Continue with some of the members."""
        xp = array_namespace(self._entries)
        index = xp.asarray(list(places))
        self._factors = [xp.take(factor, index, axis=0) for factor in self._factors]
        self._model, self._step = xp.take(self._model, index, axis=0), xp.take(self._step, index, axis=0)
        self.objectives = xp.take(self.objectives, index, axis=0)

    def member(self, place: int) -> list[Array]:
        """Return the factors of a member."""
        return [factor[place, :, :] for factor in self._factors]

    def _evaluated(self, factors: Sequence[Array]) -> tuple[Array, Array]:
        """Return the models and the objectives of factors."""
        xp = array_namespace(self._entries)
        rows = columnwise_kronecker(factors[1:])
        model = xp.reshape(factors[0] @ matrix_transpose(rows), (-1, *self._entries.shape))
        values = self._loss.value(0 * model + self._entries, model)
        total = xp.sum(self._weighted(values), axis=tuple(range(1, values.ndim)))
        return model, xp.where(xp.isfinite(total), total, xp.full_like(total, math.inf))

    def _weighted(self, values: Array) -> Array:
        """Return values of entries times their weights; those of missing ones may be infinite."""
        if self._shares is None:
            return values
        return array_namespace(values).where(self._shares > 0, values, 0.0) * self._shares

    def _swept(self) -> list[Array]:
        """Return the factors after a sweep on the weighted least squares of all members."""
        xp, data = array_namespace(self._entries), 0 * self._model + self._entries
        weights, slope = self._loss.hessian_bound(data, self._model), self._loss.derivative(data, self._model)
        score, weights = self._weighted(weights * self._model - slope), self._weighted(weights)
        factors, order = list(self._factors), len(self._factors)
        for mode in range(order):
            others = [factor for other, factor in enumerate(factors) if other != mode]
            axes = (0, mode + 1, *(other + 1 for other in range(order) if other != mode))
            shape = (self._model.shape[0], self._entries.shape[mode], -1)
            gram, product = (
                xp.reshape(xp.permute_dims(part, axes), shape) @ columnwise_kronecker(columns)
                for part, columns in ((weights, [pairs_of(other) for other in others]), (score, others))
            )
            factors[mode] = self._solution(mode, factors[mode], squares_of(gram, factors[mode].shape[2]), product)
        return factors

    def _solution(self, mode: int, before: Array, gram: Array, product: Array) -> Array:
        """Return the solution for the rows of a mode, damped where they have less information than the others.

        Rows whose entries are fitted without error have none.
        """
        xp, rank = array_namespace(gram), before.shape[2]
        sizes = [xp.mean(gram[:, :, i, i], axis=1) for i in range(rank)]
        damping = FIRST_DAMPING * xp.stack(sizes, axis=1)[:, None, :]
        matrix = gram + damping[..., None] * identity(rank, gram)
        return solved_rows(matrix, product + damping * before, before if self._one_sided[mode] else None)
