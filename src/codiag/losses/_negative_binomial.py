"""Overdispersed counts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import scipy

from codiag._arrays import Array, array_namespace
from codiag._checks import as_number
from codiag.losses._base import Loss
from codiag.losses._poisson import at_zero, check_counts, positive, xlogx

LEAST, MOST = 1e-6, 1e6
"""Dispersions between which one is estimated: below, counts are those of Poisson."""


@dataclass(frozen=True, eq=False)
class NegativeBinomial(Loss):
    r"""Counts of variance :math:`\mu + \alpha \mu^2`, as of genes: a Poisson count whose mean varies itself.

    The mean is the sum of components, and factors are not negative.

    Parameters
    ----------
    dispersion : float, optional
        :math:`\alpha`. By default estimated: the one at which the squares of residuals are as large as their variances
        say, in turn with the fit. ``fit.problem.loss`` has it.

    See Also
    --------
    Poisson : With a dispersion of zero.
    codiag.factorize : Takes it as ``loss=``.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> from codiag.losses import NegativeBinomial
    >>> rng = np.random.default_rng(0)
    >>> a, b, c = (rng.gamma(2.0, size=(size, 2)) for size in (12, 13, 14))
    >>> counts = NegativeBinomial(0.5).sample(np.einsum("ir,jr,kr->ijk", a, b, c), rng)
    >>> fit = codiag.factorize(counts, 2, loss=NegativeBinomial(), rng=0)
    >>> round(fit.problem.loss.dispersion, 1)
    0.5
    """

    scales_with_mean: ClassVar[bool] = True

    dispersion: float | None = None

    def __post_init__(self) -> None:
        if self.dispersion is not None:
            as_number("dispersion", self.dispersion)

    @property
    def needs_nonnegative(self) -> bool:
        return True

    @property
    def _alpha(self) -> float:
        return LEAST if self.dispersion is None else max(float(self.dispersion), LEAST)

    def value(self, data: Array, model: Array) -> Array:
        xp, alpha = array_namespace(model), self._alpha
        known = xp.where(model > 0, model, xp.ones_like(model))
        ratio = xp.log1p(alpha * (data - known) / (1 + alpha * known))
        return at_zero(xlogx(data) - data * xp.log(known) - (data + 1 / alpha) * ratio, data, model)

    def derivative(self, data: Array, model: Array) -> Array:
        return (1 - data / positive(model)) / (1 + self._alpha * model)

    def fisher_information(self, data: Array, model: Array) -> Array:
        return 1 / (positive(model) * (1 + self._alpha * model))

    def hessian_bound(self, data: Array, model: Array) -> Array:
        # The information at the mean; entries of zero, which are concave in the model, are bounded by their tangent.
        return self.fisher_information(data, model) * data / positive(model)

    def mean(self, model: Array) -> Array:
        return model

    def sample(self, model: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.poisson(model * rng.gamma(1 / self._alpha, self._alpha, size=model.shape)).astype(np.float64)

    def fit_dispersion(self, data: np.ndarray, model: np.ndarray, degrees_of_freedom: float) -> NegativeBinomial:
        if self.dispersion is not None:
            return self
        means = positive(model)
        squares = (data - model) ** 2 / means

        def excess(logarithm: float) -> float:
            return float(np.sum(squares / (1 + np.exp(logarithm) * means)) - degrees_of_freedom)

        ends = np.log(LEAST), np.log(MOST)
        if excess(ends[0]) <= 0 or excess(ends[1]) >= 0:
            return replace(self, dispersion=LEAST if excess(ends[0]) <= 0 else MOST)
        return replace(self, dispersion=float(np.exp(scipy.optimize.brentq(excess, *ends))))

    def check(self, least: float, largest: float) -> None:
        check_counts(least)
