r"""First-order standard errors of joint diagonalization, from the data alone.

White noise of standard deviation :math:`\sigma` in the matrices reaches the transformed matrices as
:math:`n_{l,ij} = b_i^\top R_l c_j` and moves the factors by :math:`\tilde u_j = u_j - \sum_i E_{ij} u_i`, with

* orthogonal factors (Cardoso 1994): :math:`E_{ij} = \sum_l n_{l,ij} (d_i - d_j)_l / \|d_i - d_j\|^2`,
* free factors (Afsari 2008): :math:`E_{ij} = -e_{ij}^\top n_{ij}` with
  :math:`e_{ij} = (\|d_i\|^2 d_j - (d_i^\top d_j) d_i) / (\|d_i\|^2 \|d_j\|^2 - (d_i^\top d_j)^2)`.

If the rank is below the size of the matrices, each direction outside their range adds
:math:`\sigma \|c_j\| / \|d_j\|`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from codiag._arrays import to_host

if TYPE_CHECKING:
    from codiag.diagonalize._diagonalization import Diagonalization


@dataclass(frozen=True, eq=False)
class NoisePropagation:
    """The effect of noise in the matrices on the factors of a diagonalization, computed on the host."""

    diagonals: np.ndarray  # (k, n), scaled by the root of the sample weights
    residuals: np.ndarray  # (k, k)
    factor: np.ndarray  # (d, k)
    left: np.ndarray  # b_i . b_j
    right: np.ndarray  # c_i . c_j
    orthogonal: bool
    symmetric: bool
    n: int  # matrices with positive sample weight

    @classmethod
    def of(cls, fit: Diagonalization) -> NoisePropagation:
        """Return the propagation of noise for a result."""
        diagonals = to_host(fit.diagonals).T.astype(np.float64)
        n = fit.diagonals.shape[0]
        if fit.sample_weight is not None:
            sample_weight = to_host(fit.sample_weight)
            diagonals = diagonals * np.sqrt(sample_weight)
            n = int(np.count_nonzero(sample_weight))
        left, right = (to_host(inverse).astype(np.float64) for inverse in (fit.inverse, fit.right_inverse))
        return cls(
            diagonals,
            to_host(fit.residuals),
            to_host(fit.factor),
            left @ left.T,
            right @ right.T,
            fit.orthogonal,
            fit.symmetric,
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
            if self.orthogonal and self.symmetric:
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
        outside = (d - k) * np.diag(self.right) / self._energy()
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
        diagonals, gram = self.diagonals / scale, self.factor.T @ self.factor
        energy, products = np.sum(diagonals**2, axis=1), diagonals @ diagonals.T
        minus, plus = self._gaps()
        np.fill_diagonal(minus, 1)  # the pair (j, j) is masked below
        np.fill_diagonal(plus, 1)
        inside = np.empty(energy.size)
        for j in range(energy.size):
            gap = minus[:, j] * plus[:, j] / 4
            first = 1 / (energy[j] * gap)
            second = products[:, j] / (energy * energy[j] * gap)
            first[j] = second[j] = 0
            mixed = np.outer(first, second * products[:, j])
            shape = np.outer(first, first) * energy[j] - mixed - mixed.T + np.outer(second, second) * products
            noise = self.left * self.right[j, j]
            if self.symmetric:
                noise = noise + np.outer(self.left[j], self.left[j])
            inside[j] = np.sum(shape * noise * (gram - np.outer(gram[j], gram[j])))
        return np.where(inside < 0, 0, inside) / scale / scale

    def _energy(self) -> np.ndarray:
        energy: np.ndarray = np.sum(self.diagonals**2, axis=1)
        return energy

    def _variance(self) -> np.ndarray:
        """Return the variance of b_i^T R c_j for unit noise R, in which each entry occurs twice if it is symmetric."""
        variance = np.outer(np.diag(self.left), np.diag(self.right))
        return variance + self.left**2 if self.symmetric else variance

    def _gaps(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the squared distances of the diagonals from each other and from the negatives of each other.

        They are computed from differences, not from scalar products, which would lose digits. For free factors the
        diagonals are scaled to unit norm, and a quarter of the product of the two distances is 1 - rho_ij^2.
        """
        rows = self.diagonals if self.orthogonal else self.diagonals / np.sqrt(self._energy())[:, None]
        minus = np.stack([np.sum((rows - row) ** 2, axis=1) for row in rows])
        plus = np.stack([np.sum((rows + row) ** 2, axis=1) for row in rows])
        return minus, plus


def _scaled(noise: float, errors: np.ndarray) -> np.ndarray:
    """Scale standard errors of unit noise; infinite ones, of pairs without a gap, stay infinite even without noise."""
    return np.where(np.isinf(errors) & ~np.isnan(noise), np.inf, noise * np.where(np.isinf(errors), 0, errors))
