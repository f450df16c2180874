r"""A diagonalizer of your own, in one file: orthogonal joint diagonalization by power steps.

**The problem.** Symmetric matrices :math:`M_1, \dots, M_n` have orthonormal factors in common, up to noise:
:math:`M_l \approx U \,\mathrm{diag}(d_l)\, U^\top`. The factors are those that collect the most energy on the
diagonals,

.. math:: f(U) = \sum_l \sum_i (u_i^\top M_l u_i)^2.

**The method.** The gradient of f is four times :math:`G(U) = \sum_l M_l U \,\mathrm{diag}(d_l)` with
:math:`d_{li} = u_i^\top M_l u_i`. At a maximum the orthonormal matrix nearest to :math:`G(U)` is U itself, which
suggests to iterate ``U <- polar(G(U))``: the power method, for all components at once. Near a solution the angle
between components i and j shrinks by :math:`2 |d_i \cdot d_j| / (|d_i|^2 + |d_j|^2)` a step, where :math:`d_i` is
the diagonal entries of component i in all matrices. If a step lowers f, a multiple of U is added to G, which shortens
the step.

**What a diagonalizer implements.** A subclass of `codiag.extending.Diagonalizer` is a frozen dataclass: it has
options and no data. It implements one method, ``iterate(stack, rng)``, which gets matrices of full rank and returns
inverse factors as *rows*, with the number of sweeps and whether the tolerance was reached, as an `Iterate`. A method
that computes a start, like this one, also implements ``iterate_from``, for starts that the user gives (``init=``). For
methods that sweep from the identity, the base class transforms the matrices instead. Class attributes declare what the
method is for: ``symmetric`` (True by default) and ``orthogonal`` (False by default). The base class does the rest: it
checks the matrices, applies sample weights, compresses a stack to its rank, orders and scales the factors, and computes
residuals and standard errors. A method that does not converge neither raises an error nor warns;
`codiag.joint_diagonalize` warns.

**Where it can be used.** Wherever a diagonalizer is an argument: ``PowerSteps()(matrices)``,
``codiag.joint_diagonalize(matrices, diagonalizer=PowerSteps())``, or inside a method for tensors,
``codiag.factorize(tensor, rank, method=codiag.methods.OJD(diagonalizer=PowerSteps()))`` for a symmetric tensor with
orthonormal factors. Tensors that are not symmetric need a diagonalizer with ``symmetric = False``, whose `Iterate` has
factors of both sides; `codiag.diagonalize.TwoSided` is one.

**How it is tested.** One line in ``DIAGONALIZERS`` of ``tests/cases.py`` runs every law of diagonalizers on it: exact
factors are found, a weight of two equals two copies of a matrix, the scale does not matter, the result does not depend
on the seed, and so on. ``slow=True`` declares linear convergence, so that the tests use small problems.

Run this file to compare it with the default method: ``python docs/extending/diagonalizer.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

import codiag
from codiag.diagonalize import OrthogonalNewton
from codiag.extending import Diagonalizer, Iterate
from codiag.synthetic import matrix_stack, orthonormal_factor


@dataclass(frozen=True, kw_only=True)
class PowerSteps(Diagonalizer):
    r"""Orthogonal joint diagonalization by steps ``U <- polar(sum_l M_l U diag(d_l) + shift U)``.

    Parameters
    ----------
    rank, tol, max_sweeps
        As in `Diagonalizer`; a sweep is one step.

    Notes
    -----
    **Assumptions.** Symmetric matrices and orthonormal factors.

    **Complexity.** :math:`2 n d^3` operations and one singular value decomposition a step; the number of steps is
    :math:`\log(\mathrm{tol}) / \log(r)` with r the rate below.

    **Guarantees.** The energy on the diagonals does not fall from one step to the next, and linear convergence near a
    solution, at the rate :math:`r = \max_{ij} 2 |d_i \cdot d_j| / (|d_i|^2 + |d_j|^2)`.

    **Limitations.** Fails to be fast if two components have nearly equal or nearly opposite diagonals in all matrices.
    It has one start, and may end at a local maximum with large noise.

    References
    ----------
    M. Journee, Y. Nesterov, P. Richtarik and R. Sepulchre, "Generalized power method for sparse principal component
    analysis", JMLR 11, 2010, for the power method on orthonormal matrices.

    Examples
    --------
    >>> fit = PowerSteps()([[[2, 1], [1, 2]], [[0, 2], [2, 0]]], rng=0)
    >>> fit.converged, fit.diagonals.round(6).tolist()
    (True, [[3.0, 1.0], [2.0, -2.0]])
    """

    max_sweeps: int = 2000
    orthogonal = True  # the rows that `iterate` returns are orthonormal

    def iterate(self, stack: Any, rng: np.random.Generator) -> Iterate:
        return self._climb(stack, _random_start(stack, rng))

    def iterate_from(self, stack: Any, rng: np.random.Generator, left: Any, right: Any) -> Iterate:
        return self._climb(stack, array_namespace(left).matrix_transpose(left))

    def _climb(self, stack: Any, factor: Any) -> Iterate:
        xp = array_namespace(stack)  # NumPy, torch, CuPy or JAX: whatever the matrices are
        tol = max(self.tol, 4 * float(xp.finfo(stack.dtype).eps))
        gradient, energy = _gradient(stack, factor)
        shift, n_sweeps, step = 0.0, 0, np.inf
        while n_sweeps < self.max_sweeps and step >= tol:
            trial = _polar(gradient + shift * factor)
            trial_gradient, trial_energy = _gradient(stack, trial)
            n_sweeps += 1
            if trial_energy < energy * (1 - 100 * float(xp.finfo(stack.dtype).eps)):  # below that it is rounding
                shift = 2 * shift or energy / stack.shape[1]
                continue
            step = float(xp.max(xp.abs(trial - factor)))
            factor, gradient, energy = trial, trial_gradient, trial_energy
        inverse = xp.matrix_transpose(factor)
        return Iterate(inverse, inverse, n_sweeps, converged=step < tol)


def _random_start(stack: Any, rng: np.random.Generator) -> Any:
    """Return the eigenvectors of a random combination of the matrices: exact where there is no noise."""
    xp = array_namespace(stack)
    # Random numbers are drawn on the host, from the one generator, and then moved: same seed, same answer everywhere.
    coefficients = xp.asarray(rng.standard_normal(stack.shape[0]), dtype=stack.dtype, device=device(stack))
    return xp.linalg.eigh(xp.sum(coefficients[:, None, None] * stack, axis=0))[1]


def _gradient(stack: Any, factor: Any) -> tuple[Any, float]:
    """Return sum_l M_l U diag(d_l), a quarter of the gradient, and the energy on the diagonals."""
    xp = array_namespace(stack)
    images = stack @ factor
    diagonals = xp.sum(images * factor, axis=1)
    return xp.sum(images * diagonals[:, None, :], axis=0), float(xp.sum(diagonals**2))


def _polar(matrix: Any) -> Any:
    """Return the orthonormal matrix nearest to a square one."""
    left, _, right = array_namespace(matrix).linalg.svd(matrix)
    return left @ right


def main() -> float:
    """Compare with the default method on noisy matrices; return the largest difference of their factors."""
    matrices = matrix_stack(orthonormal_factor(10, 10, rng=0), 30, noise=0.01, rng=1).matrices
    own = codiag.joint_diagonalize(matrices, diagonalizer=PowerSteps(), rng=0)
    default = codiag.joint_diagonalize(matrices, diagonalizer=OrthogonalNewton(statistical_tol=0.0), rng=0)
    print(own, default, sep="\n")
    return float(np.max(np.abs(own.factor - default.factor)))


if __name__ == "__main__":
    print(f"largest difference of the factors: {main():.1e}")
