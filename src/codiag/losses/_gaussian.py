"""Gaussian noise, white or with a covariance for each mode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from codiag._arrays import Array, array_namespace
from codiag.losses._base import Loss

ASYMMETRIC = 1e-8
"""Asymmetry of a covariance, relative to its largest entry, beyond rounding."""


@dataclass(frozen=True, eq=False)
class Gaussian(Loss):
    r"""Least squares, for Gaussian noise that is white, or whose variances and correlations differ.

    With covariances :math:`C_m` of the modes, the tensor times :math:`C_m^{-1/2}` in every mode has white noise and
    components :math:`C_m^{-1/2} a`: it is fitted, and its factors are transformed back (maximum-likelihood PARAFAC).
    Variances that are estimated become weights of entries, :math:`1 / \sigma^2`. Standard errors are those of these
    fits. The tensor must be complete, without constraints or shared factors. In simulations, errors of factors fall by
    two fifths if noise is proportional to the signal or samples differ in noise, by a sixth for counts, and not at all
    if noise is white, or smooth along a mode.

    Parameters
    ----------
    covariance : None, "modes", or sequence with one for each mode
        None for white noise. "modes" estimates variances by the size of the fit and by the index in each mode, from the
        residual of plain least squares and then of the weighted fit; correlations are left to the error bars. Given
        ones are arrays of shape (d_m, d_m), or of variances (d_m,), or None for the identity.

    See Also
    --------
    codiag.factorize : Takes it as ``loss=``.
    codiag.Factorization.noise_model : What the residual shows.

    References
    ----------
    L. Vega-Montoto and P. D. Wentzell, "Maximum likelihood parallel factor analysis (MLPARAFAC)", J. Chemom. 17(4),
    2003.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> from codiag.losses import Gaussian
    >>> clean = codiag.synthetic.noisy_tensor((9, 8, 7), 2, rng=0).tensor
    >>> deviations = np.linspace(0.001, 0.01, 9)
    >>> noise = deviations[:, None, None] * np.random.default_rng(0).standard_normal((9, 8, 7))
    >>> fit = codiag.factorize(clean + noise, 2, loss=Gaussian([deviations**2, None, None]), rng=0)
    >>> fit.rank
    2
    """

    fixed_dispersion: ClassVar[bool] = False

    covariance: str | Sequence[np.ndarray | None] | None = None

    def __post_init__(self) -> None:
        given = self.covariance
        if given is None or (isinstance(given, str) and given == "modes"):
            return
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise TypeError(f"covariance must be None, 'modes' or a sequence with one for each mode; got {given!r}")

    @property
    def has_covariance(self) -> bool:
        return self.covariance is not None

    def value(self, data: Array, model: Array) -> Array:
        return (model - data) ** 2 / 2

    def derivative(self, data: Array, model: Array) -> Array:
        return model - data

    def fisher_information(self, data: Array, model: Array) -> Array:
        return array_namespace(model).ones_like(model)

    def mean(self, model: Array) -> Array:
        return model

    def sample(self, model: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return model + rng.standard_normal(model.shape)

    def covariances(self, shape: tuple[int, ...]) -> list[np.ndarray] | None:
        """Return the given covariances, checked against the shape of a tensor; None if they are to be estimated.

        Parameters
        ----------
        shape : tuple of int
            Of the tensor.

        Returns
        -------
        list of arrays of shape (d_m, d_m), or None
            One for each mode.

        Examples
        --------
        >>> from codiag.losses import Gaussian
        >>> Gaussian([None, [1.0, 4.0], None]).covariances((1, 2, 1))[1].tolist()
        [[1.0, 0.0], [0.0, 4.0]]
        """
        if self.covariance is None or isinstance(self.covariance, str):
            return None
        if len(self.covariance) != len(shape):
            raise ValueError(f"covariance must have one for each of {len(shape)} modes; got {len(self.covariance)}")
        pairs = enumerate(zip(self.covariance, shape, strict=True))
        return [_checked(given, size, mode) for mode, (given, size) in pairs]


def _checked(given: np.ndarray | None, size: int, mode: int) -> np.ndarray:
    """Return a covariance as a matrix, or raise if it is none."""
    if given is None:
        return np.eye(size)
    matrix = np.asarray(given, dtype=np.float64)
    matrix = np.diag(matrix) if matrix.ndim == 1 else matrix
    if matrix.shape != (size, size):
        allowed = f"({size},) or ({size}, {size})"
        raise ValueError(f"covariance must be of shape {allowed} for mode {mode}; got {matrix.shape}")
    largest = float(np.max(np.abs(matrix)))
    is_symmetric = np.isfinite(largest) and np.max(np.abs(matrix - matrix.T)) <= ASYMMETRIC * largest
    if not is_symmetric or np.linalg.eigvalsh(matrix)[0] <= 0:
        raise ValueError(f"covariance must be symmetric and positive definite for mode {mode}")
    return matrix
