"""The plain iteration of Tichavsky & Yeredor (2009), from its formulas, matrix by matrix."""

from __future__ import annotations

import numpy as np


def scale_free_criterion(inverse: np.ndarray, matrices: np.ndarray) -> float:
    """Return the sum over i != j of sum_l D_ij^2 / sqrt(sum_l D_ii^2 sum_l D_jj^2)."""
    energy = sum((inverse @ matrix @ inverse.T) ** 2 for matrix in matrices)
    sizes = np.sqrt(np.diag(energy))
    return float(np.sum(energy / np.outer(sizes, sizes)) - len(inverse))


def plain_uwedge(matrices: np.ndarray, *, tol: float = 1e-8, max_steps: int = 3000) -> np.ndarray:
    """Return inverse factors, as rows: from the whitened first matrix, step after step, with nothing to speed it up."""
    values, vectors = np.linalg.eigh(matrices[0])
    inverse = vectors.T / np.sqrt(np.abs(values))[:, None]
    size = len(inverse)
    for _ in range(max_steps):
        transformed = [inverse @ matrix @ inverse.T for matrix in matrices]
        diagonals = np.array([np.diag(matrix) for matrix in transformed]).T
        scale = np.sum(diagonals**2, axis=1) ** -0.25
        inverse = inverse * scale[:, None]
        diagonals = diagonals * scale[:, None] ** 2
        rho = diagonals @ diagonals.T
        cross = sum(
            np.outer(scale, scale) * matrix * diagonal
            for matrix, diagonal in zip(transformed, diagonals.T, strict=True)
        )
        move = (rho * cross.T - cross) / np.where(np.eye(size, dtype=bool), 1, 1 - rho**2)
        np.fill_diagonal(move, 0)
        if np.max(np.abs(move)) < tol:
            return inverse
        inverse = np.linalg.solve(np.eye(size) - move, inverse)
    raise RuntimeError("the plain iteration did not converge")
