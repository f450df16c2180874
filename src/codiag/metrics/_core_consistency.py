"""Whether a tensor is a sum of the components of a fit, and of no interactions between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from codiag._arrays import TensorLike, like, to_host
from codiag.least_squares import unit_components
from codiag.problem import Problem
from codiag.tensors import DenseTensor, FactoredTensor

if TYPE_CHECKING:
    from codiag.result import Factorization


def core_consistency(fit: Factorization, tensor: TensorLike) -> float:
    r"""Return how diagonal the core is that fits a tensor best in the factors of a fit, in percent.

    The Tucker core :math:`G = T \times_1 A_1^+ \times_2 A_2^+ \dots` of unit factors, the first of them times the
    weights, would have ones on its diagonal and zeros elsewhere, as :math:`I`, if components explained the tensor
    without interactions: the value is :math:`100 \, (1 - \|G - I\|^2 / k)`. Near 100 the model is appropriate; around
    50 and below, where it may be negative, there are too many components, or the tensor is no sum of components. Noise
    lowers the value where factors are collinear, however right the model.

    Parameters
    ----------
    fit : Factorization
        Of rank k.
    tensor : anything that `codiag.factorize` takes
        What was factorized. Entries that are missing, in the tensor or as the fit was told, are filled with the fit's.

    Returns
    -------
    float
        At most 100.

    See Also
    --------
    codiag.choose_rank : Uses it beside other evidence.
    codiag.Factorization.diagnose : Tells which components to trust.

    References
    ----------
    R. Bro and H. A. L. Kiers, "A new efficient method for determining the number of components in PARAFAC models",
    J. Chemometrics 17, 2003.

    Examples
    --------
    >>> import codiag
    >>> from codiag.metrics import core_consistency
    >>> from codiag.synthetic import noisy_tensor
    >>> tensor = noisy_tensor((8, 9, 10), 3, noise=0.01, seed=2).tensor
    >>> core_consistency(codiag.factorize(tensor, 3, seed=0), tensor) > 99
    True
    >>> core_consistency(codiag.factorize(tensor, 5, seed=0), tensor) < 50
    True
    """
    if not (hasattr(fit, "factors") and hasattr(fit, "problem")):
        raise TypeError(f"fit must be a Factorization, what codiag.factorize returns; got {type(fit).__name__}")
    given = None if fit.problem is None else fit.problem.observed
    if tuple(getattr(tensor, "shape", fit.shape)) != fit.shape:
        raise ValueError(f"tensor must have the shape of the fit, {fit.shape}; got {tuple(tensor.shape)}")
    problem = Problem(tensor, fit.rank, observed=given)
    if problem.tensor.shape != fit.shape:
        raise ValueError(f"tensor must have the shape of the fit, {fit.shape}; got {problem.tensor.shape}")
    return consistency_of(fit.tensor, problem)


def consistency_of(components: FactoredTensor, problem: Problem) -> float:
    """Return the core consistency of components with the tensor of a problem, holes filled."""
    components = unit_components(components)
    factors = [to_host(factor).astype(np.float64) for factor in components.factors]
    factors[0] = factors[0] * to_host(components.weights)
    tensor = problem.tensor
    if problem.entries is not None:
        entries = np.where(problem.observed_mask(), to_host(tensor.to_dense()), to_host(components.to_dense()))
        tensor = DenseTensor.of(entries, symmetric=False)
    bases = [like(np.linalg.pinv(factor).T, tensor.reference) for factor in factors]
    core = to_host(tensor.without_symmetry().compress(*bases).to_dense()).astype(np.float64)
    core[(np.arange(components.rank),) * components.order] -= 1
    return float(100 * (1 - np.sum(core**2) / components.rank))
