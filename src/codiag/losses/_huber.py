"""Entries some of which are far off."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from codiag._arrays import Array, array_namespace, to_host
from codiag._checks import as_number
from codiag.losses._base import Loss

EFFICIENT, NORMAL_MEDIAN = 1.345, 0.6745
"""Scale, in standard deviations, at which errors under Gaussian noise are those of least squares over 0.95 (Huber
1964), and the median absolute deviation of a normal variable."""


@dataclass(frozen=True, eq=False)
class Huber(Loss):
    r"""Least squares for residuals up to a scale, least absolute deviations beyond it: :math:`c |r| - c^2 / 2`.

    An outlier pulls no more than an entry at the scale. Factors are free. Standard
    errors are those of M-estimators: the variance of the clipped residual over the squared share of entries within the
    scale.

    Parameters
    ----------
    scale : float, optional
        :math:`c`. By default 1.345 standard deviations, estimated from the median absolute residual, in turn with the
        fit; ``fit.problem.loss`` has it.

    See Also
    --------
    Gaussian : Plain least squares.
    codiag.factorize : Takes it as ``loss="huber"``.

    References
    ----------
    P. J. Huber, "Robust estimation of a location parameter", Ann. Math. Statist. 35(1), 1964.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> planted = codiag.synthetic.noisy_tensor((12, 13, 14), 2, noise=0.01, rng=0)
    >>> spoiled = planted.tensor.copy()
    >>> spoiled[0, 0, :3] += 100.0
    >>> fit = codiag.factorize(spoiled, 2, loss="huber", rng=0)
    >>> codiag.factor_error(fit, planted) < 0.02
    True
    """

    fixed_dispersion: ClassVar[bool] = False

    scale: float | None = None

    def __post_init__(self) -> None:
        if self.scale is not None:
            as_number("scale", self.scale)

    @property
    def _scale(self) -> float:
        return float("inf") if self.scale is None else float(self.scale)

    def value(self, data: Array, model: Array) -> Array:
        xp = array_namespace(model)
        gap = xp.abs(model - data)
        near = xp.clip(gap, max=self._scale) if self.scale is not None else gap
        return near * (gap - near / 2)

    def derivative(self, data: Array, model: Array) -> Array:
        gap = model - data
        return gap if self.scale is None else array_namespace(model).clip(gap, -self._scale, self._scale)

    def fisher_information(self, data: Array, model: Array) -> Array:
        xp = array_namespace(model)
        near = xp.astype(xp.abs(model - data) <= self._scale, model.dtype)
        n_known = float(xp.sum(xp.astype(data == data, model.dtype)))
        return xp.full_like(model, max(float(xp.sum(near)), 1.0) / max(n_known, 1.0))

    def hessian_bound(self, data: Array, model: Array) -> Array:
        xp = array_namespace(model)
        gap = xp.abs(model - data)
        if self.scale is None:
            return xp.ones_like(model)
        return self._scale / xp.where(gap > self._scale, gap, xp.full_like(gap, self._scale))

    def working_response(self, data: Array) -> Array:
        """Return entries of at most three deviations of a normal distribution that has their median size."""
        xp, sizes = array_namespace(data), np.abs(to_host(data))
        largest = 3.0 * float(np.median(sizes[np.isfinite(sizes)])) / NORMAL_MEDIAN
        return xp.clip(data, -largest, largest) if largest > 0 else data

    def mean(self, model: Array) -> Array:
        return model

    def sample(self, model: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return model + self._scale / EFFICIENT * rng.standard_normal(model.shape)

    def fit_dispersion(self, data: np.ndarray, model: np.ndarray, degrees_of_freedom: float) -> Huber:
        if self.scale is not None:
            return self
        spread = float(np.median(np.abs(data - model))) / NORMAL_MEDIAN
        deviation = spread * np.sqrt(data.size / max(degrees_of_freedom, 1.0))
        return replace(self, scale=EFFICIENT * float(deviation)) if deviation > 0 else self
