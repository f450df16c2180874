"""Givens rotations, for symmetric tensors with orthogonal factors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from codiag._arrays import asarray_like, to_host
from codiag._checks import as_number
from codiag.extending import Estimate, Method
from codiag.least_squares import Log, best_rank_one, with_best_weights
from codiag.problem import Problem
from codiag.reduction import reduce


@dataclass(frozen=True, kw_only=True, eq=False)
class Givens(Method):
    r"""Coordinate ascent by Givens rotations of Shalit & Chechik (2014): maximize :math:`\sum_i T(u_i, u_i, u_i)`.

    Every step rotates two columns of an orthogonal U by the best angle, which is a root of a cubic.

    *Needs* a symmetric tensor of order three with orthogonal factors; if the rank is below the size, the tensor is
    compressed first. *Costs* :math:`O(d^2)` flops a rotation, :math:`d (d - 1) / 2` rotations a sweep. *Guarantees*
    nothing that is proved for noisy tensors; in practice it converges to the components from every start. *Fails* if
    the factors are not orthogonal.

    Parameters
    ----------
    tol : float
        Stop after a sweep whose angles are all below it.
    max_iter : int
        Largest number of sweeps.

    See Also
    --------
    codiag.methods.OJD : Joint diagonalization for the same tensors.
    codiag.methods.TPM : Power iterations for the same tensors.

    References
    ----------
    U. Shalit and G. Chechik, "Coordinate-descent for learning orthogonal matrices through Givens rotations", ICML 2014.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> from experiments.estimators.givens import Givens
    >>> q = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 3)))[0]
    >>> tensor = np.einsum("r,ir,jr,kr->ijk", [3.0, 2.0, 1.0], q, q, q)
    >>> fit = codiag.factorize(tensor, 3, symmetric=True, method=Givens(), rng=0)
    >>> codiag.factor_error(fit, [q] * 3) < 1e-6
    True
    """

    tol: float = 1e-9
    max_iter: int = 100

    def __post_init__(self) -> None:
        as_number("tol", self.tol)
        as_number("max_iter", self.max_iter, integer=True)

    def check_supported(self, problem: Problem) -> None:
        tensor = problem.tensor
        if problem.symmetric is not True or tensor.order != 3:
            raise ValueError(f"Givens is for symmetric tensors of order three; got {tensor!r}. Use NOJD")
        if problem.rank > tensor.shape[0]:
            raise ValueError(
                f"rank must be at most {tensor.shape[0]}, the size of the modes, for Givens; got {problem.rank}"
            )
        super().check_supported(problem)

    def fit(self, problem: Problem, rng: np.random.Generator) -> Estimate:
        rank, log = problem.rank, Log()
        reduction = reduce(problem, rng)
        if rank == 1:
            return Estimate(reduction.to_tensor(best_rank_one(reduction.core)), log.history, True)
        # A random start: in the coordinates of the range, the factors may already be the axes.
        rotation = np.linalg.qr(rng.standard_normal((rank, rank)))[0]
        entries = to_host(reduction.core.to_dense())
        if entries.shape[0] != rank:
            raise ValueError(
                f"tensor must have {rank} directions that are stronger than all others for Givens, as many as "
                f"components; {entries.shape[0]} cannot be told apart"
            )
        rotated = np.einsum("abc,ai,bj,ck->ijk", entries, rotation, rotation, rotation, optimize=True)
        n_sweeps, largest = 0, math.inf
        while n_sweeps < self.max_iter and largest > self.tol:
            largest = _sweep(rotated, rotation)
            n_sweeps += 1
        off_diagonal = 1 - float(np.sum(np.einsum("iii->i", rotated) ** 2) / np.sum(rotated**2))
        log.add("rotations", n_sweeps, off_diagonal, n_sweeps * 18.0 * math.comb(rank, 2) * rank**2)
        factor = asarray_like(rotation, reduction.core.reference)
        components = with_best_weights(reduction.core, [factor] * 3)
        return Estimate(reduction.to_tensor(components), log.history, largest <= self.tol)


def _sweep(tensor: np.ndarray, rotation: np.ndarray) -> float:
    """Rotate every pair of axes once, in place; return the largest angle."""
    largest = 0.0
    for i in range(tensor.shape[0]):
        for j in range(i):
            angle = _best_angle(tensor[i, i, i], tensor[i, i, j], tensor[i, j, j], tensor[j, j, j])
            plane = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
            pair = [i, j]
            rotation[:, pair] = rotation[:, pair] @ plane
            tensor[pair] = np.tensordot(plane.T, tensor[pair], axes=1)
            tensor[:, pair] = np.matmul(plane.T, tensor[:, pair])
            tensor[:, :, pair] = tensor[:, :, pair] @ plane
            largest = max(largest, abs(angle))
    return largest


def _best_angle(iii: float, iij: float, ijj: float, jjj: float) -> float:
    r"""Return the angle, at most a right one, of the rotation that maximizes :math:`|T'_{iii} + T'_{jjj}|`.

    The sum is :math:`A c^3 + 3 B c^2 s + 3 C c s^2 + D s^3` with the cosine c and sine s of the angle. It is stationary
    if the tangent t solves :math:`-C t^3 + (D - 2 B) t^2 + (2 C - A) t + B = 0`. Its sign is irrelevant,
    since factors may have either sign.
    """
    a, b, c, d = iii + jjj, iij - ijj, iij + ijj, jjj - iii
    roots = np.roots([-c, d - 2 * b, 2 * c - a, b])
    tangents = roots.real[np.abs(roots.imag) < 1e-12 * (1 + np.abs(roots))]
    angles = np.concatenate([np.arctan(tangents), [0.0, math.pi / 2]])
    cosines, sines = np.cos(angles), np.sin(angles)
    sums = a * cosines**3 + 3 * b * cosines**2 * sines + 3 * c * cosines * sines**2 + d * sines**3
    return float(angles[np.argmax(np.abs(sums))])
