"""Core consistency: whether a tensor is a sum of components without interactions between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from codiag._arrays import TensorLike, asarray_like, squared_magnitudes, to_double, to_host
from codiag.least_squares import unit_components
from codiag.problem import Problem
from codiag.tensors import DenseTensor, FactoredTensor

if TYPE_CHECKING:
    from codiag.result import Factorization


def core_consistency(fit: Factorization, tensor: TensorLike) -> float:
    r"""Return the core consistency of a fit, in percent: how nearly diagonal the Tucker core of its factors is.

    With the unit factors of a fit of rank k, the first of them times the weights, the Tucker core is
    :math:`G = T \times_1 A_1^+ \times_2 A_2^+ \dots`. If the tensor is a sum of these components without interactions,
    G is the superdiagonal core I with ones on its diagonal. The value is :math:`100 \, (1 - \|G - I\|^2 / k)`. Near 100
    the model is appropriate. At 50 or less (it may be negative) there are too many components, or the tensor is not a
    sum of components. If factors are collinear, noise lowers the value even if the model is correct.

    Parameters
    ----------
    fit : Factorization
        The fit.
    tensor : anything that `codiag.factorize` takes
        The tensor that was factorized. Missing entries are replaced by those of the fit.

    Returns
    -------
    float
        At most 100.

    See Also
    --------
    codiag.choose_rank : The choice of the rank, by this and other criteria.
    codiag.Factorization.diagnose : Which components of a fit can be trusted.

    References
    ----------
    R. Bro and H. A. L. Kiers, "A new efficient method for determining the number of components in PARAFAC models",
    J. Chemometrics 17, 2003.

    Examples
    --------
    >>> import codiag
    >>> from codiag.metrics import core_consistency
    >>> from codiag.synthetic import noisy_tensor
    >>> tensor = noisy_tensor((8, 9, 10), 3, noise=0.01, rng=2).tensor
    >>> core_consistency(codiag.factorize(tensor, 3, rng=0), tensor) > 99
    True
    >>> core_consistency(codiag.factorize(tensor, 5, rng=0), tensor) < 50
    True
    """
    if not (hasattr(fit, "factors") and hasattr(fit, "problem")):
        raise TypeError(f"fit must be a Factorization, as codiag.factorize returns it; got {type(fit).__name__}")
    weights = None if not fit.problem.has_data else fit.problem.weights
    if tuple(getattr(tensor, "shape", fit.shape)) != fit.shape:
        raise ValueError(f"tensor must have the shape of the fit, {fit.shape}; got {tuple(tensor.shape)}")
    problem = Problem(tensor, fit.rank, weights=weights)
    if problem.tensor.shape != fit.shape:
        raise ValueError(f"tensor must have the shape of the fit, {fit.shape}; got {problem.tensor.shape}")
    return consistency_of(fit._components, problem)


def consistency_of(components: FactoredTensor, problem: Problem) -> float:
    """Return the core consistency of components with the tensor of a problem, missing entries filled."""
    components = unit_components(components)
    factors = [to_double(to_host(factor)) for factor in components.factors]
    factors[0] = factors[0] * to_host(components.weights)
    tensor = problem.tensor
    if problem.entries is not None:
        entries = np.where(problem.observed_mask(), to_host(tensor.to_dense()), to_host(components.to_dense()))
        tensor = DenseTensor.of(entries, symmetric=False)
    bases = [asarray_like(np.linalg.pinv(factor).T, tensor.reference) for factor in factors]
    core = to_double(to_host(tensor.compress(*bases).to_dense()))
    core[(np.arange(components.rank),) * components.order] -= 1
    return float(100 * (1 - np.sum(squared_magnitudes(core)) / components.rank))
