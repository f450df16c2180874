"""Factors without negative entries."""

from __future__ import annotations

from dataclasses import dataclass

from array_api_compat import array_namespace

from codiag._array import Array
from codiag.constraints._base import Constraint


@dataclass(frozen=True, eq=False)
class NonNegative(Constraint):
    """No entry of the factor is negative, as of spectra, concentrations and counts.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> a = np.random.default_rng(0).random((6, 2))
    >>> fit = codiag.factorize(np.einsum("ir,jr,kr->ijk", a, a[:5], a[:4]), 2, constraints="nonnegative", seed=0)
    >>> all((factor >= 0).all() for factor in fit.factors)
    True
    """

    def project(self, factor: Array) -> Array:
        xp = array_namespace(factor)
        return xp.where(factor > 0, factor, xp.zeros_like(factor))
