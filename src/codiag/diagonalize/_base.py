"""The base class of diagonalizers: checks, sample weights, compression, and the result in one convention."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from array_api_compat import is_jax_array

from codiag._arrays import (
    Array,
    adjoint,
    array_namespace,
    asarray_like,
    conjugate,
    epsilon,
    few_threads,
    identity,
    is_complex,
    is_hermitian,
    largest_signs,
    real_part,
    squared_magnitudes,
    to_host,
    to_namespace,
)
from codiag._checks import (
    RankDeficientError,
    RNGLike,
    as_generator,
    as_number,
    as_rank,
    as_sample_weight,
    as_stack,
    explains_keywords,
)
from codiag.diagonalize._diagonalization import Diagonalization
from codiag.diagonalize._fixed_point import Iterate, Limits
from codiag.diagonalize._stack import MatrixStack, compress, numerical_rank, range_bases
from codiag.diagonalize._starts import as_start, compressed_start, start_rank

NOT_COMPILED = 2**24
"""Entries up to which matrices of JAX are diagonalized by NumPy, which ends before JAX has compiled a step."""


@dataclass(frozen=True, kw_only=True)
class Diagonalizer(ABC):
    r"""A configured method that finds common factors of a stack of matrices: the base class of all diagonalizers.

    Call an object with the matrices. To write a method of your own, derive a frozen dataclass and implement `iterate`;
    the class attributes `symmetric` and `orthogonal` declare what the method is for. This class checks the input,
    applies sample weights, compresses the matrices to the rank, and determines order, signs and standard errors.

    Parameters
    ----------
    rank : int, optional
        Number of components. Larger matrices are first compressed to the dominant `rank`-dimensional range of the
        stack. By default the numerical rank of the stack, which is the size of the matrices unless they are singular
        to machine precision.
    tol : float
        Stop when the largest entry of the relative step falls below it.
    max_sweeps : int
        Steps or sweeps over the matrices after which ``converged`` is false. Steps on a sketch of the matrices, other
        starts and fallbacks are not counted.

    Attributes
    ----------
    symmetric : bool
        Whether the method is for symmetric matrices, with the same factors on both sides. True by default.
    orthogonal : bool
        Whether the method constrains the factors to be orthonormal. False by default.
    complex_kinds : tuple of str
        Which complex matrices the method is for: "hermitian" ones, whose right factors are the conjugates of the left
        ones, and "symmetric" ones; "general" ones if the method is not `symmetric`. None by default.

    See Also
    --------
    codiag.joint_diagonalize : Calls a diagonalizer, and warns if it did not converge.
    codiag.diagonalize.UWEDGE : The default for factors that are not orthogonal.
    codiag.diagonalize.OrthogonalNewton : The default for orthogonal factors.
    codiag.diagonalize.TwoSided : For matrices that are not symmetric.
    codiag.methods.NOJD : Factorizes a tensor by a diagonalizer.

    Examples
    --------
    A method that returns the eigenvectors of the first matrix:

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from codiag.extending import Diagonalizer, Iterate
    >>> @dataclass(frozen=True, kw_only=True)
    ... class FirstMatrix(Diagonalizer):
    ...     orthogonal = True
    ...
    ...     def iterate(self, stack, rng):
    ...         rows = np.linalg.eigh(stack[0])[1].T
    ...         return Iterate(rows, rows, n_sweeps=1, converged=False)
    >>> fit = FirstMatrix()([[[0, 1], [1, 0]], [[0, 2], [2, 0]]])
    >>> fit.off_diagonal < 1e-25
    True
    """

    rank: int | None = None
    tol: float = 1e-8
    max_sweeps: int = 200

    symmetric: ClassVar[bool] = True
    complex_kinds: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        as_number("tol", self.tol)
        as_number("max_sweeps", self.max_sweeps, integer=True)
        as_rank(self.rank)

    @explains_keywords
    def __call__(
        self,
        matrices: Array | Sequence[Array],
        *,
        sample_weight: Array | Sequence[float] | None = None,
        init: Array | Sequence[Array] | None = None,
        rng: RNGLike = None,
    ) -> Diagonalization:
        """Diagonalize a stack of matrices, without a warning if that does not converge.

        Parameters
        ----------
        matrices : array of shape (n, d, d)
            NumPy, torch, CuPy or JAX, real or complex; never modified. Of shape (n, d, d') if the method is not
            `symmetric`.
        sample_weight : array of shape (n,), optional
            Weight of each matrix in the objective; for noise of unequal size, its inverse variance.
        init : array of shape (k, d), optional
            Inverse factors to start from, as in `Diagonalization.inverse`; no other start is then tried. The rows of k
            components are orthonormal if the method is `orthogonal`; a pair of shapes (k, d) and (k, d') if it is not
            `symmetric`.
        rng : int or Generator, optional
            Source of the random start.

        Returns
        -------
        Diagonalization
            With `converged` and `n_sweeps`; `codiag.joint_diagonalize` warns if the former is false.
        """
        given = as_stack(matrices, symmetric=self.symmetric)
        self._check_kind(given)
        with few_threads(float(given.shape[-1]) * math.prod(given.shape)):
            return self._diagonalized(given, sample_weight, init, rng)

    def _diagonalized(self, given: Array, sample_weight: Any, init: Any, rng: Any) -> Diagonalization:
        stack = to_host(given) if is_jax_array(given) and math.prod(given.shape) <= NOT_COMPILED else given
        sample_weight = as_sample_weight(sample_weight, stack)
        rng = as_generator(rng)
        scaled = _scaled(stack, sample_weight)
        kind = {"symmetric": self.symmetric, "orthogonal": self.orthogonal}
        start = None if init is None else as_start(init, stack, **kind)
        rank = self.rank if start is None else start_rank(start, self.rank, min(stack.shape[1:]))
        bases = range_bases(scaled, rank, rng, symmetric=self.symmetric)
        core = compress(scaled, *bases)
        sides = None if start is None else compressed_start(start, bases, core, orthogonal=self.orthogonal)
        unscaled = core if scaled is stack else compress(stack, *bases)
        try:
            iterate = self._iterated(core, rng, sides)
            fit = _assemble(self, unscaled, sample_weight, bases, iterate)
        except (np.linalg.LinAlgError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and "singular" not in str(error):  # torch raises a RuntimeError
                raise
            raise _undetermined(scaled, rank, rng) from error
        size = float(array_namespace(fit.inverse).linalg.vector_norm(fit.inverse))
        if not size < 1e10 and (not math.isfinite(size) or _exceeds(scaled, rank, rng)):
            raise _undetermined(scaled, rank, rng)
        return fit if array_namespace(fit.factor) is array_namespace(given) else _like_input(fit, given)

    def _check_kind(self, stack: Array) -> None:
        """Raise if the matrices are complex of a kind that the method is not for."""
        if not is_complex(stack):
            return
        kind = "general" if not self.symmetric else "hermitian" if is_hermitian(stack) else "symmetric"
        if kind in self.complex_kinds:
            return
        kinds = " or ".join(("real", *(f"complex {kind}" for kind in self.complex_kinds)))
        way_out = "UWEDGE(), OrthogonalNewton() and Jacobi() take" if self.symmetric else "TwoSided() takes"
        raise ValueError(
            f"matrices must be {kinds} for {self.name}; got complex {kind} ones, of dtype {stack.dtype}. {way_out} them"
        )

    def _iterated(self, core: Array, rng: np.random.Generator, sides: tuple[Array, Array] | None) -> Iterate:
        """Return inverse factors of the compressed matrices; matrices with one row need no iteration."""
        if core.shape[1] == 1:
            return Iterate(identity(1, core), identity(1, core), 0, True)
        with np.errstate(all="ignore"):  # a start may be degenerate; the iterations check for NaN
            iterate = self.iterate(core, rng) if sides is None else self.iterate_from(core, rng, *sides)
        if not isinstance(iterate, Iterate):
            raise TypeError(f"{type(self).__name__}.iterate must return an Iterate; got {type(iterate).__name__}")
        return iterate

    @abstractmethod
    def iterate(self, stack: Array, rng: np.random.Generator) -> Iterate:
        """Find inverse factors of matrices of full rank: the method that a subclass implements.

        Parameters
        ----------
        stack : array of shape (n, k, k)
            At least two finite matrices with k >= 2, scaled by the roots of their sample weights and compressed to the
            rank; symmetric if the method is, or Hermitian if it declares that. It may be the user's array: never
            modify it.
        rng : numpy.random.Generator
            Source of all random numbers.

        Returns
        -------
        Iterate
            Arrays of the library and the precision of the stack.

        See Also
        --------
        Diagonalizer.iterate_from : From a given start.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.diagonalize import Jacobi
        >>> stack = np.array([[[2.0, 1.0], [1.0, 2.0]], [[0.0, 3.0], [3.0, 0.0]]])
        >>> left = Jacobi().iterate(stack, np.random.default_rng(0)).left
        >>> np.abs(left @ stack @ left.T).round(12).tolist()
        [[[3.0, 0.0], [0.0, 1.0]], [[3.0, 0.0], [0.0, 3.0]]]
        """

    def iterate_from(self, stack: Array, rng: np.random.Generator, left: Array, right: Array) -> Iterate:
        """Find inverse factors from a given start.

        By default, `iterate` is called with the matrices in the coordinates of the start, in which the start is the
        identity: methods that sweep over pairs begin there.

        Parameters
        ----------
        stack : array of shape (n, k, k)
            The matrices, as in `iterate`.
        rng : numpy.random.Generator
            Source of all random numbers.
        left, right : array of shape (k, k)
            Inverse factors of full rank as rows; orthonormal if the method is `orthogonal`, the same array twice if it
            is `symmetric`.

        Returns
        -------
        Iterate
            In the coordinates of the stack.

        See Also
        --------
        Diagonalizer.iterate : Without a start.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.diagonalize import Jacobi
        >>> stack = np.array([[[2.0, 1.0], [1.0, 2.0]], [[0.0, 3.0], [3.0, 0.0]]])
        >>> start = np.eye(2)
        >>> Jacobi().iterate_from(stack, np.random.default_rng(0), start, start).converged
        True
        """
        xp = array_namespace(stack)
        relative = self.iterate(left @ stack @ xp.matrix_transpose(right), rng)
        rows = relative.left @ left
        return relative._replace(left=rows, right=rows if self.symmetric else relative.right @ right)

    @property
    def orthogonal(self) -> bool:
        """Whether the factors are constrained to be orthonormal.

        Examples
        --------
        >>> from codiag.diagonalize import UWEDGE, Jacobi
        >>> Jacobi().orthogonal, UWEDGE().orthogonal
        (True, False)
        """
        return False

    @property
    def name(self) -> str:
        """The name of the method, for messages.

        Examples
        --------
        >>> from codiag.diagonalize import UWEDGE
        >>> UWEDGE().name
        'UWEDGE'
        """
        return type(self).__name__

    def sweep_flops(self, n: int, size: int) -> float:
        """Return the number of floating-point operations of one sweep, to leading order.

        Parameters
        ----------
        n, size : int
            Number and size of the matrices.

        Returns
        -------
        float
            Number of operations.

        Examples
        --------
        >>> from codiag.diagonalize import UWEDGE
        >>> UWEDGE().sweep_flops(10, 5)
        2500.0
        """
        return 4.0 * n * size**3


def _exceeds(stack: Array, rank: int | None, rng: np.random.Generator) -> bool:
    """Return whether the rank is above that of the matrices."""
    return rank is not None and rank > numerical_rank(stack, rng)


def _undetermined(stack: Array, rank: int | None, rng: np.random.Generator) -> RankDeficientError:
    """Return the error for matrices that determine fewer free components than the rank."""
    if _exceeds(stack, rank, rng):
        return RankDeficientError(
            f"rank must be at most {numerical_rank(stack, rng)}, the rank of the matrices up to rounding; got {rank}. "
            "rank=None is that rank"
        )
    return RankDeficientError(
        "matrices must have a combination that is not singular, or free factors are not determined; use a smaller rank "
        "or a method with orthogonal factors, like codiag.diagonalize.OrthogonalNewton()"
    )


def _scaled(stack: Array, sample_weight: Array | None) -> Array:
    """Scale each matrix by the root of its weight, and all of them if fourth powers would over- or underflow."""
    xp = array_namespace(stack)
    if sample_weight is not None:
        stack = stack * xp.sqrt(sample_weight)[:, None, None]
    safe = 1e60 if epsilon(stack) < 1e-10 else 1e6
    if 1 / safe < float(xp.max(xp.abs(stack[0, ...]))) < safe:
        return stack  # usually the first matrix has the order of magnitude of all
    size = float(xp.max(xp.abs(stack)))
    return stack if 1 / safe < size < safe else stack / size


def _assemble(
    method: Diagonalizer,
    core: Array,
    sample_weight: Array | None,
    bases: tuple[Array | None, Array | None],
    iterate: Iterate,
) -> Diagonalization:
    """Return the result for the original matrices: unit columns, in the order of their energy."""
    symmetric, orthogonal = method.symmetric, method.orthogonal
    matrices = MatrixStack(core, cached=False)
    left = _unit_factors(matrices.here(iterate.left), orthogonal)
    right = left if symmetric else _unit_factors(matrices.here(iterate.right), orthogonal)
    xp = array_namespace(left[0])
    hermitian = symmetric and matrices.is_hermitian
    other = matrices.mirrored(right[1]) if hermitian else right[1]
    diagonals, residuals = matrices.residuals(left[1], other, sample_weight)
    first, second = (None if basis is None else to_namespace(basis, left[0]) for basis in bases)
    squares = squared_magnitudes(diagonals)
    squares = squares if sample_weight is None else squares * to_namespace(sample_weight, squares)[:, None]
    order = xp.argsort(xp.sum(squares, axis=0), descending=True, stable=True)
    factor, inverse, signs = _uncompressed(*left, first, order)
    right_factor, right_inverse, right_signs = factor, inverse, signs
    if hermitian:
        diagonals, right_factor, right_inverse = real_part(diagonals), conjugate(factor), conjugate(inverse)
        signs = right_signs = xp.ones_like(diagonals[0, ...])
    if not symmetric:
        right_factor, right_inverse, right_signs = _uncompressed(*right, second, order)
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
        sample_weight=sample_weight,
        hermitian=hermitian,
    )


def _like_input(fit: Diagonalization, reference: Array) -> Diagonalization:
    """Return a result in the library and on the device of the reference."""
    arrays = {
        name: asarray_like(value, reference if is_complex(value) else real_part(reference[:1, :1, :1]))
        for name, value in vars(fit).items()
        if isinstance(value, np.ndarray)
    }
    if fit.symmetric:
        arrays |= {"right_factor": arrays["factor"], "right_inverse": arrays["inverse"]}
    return replace(fit, **arrays)


def _unit_factors(inverse: Array, orthogonal: bool) -> tuple[Array, Array]:
    """Return factors with unit columns, and their inverse."""
    xp = array_namespace(inverse)
    factor = adjoint(inverse) if orthogonal else xp.linalg.inv(inverse)
    norms = xp.linalg.vector_norm(factor, axis=0)
    return factor / norms, inverse * norms[:, None]


def _uncompressed(factor: Array, inverse: Array, basis: Array | None, order: Array) -> tuple[Array, Array, Array]:
    """Return factor and inverse in the coordinates of the matrices, in the given order, and the signs removed."""
    xp = array_namespace(factor)
    factor, inverse = xp.take(factor, order, axis=1), xp.take(inverse, order, axis=0)
    if basis is not None:
        factor, inverse = basis @ factor, inverse @ adjoint(basis)
    signs = largest_signs(factor)
    return factor * conjugate(signs), inverse * signs[:, None], signs


def check_method(diagonalizer: object) -> Diagonalizer:
    """Return the argument if it is a diagonalizer, and raise a TypeError otherwise."""
    if not isinstance(diagonalizer, type) and hasattr(diagonalizer, "iterate"):
        return diagonalizer  # type: ignore[return-value]
    hint = "; did you forget the parentheses?" if isinstance(diagonalizer, type) else ""
    raise TypeError(
        f"diagonalizer must be an object of codiag.diagonalize, like Jacobi() or UWEDGE(); got {diagonalizer!r}{hint}"
    )


@dataclass(frozen=True, kw_only=True)
class NewtonLike(Diagonalizer):
    """A diagonalizer by Newton-like steps, which stop when they are small in units of their standard errors."""

    statistical_tol: float = 1e-2

    def __post_init__(self) -> None:
        super().__post_init__()
        as_number("statistical_tol", self.statistical_tol, zero=True)

    def sweep_flops(self, n: int, size: int) -> float:
        return (2.0 if self.symmetric else 4.0) * n * size**3

    def _limits(self, stack: Array) -> Limits:
        """Return the limits of the steps: rotations must not lose diagonal energy, beyond rounding errors.

        Shears minimize no function; they may increase the off-diagonal energy by half, which prevents divergence.
        """
        rounding = epsilon(stack)
        tol = max(self.tol, 4 * rounding)
        if self.orthogonal:
            return Limits(tol, self.statistical_tol, self.max_sweeps, 0.1, slack=10 * rounding, monotone=True)
        return Limits(tol, self.statistical_tol, self.max_sweeps, 0.3, slack=0.5, monotone=False)
