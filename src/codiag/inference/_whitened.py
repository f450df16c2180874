"""Standard errors of fits to tensors whose noise has a covariance in each mode that was given."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import block_diag

from codiag._arrays import to_host
from codiag.inference._sandwich import Errors
from codiag.inference._sensitivity import MOST_UNKNOWNS, Unknowns, entry_errors, inverse_of, relative_weight_errors
from codiag.least_squares import LeastSquares
from codiag.result import given_covariances, whitened

if TYPE_CHECKING:
    from codiag.result import Factorization


def whitened_errors(fit: Factorization) -> Errors | None:
    """Return the errors of a fit for the covariances that were given; None without, or if unknowns are too many."""
    covariances, weights = given_covariances(fit), to_host(fit.weights)
    if covariances is None or not fit._noise > 0 or not fit.problem.has_data or not np.all(weights):
        return None
    if sum(fit.shape) * fit.rank > MOST_UNKNOWNS:
        return None
    white, components = whitened(fit.problem, fit._components, covariances)
    objective = LeastSquares(white, components)
    unknowns = Unknowns.of(objective, components)
    spectra = [np.linalg.eigh(own) for own in covariances]
    roots = [(vectors * np.sqrt(values)) @ vectors.T for values, vectors in spectra]
    back, inverse = block_diag(*[np.kron(root, np.eye(fit.rank)) for root in roots]), inverse_of(unknowns)
    unknowns = replace(unknowns, values=(back @ unknowns.values.ravel()).reshape(unknowns.values.shape))
    covariance, null = back @ inverse.covariance @ back.T, np.linalg.qr(back @ inverse.null)[0]
    ratio = math.sqrt(objective.distance(components)) / (fit.relative_error * fit._norm)
    entries = [ratio * errors for errors in entry_errors(unknowns, covariance, null)]
    return entries, ratio * np.abs(weights) * relative_weight_errors(unknowns, covariance, null)
