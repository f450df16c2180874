r"""Standard errors of PARAFAC2, by first-order theory for white noise.

The covariance of A, B and C is that of the projected Jacobian. Given them, a basis :math:`P_k` errs by a rotation
:math:`\Omega_k` inside of its span, and by what noise adds outside of it, whose rows have the covariance
:math:`\sigma^2 (Z_k Z_k^\top)^{-1}`. Sizes of columns and rotations of B are not determined; errors are those of unit
columns, which do not depend on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from codiag._parafac2._model import Factors, System


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """How noise of unit variance moves the factors.

    Attributes
    ----------
    factors : Factors
        With unit columns of B and C.
    free_a, free_c : arrays of bool
        Which entries no constraint fixes.
    """

    factors: Factors
    free_a: np.ndarray
    free_c: np.ndarray

    @cached_property
    def _system(self) -> System:
        return System.of(self.factors)

    def _slices(self) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Yield ranges of slices, the covariances of their rows of A if all else is known, and their coupling."""
        rank = self.factors.rank
        for part, own, coupling, _ in self._system.curvatures():
            free = self.free_a[part]
            both = free[:, :, None] & free[:, None, :]
            own = np.where(both, own, np.eye(rank))
            yield part, np.where(both, np.linalg.pinv(own, hermitian=True), 0.0), coupling * free[:, :, None]

    @cached_property
    def roots(self) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Roots of the covariances of B (rank, rank, m) and C (width, rank, m), and variances of C in addition.

        None if a constrained C has more than about 3000 free entries.
        """
        system, rank = self._system, self.factors.rank
        core = np.sum([each.common for each in system.curvatures()], axis=0)
        for _, inverse, coupling in self._slices():
            flat = coupling.reshape(-1, coupling.shape[2])
            core = core - flat.T @ (inverse @ coupling).reshape(flat.shape)
        frame, width = system.frame, self.factors.c.shape[0]
        outside = np.linalg.pinv(system.gram, hermitian=True)
        if self.free_c.all():
            root = self._root(core)
            root_b, root_c = np.split(root.reshape(2 * rank, rank, root.shape[1]), 2)
            beyond = (1 - np.sum(frame**2, axis=1))[:, None] * np.diag(outside)
            return root_b, np.einsum("jx,xrm->jrm", frame, root_c), beyond
        free = np.concatenate([np.ones(rank**2, dtype=bool), self.free_c.ravel()])
        if np.sum(free) > 3000:
            return None
        spread = np.zeros((2 * rank**2, free.size))
        spread[: rank**2, : rank**2] = np.eye(rank**2)
        spread[rank**2 :, rank**2 :] = np.kron(frame.T, np.eye(rank))
        matrix = spread.T @ core @ spread
        matrix[rank**2 :, rank**2 :] += np.kron(np.eye(width) - frame @ frame.T, system.gram)
        root = np.zeros((free.size, int(np.sum(free)) - self._n_undetermined))
        root[free] = self._root(matrix[np.ix_(free, free)])
        shape = (width, rank, root.shape[1])
        root_b, root_c = root[: rank**2].reshape(rank, *shape[1:]), root[rank**2 :].reshape(shape)
        return root_b, root_c, np.zeros((width, rank))

    @property
    def _n_undetermined(self) -> int:
        """Number of rotations of B, and of sizes of columns."""
        rank = self.factors.rank
        return rank * (rank - 1) // 2 + 2 * rank

    def _root(self, matrix: np.ndarray) -> np.ndarray:
        sizes, vectors = np.linalg.eigh(matrix)
        kept = slice(self._n_undetermined, None)
        return np.asarray(vectors[:, kept] / np.sqrt(np.maximum(sizes[kept], 1e-300)))

    def n_free(self, sizes: np.ndarray) -> int:
        """Return the number of unknowns that the entries determine; `sizes` are numbers of rows of slices."""
        rank = self.factors.rank
        rows = np.minimum(sizes, rank)
        bases = sizes * rows - rows * (rows + 1) // 2
        n_common = rank**2 + int(np.sum(self.free_c)) + int(np.sum(self.free_a)) - self._n_undetermined
        return int(np.sum(bases)) + n_common

    @cached_property
    def _inside(self) -> np.ndarray:
        """Root of the joint covariance of B and the span of C, (2 rank^2, m)."""
        assert self.roots is not None
        root_b, root_c, _ = self.roots
        inside = np.einsum("jx,jrm->xrm", self._system.frame, root_c)
        shape = (self.factors.rank**2, root_b.shape[2])
        return np.concatenate([root_b.reshape(shape), inside.reshape(shape)])

    def variances_c(self) -> np.ndarray:
        """Return the variances of the entries of unit columns of C."""
        assert self.roots is not None
        _, root, beyond = self.roots
        along = np.einsum("jr,jrm->rm", self.factors.c, root)
        root = root - self.factors.c[:, :, None] * along
        return np.asarray(np.sum(root**2, axis=2) + beyond)

    def variances_a(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the variances of the entries of unit columns of A, and of the logarithms of the weights."""
        assert self.roots is not None
        lengths = np.linalg.norm(self.factors.a, axis=0)
        units = self.factors.a / lengths
        along, own = np.zeros((lengths.size, self._inside.shape[1])), np.zeros(units.shape)
        for part, inverse, coupling in self._slices():
            along -= np.einsum("nr,nrm->rm", units[part], inverse @ (coupling @ self._inside), optimize=True)
            own[part] = np.einsum("nrr->nr", inverse)
        apart = np.sum(units**2 * own, axis=0)
        found = np.zeros(units.shape)
        for part, inverse, coupling in self._slices():
            root = -inverse @ (coupling @ self._inside) - units[part][:, :, None] * along
            found[part] = np.sum(root**2, axis=2) + own[part] - units[part] ** 2 * (2 * own[part] - apart)
        found = np.where(self.free_a, np.maximum(found, 0.0), 0.0)
        root_b, root_c, _ = self.roots
        grown = along / lengths[:, None] + np.einsum("sr,srm->rm", self.factors.b, root_b)
        grown += np.einsum("jr,jrm->rm", self.factors.c, root_c)
        return found / lengths**2, np.sum(grown**2, axis=1) + apart / lengths**2

    def evolving(self) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Yield ranges of slices, and covariances of their unit columns :math:`P_k b_r`, (n, column, rank, rank).

        They are in the coordinates of :math:`P_k`; last are the variances in each direction outside of it, (n, column).
        """
        system, b = self._system, self.factors.b
        rank = self.factors.rank
        root_b = self._inside[: rank**2].reshape(rank, rank, self._inside.shape[1])
        pairs = np.stack(np.triu_indices(rank, 1))
        for part, inverse, coupling in self._slices():
            left, sizes = (each[part] for each in system.decomposed[:2])
            sizes = np.maximum(sizes, 1e-12 * np.max(sizes))
            norm = np.hypot(sizes[:, pairs[0]], sizes[:, pairs[1]])
            weights = np.stack([sizes[:, pairs[1]] / norm, -sizes[:, pairs[0]] / norm])
            for_a = system.jacobian_a(part, pairs, weights)
            common = system.jacobian_common(part, pairs, weights)
            root = -(common @ self._inside - for_a @ (inverse @ (coupling @ self._inside))) / norm[:, :, None]
            own = for_a @ inverse @ np.swapaxes(for_a, 1, 2) + np.eye(pairs.shape[1])
            own = own / (norm[:, :, None] * norm[:, None, :])
            turned = np.swapaxes(left, 1, 2) @ b
            found = np.empty((len(norm), rank, rank, rank))
            for r in range(rank):
                moved = self._rotated(left, turned[:, :, r], pairs)
                moved = moved - b[:, r, None] * (b[:, r] @ moved)[:, None, :]
                direct = root_b[:, r] - np.outer(b[:, r], b[:, r] @ root_b[:, r])
                both = moved @ root + direct
                found[:, r] = both @ np.swapaxes(both, 1, 2) + moved @ own @ np.swapaxes(moved, 1, 2)
            yield part, found, np.sum((turned / sizes[:, :, None]) ** 2, axis=1)

    @staticmethod
    def _rotated(left: np.ndarray, column: np.ndarray, pairs: Any) -> np.ndarray:
        """Return how a column, given in the coordinates of U, moves with each entry of the rotation, (n, rank, pairs).

        Entry (i, j) of the rotation adds the column's j-th entry to the i-th, and takes the i-th from the j-th.
        """
        i, j = pairs
        n_pairs = np.arange(i.size)
        change = np.zeros((*column.shape, i.size))
        change[:, i, n_pairs] = column[:, j]
        change[:, j, n_pairs] = -column[:, i]
        return np.asarray(left @ change)
