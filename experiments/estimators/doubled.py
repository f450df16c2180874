"""The paper's reduction of asymmetric matrices to symmetric ones of twice the size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from array_api_compat import array_namespace

from codiag._arrays import Array, asarray_like, to_host
from codiag.diagonalize import QRJ1D, Jacobi, OrthogonalNewton, check_method
from codiag.extending import Diagonalizer, Iterate


def symmetrized(diagonalizer: Diagonalizer) -> Diagonalizer:
    r"""Return a method for :math:`M_l = A\, \mathrm{diag}(d_l)\, B^\top` that runs a symmetric one on twice the size.

    The matrices :math:`\begin{pmatrix} 0 & M_l^\top \\ M_l & 0 \end{pmatrix}` have the factors
    :math:`(b_i, \pm a_i)` with diagonals :math:`\pm d_{il} / 2` (section 6 of the paper).

    **Needs** a diagonalizer that resolves opposite diagonals: the diagonals of the two factors are proportional, so
    that methods that divide by :math:`1 - \rho_{ij}^2` break down. **Costs** eight times a sweep over symmetric
    matrices of the same size. **Guarantees** for orthonormal factors the objective of ``TwoSided(orthogonal=True)``.
    **Fails** to converge with `QRJ1D` and noise, which drifts along such pairs. `TwoSided` needs no reduction and is
    the better choice; this function reproduces the paper. Matrices must be real: complex components of opposite
    diagonals differ by a phase only.

    Parameters
    ----------
    diagonalizer : Diagonalizer
        `Jacobi`, `OrthogonalNewton` or `QRJ1D`. Its ``rank``, if any, is that of the asymmetric matrices.

    Returns
    -------
    Diagonalizer
        With the same options, for stacks of shape (n, d, d').

    See Also
    --------
    codiag.diagonalize.TwoSided : Matrices that are not symmetric, without doubling their size.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.diagonalize import Jacobi
    >>> from experiments.estimators.doubled import symmetrized
    >>> rng = np.random.default_rng(0)
    >>> left, right = (np.linalg.qr(rng.standard_normal((4, 4)))[0] for _ in range(2))
    >>> fit = symmetrized(Jacobi())([left @ np.diag(rng.standard_normal(4)) @ right.T for _ in range(5)])
    >>> fit.off_diagonal < 1e-20
    True
    """
    inner = check_method(diagonalizer)
    if not isinstance(inner, Jacobi | OrthogonalNewton | QRJ1D):
        raise ValueError(
            f"the reduction to twice the size is degenerate for {type(inner).__name__}, because components come in "
            "pairs with opposite diagonals; use Jacobi(), OrthogonalNewton() or QRJ1D(), or TwoSided() instead"
        )
    return _Symmetrized(rank=inner.rank, tol=inner.tol, max_sweeps=inner.max_sweeps, inner=inner)


@dataclass(frozen=True, kw_only=True)
class _Symmetrized(Diagonalizer):
    inner: Diagonalizer
    symmetric: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return f"symmetrized({self.inner.name})"

    @property
    def orthogonal(self) -> bool:
        return self.inner.orthogonal

    def sweep_flops(self, n: int, size: int) -> float:
        return self.inner.sweep_flops(n, 2 * size)

    def iterate(self, stack: Array, rng: np.random.Generator) -> Iterate:
        return self._merged(self._inner().iterate(_doubled(stack), rng), stack)

    def iterate_from(self, stack: Array, rng: np.random.Generator, left: Array, right: Array) -> Iterate:
        xp = array_namespace(stack)
        halves = [xp.concat([right, left], axis=1), xp.concat([right, -left], axis=1)]
        rows = xp.concat(halves, axis=0) / 2**0.5
        return self._merged(self._inner().iterate_from(_doubled(stack), rng, rows, rows), stack)

    def _inner(self) -> Diagonalizer:
        return replace(self.inner, tol=self.tol, max_sweeps=self.max_sweeps)

    def _merged(self, iterate: Iterate, stack: Array) -> Iterate:
        inverse = to_host(iterate.left).astype(np.float64)
        factor = inverse.T if self.orthogonal else np.linalg.inv(inverse)
        right, left = _merge_pairs(factor)
        return iterate._replace(
            left=_inverse(left, stack, self.orthogonal),
            right=_inverse(right, stack, self.orthogonal),
        )


def _doubled(stack: Array) -> Array:
    xp = array_namespace(stack)
    zeros = xp.zeros_like(stack)
    top = xp.concat([zeros, xp.matrix_transpose(stack)], axis=2)
    return xp.concat([top, xp.concat([stack, zeros], axis=2)], axis=1)


def _merge_pairs(factor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Identify the pairs of columns (b, a), (b, -a), and return each b and a once."""
    k = factor.shape[0] // 2
    halves = [half / np.linalg.norm(half, axis=0) for half in (factor[:k], factor[k:])]
    overlaps = [half.T @ half for half in halves]
    similarity = np.triu(np.abs(overlaps[0] * overlaps[1]), 1)
    merged = []
    for _ in range(k):
        i, j = np.unravel_index(np.argmax(similarity), similarity.shape)
        similarity[[i, j], :] = similarity[:, [i, j]] = -1
        merged.append(
            [half[:, i] + np.sign(overlap[i, j]) * half[:, j] for half, overlap in zip(halves, overlaps, strict=True)]
        )
    return np.stack([top for top, _ in merged], axis=1), np.stack([bottom for _, bottom in merged], axis=1)


def _inverse(factor: np.ndarray, reference: Array, orthogonal: bool) -> Array:
    """Return inverse factors as rows; merged factors are made orthonormal again by the polar decomposition."""
    if orthogonal:
        left, _, right = np.linalg.svd(factor)
        return asarray_like((left @ right).T, reference)
    return asarray_like(np.linalg.inv(factor), reference)
