"""``parafac2`` and ``Parafac2`` of TensorLy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj

from codiag._arrays import asarray_like, to_host
from codiag._checks import ConvergenceWarning, as_rank, check_rng
from codiag._parafac2 import Factors, Parafac2Fit, Slices, fitted
from codiag.drop_in._tensorly import Decomposition


def parafac2(
    tensor_slices: Any,
    rank: int,
    n_iter_max: int = 2000,
    init: Any = "random",
    svd: str = "truncated_svd",
    normalize_factors: bool = False,
    tol: float = 1.0e-8,
    nn_modes: Any = None,
    random_state: Any = None,
    verbose: bool | int = False,
    return_errors: bool = False,
    n_iter_parafac: int = 5,
    linesearch: bool = True,
    mask: Any = None,
) -> Any:
    """Do what ``tensorly.decomposition.parafac2`` does, with its arguments in its order.

    Parameters
    ----------
    tensor_slices : array of order three, or list of matrices
        Slices with the same columns.
    rank : int
        Number of components.
    n_iter_max : int
        Accepted and ignored: steps end at a minimum.
    init : {"svd", "random"}, Parafac2Tensor, or (weights, factors, projections)
        A given start replaces the search of codiag, which "svd" and "random" both stand for.
    svd : str
        Accepted and ignored.
    normalize_factors : bool
        Whether columns have unit norm; otherwise weights are one, and A is multiplied by them.
    tol : float
        Errors that are closer to the last one are not returned.
    nn_modes : None, "all" or sequence of int
        Modes without negative entries: 0 and 2. Mode 1 is ignored with a warning: evolving factors have both signs.
    random_state : None, int, RandomState or Generator
        Source of random starts.
    verbose : int or bool
        Whether to print the relative error after every step.
    return_errors : bool
        Whether to return also the relative errors after the steps that led to the minimum.
    n_iter_parafac : int
        Accepted and ignored: a detail of alternating least squares.
    linesearch : bool
        Accepted and ignored: a detail of alternating least squares.
    mask : array in the shape of the tensor, or list of arrays, optional
        One where an entry was observed, else zero.

    Returns
    -------
    Parafac2Tensor or tuple
        TensorLy's class if it is installed, else (weights, factors, projections). With `return_errors`, a pair of it
        and a list.

    See Also
    --------
    codiag.parafac2 : With error bars and a diagnosis.
    Parafac2 : The same as a class.

    Examples
    --------
    >>> import codiag
    >>> from codiag.drop_in import parafac2
    >>> slices = codiag.synthetic.parafac2_slices((9,) * 5, 6, 2, rng=0).slices
    >>> weights, (a, b, c), projections = parafac2(slices, rank=2, random_state=0)
    >>> a.shape, b.shape, c.shape, len(projections)
    ((5, 2), (2, 2), (6, 2), 5)
    """
    del n_iter_max, svd, n_iter_parafac, linesearch  # of alternating least squares
    check_rng("random_state", random_state)
    data = Slices.of(tensor_slices, None if mask is None else [to_host(one) > 0 for one in mask])
    n_components = as_rank(rank)
    if n_components is None or n_components > data.width:
        raise ValueError(f"rank must be at most {data.width}, the number of columns; got {rank}")
    modes = {0, 1, 2} if nn_modes == "all" else set(nn_modes or ())
    if 1 in modes:
        warnings.warn("mode 1 cannot be non-negative: the evolving factors keep their signs", UserWarning, stacklevel=2)
    rules: Any = dict.fromkeys(sorted(modes - {1}), "nonnegative") or None
    fit = fitted(data, n_components, rules, random_state, _start_of(init))
    if not fit.converged:
        warnings.warn("PARAFAC2 did not converge", ConvergenceWarning, stacklevel=2)
    errors = _errors_of(fit, tol)
    if verbose:
        for number, error in enumerate(errors):
            print(f"iteration {number}, relative error: {error}")  # noqa: T201
    found = _as_tensorly(fit, tensor_slices[0], normalize=bool(normalize_factors))
    return (found, errors) if return_errors else found


def _start_of(init: Any) -> Factors | None:
    """Return the factors of a given start."""
    if isinstance(init, str):
        if init not in ("svd", "random"):
            raise ValueError(f"init must be 'svd', 'random' or a Parafac2Tensor; got {init!r}")
        return None
    weights, factors = init[0], [np.asarray(to_host(factor), dtype=float) for factor in init[1]]
    return Factors(factors[0] * (1.0 if weights is None else to_host(weights)), factors[1], factors[2])


def _errors_of(fit: Parafac2Fit, tol: float | None) -> list[float]:
    """Return relative errors after every step, up to the first that differs from the last by less than `tol`."""
    last, near = fit.relative_error, fit.relative_error + (tol or 0.0)
    before = [error for error in fit._errors if error > near]
    first = next((error for error in fit._errors if last <= error <= near), last)
    return [*before, first, last]


def _as_tensorly(fit: Parafac2Fit, reference: Any, *, normalize: bool) -> Any:
    """Return a fit in TensorLy's form, in the library of a slice."""
    a, b, c = fit.factors
    parts = [fit.weights, a, b, c] if normalize else [np.ones(fit.rank), a * fit.weights, b, c]
    if is_array_api_obj(reference) and not isinstance(reference, np.ndarray):
        parts, bases = ([asarray_like(one, reference) for one in many] for many in (parts, fit.projections))
    else:
        bases = list(fit.projections)
    whole = (parts[0], parts[1:], bases)
    try:
        from tensorly.parafac2_tensor import Parafac2Tensor
    except ModuleNotFoundError:
        return whole
    return Parafac2Tensor(whole)


class Parafac2(Decomposition):
    """Do what ``tensorly.decomposition.Parafac2`` does: `parafac2` as an object that stores its arguments.

    Parameters
    ----------
    rank, n_iter_max, init, svd, normalize_factors, tol, nn_modes : as in `parafac2`
        Arguments of the function.
    random_state, verbose, return_errors, n_iter_parafac, linesearch, mask : as in `parafac2`
        Arguments of the function.

    Attributes
    ----------
    decomposition_ : Parafac2Tensor or tuple
        What `parafac2` returns.
    errors_ : list of float
        Relative errors.

    See Also
    --------
    parafac2 : The function.
    codiag.models.Parafac2 : An estimator of scikit-learn.

    Examples
    --------
    >>> import codiag
    >>> from codiag.drop_in import Parafac2
    >>> slices = codiag.synthetic.parafac2_slices((9,) * 5, 6, 2, rng=0).slices
    >>> weights, factors, projections = Parafac2(2, random_state=0).fit_transform(slices)
    >>> [factor.shape for factor in factors]
    [(5, 2), (2, 2), (6, 2)]
    """

    function = staticmethod(parafac2)
    order = ("rank", "n_iter_max", "init", "svd", "normalize_factors", "tol", "nn_modes", "random_state", "verbose",
             "return_errors", "n_iter_parafac", "linesearch", "mask")  # fmt: skip

    def __repr__(self) -> str:
        return f"Rank-{self.rank} PARAFAC2 decomposition."


Parafac2.__signature__ = Parafac2.__signature__.replace(  # as in TensorLy, whose class has another default
    parameters=[
        one.replace(default=False) if one.name == "linesearch" else one
        for one in Parafac2.__signature__.parameters.values()
    ]
)
