"""The frame every diagonalizer shares: validate, weigh, compress, iterate, lift, normalise."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from array_api_compat import array_namespace, is_jax_array

from codiag._array import Array, epsilon, identity, largest_signs, like, to_host
from codiag._validation import ConvergenceWarning, as_generator, as_number, as_rank, as_stack, as_weights
from codiag.diagonalize._diagonalization import Diagonalization
from codiag.diagonalize._products import Slabs
from codiag.diagonalize._starts import random_combinations

NOT_COMPILED = 2**24
"""Entries up to which matrices of JAX are diagonalized on the host, before JAX would have compiled a step of it."""


class Iterate(NamedTuple):
    """Where an iteration ended: inverse factors as rows, on the left and on the right (the same if symmetric)."""

    left: Array
    right: Array
    n_sweeps: int
    converged: bool


@dataclass(frozen=True, kw_only=True)
class Diagonalizer(ABC):
    r"""A configured method that finds common factors of a stack of matrices.

    Call it with the matrices. A subclass implements `_iterate` on matrices of full rank and nothing else.

    Parameters
    ----------
    rank : int, optional
        Number of components. Matrices larger than that are first compressed to the dominant `rank`-dimensional range of
        the stack. By default the numerical rank of the stack, which is its size unless the matrices are singular to
        machine precision.
    tol : float
        Stop when the largest entry of the relative step falls below it.
    max_sweeps : int
        Steps or sweeps over the matrices before giving up, which is a result with `converged` false and a warning.
        Steps on a sketch of the matrices, other starts and fallbacks come on top.
    """

    rank: int | None = None
    tol: float = 1e-8
    max_sweeps: int = 200

    symmetric: ClassVar[bool] = True
    survives_doubling: ClassVar[bool] = False  # bears components in pairs with opposite diagonals

    def __post_init__(self) -> None:
        as_number("tol", self.tol)
        as_number("max_sweeps", self.max_sweeps, integer=True)
        as_rank(self.rank)

    def __call__(
        self,
        matrices: Array | Sequence[Array],
        *,
        weights: Array | Sequence[float] | None = None,
        seed: int | np.random.Generator | None = None,
    ) -> Diagonalization:
        """Diagonalize a stack (n, d, d).

        Parameters
        ----------
        matrices : array of shape (n, d, d)
            NumPy, torch, CuPy or JAX; never modified.
        weights : array of shape (n,), optional
            How much each matrix counts in the objective; with noise of unequal size, its inverse variance.
        seed : int or Generator, optional
            Source of the random start.
        """
        return self._diagonalize(matrices, weights, seed, stacklevel=3)

    def _diagonalize(
        self,
        matrices: Array | Sequence[Array],
        weights: Array | Sequence[float] | None,
        seed: int | np.random.Generator | None,
        stacklevel: int,
    ) -> Diagonalization:
        """Do the work of a call, with warnings attributed to the caller so many frames up."""
        given = as_stack(matrices, symmetric=self.symmetric)
        stack = to_host(given) if is_jax_array(given) and math.prod(given.shape) <= NOT_COMPILED else given
        weights = as_weights(weights, stack)
        rng = as_generator(seed)
        weighed = _weighed(stack, weights)
        bases = range_bases(weighed, self.rank, rng, symmetric=self.symmetric)
        core = Slabs(_compress(weighed, *bases))
        k = core.stack.shape[1]
        with np.errstate(all="ignore"):  # a start may be degenerate; the iterations look for NaN themselves
            iterate = self._iterate(core, rng) if k > 1 else Iterate(identity(1, stack), identity(1, stack), 0, True)
        if not iterate.converged:
            warnings.warn(
                f"{self._name()} did not converge in {iterate.n_sweeps} sweeps on {stack.shape[0]} matrices of "
                f"size {k} (tol={self.tol:g}); the best iterate is returned",
                ConvergenceWarning,
                stacklevel=stacklevel,
            )
        plain = core if weighed is stack else Slabs(_compress(stack, *bases))
        fit = _assemble(self, plain, weights, bases, iterate)
        return fit if stack is given else _moved(fit, given)

    def sweep_flops(self, n: int, size: int) -> float:
        """Return the floating-point operations of one sweep over n matrices of this size, leading term."""
        return 4.0 * n * size**3

    def _name(self) -> str:
        return type(self).__name__

    def _is_orthogonal(self) -> bool:
        """Tell whether the factors are constrained to be orthonormal."""
        return False

    @abstractmethod
    def _iterate(self, core: Slabs, rng: np.random.Generator) -> Iterate:
        """Find inverse factors of matrices of full rank, k x k with k >= 2."""


def range_bases(
    stack: Array, rank: int | None, rng: np.random.Generator, *, symmetric: bool
) -> tuple[Array | None, Array | None]:
    """Return orthonormal bases (left, right) of the range the factors lie in; None where that is the whole space."""
    rows, columns = stack.shape[1:]
    rank = as_rank(rank, min(rows, columns))
    if rank is None:
        rank = _numerical_rank(stack, rng)
    left = None if rank == rows else _dominant_range(stack, rank, axis=1)
    if symmetric:
        return left, left
    return left, None if rank == columns else _dominant_range(stack, rank, axis=2)


def _numerical_rank(stack: Array, rng: np.random.Generator) -> int:
    """Return the dimension of the range of the stack, as far as machine precision can tell it from the whole space."""
    xp = array_namespace(stack)
    rows, columns = stack.shape[1:]
    negligible = 10 * max(rows, columns) * epsilon(stack)
    if _seems_regular(random_combinations(stack, rng, 1)[0, ...], negligible, rng):
        return min(rows, columns)
    # One combination can be nearly singular by chance; the matrices side by side, or one above the other, cannot.
    side = xp.permute_dims(stack, (1, 0, 2) if rows <= columns else (2, 0, 1))
    sizes = np.linalg.svd(to_host(xp.reshape(side, (side.shape[0], -1))), compute_uv=False)
    return int(np.count_nonzero(sizes > negligible * sizes[0]))


def _seems_regular(matrix: Array, negligible: float, rng: np.random.Generator) -> bool:
    """Tell whether a random right-hand side is solved without an enormous answer: one LU instead of an SVD."""
    xp = array_namespace(matrix)
    rows, columns = matrix.shape
    if rows > columns:
        matrix, rows, columns = xp.matrix_transpose(matrix), columns, rows
    if rows < columns:
        matrix = matrix @ like(rng.standard_normal((columns, rows)), matrix)
    target = like(rng.standard_normal((rows, 1)), matrix)
    try:
        solution = xp.linalg.solve(matrix, target)
    except (np.linalg.LinAlgError, RuntimeError):  # torch raises an error of its own
        return False
    norms = [float(xp.linalg.vector_norm(array)) for array in (solution, matrix, target)]
    return norms[0] * norms[1] * negligible < norms[2]


def _dominant_range(stack: Array, rank: int, axis: int) -> Array:
    """Return the leading eigenvectors of sum_l M_l M_l^T (axis 1) or sum_l M_l^T M_l (axis 2)."""
    xp = array_namespace(stack)
    n, rows, columns = stack.shape
    if axis == 1:
        side = xp.reshape(xp.permute_dims(stack, (1, 0, 2)), (rows, n * columns))
        gram = side @ xp.matrix_transpose(side)
    else:
        side = xp.reshape(stack, (n * rows, columns))
        gram = xp.matrix_transpose(side) @ side
    return xp.flip(xp.linalg.eigh(gram)[1][:, -rank:], axis=1)


def _compress(stack: Array, left: Array | None, right: Array | None) -> Array:
    """Return Q^T M_l R, the larger product last."""
    xp = array_namespace(stack)
    if right is not None:
        stack = stack @ right
    return stack if left is None else xp.matrix_transpose(left) @ stack


def _weighed(stack: Array, weights: Array | None) -> Array:
    """Scale each matrix by the root of its weight, and all of them where fourth powers would over- or underflow."""
    xp = array_namespace(stack)
    if weights is not None:
        stack = stack * xp.sqrt(weights)[:, None, None]
    safe = 1e60 if stack.dtype == xp.float64 else 1e6
    if 1 / safe < float(xp.max(xp.abs(stack[0, ...]))) < safe:
        return stack  # one matrix tells the order of magnitude, unless it is an odd one
    size = float(xp.max(xp.abs(stack)))
    return stack if 1 / safe < size < safe else stack / size


def _assemble(
    method: Diagonalizer,
    core: Slabs,
    weights: Array | None,
    bases: tuple[Array | None, Array | None],
    iterate: Iterate,
) -> Diagonalization:
    """Give the factors unit columns, order them by energy, and lift them to the size of the matrices."""
    xp = array_namespace(core.stack)
    symmetric, orthogonal = method.symmetric, method._is_orthogonal()
    left = _unit_factors(iterate.left, orthogonal)
    right = left if symmetric else _unit_factors(iterate.right, orthogonal)
    diagonals, residuals = core.residuals(left[1], right[1], weights)
    squares = diagonals**2 if weights is None else diagonals**2 * weights[:, None]
    order = xp.argsort(xp.sum(squares, axis=0), descending=True, stable=True)
    factor, inverse, signs = _lift(*left, bases[0], order)
    right_factor, right_inverse, right_signs = (factor, inverse, signs) if symmetric else _lift(*right, bases[1], order)
    return Diagonalization(
        factor=factor,
        diagonals=xp.take(diagonals, order, axis=1) * signs * right_signs,
        inverse=inverse,
        residuals=xp.take(xp.take(residuals, order, axis=0), order, axis=1),
        n_sweeps=iterate.n_sweeps,
        converged=iterate.converged,
        orthogonal=orthogonal,
        right_factor=right_factor,
        right_inverse=right_inverse,
        weights=weights,
    )


def _moved(fit: Diagonalization, reference: Array) -> Diagonalization:
    """Return a result in the library and on the device of the reference."""
    factor, inverse = like(fit.factor, reference), like(fit.inverse, reference)
    return replace(
        fit,
        factor=factor,
        inverse=inverse,
        right_factor=factor if fit.symmetric else like(fit.right_factor, reference),
        right_inverse=inverse if fit.symmetric else like(fit.right_inverse, reference),
        diagonals=like(fit.diagonals, reference),
        residuals=like(fit.residuals, reference),
        weights=None if fit.weights is None else like(fit.weights, reference),
    )


def _unit_factors(inverse: Array, orthogonal: bool) -> tuple[Array, Array]:
    """Return factors with unit columns and the inverse factors that belong to them."""
    xp = array_namespace(inverse)
    factor = xp.matrix_transpose(inverse) if orthogonal else xp.linalg.inv(inverse)
    norms = xp.linalg.vector_norm(factor, axis=0)
    return factor / norms, inverse * norms[:, None]


def _lift(factor: Array, inverse: Array, basis: Array | None, order: Array) -> tuple[Array, Array, Array]:
    """Return factor and inverse in the coordinates of the matrices, in the given order, and the signs applied."""
    xp = array_namespace(factor)
    factor, inverse = xp.take(factor, order, axis=1), xp.take(inverse, order, axis=0)
    if basis is not None:
        factor, inverse = basis @ factor, inverse @ xp.matrix_transpose(basis)
    signs = largest_signs(factor)
    return factor * signs, inverse * signs[:, None], signs


def check_method(diagonalizer: object) -> Diagonalizer:
    """Return the argument if it is a configured method, or say what one looks like."""
    if isinstance(diagonalizer, Diagonalizer):
        return diagonalizer
    hint = "; did you forget the parentheses?" if isinstance(diagonalizer, type) else ""
    raise TypeError(
        f"diagonalizer must be an object of codiag.diagonalize, like Jacobi() or UWEDGE(); got {diagonalizer!r}{hint}"
    )
