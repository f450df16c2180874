"""The perturbation lemmas of the paper, entry by entry, written independently of the library.

`factor` (d, k) and `diagonals` (n, k) are the truth, `noise` (n, d, d) the matrices R_l. Both return the first-order
displacement of the factors, (d, k): estimates are u_j - eps sum_i E_ij u_i, here with the part along u_j taken out,
because the factors have unit norm.
"""

from __future__ import annotations

import numpy as np


def cardoso(factor: np.ndarray, diagonals: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Orthonormal factors: Lemma 1 of the paper."""
    k = factor.shape[1]
    coefficients = np.zeros((k, k))
    for i in range(k):
        for j in range(k):
            if i != j:
                gap = diagonals[:, i] - diagonals[:, j]
                entries = np.array([factor[:, j] @ matrix @ factor[:, i] for matrix in noise])
                coefficients[i, j] = gap @ entries / (gap @ gap)
    return -factor @ coefficients


def afsari(factor: np.ndarray, diagonals: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Free factors: Lemma 4 of the paper, in the form of its appendix."""
    k = factor.shape[1]
    inverse = np.linalg.inv(factor)
    coefficients = np.zeros((k, k))
    norms = np.linalg.norm(diagonals, axis=0)
    for i in range(k):
        for j in range(k):
            if i == j:
                continue
            entries = np.array([inverse[i] @ matrix @ inverse[j] for matrix in noise])
            gamma, eta = norms[i] * norms[j], norms[i] / norms[j]
            rho = diagonals[:, i] @ diagonals[:, j] / gamma
            own, other = entries @ diagonals[:, j], entries @ diagonals[:, i]
            coefficients[i, j] = -(eta * own - rho * other) / (gamma * (1 - rho**2))
    displacement = -factor @ coefficients
    return displacement - factor * np.sum(factor * displacement, axis=0)


def two_sided(
    left: np.ndarray, right: np.ndarray, diagonals: np.ndarray, noise: np.ndarray, *, orthogonal: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Different factors on the two sides: the moves (I + W) B, (I + Z) C that best cancel b_i R_l c_j, pair by pair."""
    k = left.shape[1]
    entries = np.linalg.inv(left) @ noise @ np.linalg.inv(right).T
    first, second = np.zeros((k, k)), np.zeros((k, k))
    for i in range(k):
        for j in range(k):
            own, other = diagonals[:, i], diagonals[:, j]
            if i == j:
                continue
            if orthogonal:  # W and Z are skew: the entries (i, j) and (j, i) have the two unknowns in common
                system = np.concatenate([np.stack([other, -own], axis=1), np.stack([-own, other], axis=1)])
                target = -np.concatenate([entries[:, i, j], entries[:, j, i]])
                first[i, j], second[i, j] = np.linalg.lstsq(system, target, rcond=None)[0]
            else:
                first[i, j], second[j, i] = np.linalg.lstsq(
                    np.stack([other, own], axis=1), -entries[:, i, j], rcond=None
                )[0]
    moved = (-left @ first, -right @ second)
    return tuple(
        change - factor * np.sum(factor * change, axis=0) for change, factor in zip(moved, (left, right), strict=True)
    )
