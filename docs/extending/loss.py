r"""A loss of your own, in one file: waiting times, whose deviation is their mean.

**What is known.** Times until something happens, energies of noise in a band, the brightness of speckle: entries are
positive, and scatter as much as they are large. They are exponential: an entry of mean :math:`\mu` has the variance
:math:`\mu^2`. Least squares fits the largest entries alone.

**Step 1: five methods.** A subclass of `codiag.extending.Loss` says, entry by entry, how far an entry :math:`x` is from
the sum of components :math:`\mu`. ``value`` is half the deviance, :math:`\log(\mu / x) + x / \mu - 1`, which is zero
where both are equal; ``derivative`` is its derivative by :math:`\mu`, and ``fisher_information`` the expectation of the
second, :math:`1 / \mu^2`. ``mean`` is the mean of entries, here the sum itself, and ``sample`` draws them.

**Step 2: what the model must be.** ``needs_nonnegative`` says that the sum must not be negative: factors are then not
negative, unless constraints are given. ``scales_with_mean`` says that large entries have a larger variance, so that
starts by least squares divide each row by the root of its mean. ``check`` refuses entries that cannot be waiting times.

**What follows without further work.** Steps are those of Fisher scoring, with the information as weights of entries:
damped, so that the deviance never rises, with missing entries, weights and constraints. Standard errors and
intervals come from the information, times the dispersion that is measured; ``fit.deviance``, ``fit.transform``,
``choose_rank`` and ``diagnose`` use the loss, too.

**How it is tested.** One line in ``LOSSES`` of ``tests/cases.py`` runs every law of losses on it: derivatives are those
of values, draws have the mean and the information that are stated, and steps never go up.

Run this file to see what the loss gains: ``python docs/extending/loss.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace

import codiag
from codiag.extending import Loss


@dataclass(frozen=True, eq=False)
class Exponential(Loss):
    """Waiting times, whose standard deviation is their mean.

    Examples
    --------
    >>> import numpy as np
    >>> Exponential().value(np.array([2.0]), np.array([2.0])).tolist()
    [0.0]
    """

    scales_with_mean: ClassVar[bool] = True

    @property
    def needs_nonnegative(self) -> bool:
        return True

    def value(self, data: Any, model: Any) -> Any:
        xp = array_namespace(model)
        known = xp.where(model > 0, model, xp.ones_like(model))
        positive = xp.where(data > 0, data, xp.ones_like(data))  # missing entries may be anything
        value = xp.log(known / positive) + data / known - 1
        return xp.where(model > 0, value, xp.full_like(model, float("inf")))

    def derivative(self, data: Any, model: Any) -> Any:
        known = self._positive(model)
        return (known - data) / known**2

    def fisher_information(self, data: Any, model: Any) -> Any:
        return 1 / self._positive(model) ** 2

    def mean(self, model: Any) -> Any:
        return model

    def sample(self, model: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.exponential(model)

    def check(self, least: float, largest: float) -> None:
        if least <= 0:
            raise ValueError(f"tensor must be positive for waiting times; its least entry is {least:g}")

    def _positive(self, model: Any) -> Any:
        xp = array_namespace(model)
        return xp.where(model > 0, model, xp.ones_like(model))


def main() -> tuple[float, float]:
    """Factorize waiting times by least squares and by their own loss; return the two errors of the factors."""
    rng = np.random.default_rng(0)
    factors = [rng.gamma(2.0, size=(size, 3)) for size in (20, 25, 30)]
    times = Exponential().sample(np.einsum("ir,jr,kr->ijk", *factors), rng)
    plain = codiag.factorize(times, 3, constraints="nonnegative", rng=0)
    fit = codiag.factorize(times, 3, loss=Exponential(), rng=0)
    errors = codiag.factor_error(plain, factors), codiag.factor_error(fit, factors)
    print("loss             error of the factors   standard errors   dispersion")
    print(f"least squares{errors[0]:24.4f}{np.mean(plain.standard_errors):18.4f}")
    print(f"exponential{errors[1]:26.4f}{np.mean(fit.standard_errors):18.4f}{fit.deviance.dispersion:13.2f}")
    return errors


if __name__ == "__main__":
    main()
