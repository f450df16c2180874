"""Fits as objects of other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codiag._arrays import array_namespace, to_host

if TYPE_CHECKING:
    from codiag.result import Factorization


def to_tensorly(fit: Factorization) -> Any:
    """Convert a fit to TensorLy, with copies, so that changing one mode leaves the others.

    Parameters
    ----------
    fit : Factorization
        The fit.

    Returns
    -------
    tensorly.cp_tensor.CPTensor
        Weights and factors, in the arrays of the fit.

    See Also
    --------
    to_pyttb : For pyttb.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> from codiag.io import to_tensorly
    >>> to_tensorly(codiag.factorize(np.ones((3, 4, 5)), 1, rng=0)).rank
    1
    """
    from tensorly.cp_tensor import CPTensor

    weights, *factors = (array_namespace(array).asarray(array, copy=True) for array in (fit.weights, *fit.factors))
    return CPTensor((weights, factors))


def to_pyttb(fit: Factorization) -> Any:
    """Convert a fit to pyttb, with copies in double precision, the only one that pyttb knows.

    Parameters
    ----------
    fit : Factorization
        The fit.

    Returns
    -------
    pyttb.ktensor
        Weights and factors.

    See Also
    --------
    to_tensorly : For TensorLy.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> from codiag.io import to_pyttb
    >>> to_pyttb(codiag.factorize(np.ones((3, 4, 5)), 1, rng=0)).ncomponents
    1
    """
    from pyttb import ktensor

    return ktensor([to_host(factor).astype(float) for factor in fit.factors], to_host(fit.weights).astype(float))
