"""``non_negative_parafac`` and ``non_negative_parafac_hals`` of TensorLy."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from codiag._checks import ConvergenceWarning, as_number, check_seed
from codiag.drop_in._arguments import as_mask, as_modes, as_rank, check_hints, shape_of
from codiag.drop_in._request import Request, answer


def non_negative_parafac(
    tensor: Any,
    rank: float | str,
    n_iter_max: int = 100,
    init: Any = "svd",
    svd: str = "truncated_svd",
    tol: float = 1e-6,
    random_state: Any = None,
    verbose: int | bool = 0,
    normalize_factors: bool = False,
    return_errors: bool = False,
    mask: Any = None,
    cvg_criterion: str = "abs_rec_error",
    fixed_modes: Any = None,
) -> Any:
    """Do what ``tensorly.decomposition.non_negative_parafac`` does, with its arguments in its order.

    Factors have no negative entries, and fit best among those: Gauss-Newton steps with an active set come to the
    optimum that multiplicative updates creep towards.

    Parameters
    ----------
    tensor : array of order three or more
        Its entries may be negative, as noise makes them.
    rank : int, float or "same"
        Number of components, as in `parafac`.
    n_iter_max : int
        Gauss-Newton steps; with `fixed_modes`, sweeps over the other modes.
    init : {"svd", "random"}, CPTensor, or (weights, factors)
        "svd" stands for the start that codiag finds best; the others are what they say, made non-negative.
    svd : str
        A hint, which changes nothing here.
    tol : float
        Size of the last step, relative to the factors; zero or None to take all steps.
    random_state : None, int, RandomState or Generator
        Source of the random start, where there is one.
    verbose : int or bool
        A hint, which changes nothing here; the log of codiag (``logging``) tells what it would print.
    normalize_factors : bool
        Whether columns have unit norm, with weights beside them; else weights are one and the first factor has them.
    return_errors : bool
        Whether to return the relative errors of the components, step by step, too.
    mask : array in the shape of the tensor, optional
        One or True where entries were observed, zero or False where not, as in `parafac`.
    cvg_criterion : str
        A hint, which changes nothing here.
    fixed_modes : list of int, optional
        Modes whose factors stay as they are in `init`, whatever their signs. The last mode is never fixed.

    Returns
    -------
    CPTensor or Factorization
        A ``CPTensor`` where TensorLy is installed; both unpack as ``weights, factors``. With `return_errors`, a pair of
        that and a list.

    See Also
    --------
    CP_NN : The same as a class.
    non_negative_parafac_hals : With a choice of modes.
    codiag.constraints.NonNegative : The constraint for `codiag.factorize`.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.drop_in import non_negative_parafac
    >>> weights, factors = non_negative_parafac(np.random.default_rng(0).random((3, 4, 5)), 2, random_state=0)
    >>> all((factor >= 0).all() for factor in factors)
    True
    """
    order = len(shape_of(tensor))
    check_hints(
        svd, cvg_criterion, verbose=verbose, normalize_factors=normalize_factors, return_errors=return_errors
    )  # fmt: skip
    fixed = as_modes("fixed_modes", fixed_modes or (), order)
    inner = [mode for mode in fixed if mode != order - 1]
    request = _request(tensor, rank, init, inner, range(order), random_state, n_iter_max, tol, mask)
    done = answer(request, normalize=normalize_factors)
    if order - 1 in fixed:
        warnings.warn("fixed_modes holds the last mode, which is fitted all the same", UserWarning, stacklevel=2)
    if done.complaint is not None:
        warnings.warn(done.complaint, ConvergenceWarning, stacklevel=2)
    return (done.result, done.errors) if return_errors else done.result


def non_negative_parafac_hals(
    tensor: Any,
    rank: float | str,
    n_iter_max: int = 100,
    init: Any = "svd",
    svd: str = "truncated_svd",
    tol: float = 1e-7,
    random_state: Any = None,
    sparsity_coefficients: Any = None,
    fixed_modes: Any = None,
    nn_modes: Any = "all",
    exact: bool = False,
    normalize_factors: bool = False,
    verbose: int | bool = False,
    return_errors: bool = False,
    cvg_criterion: str = "abs_rec_error",
) -> Any:
    """Do what ``tensorly.decomposition.non_negative_parafac_hals`` does, with its arguments in its order.

    Parameters
    ----------
    tensor : array of order three or more
        Entries that are NaN are missing.
    rank : int, float or "same"
        Number of components, as in `parafac`.
    n_iter_max : int
        Gauss-Newton steps; with `fixed_modes`, sweeps over the other modes.
    init : {"svd", "random"}, CPTensor, or (weights, factors)
        As in `non_negative_parafac`.
    svd : str
        A hint, which changes nothing here.
    tol : float
        Size of the last step, relative to the factors; zero or None to take all steps.
    random_state : None, int, RandomState or Generator
        Source of the random start, where there is one.
    sparsity_coefficients : None, or sequence of None
        Not supported: anything else raises.
    fixed_modes : list of int, optional
        Modes whose factors stay as they are in `init`; the last may be among them, if one is left.
    nn_modes : "all", None, or sequence of int
        Modes whose factors have no negative entries.
    exact : bool
        A hint, which changes nothing here: solutions are exact.
    normalize_factors : bool
        As in `non_negative_parafac`.
    verbose : int or bool
        A hint, which changes nothing here; the log of codiag (``logging``) tells what it would print.
    return_errors : bool
        Whether to return the relative errors of the components, step by step, too.
    cvg_criterion : str
        A hint, which changes nothing here.

    Returns
    -------
    CPTensor or Factorization
        A ``CPTensor`` where TensorLy is installed; both unpack as ``weights, factors``. With `return_errors`, a pair of
        that and a list.

    See Also
    --------
    CP_NN_HALS : The same as a class.
    non_negative_parafac : With a mask.
    codiag.constraints.NonNegative : The constraint for `codiag.factorize`.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.drop_in import non_negative_parafac_hals
    >>> tensor = np.random.default_rng(0).random((3, 4, 5)) - 0.2
    >>> weights, factors = non_negative_parafac_hals(tensor, 2, nn_modes=[1, 2], random_state=0)
    >>> [bool((factor >= 0).all()) for factor in factors[1:]]
    [True, True]
    """
    order = len(shape_of(tensor))
    _refuse_sparsity(sparsity_coefficients)
    switches = {"exact": exact, "verbose": verbose, "return_errors": return_errors}
    check_hints(svd, cvg_criterion, normalize_factors=normalize_factors, **switches)
    if isinstance(nn_modes, str) and nn_modes != "all":
        raise ValueError(f"nn_modes must be 'all', None or a sequence of modes; got {nn_modes!r}")
    held = range(order) if isinstance(nn_modes, str) else as_modes("nn_modes", nn_modes or (), order)
    fixed = as_modes("fixed_modes", fixed_modes or (), order)
    request = _request(tensor, rank, init, fixed, held, random_state, n_iter_max, tol, None)
    done = answer(request, normalize=normalize_factors)
    if done.complaint is not None:
        warnings.warn(done.complaint, ConvergenceWarning, stacklevel=2)
    return (done.result, done.errors) if return_errors else done.result


def _request(
    tensor: Any,
    rank: Any,
    init: Any,
    fixed: list[int],
    nonnegative: Iterable[int],
    seed: Any,
    n_iter_max: int,
    tol: Any,
    mask: Any,
) -> Request:
    as_number("n_iter_max", n_iter_max, integer=True)
    check_seed("random_state", seed)
    shape = shape_of(tensor)
    return Request(
        tensor, as_rank(rank, shape), init, fixed, seed, n_iter_max, tol, frozenset(nonnegative), 0.0,
        as_mask(mask, shape),
    )  # fmt: skip


def _refuse_sparsity(coefficients: Any) -> None:
    given = coefficients if isinstance(coefficients, Iterable) else [coefficients]
    if any(one is not None and one != 0 for one in given):
        raise ValueError(
            f"sparsity_coefficients={coefficients!r} is not supported by codiag.drop_in; leave it out, or use TensorLy"
        )
