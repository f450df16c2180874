"""The result of joint diagonalization."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from codiag._arrays import Array, array_namespace, epsilon, to_host
from codiag._checks import warn_of_former
from codiag._text import html_table
from codiag.diagonalize._standard_errors import NoisePropagation


@dataclass(frozen=True, eq=False, repr=False)
class Diagonalization:
    r"""Common factors of a stack of matrices, :math:`M_l \approx A \,\mathrm{diag}(d_l)\, B^\top`.

    :math:`B = A` unless the method is `codiag.diagonalize.TwoSided` or `codiag.diagonalize.symmetrized`. Components are
    in the order of the energy of their diagonals, the largest first; the largest entry of each column is positive.

    Attributes
    ----------
    factor : array of shape (d, k)
        The factors A, unit columns.
    diagonals : array of shape (n, k)
        The diagonals :math:`d_l` of :math:`A^{+} M_l B^{+\top}`.
    inverse : array of shape (k, d)
        The inverse factors: ``inverse @ factor`` is the identity.
    residuals : array of shape (k, k)
        :math:`\sum_l w_l (A^{+} M_l B^{+\top})_{ij}^2` for each pair, zero on the diagonal.
    n_sweeps : int
        Number of steps or sweeps.
    converged : bool
        Whether the tolerance was reached.
    orthogonal : bool
        Whether the factors were constrained to be orthonormal.
    right_factor, right_inverse : arrays of shape (d', k) and (k, d')
        B and its inverse; the arrays `factor` and `inverse` themselves if the problem is symmetric.
    sample_weight : array of shape (n,) or None
        The weights of the matrices. If they are inverse variances of the noise, `noise` is close to one.

    See Also
    --------
    joint_diagonalize : The function that returns it.
    codiag.theory.first_order_perturbation : The theory of `standard_errors`.
    codiag.Factorization : The result for tensors.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> rng = np.random.default_rng(0)
    >>> factor = rng.standard_normal((3, 3))
    >>> fit = codiag.joint_diagonalize([factor @ np.diag(rng.standard_normal(3)) @ factor.T for _ in range(4)], seed=0)
    >>> fit
    Diagonalization(4 matrices 3 x 3, 3 components, off_diagonal=..., n_sweeps=..., converged=True)
    >>> bool(np.allclose(fit.inverse @ fit.factor, np.eye(3))), fit.unresolved
    (True, ())
    """

    factor: Array
    diagonals: Array
    inverse: Array
    residuals: Array
    n_sweeps: int
    converged: bool
    orthogonal: bool
    right_factor: Array
    right_inverse: Array
    sample_weight: Array | None = None

    @property
    def symmetric(self) -> bool:
        """Whether left and right factors are the same.

        Examples
        --------
        >>> from codiag import joint_diagonalize
        >>> from codiag.synthetic import matrix_stack, unit_factor
        >>> fit = joint_diagonalize(matrix_stack(unit_factor(3, 3, seed=0), 5, seed=1).matrices, seed=0)
        >>> fit.symmetric
        True
        """
        return self.right_factor is self.factor

    @property
    def off_diagonal(self) -> float:
        r"""The off-diagonal energy :math:`\sum_l w_l \sum_{i \ne j} (A^{+} M_l B^{+\top})_{ij}^2`.

        See Also
        --------
        Diagonalization.off_diagonal_share : Relative to all energy.
        Diagonalization.noise : The noise that explains it.

        Examples
        --------
        >>> from codiag import joint_diagonalize
        >>> from codiag.synthetic import matrix_stack, unit_factor
        >>> stack = matrix_stack(unit_factor(3, 3, seed=0), 5, seed=1)
        >>> joint_diagonalize(stack.matrices, seed=0).off_diagonal < 1e-20
        True
        """
        return float(array_namespace(self.residuals).sum(self.residuals))

    @property
    def off_diagonal_share(self) -> float:
        """The off-diagonal energy as a fraction of all energy of the transformed matrices.

        See Also
        --------
        Diagonalization.off_diagonal : The energy itself.

        Examples
        --------
        >>> from codiag import joint_diagonalize
        >>> from codiag.synthetic import matrix_stack, unit_factor
        >>> stack = matrix_stack(unit_factor(3, 3, seed=0), 5, seed=1)
        >>> joint_diagonalize(stack.matrices, seed=0).off_diagonal_share < 1e-20
        True
        """
        xp = array_namespace(self.diagonals)
        return self.off_diagonal / (self.off_diagonal + float(xp.sum(self.diagonals**2)))

    @cached_property
    def _propagation(self) -> NoisePropagation:
        return NoisePropagation.of(self)

    @cached_property
    def noise(self) -> float:
        """The standard deviation of the entries' white noise, estimated from the residuals.

        NaN if the residuals have no degrees of freedom: free factors have two parameters for each pair, so that two
        matrices determine no noise. If it is larger than the noise you expect, the model (rank, orthogonality) is
        wrong, and so are the standard errors.

        See Also
        --------
        Diagonalization.standard_errors : The errors of the factors that this noise causes.

        Examples
        --------
        >>> from codiag import joint_diagonalize
        >>> from codiag.synthetic import matrix_stack, unit_factor
        >>> stack = matrix_stack(unit_factor(4, 4, seed=0), 50, noise=0.01, seed=1)
        >>> round(joint_diagonalize(stack.matrices, seed=0).noise, 3)
        0.01
        """
        return self._propagation.noise

    @cached_property
    def pair_errors(self) -> np.ndarray:
        r"""First-order standard errors (k, k): entry (i, j) is that of the coefficient of factor i in estimate j.

        For orthogonal factors this is :math:`\sigma / \sqrt{\sum_l (d_{il} - d_{jl})^2}` (Cardoso, 1994), for others
        :math:`\sigma (\|b_i\|^2 \|b_j\|^2 + (b_i^\top b_j)^2)^{1/2} / (\|d_j\| \sqrt{1 - \rho_{ij}^2})` (Afsari, 2008).

        See Also
        --------
        Diagonalization.standard_errors : The error of each factor.
        Diagonalization.unresolved : Pairs with errors that are too large.

        Examples
        --------
        >>> from codiag import joint_diagonalize
        >>> from codiag.synthetic import matrix_stack, unit_factor
        >>> stack = matrix_stack(unit_factor(3, 3, seed=0), 5, noise=1e-3, seed=1)
        >>> errors = joint_diagonalize(stack.matrices, seed=0).pair_errors
        >>> errors.shape, bool(errors.max() < 0.1)
        ((3, 3), True)
        """
        return self._propagation.pair_errors(self.noise)

    @cached_property
    def standard_errors(self) -> np.ndarray:
        r"""First-order standard error :math:`(E\|\tilde u_j - u_j\|^2)^{1/2}` of each factor, from the data alone.

        Infinite for factors of an unresolved pair, for which first-order theory does not hold.

        See Also
        --------
        Diagonalization.pair_errors : The errors by pairs of factors.
        codiag.theory.first_order_perturbation : The errors for known noise.

        Examples
        --------
        >>> from codiag import joint_diagonalize
        >>> from codiag.synthetic import matrix_stack, unit_factor
        >>> stack = matrix_stack(unit_factor(3, 3, seed=0), 5, noise=1e-3, seed=1)
        >>> errors = joint_diagonalize(stack.matrices, seed=0).standard_errors
        >>> errors.shape, bool(errors.max() < 0.1)
        ((3,), True)
        """
        errors = self._propagation.factor_standard_errors(self.noise)
        errors[sorted({index for pair in self.unresolved for index in pair})] = np.inf
        return errors

    @cached_property
    def unresolved(self) -> tuple[tuple[int, int], ...]:
        """Pairs (i, j) of factors that the matrices do not determine separately.

        A pair is unresolved if a coefficient of one in the other has a standard error above 0.3, after the part that
        noise explains has been subtracted from the gap between their diagonals.

        See Also
        --------
        Diagonalization.pair_errors : The errors that decide.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag import joint_diagonalize
        >>> rng = np.random.default_rng(0)
        >>> diagonals = rng.standard_normal((8, 3))
        >>> diagonals[:, 1] = diagonals[:, 0]  # these two factors are not determined
        >>> noise = 1e-3 * rng.standard_normal((8, 3, 3))
        >>> matrices = [np.diag(d) + e + e.T for d, e in zip(diagonals, noise, strict=True)]
        >>> len(joint_diagonalize(matrices, orthogonal=True, seed=0).unresolved)
        1
        """
        n, k = self.diagonals.shape
        rounding = 4 * epsilon(self.factor) * float(np.linalg.norm(self._propagation.diagonals)) / (n * k) ** 0.5
        uncertain = self._propagation.conservative_pair_errors(float(np.fmax(self.noise, rounding)))
        pairs = np.triu(np.fmax(uncertain, uncertain.T) > 0.3, 1)
        return tuple((int(i), int(j)) for i, j in np.argwhere(pairs))

    def transposed(self) -> Diagonalization:
        """Return the diagonalization of the transposed matrices.

        Returns
        -------
        Diagonalization
            With `factor` and `right_factor`, and their inverses, exchanged.

        Examples
        --------
        >>> from codiag.diagonalize import TwoSided
        >>> from codiag.synthetic import matrix_stack, unit_factor
        >>> stack = matrix_stack(unit_factor(3, 3, seed=0), 5, right_factor=unit_factor(3, 3, seed=1), seed=2)
        >>> fit = TwoSided()(stack.matrices, seed=0)
        >>> bool((fit.transposed().factor == fit.right_factor).all())
        True
        """
        return replace(
            self,
            factor=self.right_factor,
            inverse=self.right_inverse,
            right_factor=self.factor,
            right_inverse=self.inverse,
            residuals=array_namespace(self.residuals).matrix_transpose(self.residuals),
        )

    def reconstruct(self) -> Array:
        """Return the matrices with these factors and diagonals.

        Returns
        -------
        array of shape (n, d, d')
            Matrix l is ``factor @ diag(diagonals[l]) @ right_factor.T``.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag import joint_diagonalize
        >>> from codiag.synthetic import matrix_stack, unit_factor
        >>> stack = matrix_stack(unit_factor(3, 3, seed=0), 5, seed=1)
        >>> np.allclose(joint_diagonalize(stack.matrices, seed=0).reconstruct(), stack.matrices)
        True
        """
        xp = array_namespace(self.factor)
        return (self.factor[None, ...] * self.diagonals[:, None, :]) @ xp.matrix_transpose(self.right_factor)

    def __getattr__(self, name: str) -> Any:
        if name != "weights":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        warn_of_former("weights of Diagonalization", "sample_weight")
        return self.sample_weight

    def _repr_html_(self) -> str:
        unresolved = {factor for pair in self.unresolved for factor in pair}
        sizes = np.linalg.norm(to_host(self.diagonals), axis=0)
        table: dict[str, Iterable[object]] = {"factor": range(sizes.size)}
        table["norm of diagonals"] = [f"{size:.3g}" for size in sizes]
        table["standard error"] = [f"{error:.2g}" for error in self.standard_errors]
        table["resolved"] = ["no" if factor in unresolved else "yes" for factor in range(sizes.size)]
        return html_table(repr(self), table)

    def __repr__(self) -> str:
        (rows, k), columns = self.factor.shape, self.right_factor.shape[0]
        return (
            f"Diagonalization({self.diagonals.shape[0]} matrices {rows} x {columns}, {k} components, "
            f"off_diagonal={self.off_diagonal:.3g}, n_sweeps={self.n_sweeps}, converged={self.converged})"
        )


def off_diagonal_share(fit: Diagonalization) -> float:
    """Return the property of this name."""
    return fit.off_diagonal_share
