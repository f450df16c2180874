"""The result of joint diagonalization, and its standard errors to first order in the noise."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from codiag._arrays import Array, array_namespace, epsilon, is_complex, squared_magnitudes, to_double, to_host
from codiag._text import counted, html_table


@dataclass(frozen=True, eq=False, repr=False)
class Diagonalization:
    r"""Common factors of a stack of matrices, :math:`M_l \approx A \,\mathrm{diag}(d_l)\, B^\top`.

    :math:`B = A` unless the method is `codiag.diagonalize.TwoSided`. Components are
    in the order of the energy of their diagonals, the largest first; the largest entry of each column is positive.
    If the matrices are complex and Hermitian, :math:`B = \bar A`, so that :math:`B^\top` is the adjoint of A, and the
    diagonals are real. If they are complex and symmetric, :math:`B = A`, and the diagonals are complex.

    Attributes
    ----------
    factor : array of shape (d, k)
        The factors A, unit columns.
    diagonals : array of shape (n, k)
        The diagonals :math:`d_l` of :math:`A^{+} M_l B^{+\top}`.
    inverse : array of shape (k, d)
        The inverse factors: ``inverse @ factor`` is the identity.
    residuals : array of shape (k, k)
        :math:`\sum_l w_l |A^{+} M_l B^{+\top}|_{ij}^2` for each pair, zero on the diagonal.
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
    hermitian : bool
        Whether the matrices are complex and Hermitian.

    See Also
    --------
    joint_diagonalize : The function that returns it.
    codiag.Factorization : The result for tensors.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> rng = np.random.default_rng(0)
    >>> factor = rng.standard_normal((3, 3))
    >>> fit = codiag.joint_diagonalize([factor @ np.diag(rng.standard_normal(3)) @ factor.T for _ in range(4)], rng=0)
    >>> fit
    Diagonalization(4 matrices 3 x 3, 3 components, off_diagonal_share=..., n_sweeps=..., converged=True)
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
    hermitian: bool = False

    @property
    def symmetric(self) -> bool:
        """Whether left and right factors are the same.

        Examples
        --------
        >>> from codiag import joint_diagonalize
        >>> from codiag.synthetic import matrix_stack, unit_factor
        >>> fit = joint_diagonalize(matrix_stack(unit_factor(3, 3, rng=0), 5, rng=1).matrices, rng=0)
        >>> fit.symmetric
        True
        """
        return self.right_factor is self.factor

    @property
    def off_diagonal(self) -> float:
        r"""The off-diagonal energy :math:`\sum_l w_l \sum_{i \ne j} |A^{+} M_l B^{+\top}|_{ij}^2`.

        See Also
        --------
        Diagonalization.off_diagonal_share : Relative to all energy.
        Diagonalization.noise : The noise that explains it.

        Examples
        --------
        >>> from codiag import joint_diagonalize
        >>> from codiag.synthetic import matrix_stack, unit_factor
        >>> stack = matrix_stack(unit_factor(3, 3, rng=0), 5, rng=1)
        >>> joint_diagonalize(stack.matrices, rng=0).off_diagonal < 1e-20
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
        >>> stack = matrix_stack(unit_factor(3, 3, rng=0), 5, rng=1)
        >>> joint_diagonalize(stack.matrices, rng=0).off_diagonal_share < 1e-20
        True
        """
        xp = array_namespace(self.diagonals)
        return self.off_diagonal / (self.off_diagonal + float(xp.sum(squared_magnitudes(self.diagonals))))

    @cached_property
    def _propagation(self) -> NoisePropagation:
        return NoisePropagation.of(self)

    @cached_property
    def noise(self) -> float:
        """The standard deviation of the entries' white noise, estimated from the residuals.

        Noise of complex entries is circular, and its variance the mean of the squared magnitudes. Diagonal entries of
        symmetric noise have twice the variance of the others, those of Hermitian noise the same.

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
        >>> stack = matrix_stack(unit_factor(4, 4, rng=0), 50, noise=0.01, rng=1)
        >>> round(joint_diagonalize(stack.matrices, rng=0).noise, 3)
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
        >>> stack = matrix_stack(unit_factor(3, 3, rng=0), 5, noise=1e-3, rng=1)
        >>> errors = joint_diagonalize(stack.matrices, rng=0).pair_errors
        >>> errors.shape, bool(errors.max() < 0.1)
        ((3, 3), True)
        """
        return self._propagation.pair_errors(self.noise)

    @cached_property
    def standard_errors(self) -> np.ndarray:
        r"""First-order standard error :math:`(E\|\tilde u_j - u_j\|^2)^{1/2}` of each factor, from the data alone.

        Infinite for factors of an unresolved pair, for which first-order theory is not valid.

        See Also
        --------
        Diagonalization.pair_errors : The errors by pairs of factors.

        Examples
        --------
        >>> from codiag import joint_diagonalize
        >>> from codiag.synthetic import matrix_stack, unit_factor
        >>> stack = matrix_stack(unit_factor(3, 3, rng=0), 5, noise=1e-3, rng=1)
        >>> errors = joint_diagonalize(stack.matrices, rng=0).standard_errors
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
        >>> len(joint_diagonalize(matrices, orthogonal=True, rng=0).unresolved)
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
        >>> stack = matrix_stack(unit_factor(3, 3, rng=0), 5, right_factor=unit_factor(3, 3, rng=1), rng=2)
        >>> fit = TwoSided()(stack.matrices, rng=0)
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
        >>> stack = matrix_stack(unit_factor(3, 3, rng=0), 5, rng=1)
        >>> np.allclose(joint_diagonalize(stack.matrices, rng=0).reconstruct(), stack.matrices)
        True
        """
        xp = array_namespace(self.factor)
        return (self.factor[None, ...] * self.diagonals[:, None, :]) @ xp.matrix_transpose(self.right_factor)

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
            f"Diagonalization({self.diagonals.shape[0]} matrices {rows} x {columns}, {counted(k, 'component')}, "
            f"off_diagonal_share={self.off_diagonal_share:.3g}, n_sweeps={self.n_sweeps}, converged={self.converged})"
        )


@dataclass(frozen=True, eq=False)
class NoisePropagation:
    r"""The effect of noise in the matrices on the factors of a diagonalization, computed on the host.

    White noise of standard deviation :math:`\sigma` in the matrices reaches the transformed matrices as
    :math:`n_{l,ij} = b_i^\top R_l c_j` and moves the factors by :math:`\tilde u_j = u_j - \sum_i E_{ij} u_i`, with

    * orthogonal factors (Cardoso 1994): :math:`E_{ij} = \sum_l n_{l,ij} (d_i - d_j)_l / \|d_i - d_j\|^2`,
    * free factors (Afsari 2008): :math:`E_{ij} = -e_{ij}^\top n_{ij}` with
      :math:`e_{ij} = (\|d_i\|^2 d_j - (d_i^\top d_j) d_i) / (\|d_i\|^2 \|d_j\|^2 - (d_i^\top d_j)^2)`.

    If the rank is below the size of the matrices, each direction outside their range adds
    :math:`\sigma \|c_j\| / \|d_j\|`. Complex diagonals take :math:`\bar e_{ij}`; if they are not those of Hermitian
    matrices, unitary factors have the errors of two sides.
    """

    diagonals: np.ndarray  # (k, n), scaled by the root of the sample weights
    residuals: np.ndarray  # (k, k)
    factor: np.ndarray  # (d, k)
    left: np.ndarray  # b_i b_j^H
    right: np.ndarray  # c_i c_j^H
    orthogonal: bool
    symmetric: bool  # whether each entry of the noise occurs twice
    has_one_gap: bool  # whether the gap of an orthogonal pair is the distance of its diagonals, without a sign or phase
    n: int  # matrices with positive sample weight

    @classmethod
    def of(cls, fit: Diagonalization) -> NoisePropagation:
        """Return the propagation of noise for a result."""
        diagonals = to_double(to_host(fit.diagonals)).T
        n = fit.diagonals.shape[0]
        if fit.sample_weight is not None:
            sample_weight = to_host(fit.sample_weight)
            diagonals = diagonals * np.sqrt(sample_weight)
            n = int(np.count_nonzero(sample_weight))
        left, right = (to_double(to_host(inverse)) for inverse in (fit.inverse, fit.right_inverse))
        return cls(
            diagonals,
            to_host(fit.residuals),
            to_host(fit.factor),
            left @ left.conj().T,
            right @ right.conj().T,
            fit.orthogonal,
            fit.symmetric,
            fit.hermitian or (fit.symmetric and not is_complex(diagonals)),
            n,
        )

    @property
    def noise(self) -> float:
        """The standard deviation of the noise; a pair has as many degrees of freedom as matrices minus parameters."""
        k = self.diagonals.shape[0]
        degrees_of_freedom = self.n - (1 if self.orthogonal else 2)
        if degrees_of_freedom <= 0 or k < 2:
            return float("nan")
        return float(np.sqrt(np.sum(self.residuals / self._variance()) / (degrees_of_freedom * k * (k - 1))))

    def pair_errors(self, noise: float) -> np.ndarray:
        """Return the standard error of the coefficient of factor i in the estimate of factor j."""
        return _scaled(noise, self._unit_standard_errors(*self._gaps()))

    def conservative_pair_errors(self, noise: float) -> np.ndarray:
        """Return the same after subtracting from the gaps what noise explains; infinite if no gap remains.

        Fitting turns noise into apparent gaps: two equal components are rotated until their noise differs most. Noise
        explains its expected energy in the difference of two diagonals plus four standard deviations of it.
        """
        variance = noise**2 * np.diag(self._variance()) / (1 if self.orthogonal else self._energy())
        explained = self.n * (1 + 4 / np.sqrt(self.n)) * (variance[:, None] + variance[None, :])
        return _scaled(noise, self._unit_standard_errors(*(np.maximum(gap - explained, 0) for gap in self._gaps())))

    def _unit_standard_errors(self, minus: np.ndarray, plus: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.orthogonal and self.has_one_gap:
                variance = 1 / minus
            elif self.orthogonal:
                variance = (1 / minus + 1 / plus) / 2
            else:
                variance = self._variance() * 4 / (self._energy() * minus * plus)
        np.fill_diagonal(variance, 0)
        return np.sqrt(variance)

    def factor_standard_errors(self, noise: float) -> np.ndarray:
        """Return the root mean square of the distance of each factor from the true one."""
        d, k = self.factor.shape
        outside = (d - k) * np.diag(self.right).real / self._energy()
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.orthogonal:
                inside = np.sum(self._unit_standard_errors(*self._gaps()) ** 2, axis=0)
            else:
                inside = self._correlated_variances()
        finite = np.isfinite(inside)  # infinite if a pair has no gap
        errors = noise * np.sqrt(np.where(finite, inside, 0) + outside)
        return np.where(finite | np.isnan(errors), errors, np.inf)

    def _correlated_variances(self) -> np.ndarray:
        """Return the variances of factors that are not orthogonal, from the covariances of the E_ij of one column."""
        scale = float(np.max(np.abs(self.diagonals)))  # fourth powers of the diagonals may overflow
        diagonals, gram = self.diagonals / scale, self.factor.conj().T @ self.factor
        energy, products = np.sum(squared_magnitudes(diagonals), axis=1), diagonals.conj() @ diagonals.T
        minus, plus = self._gaps()
        np.fill_diagonal(minus, 1)  # the pair (j, j) is masked below
        np.fill_diagonal(plus, 1)
        inside = np.empty(energy.size)
        for j in range(energy.size):
            gap = minus[:, j] * plus[:, j] / 4
            first = 1 / (energy[j] * gap)
            second = products[:, j] / (energy * energy[j] * gap)
            first[j] = second[j] = 0
            mixed = np.outer(first, (second * products[j]).real)
            shape = np.outer(first, first) * energy[j] - mixed - mixed.T + np.outer(second.conj(), second) * products
            noise = self.left * self.right[j, j].real
            if self.symmetric:
                noise = noise + np.outer(self.left[:, j], self.left[j])
            inside[j] = np.sum(shape * noise * (gram - np.outer(gram[:, j], gram[j])).T).real
        return np.where(inside < 0, 0, inside) / scale / scale

    def _energy(self) -> np.ndarray:
        energy: np.ndarray = np.sum(squared_magnitudes(self.diagonals), axis=1)
        return energy

    def _variance(self) -> np.ndarray:
        """Return the variance of b_i^T R c_j for unit noise R, in which each entry occurs twice if it is symmetric.

        Products of an entry of Hermitian noise and its conjugate have no mean, so that only magnitudes count.
        """
        variance = np.outer(np.diag(self.left).real, np.diag(self.right).real)
        return variance + squared_magnitudes(self.left) if self.symmetric else variance

    def _gaps(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the squared distances of the diagonals from each other and from the negatives of each other.

        They are computed from differences, not from scalar products, which would lose digits. For free factors the
        diagonals are scaled to unit norm, and a quarter of the product of the two distances is 1 - rho_ij^2. Complex
        diagonals have a free phase, and get the one that brings them nearest to each other.
        """
        rows = self.diagonals if self.orthogonal else self.diagonals / np.sqrt(self._energy())[:, None]
        turned = [rows * _nearest_phases(rows, row) if is_complex(rows) else rows for row in rows]
        minus = np.stack(
            [np.sum(squared_magnitudes(near - row), axis=1) for near, row in zip(turned, rows, strict=True)]
        )
        plus = np.stack(
            [np.sum(squared_magnitudes(near + row), axis=1) for near, row in zip(turned, rows, strict=True)]
        )
        return minus, plus


def _nearest_phases(rows: np.ndarray, row: np.ndarray) -> np.ndarray:
    """Return the phases (k, 1) that bring complex rows nearest to one of them."""
    phases: np.ndarray = np.exp(1j * np.angle(rows.conj() @ row))[:, None]
    return phases


def _scaled(noise: float, errors: np.ndarray) -> np.ndarray:
    """Scale standard errors of unit noise; infinite ones, of pairs without a gap, stay infinite even without noise."""
    return np.where(np.isinf(errors) & ~np.isnan(noise), np.inf, noise * np.where(np.isinf(errors), 0, errors))
