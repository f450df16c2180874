"""Counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from codiag._arrays import Array, array_namespace
from codiag.losses._base import Loss


@dataclass(frozen=True, eq=False)
class Poisson(Loss):
    r"""Counts, whose variance is their mean: :math:`\ell = \mu - x + x \log(x / \mu)`, half the deviance.

    With the identity link, which the field calls Poisson tensor factorization or CP-APR, the mean is the sum of
    components, :math:`\mu = \eta`, and factors are non-negative. With the log link :math:`\mu = e^\eta`: components
    multiply, and factors have any sign. Entries must be non-negative; they need not be integers. With the identity link
    a step over a sparse tensor costs a pass over the entries that are listed. If counts are overdispersed,
    `codiag.Factorization.standard_errors` are scaled by the dispersion.

    Parameters
    ----------
    link : {"identity", "log"}
        Between the mean and the sum of components.

    See Also
    --------
    NegativeBinomial : If the variance grows faster than the mean.
    codiag.factorize : Takes it as ``loss="poisson"``.

    References
    ----------
    E. C. Chi and T. G. Kolda, "On tensors, sparsity, and nonnegative factorizations", SIAM J. Matrix Anal. Appl. 33(4),
    2012. D. Hong, T. G. Kolda and J. A. Duersch, "Generalized canonical polyadic tensor decomposition", SIAM Rev.
    62(1), 2020.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> rng = np.random.default_rng(0)
    >>> a, b, c = (rng.gamma(1.0, size=(size, 2)) for size in (12, 13, 14))
    >>> counts = rng.poisson(5 * np.einsum("ir,jr,kr->ijk", a, b, c))
    >>> fit = codiag.factorize(counts, 2, loss="poisson", rng=0)
    >>> codiag.factor_error(fit, (a, b, c)) < 0.05
    True
    """

    scales_with_mean: ClassVar[bool] = True

    link: str = "identity"

    def __post_init__(self) -> None:
        if self.link not in ("identity", "log"):
            raise ValueError(f"link must be 'identity' or 'log'; got {self.link!r}")

    @property
    def needs_nonnegative(self) -> bool:
        return self.link == "identity"

    @property
    def zero_gradient(self) -> float | None:  # type: ignore[override]
        return 1.0 if self.link == "identity" else None

    @property
    def infinite_at(self) -> tuple[float, ...]:
        return (0.0,) if self.link == "log" else ()

    def value(self, data: Array, model: Array) -> Array:
        xp = array_namespace(model)
        if self.link == "log":
            return self.mean(model) - data * model - data + xlogx(data)
        known = xp.where(model > 0, model, xp.ones_like(model))
        value = known - data + xlogx(data) - data * xp.log(known)
        return at_zero(value, data, model)

    def derivative(self, data: Array, model: Array) -> Array:
        return self.mean(model) - data if self.link == "log" else 1 - data / positive(model)

    def fisher_information(self, data: Array, model: Array) -> Array:
        return self.mean(model) if self.link == "log" else 1 / positive(model)

    def hessian_bound(self, data: Array, model: Array) -> Array:
        return self.fisher_information(data, model) if self.link == "log" else data / positive(model) ** 2

    def mean(self, model: Array) -> Array:
        if self.link == "identity":
            return model
        xp = array_namespace(model)
        most = math.log(float(xp.finfo(model.dtype).max)) / 2  # steps that go further are refused, without overflow
        return xp.exp(xp.clip(model, max=most))

    def inverse_mean(self, mean: float) -> float:
        return math.log(mean) if self.link == "log" else mean

    def sample(self, model: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.asarray(rng.poisson(self.mean(model)), dtype=np.float64)

    def working_response(self, data: Array) -> Array:
        return data if self.link == "identity" else array_namespace(data).log(data + 0.5)

    def check(self, least: float, largest: float) -> None:
        check_counts(least)


def check_counts(least: float) -> None:
    """Raise if entries are no counts."""
    if least < 0:
        raise ValueError(f"tensor must not be negative for counts; its least entry is {least:g}")


def xlogx(data: Array) -> Array:
    """Return x log x, which is 0 at 0."""
    xp = array_namespace(data)
    return data * xp.log(xp.where(data > 0, data, xp.ones_like(data)))


def positive(model: Array) -> Array:
    """Return a model that can be divided by: the smallest positive numbers in place of zeros."""
    xp = array_namespace(model)
    tiny = float(xp.finfo(model.dtype).smallest_normal) ** 0.5
    return xp.where(model > tiny, model, xp.full_like(model, tiny))


def at_zero(value: Array, data: Array, model: Array) -> Array:
    """Return values, for models of zero those of the limit: infinite, or zero where the entry is zero, too."""
    xp = array_namespace(model)
    limit = xp.where(data > 0, xp.full_like(model, float("inf")), xp.zeros_like(model))
    return xp.where(model > 0, value, limit)
