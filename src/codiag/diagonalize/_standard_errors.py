r"""First-order standard errors of joint diagonalization, from the data alone.

White noise of standard deviation :math:`\sigma` in the matrices reaches the transformed matrices as
:math:`n_{l,ij} = b_i^\top R_l c_j` and moves the factors by :math:`\tilde u_j = u_j - \sum_i E_{ij} u_i`, with

* orthogonal factors (Cardoso 1994): :math:`E_{ij} = \sum_l n_{l,ij} (d_i - d_j)_l / \|d_i - d_j\|^2`,
* free factors (Afsari 2008): :math:`E_{ij} = -e_{ij}^\top n_{ij}` with
  :math:`e_{ij} = (\|d_i\|^2 d_j - (d_i^\top d_j) d_i) / (\|d_i\|^2 \|d_j\|^2 - (d_i^\top d_j)^2)`.

Where the rank is below the size of the matrices, the directions outside their range add
:math:`\sigma \|c_j\| / \|d_j\|` each.
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
    """What noise in the matrices does to the factors of a diagonalization; small matrices, worked out on the host."""

    diagonals: np.ndarray  # (k, n), scaled by the root of the weights
    residuals: np.ndarray  # (k, k)
    factor: np.ndarray  # (d, k)
    left: np.ndarray  # b_i . b_j
    right: np.ndarray  # c_i . c_j
    orthogonal: bool
    symmetric: bool
    n: int  # matrices that count

    @classmethod
    def of(cls, fit: Diagonalization) -> NoisePropagation:
        """Collect what the formulas need."""
        diagonals = to_host(fit.diagonals).T.astype(np.float64)
        if fit.weights is not None:
            diagonals = diagonals * np.sqrt(to_host(fit.weights))
        left, right = (to_host(inverse).astype(np.float64) for inverse in (fit.inverse, fit.right_inverse))
        return cls(
            diagonals,
            to_host(fit.residuals),
            to_host(fit.factor),
            left @ left.T,
            right @ right.T,
            fit.orthogonal,
            fit.symmetric,
            fit.diagonals.shape[0] if fit.weights is None else int(np.count_nonzero(to_host(fit.weights))),
        )

    @property
    def noise(self) -> float:
        """Average what each pair says about the noise, after the parameters fitted to it are paid for."""
        k = self.diagonals.shape[0]
        freedom = self.n - (1 if self.orthogonal else 2)
        if freedom <= 0 or k < 2:
            return float("nan")
        return float(np.sqrt(np.sum(self.residuals / self._variance()) / (freedom * k * (k - 1))))

    def pair_errors(self, noise: float) -> np.ndarray:
        """Return the standard error of the share of factor i in the estimate of factor j."""
        return _scaled(noise, self._unit_standard_errors(*self._gaps()))

    def conservative_pair_errors(self, noise: float) -> np.ndarray:
        """Return the same with the gaps freed of what noise alone may have put there, infinite where nothing is left.

        Fitting turns noise into apparent gaps: two equal components are rotated until their noise differs most. What
        noise explains is its expected energy in the difference of two diagonals, and four standard deviations of it.
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
        """Return the root mean square of the distance of each factor from the truth."""
        d, k = self.factor.shape
        outside = (d - k) * np.diag(self.right) / self._energy()
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.orthogonal:
                inside = np.sum(self._unit_standard_errors(*self._gaps()) ** 2, axis=0)
            else:
                inside = self._correlated_variances()
        known = np.isfinite(inside)  # not where a pair has no gap at all
        errors = noise * np.sqrt(np.where(known, inside, 0) + outside)
        return np.where(known | np.isnan(errors), errors, np.inf)

    def _correlated_variances(self) -> np.ndarray:
        """Sum the variances along factors that are not orthogonal, keeping the covariance of the E_ij of one column."""
        scale = float(np.max(np.abs(self.diagonals)))  # fourth powers of the diagonals may overflow
        diagonals, gram = self.diagonals / scale, self.factor.T @ self.factor
        energy, products = np.sum(diagonals**2, axis=1), diagonals @ diagonals.T
        minus, plus = self._gaps()
        np.fill_diagonal(minus, 1)  # the pair (j, j) is masked below
        np.fill_diagonal(plus, 1)
        inside = np.empty(energy.size)
        for j in range(energy.size):
            gap = minus[:, j] * plus[:, j] / 4
            own = 1 / (energy[j] * gap)
            other = products[:, j] / (energy * energy[j] * gap)
            own[j] = other[j] = 0
            mixed = np.outer(own, other * products[:, j])
            shape = np.outer(own, own) * energy[j] - mixed - mixed.T + np.outer(other, other) * products
            noise = self.left * self.right[j, j]
            if self.symmetric:
                noise = noise + np.outer(self.left[j], self.left[j])
            inside[j] = np.sum(shape * noise * (gram - np.outer(gram[j], gram[j])))
        return np.where(inside < 0, 0, inside) / scale / scale

    def _energy(self) -> np.ndarray:
        energy: np.ndarray = np.sum(self.diagonals**2, axis=1)
        return energy

    def _variance(self) -> np.ndarray:
        """Return the variance of b_i^T R c_j for unit noise; a symmetric R has each entry twice."""
        variance = np.outer(np.diag(self.left), np.diag(self.right))
        return variance + self.left**2 if self.symmetric else variance

    def _gaps(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the squared distances of the diagonals to each other and to each other's negatives.

        Taken from differences, not from scalar products, so that two equal diagonals differ by rounding alone. For free
        factors the diagonals are scaled to unit norm, and a quarter of the product of the two is 1 - rho_ij^2.
        """
        rows = self.diagonals if self.orthogonal else self.diagonals / np.sqrt(self._energy())[:, None]
        minus = np.stack([np.sum((rows - row) ** 2, axis=1) for row in rows])
        plus = np.stack([np.sum((rows + row) ** 2, axis=1) for row in rows])
        return minus, plus


def _scaled(noise: float, errors: np.ndarray) -> np.ndarray:
    """Scale standard errors of unit noise; no gap at all stays infinite, even without noise."""
    return np.where(np.isinf(errors) & ~np.isnan(noise), np.inf, noise * np.where(np.isinf(errors), 0, errors))
