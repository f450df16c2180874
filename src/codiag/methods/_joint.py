"""The paper's method: diagonalize projections of the tensor jointly, then projections along the estimated factors."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from codiag._arrays import Array, array_namespace, asarray_like, to_host
from codiag._checks import as_flag, as_number, as_real_array
from codiag.diagonalize import UWEDGE, Diagonalization, Diagonalizer, OrthogonalNewton, TwoSided, check_method
from codiag.least_squares import Log, best_rank_one, unit_components, with_best_weights
from codiag.methods._method import Method
from codiag.problem import Estimate, Problem
from codiag.reduction import Reduction, reduce, uncompressed, whitened
from codiag.starts import (
    Roles,
    check_roles,
    components_from_sides,
    diagonalized,
    matrix_roles,
    merged_core,
    symmetric_components,
)
from codiag.tensors import DenseTensor, FactoredTensor


def random_directions(rng: np.random.Generator, n: int, sizes: Sequence[int]) -> list[np.ndarray]:
    """Return n unit vectors for each mode, independent and uniform on the sphere, as rows."""
    drawn = [rng.standard_normal((n, size)) for size in sizes]
    return [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in drawn]


def orthonormal_directions(rng: np.random.Generator, n: int, sizes: Sequence[int]) -> list[np.ndarray]:
    """Return n different combinations of unit vectors from a random orthonormal basis of each mode, as rows.

    Projections along all combinations determine the tensor; there are at most as many as the product of the sizes.
    """
    bases = [np.linalg.qr(rng.standard_normal((size, size)))[0] for size in sizes]
    total = int(np.prod(sizes))
    combinations = np.unravel_index(np.sort(rng.choice(total, size=min(n, total), replace=False)), sizes)
    return [basis[indices] for basis, indices in zip(bases, combinations, strict=True)]


DRAW = {"random": random_directions, "orthonormal": orthonormal_directions}
"""Distributions of directions, by name."""


@dataclass(frozen=True, kw_only=True, eq=False)
class JointMethod(Method):
    """The base class of `OJD` and `NOJD`. If the rank is below the size of a mode, the tensor is compressed first."""

    plug_in: bool | str = True
    directions: Any = "random"
    n_projections: int | None = None
    diagonalizer: Diagonalizer | None = None
    compress: bool = True

    orthogonal: ClassVar[bool]

    def __post_init__(self) -> None:
        if self.n_projections is not None:
            as_number("n_projections", self.n_projections, integer=True)
            if self.n_projections < 2:
                raise ValueError(
                    f"n_projections must be at least 2, since one does not determine factors; got {self.n_projections}"
                )
        as_flag("compress", self.compress)
        _check_directions(self.directions)
        if not isinstance(self.plug_in, bool) and self.plug_in != "inverse":
            raise ValueError(f"plug_in must be True, False or 'inverse'; got {self.plug_in!r}")
        if self.diagonalizer is not None and check_method(self.diagonalizer).orthogonal != self.orthogonal:
            kind = "orthonormal" if self.orthogonal else "free"
            raise ValueError(
                f"{type(self).__name__} needs a diagonalizer with {kind} factors; got {self.diagonalizer!r}"
            )

    @property
    def has_per_index_options(self) -> bool:
        return not isinstance(self.directions, str)

    def check_supported(self, problem: Problem) -> None:
        together = not self.orthogonal  # a mode has no more orthonormal columns than its size
        super().check_supported(problem)
        check_roles(problem, type(self).__name__, together=together)

    def fit(self, problem: Problem, rng: np.random.Generator) -> Estimate:
        log = Log()
        reduction = self._reduce(problem, rng)
        components, converged = self._fit_core(reduction.core, matrix_roles(problem), problem.rank, rng, log)
        return Estimate(reduction.to_tensor(components), log.history, converged)

    def _fit_core(
        self, core: DenseTensor, roles: Roles, rank: int, rng: np.random.Generator, log: Log
    ) -> tuple[FactoredTensor, bool]:
        """Diagonalize projections along the drawn directions and, with `plug_in`, along the estimated factors."""
        if rank == 1:
            return best_rank_one(core), True
        directions = [asarray_like(rows, core.reference) for rows in self._draw(core, roles, rng)]
        fit = self._diagonalize(core, roles, rank, directions, rng, log, "diagonalize")
        components = _components(core, roles, fit)
        if self.plug_in:
            directions = self._plug_in_directions(components, roles)
            name = "inverse" if self.plug_in == "inverse" else "factors"
            fit = self._diagonalize(core, roles, rank, directions, rng, log, f"diagonalize along {name}")
            components = _components(core, roles, fit)
        return components, fit.converged

    def _reduce(self, problem: Problem, rng: np.random.Generator) -> Reduction:
        return reduce(problem, rng) if self.compress else uncompressed(problem)

    def _draw(self, core: DenseTensor, roles: Roles, rng: np.random.Generator) -> list[np.ndarray]:
        sizes = [core.shape[mode] for mode in roles.others]
        if isinstance(self.directions, str):
            return DRAW[self.directions](rng, self.n_projections or self._default_count(core.shape), sizes)
        rows = [to_host(self.directions)] if len(sizes) == 1 else [to_host(part) for part in self.directions]
        if [part.ndim for part in rows] != [2] * len(sizes) or [part.shape[1] for part in rows] != sizes:
            raise ValueError(
                f"directions must have shape (n, {sizes[0]}), one per row; got {[part.shape for part in rows]}"
                + (". Given directions need compress=False" if self.compress else "")
            )
        return rows

    def _diagonalize(
        self,
        core: DenseTensor,
        roles: Roles,
        rank: int,
        directions: list[Array],
        rng: np.random.Generator,
        log: Log,
        name: str,
    ) -> Diagonalization:
        """Project along directions, one array for each mode that is projected, and diagonalize."""
        xp = array_namespace(core.reference)
        stack = merged_core(core, roles).project(*directions)
        diagonalizer = self.diagonalizer or self._default(core.symmetric)
        if core.symmetric:
            stack = (stack + xp.matrix_transpose(stack)) / 2  # equal up to rounding
        elif diagonalizer.symmetric:
            raise ValueError(
                f"{diagonalizer!r} is for symmetric matrices; pass symmetric=True if the tensor is symmetric, or use "
                "TwoSided(...)"
            )
        if stack.shape[1] > rank or stack.shape[2] > rank:
            diagonalizer = replace(diagonalizer, rank=diagonalizer.rank or rank)
        fit = diagonalized(diagonalizer, stack, rank, rng)
        n, size = directions[0].shape[0], fit.factor.shape[0] if diagonalizer.rank is None else rank
        flops = 2.0 * n * math.prod(core.shape) + fit.n_sweeps * diagonalizer.sweep_flops(n, size)
        log.add(name, fit.n_sweeps, fit.off_diagonal_share, flops)
        return fit

    def _plug_in_directions(self, components: FactoredTensor, roles: Roles) -> list[Array]:
        """Return the plug-in directions, one for each component."""
        xp = array_namespace(components.weights)
        rows = []
        for mode in roles.others:
            factor = components.factors[mode]
            if self.plug_in == "inverse":
                factor = xp.matrix_transpose(xp.linalg.pinv(factor))
                factor = factor / xp.linalg.vector_norm(factor, axis=0)
            rows.append(xp.matrix_transpose(factor))
        return rows

    @abstractmethod
    def _default(self, symmetric: bool) -> Diagonalizer:
        """Return the default diagonalizer."""

    @abstractmethod
    def _default_count(self, shape: tuple[int, ...]) -> int:
        """Return the number of projections in the paper's experiments."""


@dataclass(frozen=True, kw_only=True, eq=False)
class OJD(JointMethod):
    r"""Orthogonal joint diagonalization: OJD0 (``plug_in=False``) and OJD1 of the paper, for orthogonal factors.

    Free factors of a symmetric tensor are first made orthogonal by the second moment of the problem,
    ``codiag.Problem(tensor, rank, second_moment=...)``, if there is one.

    Parameters
    ----------
    plug_in : {True, False, "inverse"}
        Whether to project again, as for `NOJD`.
    directions : {"random", "orthonormal"} or array of shape (n, d)
        The directions along which the tensor is projected, as for `NOJD`.
    n_projections : int, optional
        Number of projections; by default that of the paper's experiments.
    diagonalizer : Diagonalizer, optional
        A configured method of `codiag.diagonalize`, for orthogonal factors.
    compress : bool
        Whether to compress the tensor first, as for `NOJD`.

    See Also
    --------
    NOJD : For factors that are not orthogonal.
    TPM : The power method for the same tensors.

    Notes
    -----
    **Assumptions.** Orthogonal factors, or a symmetric tensor and a second moment; a rank of at most the second largest
    mode.

    **Complexity.** :math:`O(L \prod_m d_m)` flops for L projections, and :math:`O(L k^3)` a sweep of the
    diagonalization.

    **Guarantees.** Exact components without noise, from every start; with noise of operator norm :math:`\epsilon`
    errors of order :math:`\epsilon`, by the theorems of the paper.

    **Limitations.** Fails silently if the factors are not orthogonal and there is no second moment: use `NOJD`.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> q = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 5)))[0]
    >>> fit = codiag.factorize(np.einsum("ir,jr,kr->ijk", q, q, q), 5, method=codiag.methods.OJD(), rng=0)
    >>> codiag.factor_error(fit, [q] * 3) < 1e-10
    True
    """

    orthogonal: ClassVar[bool] = True
    needs_orthogonal: ClassVar[bool] = True

    def fit(self, problem: Problem, rng: np.random.Generator) -> Estimate:
        if problem.second_moment is None:
            return super().fit(problem, rng)
        log = Log()
        reduction, white = whitened(problem)
        log.add("whiten", 0, 0.0)
        components, converged = self._fit_core(white.core, matrix_roles(problem), problem.rank, rng, log)
        factors = unit_components(white.to_tensor(components)).factors
        return Estimate(reduction.to_tensor(with_best_weights(reduction.core, factors)), log.history, converged)

    def _default(self, symmetric: bool) -> Diagonalizer:
        return OrthogonalNewton() if symmetric else TwoSided(orthogonal=True)

    def _default_count(self, shape: tuple[int, ...]) -> int:
        return 5 if max(shape) < 100 else 10 if max(shape) < 200 else 20


@dataclass(frozen=True, kw_only=True, eq=False)
class NOJD(JointMethod):
    r"""Non-orthogonal joint diagonalization: NOJD0 (``plug_in=False``) and NOJD1 of the paper, for free factors.

    Parameters
    ----------
    plug_in : {True, False, "inverse"}
        Whether to project again: along the estimated factors (True), or along the inverse factors, as in the text of
        the paper.
    directions : {"random", "orthonormal"} or array of shape (n, d)
        The directions along which the tensor is projected: uniform on the sphere, as in the paper; from a random
        orthonormal basis, which is best; or given directions.
    n_projections : int, optional
        Number of projections; by default that of the paper's experiments.
    diagonalizer : Diagonalizer, optional
        A configured method of `codiag.diagonalize`.
    compress : bool
        Whether to compress the tensor to the ranges of the components first.

    See Also
    --------
    OJD : For orthogonal factors.
    Auto : The default method, which refines the factors by least squares.
    codiag.diagonalize.UWEDGE : The default diagonalizer.

    Notes
    -----
    **Assumptions.** A rank of at most the second largest mode, and factors with linearly independent columns in two
    modes. For larger ranks of tensors of order five and more, several modes are merged for the rows and for the columns
    of the matrices: 8 x 8 x 8 x 8 x 8 has up to 64 components, or 36 if symmetric.

    **Complexity.** :math:`O(L \prod_m d_m)` flops for L projections, 2 d by default, and :math:`O(L k^3)` for each
    sweep of the diagonalization.

    **Guarantees.** Exact components without noise; with noise errors of first order, which grow with the condition
    numbers of the factors.

    **Limitations.** Fails with larger errors than least squares, if columns are nearly collinear or the noise is large.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> rng = np.random.default_rng(0)
    >>> a, b, c = (rng.standard_normal((6, 4)) for _ in range(3))
    >>> fit = codiag.factorize(np.einsum("ir,jr,kr->ijk", a, b, c), 4, method=codiag.methods.NOJD(), rng=0)
    >>> codiag.factor_error(fit, (a, b, c)) < 1e-8
    True
    """

    supports: ClassVar[frozenset[str]] = frozenset({"complex numbers"})

    orthogonal: ClassVar[bool] = False

    def _default(self, symmetric: bool) -> Diagonalizer:
        return UWEDGE() if symmetric else TwoSided()

    def _default_count(self, shape: tuple[int, ...]) -> int:
        return 2 * max(shape)


def _check_directions(directions: Any) -> None:
    """Raise an error unless the directions are the name of a distribution, or arrays."""
    if isinstance(directions, str):
        if directions not in DRAW:
            raise ValueError(f"directions must be one of {', '.join(DRAW)}, or an array; got {directions!r}")
        return
    parts = directions if isinstance(directions, list | tuple) and np.ndim(directions[:1]) != 2 else [directions]
    for part in parts:
        rows = as_real_array(part, "directions", "use their real parts")
        if rows.ndim != 2 or 0 in rows.shape or not np.all(np.isfinite(to_host(rows))):
            raise ValueError(
                f"directions must be one of {', '.join(DRAW)}, or a finite array of shape (n, d), one for each mode "
                f"that is projected; got an array of shape {tuple(rows.shape)}"
            )


def _components(core: DenseTensor, roles: Roles, fit: Diagonalization) -> FactoredTensor:
    if core.symmetric:
        return symmetric_components(core, fit.factor, len(roles.rows))
    return components_from_sides(core, roles, fit.factor, fit.right_factor)
