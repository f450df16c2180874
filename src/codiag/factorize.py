"""The one entry point."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from codiag._array import to_host
from codiag._validation import ConvergenceWarning, as_generator, as_rank
from codiag.factorization import Factorization
from codiag.methods import METHODS, Auto, Method
from codiag.tensors import FactoredTensor, Tensor, as_tensor

ALIASES = {"ojd": "ojd1", "nojd": "nojd1"}

CANCELLING = 1e3
"""Largest weight, relative to the norm of the tensor, above which components are said to cancel each other."""


def factorize(
    tensor: Any,
    rank: int,
    *,
    method: Method | str | None = None,
    symmetric: bool | None = None,
    seed: int | np.random.Generator | None = None,
) -> Factorization:
    r"""Write a tensor as a sum of components, :math:`T \approx \sum_i w_i\, a_i \otimes b_i \otimes c_i`.

    Parameters
    ----------
    tensor : array or Tensor
        Of order three or more: a NumPy, torch or CuPy array (also mapped from a file), a COO tensor of pydata/sparse or
        pyttb, or any `codiag.tensors.Tensor`. Never modified.
    rank : int
        Number of components.
    method : Method or str, optional
        A configured object of `codiag.methods`, or the name of one: "ojd0", "ojd1", "nojd0", "nojd1", "als", "nls",
        "tpm", "lathauwer", "sd2", "givens". By default `Auto`: joint diagonalization, then least squares.
    symmetric : bool, optional
        Whether all modes share one factor. By default that is looked at for arrays, and declared by other tensors. True
        for an array that noise has made asymmetric factorizes its mean over permutations of the modes.
    seed : int or numpy.random.Generator, optional
        The same seed gives the same answer, on every device.

    Returns
    -------
    Factorization
        With ``weights, factors = fit``.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> rng = np.random.default_rng(0)
    >>> a, b, c = (rng.standard_normal((size, 4)) for size in (5, 6, 7))
    >>> fit = codiag.factorize(np.einsum("ir,jr,kr->ijk", a, b, c), 4, seed=0)
    >>> fit.weights.shape, fit.relative_error < 1e-12, codiag.factor_error(fit, (a, b, c)) < 1e-10
    ((4,), True, True)
    """
    return factorize_for(tensor, rank, method=method, symmetric=symmetric, seed=seed, stacklevel=3)


def factorize_for(
    tensor: Any, rank: int, *, method: Method | str | None, symmetric: bool | None, seed: Any, stacklevel: int
) -> Factorization:
    """Do the work of `factorize`, with warnings attributed to the caller so many frames up."""
    strategy = as_method(method)
    wrapped = as_tensor(tensor, symmetric)
    _check_rank(rank, wrapped)
    norm = math.sqrt(wrapped.squared_norm())
    if not 0 < norm < math.inf:
        raise ValueError(f"tensor must not be all zero, and finite; the norm of {wrapped!r} is {norm:g}")
    safe = 1e40 if wrapped.reference.dtype == array_namespace(wrapped.reference).float64 else 1e6
    scale = 1.0 if 1 / safe < norm < safe else norm  # powers of the entries are to be numbers, too
    estimate = strategy.fit(wrapped if scale == 1 else wrapped * (1 / scale), int(rank), as_generator(seed, apart=True))
    if scale != 1:
        found = estimate.components
        estimate = estimate._replace(components=FactoredTensor(found.weights * scale, found.factors))
    fit = Factorization.of(estimate, wrapped)
    _warn(fit, strategy, wrapped, stacklevel)
    return fit


def _warn(fit: Factorization, strategy: Method, tensor: Tensor, stacklevel: int) -> None:
    largest = float(np.max(np.abs(to_host(fit.weights))))
    if largest > CANCELLING * fit.norm:
        warnings.warn(
            f"components cancel each other: the largest weight is {largest:.2g}, that of {tensor!r} {fit.norm:.2g}; "
            f"there may be no best fit with rank {fit.rank}, try a lower one",
            ConvergenceWarning,
            stacklevel=stacklevel + 1,
        )
    elif not fit.converged:
        sweeps = sum(stage.sweeps for stage in fit.stages)
        warnings.warn(
            f"{type(strategy).__name__} did not converge in {sweeps} sweeps on {tensor!r} with rank {fit.rank}; "
            f"the best fit is returned, relative error {fit.relative_error:.3g}. A lower rank may be easier to find",
            ConvergenceWarning,
            stacklevel=stacklevel + 1,
        )


def as_method(method: object) -> Method:
    """Return a method as it is, or the one that has this name."""
    if method is None:
        return Auto()
    if isinstance(method, Method):
        return method
    if isinstance(method, str):
        name = ALIASES.get(method.lower(), method.lower())
        if name in METHODS:
            return METHODS[name]
        raise ValueError(f"method must be one of {', '.join(METHODS)}, or an object of codiag.methods; got {method!r}")
    hint = "; did you forget the parentheses?" if isinstance(method, type) else ""
    raise TypeError(f"method must be a name or an object of codiag.methods, like NLS(); got {method!r}{hint}")


def _check_rank(rank: object, tensor: Tensor) -> None:
    """Raise unless the rank is one that some tensor of this shape can need."""
    if rank is None:
        raise TypeError("rank must be an integer; got None")
    as_rank(rank)  # type: ignore[arg-type]
    limit = 1
    for size in sorted(tensor.shape)[:-1]:
        limit *= size
    if rank > limit:  # type: ignore[operator]
        raise ValueError(
            f"rank must be at most {limit}, which is enough for every tensor of shape {tensor.shape}; got {rank}"
        )
