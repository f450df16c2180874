"""The Gauss-Newton matrix of entries that were observed, or that count with weights."""

from __future__ import annotations

from collections.abc import Callable

from codiag._array import Array, array_namespace, identity
from codiag._entries import Entries
from codiag.methods.least_squares._layout import Layout


class ObservedCurvature:
    r"""The Gauss-Newton matrix :math:`J^\top O J` at a point, for entries with weights O.

    The equations of every row by itself, damped, are the preconditioner.
    """

    exact = False

    def __init__(self, layout: Layout, point: Array, entries: Entries) -> None:
        self.point = point
        self._layout, self._entries = layout, entries
        self._factors = layout.expanded(point)
        self._grams = [entries.row_grams(self._factors, mode) for mode in range(len(self._factors))]
        self.scales = self._scales()

    def _scales(self) -> Array:
        """Return what damping is measured by: the mean over rows, so that rows hardly observed are held back, too."""
        xp = array_namespace(self.point)
        parts = []
        for factor, gram in zip(self._factors, self._grams, strict=True):
            diagonal = xp.mean(xp.linalg.diagonal(gram), axis=0)
            floor = 1e-12 * float(xp.max(diagonal)) + 1e-300
            parts.append(xp.ones_like(factor) * xp.where(diagonal > floor, diagonal, xp.full_like(diagonal, floor)))
        return self._layout.folded(parts, signed=False)

    def product(self, move: Array) -> Array:
        return self._layout.folded(self._entries.curved(self._factors, self._layout.expanded(move)))

    def matrix(self) -> Array:
        """Return the matrix itself, unknowns numbered row by row of the array (D, k)."""
        return self._layout.folded_matrix(self._entries.matrix(self._factors), self.point.shape[1])

    def preconditioner(self, damping: float) -> Callable[[Array], Array]:
        xp = array_namespace(self.point)
        rank = self.point.shape[1]
        grams = self._layout.folded_rows(self._grams)
        unit = identity(rank, self.point)
        inverses = xp.linalg.inv(grams + (damping * self.scales)[:, :, None] * unit + 1e-300 * unit)
        return lambda move: (inverses @ move[:, :, None])[:, :, 0]
