"""Binary data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from codiag._arrays import Array, array_namespace
from codiag.losses._base import Loss
from codiag.losses._poisson import at_zero, positive, xlogx


@dataclass(frozen=True, eq=False)
class Bernoulli(Loss):
    r"""Binary entries, 1 or 0, or shares between: :math:`\ell = -x \log p - (1 - x) \log(1 - p)`.

    With the logit link the sum of components is :math:`\log(p / (1 - p))`, of any sign. With odds it is
    :math:`p / (1 - p)`, which is near p where ones are rare, and factors are non-negative. Entries must be from 0 to 1.
    If components separate ones from zeros without error, the maximum-likelihood logits are infinite, as in logistic
    regression: ``converged`` is False, and the warning names an index that holds nothing but ones or zeros, or says how
    many entries are separated. A ridge bounds them.

    Parameters
    ----------
    link : {"logit", "odds"}
        Between the probability and the sum of components.

    See Also
    --------
    Poisson : Counts.
    codiag.factorize : Takes it as ``loss="bernoulli"``.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> rng = np.random.default_rng(0)
    >>> a, b, c = (rng.standard_normal((20, 1)) for _ in range(3))
    >>> clicks = rng.random((20, 20, 20)) < 1 / (1 + np.exp(-np.einsum("ir,jr,kr->ijk", a, b, c)))
    >>> fit = codiag.factorize(clicks.astype(float), 1, loss="bernoulli", rng=0)
    >>> codiag.factor_error(fit, (a, b, c)) < 0.3
    True
    """

    link: str = "logit"

    scales_with_mean: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.link not in ("logit", "odds"):
            raise ValueError(f"link must be 'logit' or 'odds'; got {self.link!r}")

    @property
    def needs_nonnegative(self) -> bool:
        return self.link == "odds"

    @property
    def infinite_at(self) -> tuple[float, ...]:
        return (0.0, 1.0) if self.link == "logit" else (1.0,)

    def value(self, data: Array, model: Array) -> Array:
        xp = array_namespace(model)
        saturated = xlogx(data) + xlogx(1 - data)
        if self.link == "logit":
            largest = xp.where(model > 0, model, xp.zeros_like(model))
            return largest - data * model + xp.log1p(xp.exp(-xp.abs(model))) + saturated
        known = xp.where(model > 0, model, xp.ones_like(model))
        return at_zero(xp.log1p(known) - data * xp.log(known) + saturated, data, model)

    def derivative(self, data: Array, model: Array) -> Array:
        if self.link == "logit":
            return self.mean(model) - data
        return 1 / (1 + model) - data / positive(model)

    def fisher_information(self, data: Array, model: Array) -> Array:
        if self.link == "logit":
            return positive(self.mean(model) * self.mean(-model))
        return 1 / (positive(model) * (1 + model) ** 2)

    def hessian_bound(self, data: Array, model: Array) -> Array:
        if self.link == "logit":
            return self.fisher_information(data, model)
        # The second derivative where yes was observed; that of no is negative, and its tangent is an upper bound.
        return data * (1 + 2 * model) / (positive(model) * (1 + model)) ** 2

    def mean(self, model: Array) -> Array:
        xp = array_namespace(model)
        if self.link == "odds":
            return model / (1 + model)
        small = xp.exp(-xp.abs(model))
        return xp.where(model > 0, xp.ones_like(model), small) / (1 + small)

    def inverse_mean(self, mean: float) -> float:
        odds = mean / (1 - mean)
        return odds if self.link == "odds" else math.log(odds)

    def sample(self, model: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return (rng.random(model.shape) < self.mean(model)).astype(np.float64)

    def working_response(self, data: Array) -> Array:
        # The slope of the logit at one half: a step of Fisher scoring from probabilities of one half.
        return 4 * data - 2 if self.link == "logit" else data

    def check(self, least: float, largest: float) -> None:
        if least < 0 or largest > 1:
            raise ValueError(f"tensor must be from 0 to 1 for loss Bernoulli; it is from {least:g} to {largest:g}")
