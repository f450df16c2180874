"""The one entry point."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from codiag._validation import ConvergenceWarning, as_rank
from codiag.factorization import Factorization
from codiag.methods import METHODS, Auto, Method
from codiag.tensors import Tensor, as_tensor


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
        A configured object of `codiag.methods`, or the name of one: "ojd0", "ojd1", "nojd0", "nojd1", "als", "nls".
        By default `Auto`: joint diagonalization, then least squares.
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
    strategy = as_method(method)
    wrapped = as_tensor(tensor, symmetric)
    _check_rank(rank, wrapped)
    if wrapped.squared_norm() == 0:
        raise ValueError(f"tensor must not be all zero, since zero has no components; got {wrapped!r}")
    estimate = strategy.fit(wrapped, int(rank), _generator(seed))
    fit = Factorization.of(estimate, wrapped)
    if not fit.converged:
        sweeps = sum(stage.sweeps for stage in fit.stages)
        warnings.warn(
            f"{type(strategy).__name__} did not converge in {sweeps} sweeps on {wrapped!r} with rank {rank}; "
            f"the best fit is returned, relative error {fit.relative_error:.3g}",
            ConvergenceWarning,
            stacklevel=2,
        )
    return fit


def _generator(seed: int | np.random.Generator | None) -> np.random.Generator:
    """Return a generator apart from ``default_rng(seed)``, which may have made the tensor: a start must not be it."""
    if seed is None or isinstance(seed, np.random.Generator):
        return np.random.default_rng(seed)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))


def as_method(method: object) -> Method:
    """Return a method as it is, or the one that has this name."""
    if method is None:
        return Auto()
    if isinstance(method, Method):
        return method
    if isinstance(method, str):
        if method.lower() in METHODS:
            return METHODS[method.lower()]
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
