"""``parafac``, ``non_negative_parafac`` and ``non_negative_parafac_hals`` of TensorLy."""

from __future__ import annotations

import inspect
import math
import sys
import warnings
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy as np
from array_api_compat import is_array_api_obj

from codiag._arrays import to_host
from codiag._checks import ConvergenceWarning, as_number, check_rng
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
        Real or complex. The components of a matrix are its leading singular vectors, which fit best.
    rank : int, float or "same"
        Number of components. A float is the number of parameters relative to the number of entries, and "same" is
        1.0, as in TensorLy; `n_iter_max` then counts the steps of all starts together.
    n_iter_max : int
        Gauss-Newton steps of a start; with `fixed_modes`, sweeps over the other modes. With zero, the start is
        returned: the leading singular vectors of every unfolding with "svd".
    init : {"svd", "random"}, CPTensor, or (weights, factors)
        "svd" is the default start of codiag, joint diagonalization; "random" is a random start, and the same search as
        with "svd" where entries are missing. From a given start, the first iteration is a sweep of alternating least
        squares; components keep its order and its signs.
    svd : str
        Accepted and ignored.
    normalize_factors : bool
        Whether columns have unit norm; otherwise weights are one, and the first factor is multiplied by them.
    orthogonalise : bool or int
        Accepted and ignored: a detail of alternating least squares.
    tol : float
        Size of the last step, relative to the factors; zero or None to take all steps.
    random_state : None, int, RandomState or Generator
        Source of a random start.
    verbose : int or bool
        Whether to print the relative error after every step, of all starts in turn.
    return_errors : bool
        Whether to return also the relative errors after every step.
    sparsity : float or int, optional
        Share, or number, of entries of a sparse tensor that is returned beside the components: the largest residuals.
    l2_reg : float
        Strength of a ridge: half of it times the sum of squares of all factors that are not fixed is added to half the
        squared distance. This is the objective of TensorLy's updates without normalization. All factors of a component
        then have the same norm.
    mask : array in the shape of the tensor, optional
        One or True for entries that were observed, zero or False for others, which are never read; relative errors
        are those of the observed entries. Numbers in between are weights. NaN are missing, with a mask or without.
    cvg_criterion : str
        Accepted and ignored.
    fixed_modes : list of int, optional
        Modes whose factors are those of `init`. The last mode is never fixed, as in TensorLy.
    svd_mask_repeats : int
        With ``n_iter_max=0`` and a mask, how often missing entries are filled in by the leading singular vectors;
        ignored otherwise.
    linesearch : bool
        Accepted and ignored.
    callback : callable, optional
        Called as ``callback(components, relative_error)`` after every step; True ends the fit.

    Returns
    -------
    CPTensor or Factorization
        A ``CPTensor`` if TensorLy is installed; both unpack as ``weights, factors``. With `sparsity` a pair of that
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
    _check_hints(svd, cvg_criterion, orthogonalise=orthogonalise, verbose=verbose, linesearch=linesearch,
                svd_mask_repeats=svd_mask_repeats, normalize_factors=normalize_factors,
                return_errors=return_errors)  # fmt: skip
    as_number("l2_reg", l2_reg, zero=True)
    shape = _shape_of(tensor)
    fixed = _without_last(fixed_modes, len(shape))
    n_sparse = _as_count(sparsity, math.prod(shape))
    options = {"ridge": float(l2_reg), "n_sparse": n_sparse, "callback": callback, "is_verbose": bool(verbose)}
    options["svd_mask_repeats"] = int(svd_mask_repeats)
    request = _request(tensor, rank, init, fixed, random_state, n_iter_max, tol, mask, **options)
    return _answered(request, normalize_factors, return_errors)


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

    Factors have no negative entries. Gauss-Newton steps with an active set converge to the optimum, which
    multiplicative updates approach slowly.

    Parameters
    ----------
    tensor : array of order three or more
        Its entries may be negative, as noise makes them.
    rank : int, float or "same"
        Number of components, as in `parafac`.
    n_iter_max : int
        Gauss-Newton steps of a start; with `fixed_modes`, sweeps over the other modes. With zero, the start is
        returned: the leading singular vectors of every unfolding with "svd".
    init : {"svd", "random"}, CPTensor, or (weights, factors)
        As in `parafac`; starts are made non-negative.
    svd : str
        Accepted and ignored.
    tol : float
        Size of the last step, relative to the factors; zero or None to take all steps.
    random_state : None, int, RandomState or Generator
        Source of a random start.
    verbose : int or bool
        Whether to print the relative error after every step, of all starts in turn.
    normalize_factors : bool
        Whether columns have unit norm; otherwise weights are one, and the first factor is multiplied by them.
    return_errors : bool
        Whether to return also the relative errors after every step.
    mask : array in the shape of the tensor, optional
        One or True for entries that were observed, zero or False for others, as in `parafac`.
    cvg_criterion : str
        Accepted and ignored.
    fixed_modes : list of int, optional
        Modes whose factors are those of `init`, of any sign. The last mode is never fixed.

    Returns
    -------
    CPTensor or Factorization
        A ``CPTensor`` if TensorLy is installed; both unpack as ``weights, factors``. With `return_errors`, a pair of
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
    order = len(_shape_of(tensor))
    switches = {"verbose": verbose, "normalize_factors": normalize_factors, "return_errors": return_errors}
    _check_hints(svd, cvg_criterion, **switches)
    fixed, nonnegative = _without_last(fixed_modes, order), frozenset(range(order))
    request = _request(
        tensor,
        rank,
        init,
        fixed,
        random_state,
        n_iter_max,
        tol,
        mask,
        nonnegative=nonnegative,
        is_verbose=bool(verbose),
    )
    return _answered(request, normalize_factors, return_errors)


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
        Gauss-Newton steps of a start; with `fixed_modes`, sweeps over the other modes. With zero, the start is
        returned: the leading singular vectors of every unfolding with "svd".
    init : {"svd", "random"}, CPTensor, or (weights, factors)
        As in `non_negative_parafac`.
    svd : str
        Accepted and ignored.
    tol : float
        Size of the last step, relative to the factors; zero or None to take all steps.
    random_state : None, int, RandomState or Generator
        Source of a random start.
    sparsity_coefficients : None, or sequence of None
        Not supported: anything else raises.
    fixed_modes : list of int, optional
        Modes whose factors are those of `init`; the last may be among them, but not all modes.
    nn_modes : "all", None, or sequence of int
        Modes whose factors have no negative entries.
    exact : bool
        Accepted and ignored: solutions are exact.
    normalize_factors : bool
        As in `non_negative_parafac`.
    verbose : int or bool
        Whether to print the relative error after every step, of all starts in turn.
    return_errors : bool
        Whether to return also the relative errors after every step.
    cvg_criterion : str
        Accepted and ignored.

    Returns
    -------
    CPTensor or Factorization
        A ``CPTensor`` if TensorLy is installed; both unpack as ``weights, factors``. With `return_errors`, a pair of
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
    order = len(_shape_of(tensor))
    _refuse_sparsity(sparsity_coefficients)
    switches = {"exact": exact, "verbose": verbose, "return_errors": return_errors}
    _check_hints(svd, cvg_criterion, normalize_factors=normalize_factors, **switches)
    if isinstance(nn_modes, str) and nn_modes != "all":
        raise ValueError(f"nn_modes must be 'all', None or a sequence of modes; got {nn_modes!r}")
    nonnegative = range(order) if isinstance(nn_modes, str) else _as_modes("nn_modes", nn_modes or (), order)
    fixed = _as_modes("fixed_modes", fixed_modes or (), order)
    request = _request(
        tensor, rank, init, fixed, random_state, n_iter_max, tol, None, nonnegative=frozenset(nonnegative),
        is_verbose=bool(verbose),
    )  # fmt: skip
    return _answered(request, normalize_factors, return_errors)


def _request(
    tensor: Any, rank: Any, init: Any, fixed: list[int], rng: Any, n_iter_max: int, tol: Any, mask: Any, **options: Any
) -> Request:
    as_number("n_iter_max", n_iter_max, integer=True, zero=True)
    check_rng("random_state", rng)
    shape = _shape_of(tensor)
    return Request(
        tensor, _as_rank(rank, shape), init, fixed, rng, n_iter_max, tol, mask=_as_mask(mask, shape),
        is_share=isinstance(rank, str | float | np.floating), **options,
    )  # fmt: skip


def _answered(request: Request, normalize: bool, return_errors: bool) -> Any:
    """Return the result of a call, with a warning if the fit did not converge."""
    result, errors, message = answer(request, normalize=normalize)
    if message is not None:
        warnings.warn(message, ConvergenceWarning, stacklevel=3)
    return (result, errors) if return_errors else result


def _without_last(fixed_modes: Any, order: int) -> list[int]:
    """Return the fixed modes without the last one, which TensorLy does not fix either."""
    fixed = _as_modes("fixed_modes", fixed_modes or (), order)
    if order - 1 in fixed:
        warnings.warn("fixed_modes holds the last mode, which is fitted all the same", UserWarning, stacklevel=3)
    return [mode for mode in fixed if mode != order - 1]


def _check_hints(svd: Any, cvg_criterion: Any, **switches: Any) -> None:
    """Raise if an ignored option has a wrong type, or a switch is neither a truth value nor a number."""
    if not isinstance(svd, str) and not callable(svd):
        raise TypeError(f"svd must be the name of a function of TensorLy; got {svd!r}")
    if cvg_criterion not in ("abs_rec_error", "rec_error"):
        raise ValueError(f"cvg_criterion must be 'abs_rec_error' or 'rec_error'; got {cvg_criterion!r}")
    for name, value in switches.items():
        if not isinstance(value, int | np.bool_ | np.integer):
            raise TypeError(f"{name} must be True, False or a number of times; got {value!r}")


def _as_rank(rank: Any, shape: tuple[int, ...]) -> int:
    """Return the number of components; a share of the entries is the number of parameters relative to them."""
    if isinstance(rank, str):
        if rank != "same":
            raise ValueError(f"rank must be an integer, a share of the entries or 'same'; got {rank!r}")
        rank = 1.0
    if isinstance(rank, float | np.floating):
        as_number("rank", float(rank))
        return max(round(math.prod(shape) * float(rank) / sum(shape)), 1)
    as_number("rank", rank, integer=True)
    return int(rank)


def _as_count(sparsity: Any, size: int) -> int:
    """Return the number of entries of the sparse tensor, which is given as a share or as a number."""
    if sparsity is None:
        return 0
    as_number("sparsity", sparsity, zero=True)
    return min(int(sparsity * size) if isinstance(sparsity, float | np.floating) else int(sparsity), size)


def _as_mask(mask: Any, shape: tuple[int, ...]) -> np.ndarray | None:
    """Return the entries that were observed, or their weights; None if all were."""
    if mask is None:
        return None
    mask = mask.todense() if hasattr(mask, "todense") else mask
    given = np.asarray(to_host(mask) if is_array_api_obj(mask) else mask)
    if given.dtype.kind not in "buif":
        raise TypeError(f"mask must be boolean, or hold ones and zeros; got an array of {given.dtype}")
    if given.shape != shape:
        raise ValueError(f"mask must have the shape of the tensor, {shape}; got {given.shape}")
    if not np.all(np.isfinite(given)) or np.any(given < 0) or not np.any(given):
        raise ValueError("mask must be one for observed entries, zero for others, and not zero everywhere")
    return None if np.all(given == 1) else given


def _as_modes(name: str, modes: Any, order: int) -> list[int]:
    """Return modes that a tensor of this order has."""
    given = list(modes)
    last = order - 1
    if any(isinstance(mode, bool) or not isinstance(mode, int | np.integer) or not 0 <= mode <= last for mode in given):
        raise ValueError(f"{name} must contain modes from 0 to {last}; got {given}")
    return [int(mode) for mode in given]


def _shape_of(tensor: Any) -> tuple[int, ...]:
    """Return the shape of the tensor; raise if its parts have different shapes, or if it has fewer than two modes."""
    try:
        shape = tuple(np.shape(tensor))
    except ValueError as error:
        raise ValueError("tensor must be one array; its parts have different shapes") from error
    if len(shape) < 2:
        raise ValueError(f"tensor must have at least two modes; got {len(shape)}, shape {shape}")
    return shape


def _refuse_sparsity(coefficients: Any) -> None:
    given = coefficients if isinstance(coefficients, Iterable) else [coefficients]
    if any(coefficient is not None and coefficient != 0 for coefficient in given):
        raise ValueError(
            f"sparsity_coefficients={coefficients!r} is not supported by codiag.drop_in; leave it out, or use TensorLy"
        )


class Decomposition:
    """Base class: stores the arguments of a function, except for the tensor, and its result."""

    function: ClassVar[Callable[..., Any]]
    """The function, whose arguments those of the class are, by the same names and with the same defaults."""
    order: ClassVar[tuple[str, ...]] = ()
    """The names of the arguments, if their order is not that of the function."""
    __signature__: ClassVar[inspect.Signature]
    rank: float | str
    decomposition_: Any
    errors_: list[float]

    def __init_subclass__(cls) -> None:
        accepted = inspect.signature(cls.function).parameters
        names = cls.order or [name for name in accepted if name not in ("tensor", "tensor_slices", "return_errors")]
        cls.__signature__ = inspect.Signature([accepted[name] for name in names])

    def __init__(self, *args: Any, **options: Any) -> None:
        given = self.__signature__.bind(*args, **options)
        given.apply_defaults()
        vars(self).update(given.arguments)

    def fit_transform(self, tensor: Any) -> Any:
        """Factorize a tensor, and return its components.

        Parameters
        ----------
        tensor : array
            As the function takes it.

        Returns
        -------
        CPTensor or Factorization
            The result of the function, which is also ``decomposition_``.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.drop_in import CP
        >>> weights, factors = CP(rank=1, random_state=0).fit_transform(np.ones((3, 4, 5)))
        >>> [factor.shape for factor in factors]
        [(3, 1), (4, 1), (5, 1)]
        """
        options = {name: value for name, value in vars(self).items() if not name.endswith("_")}
        function = type(self).function
        function = getattr(sys.modules[function.__module__], function.__name__)  # which TensorLy's tests replace
        self.decomposition_, self.errors_ = function(tensor, **(options | {"return_errors": True}))
        return self.decomposition_

    def fit(self, tensor: Any) -> Any:
        """Factorize a tensor, and store its components.

        Parameters
        ----------
        tensor : array
            As the function takes it.

        Returns
        -------
        Decomposition
            The object itself.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.drop_in import CP
        >>> weights, factors = CP(rank=1, random_state=0).fit(np.ones((3, 4, 5))).decomposition_
        >>> [factor.shape for factor in factors]
        [(3, 1), (4, 1), (5, 1)]
        """
        self.fit_transform(tensor)
        return self

    def __repr__(self) -> str:
        return f"Rank-{self.rank} Non-Negative CP decomposition."


class CP(Decomposition):
    """Do what ``tensorly.decomposition.CP`` does: `parafac` as an object that stores its arguments.

    Parameters
    ----------
    rank, n_iter_max, init, svd, normalize_factors, orthogonalise, tol, random_state, verbose : as in `parafac`
        Arguments of the function.
    sparsity, l2_reg, mask, cvg_criterion, fixed_modes, svd_mask_repeats, linesearch, callback : as in `parafac`
        Arguments of the function.

    Attributes
    ----------
    decomposition_ : CPTensor or Factorization
        What `parafac` returns.
    errors_ : list of float
        Relative errors after every step.

    See Also
    --------
    parafac : The function.
    codiag.models.CP : An estimator of scikit-learn for samples along the first mode.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.drop_in import CP
    >>> weights, factors = CP(1, random_state=0).fit_transform(np.ones((3, 4, 5)))
    >>> [factor.shape for factor in factors]
    [(3, 1), (4, 1), (5, 1)]
    """

    function = staticmethod(parafac)

    def __repr__(self) -> str:
        return f"Rank-{self.rank} CP decomposition."


class CP_NN(Decomposition):  # noqa: N801
    """Do what ``tensorly.decomposition.CP_NN`` does: `non_negative_parafac` as an object that stores its arguments.

    Parameters
    ----------
    rank, n_iter_max, init, svd, tol, random_state, verbose, normalize_factors, mask : as in `non_negative_parafac`
        Arguments of the function.
    cvg_criterion, fixed_modes : as in `non_negative_parafac`
        Arguments of the function.

    Attributes
    ----------
    decomposition_ : CPTensor or Factorization
        What `non_negative_parafac` returns.
    errors_ : list of float
        Relative errors after every step.

    See Also
    --------
    non_negative_parafac : The function.
    CP_NN_HALS : The class with constraints for each mode.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.drop_in import CP_NN
    >>> weights, factors = CP_NN(1, random_state=0).fit_transform(np.ones((3, 4, 5)))
    >>> all((factor >= 0).all() for factor in factors)
    True
    """

    function = staticmethod(non_negative_parafac)


class CP_NN_HALS(Decomposition):  # noqa: N801
    """Do what ``tensorly.decomposition.CP_NN_HALS`` does: `non_negative_parafac_hals` as an object.

    Parameters
    ----------
    rank, n_iter_max, init, svd, tol, sparsity_coefficients, fixed_modes, nn_modes : as in `non_negative_parafac_hals`
        Arguments of the function.
    exact, verbose, normalize_factors, cvg_criterion, random_state : as in `non_negative_parafac_hals`
        Arguments of the function.

    Attributes
    ----------
    decomposition_ : CPTensor or Factorization
        What `non_negative_parafac_hals` returns.
    errors_ : list of float
        Relative errors after every step.

    See Also
    --------
    non_negative_parafac_hals : The function.
    CP_NN : The class with a mask.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.drop_in import CP_NN_HALS
    >>> weights, factors = CP_NN_HALS(1, random_state=0).fit_transform(np.ones((3, 4, 5)))
    >>> all((factor >= 0).all() for factor in factors)
    True
    """

    function = staticmethod(non_negative_parafac_hals)
    order = ("rank", "n_iter_max", "init", "svd", "tol", "sparsity_coefficients", "fixed_modes", "nn_modes", "exact",
             "verbose", "normalize_factors", "cvg_criterion", "random_state")  # fmt: skip
