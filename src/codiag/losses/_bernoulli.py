"""Binary data."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from codiag._arrays import Array, array_namespace
from codiag.losses._base import Loss
from codiag.losses._poisson import at_zero, positive, xlogx


@dataclass(frozen=True, eq=False)
class Bernoulli(Loss):
    r"""Binary entries, 1 or 0, or shares between: :math:`\ell = -x \log p - (1 - x) \log(1 - p)`.

    With the logit link the sum of components is :math:`\log(p / (1 - p))`, of any sign. With odds it is
    :math:`p / (1 - p)`, which is near p where ones are rare, and factors are non-negative. Entries must be from 0 to 1.
    With rates it is :math:`-\log(1 - p)`, as if 1 said that at least one event of a Poisson distribution was seen;
    factors are non-negative, too. The loss of a zero is then the model itself, so that only the ones of a sparse tensor
    are visited. If components separate ones from zeros without error, the maximum-likelihood logits are infinite, as in
    logistic regression: ``converged`` is False, and the warning names an index that holds nothing but ones or zeros, or
    says how many entries are separated. A ridge bounds them.

    Parameters
    ----------
    link : {"logit", "odds", "rate"}
        Between the probability and the sum of components. The name ``loss="bernoulli"`` stands for logits, and for
        rates if a sparse tensor is too large to be filled with its zeros.

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

    def __post_init__(self) -> None:
        if self.link not in ("logit", "odds", "rate"):
            raise ValueError(f"link must be 'logit', 'odds' or 'rate'; got {self.link!r}")

    @property
    def needs_nonnegative(self) -> bool:
        return self.link != "logit"

    @property
    def scales_with_mean(self) -> bool:  # type: ignore[override]
        return self.link == "rate"

    @property
    def zero_gradient(self) -> float | None:  # type: ignore[override]
        return 1.0 if self.link == "rate" else None

    def for_unlisted_zeros(self) -> Loss:
        return Bernoulli("rate")

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
        if self.link == "rate":
            return at_zero((1 - data) * known - data * xp.log(-xp.expm1(-known)) + saturated, data, model)
        return at_zero(xp.log1p(known) - data * xp.log(known) + saturated, data, model)

    def derivative(self, data: Array, model: Array) -> Array:
        if self.link == "logit":
            return self.mean(model) - data
        if self.link == "rate":
            return 1 - data / self.mean(positive(model))
        return 1 / (1 + model) - data / positive(model)

    def fisher_information(self, data: Array, model: Array) -> Array:
        if self.link == "logit":
            return positive(self.mean(model) * self.mean(-model))
        if self.link == "rate":
            return (1 - self.mean(model)) / self.mean(positive(model))
        return 1 / (positive(model) * (1 + model) ** 2)

    def hessian_bound(self, data: Array, model: Array) -> Array:
        if self.link == "logit":
            return self.fisher_information(data, model)
        if self.link == "rate":
            return data * (1 - self.mean(model)) / self.mean(positive(model)) ** 2
        # The second derivative where yes was observed; that of no is negative, and its tangent is an upper bound.
        return data * (1 + 2 * model) / (positive(model) * (1 + model)) ** 2

    def mean(self, model: Array) -> Array:
        xp = array_namespace(model)
        if self.link == "odds":
            return model / (1 + model)
        if self.link == "rate":
            return -xp.expm1(-model)
        small = xp.exp(-xp.abs(model))
        return xp.where(model > 0, xp.ones_like(model), small) / (1 + small)

    def inverse_mean(self, mean: float) -> float:
        if self.link == "rate":
            return -math.log1p(-mean)
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
