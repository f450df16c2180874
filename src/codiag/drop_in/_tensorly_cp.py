"""``parafac`` of TensorLy."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from codiag._checks import ConvergenceWarning, as_number, check_seed
from codiag.drop_in._arguments import as_count, as_mask, as_modes, as_rank, check_hints, shape_of
from codiag.drop_in._request import Request, answer


def parafac(
    tensor: Any,
    rank: float | str,
    n_iter_max: int = 100,
    init: Any = "svd",
    svd: str = "truncated_svd",
    normalize_factors: bool = False,
    orthogonalise: bool | int = False,
    tol: float = 1e-8,
    random_state: Any = None,
    verbose: int | bool = 0,
    return_errors: bool = False,
    sparsity: float | None = None,
    l2_reg: float = 0,
    mask: Any = None,
    cvg_criterion: str = "abs_rec_error",
    fixed_modes: Any = None,
    svd_mask_repeats: int = 5,
    linesearch: bool = False,
    callback: Callable[[Any, float], Any] | None = None,
) -> Any:
    """Do what ``tensorly.decomposition.parafac`` does, with its arguments in its order.

    Parameters
    ----------
    tensor : array of order two or more
        A matrix is written as its leading singular vectors, which fit best; a complex array is fitted by alternating
        least squares, here and nowhere else in codiag.
    rank : int, float or "same"
        Number of components. A float is the share of the tensor's entries that there are to be parameters, "same"
        stands for 1.0, as in TensorLy.
    n_iter_max : int
        Gauss-Newton steps; with `fixed_modes`, sweeps over the other modes.
    init : {"svd", "random"}, CPTensor, or (weights, factors)
        "svd" stands for the start that codiag finds best, joint diagonalization; the others are what they say.
        From a start that is given, the first iteration is a sweep of alternating least squares; components stay in
        its order and with its signs.
    svd : str
        A hint, which changes nothing here.
    normalize_factors : bool
        Whether columns have unit norm, with weights beside them; else weights are one and the first factor has them.
    orthogonalise : bool or int
        A hint, which changes nothing here: it names a detail of alternating least squares.
    tol : float
        Size of the last step, relative to the factors; zero or None to take all steps.
    random_state : None, int, RandomState or Generator
        Source of the random start, where there is one.
    verbose : int or bool
        A hint, which changes nothing here; the log of codiag (``logging``) tells what it would print.
    return_errors : bool
        Whether to return the relative errors of the components, step by step, too.
    sparsity : float or int, optional
        Share, or number, of entries that a sparse tensor may have, which is returned beside the components: the
        largest of what they leave.
    l2_reg : float
        Half of it times the sum of squares of all factors that are not fixed is added to half the squared distance:
        what TensorLy's alternating updates lower where they do not normalize. The size of a component is then shared
        evenly by its factors.
    mask : array in the shape of the tensor, optional
        One or True where entries were observed, zero or False where not: these are never read, and relative errors
        are those of the observed ones. Numbers in between are weights. NaN are missing, with a mask or without.
    cvg_criterion : str
        A hint, which changes nothing here.
    fixed_modes : list of int, optional
        Modes whose factors stay as they are in `init`. The last mode is never fixed, as in TensorLy.
    svd_mask_repeats : int
        A hint, which changes nothing here.
    linesearch : bool
        A hint, which changes nothing here.
    callback : callable, optional
        Called as ``callback(components, relative_error)`` after every step; True ends the fit.

    Returns
    -------
    CPTensor or Factorization
        A ``CPTensor`` where TensorLy is installed; both unpack as ``weights, factors``. With `sparsity` a pair of that
        and the sparse tensor; with `return_errors`, a pair of all that and a list.

    See Also
    --------
    CP : The same as a class.
    non_negative_parafac : With factors that are not negative.
    codiag.factorize : The interface of this library.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.drop_in import parafac
    >>> weights, factors = parafac(np.ones((3, 4, 5)), 1, random_state=0)
    >>> [factor.shape for factor in factors]
    [(3, 1), (4, 1), (5, 1)]
    """
    check_hints(svd, cvg_criterion, orthogonalise=orthogonalise, verbose=verbose, linesearch=linesearch,
                svd_mask_repeats=svd_mask_repeats, normalize_factors=normalize_factors,
                return_errors=return_errors)  # fmt: skip
    as_number("n_iter_max", n_iter_max, integer=True)
    as_number("l2_reg", l2_reg, zero=True)
    check_seed("random_state", random_state)
    shape = shape_of(tensor)
    fixed = as_modes("fixed_modes", fixed_modes or (), len(shape))
    done = answer(
        Request(
            tensor,
            as_rank(rank, shape),
            init,
            [mode for mode in fixed if mode != len(shape) - 1],
            random_state,
            n_iter_max,
            tol,
            ridge=float(l2_reg),
            mask=as_mask(mask, shape),
            n_sparse=as_count(sparsity, math.prod(shape)),
            callback=callback,
        ),
        normalize=normalize_factors,
    )
    if len(shape) - 1 in fixed:
        warnings.warn("fixed_modes holds the last mode, which is fitted all the same", UserWarning, stacklevel=2)
    if done.complaint is not None:
        warnings.warn(done.complaint, ConvergenceWarning, stacklevel=2)
    return (done.result, done.errors) if return_errors else done.result
