"""``parafac`` and ``CP`` of TensorLy."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from codiag._array import Array, like, to_host
from codiag._factorization import Factorization
from codiag._factorize import complaint_about, solve
from codiag._problem import Problem
from codiag._validation import ConvergenceWarning, as_number, as_real_array, check_seed
from codiag.drop_in._complex_fit import Sweeps, fit_complex, is_complex
from codiag.drop_in._given_starts import (
    complaint_about_sweeps,
    free_modes,
    like_start,
    sweep_from,
    with_fixed_modes,
)
from codiag.methods import NLS, Auto, Method
from codiag.tensors import as_tensor
from codiag.tensors._dense import khatri_rao


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
    normalize_factors : bool
        Whether columns have unit norm, with weights beside them; else weights are one and the first factor has them.
    tol : float
        Size of the last step, relative to the factors; zero or None to take all steps.
    random_state : None, int, RandomState or Generator
        Source of the random start, where there is one.
    return_errors : bool
        Whether to return the relative errors of the components, step by step, too.
    sparsity : float or int, optional
        Share, or number, of entries that a sparse tensor may have, which is returned beside the components: the
        largest of what they leave.
    fixed_modes : list of int, optional
        Modes whose factors stay as they are in `init`. The last mode is never fixed, as in TensorLy.
    callback : callable, optional
        Called as ``callback(components, relative_error)`` after every step; True ends the fit.
    svd, orthogonalise, linesearch, cvg_criterion, verbose, svd_mask_repeats
        Hints, which change nothing here: they name details of alternating least squares, and codiag takes other steps.
        The log of codiag (``logging``) tells what `verbose` would print.
    mask, l2_reg
        Not supported: anything but the default raises.

    Returns
    -------
    CPTensor of TensorLy where it is installed, otherwise `Factorization`; both unpack as ``weights, factors``.
    With `sparsity` a pair of that and the sparse tensor; with `return_errors`, a pair of all that and a list.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.drop_in import parafac
    >>> weights, factors = parafac(np.ones((3, 4, 5)), 1, random_state=0)
    >>> [factor.shape for factor in factors]
    [(3, 1), (4, 1), (5, 1)]
    """
    _refuse(mask=(mask, None), l2_reg=(l2_reg, 0))
    _check_hints(svd, cvg_criterion)
    for name, hint in (("orthogonalise", orthogonalise), ("verbose", verbose), ("linesearch", linesearch)):
        _check_switch(name, hint)
    _check_switch("svd_mask_repeats", svd_mask_repeats)
    _check_switch("normalize_factors", normalize_factors)
    _check_switch("return_errors", return_errors)
    as_number("n_iter_max", n_iter_max, integer=True)
    check_seed("random_state", random_state)
    n_components = _as_rank(rank, np.shape(tensor))
    n_sparse = _as_count(sparsity, math.prod(np.shape(tensor)))
    errors: list[float] = []

    def finished(fit: Factorization) -> Any:
        return _with_sparse(fit, tensor, n_sparse) if n_sparse else _as_cp(fit)

    def monitor(components: Any, error: float) -> bool:
        errors.append(error)
        if callback is None:
            return False
        fit = Factorization(components.weights, tuple(components.factors), error, math.nan, False)
        return callback(finished(fit), error) is True

    options = {"tol": tol or 1e-16, "max_sweeps": n_iter_max, "monitor": monitor}
    fixed = list(fixed_modes or ())
    fit, complaint = _fitted(tensor, n_components, init, fixed, random_state, options)
    if len(np.shape(tensor)) - 1 in fixed:
        warnings.warn("fixed_modes holds the last mode, which is fitted all the same", UserWarning, stacklevel=2)
    if complaint is not None:
        warnings.warn(complaint, ConvergenceWarning, stacklevel=2)
    errors.append(fit.relative_error)
    result = finished(_with_unit_columns(fit) if normalize_factors else _with_unit_weights(fit))
    return (result, errors) if return_errors else result


class CP:
    """Do what ``tensorly.decomposition.CP`` does: `parafac` as an object that keeps its arguments.

    Parameters
    ----------
    rank, n_iter_max, init, svd, normalize_factors, orthogonalise, tol, random_state, verbose, sparsity, l2_reg
        As in `parafac`.
    mask, cvg_criterion, fixed_modes, svd_mask_repeats, linesearch, callback
        As in `parafac`.

    Attributes
    ----------
    decomposition_ : CPTensor or Factorization
        What `parafac` returns.
    errors_ : list of float
        Relative errors, step by step.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.drop_in import CP
    >>> weights, factors = CP(1, random_state=0).fit_transform(np.ones((3, 4, 5)))
    >>> [factor.shape for factor in factors]
    [(3, 1), (4, 1), (5, 1)]
    """

    decomposition_: Any
    errors_: list[float]

    def __init__(
        self,
        rank: float | str,
        n_iter_max: int = 100,
        init: Any = "svd",
        svd: str = "truncated_svd",
        normalize_factors: bool = False,
        orthogonalise: bool | int = False,
        tol: float = 1e-8,
        random_state: Any = None,
        verbose: int | bool = 0,
        sparsity: float | None = None,
        l2_reg: float = 0,
        mask: Any = None,
        cvg_criterion: str = "abs_rec_error",
        fixed_modes: Any = None,
        svd_mask_repeats: int = 5,
        linesearch: bool = False,
        callback: Callable[[Any, float], Any] | None = None,
    ) -> None:
        self.rank = rank
        self.n_iter_max = n_iter_max
        self.init = init
        self.svd = svd
        self.normalize_factors = normalize_factors
        self.orthogonalise = orthogonalise
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
        self.sparsity = sparsity
        self.l2_reg = l2_reg
        self.mask = mask
        self.cvg_criterion = cvg_criterion
        self.fixed_modes = fixed_modes
        self.svd_mask_repeats = svd_mask_repeats
        self.linesearch = linesearch
        self.callback = callback

    def fit_transform(self, tensor: Any) -> Any:
        """Factorize a tensor, and return its components.

        Parameters
        ----------
        tensor : array of order two or more

        Returns
        -------
        CPTensor or Factorization
            What `parafac` returns: ``decomposition_``.
        """
        options = {name: value for name, value in vars(self).items() if not name.endswith("_")}
        self.decomposition_, self.errors_ = parafac(tensor, **options, return_errors=True)
        return self.decomposition_

    def fit(self, tensor: Any) -> CP:
        """Factorize a tensor, and keep its components.

        Parameters
        ----------
        tensor : array of order two or more

        Returns
        -------
        CP
            Itself.
        """
        self.fit_transform(tensor)
        return self

    def __repr__(self) -> str:
        return f"Rank-{self.rank} CP decomposition."


def _refuse(**given: tuple[Any, Any]) -> None:
    """Raise for options that would change the result and are not there."""
    for name, (value, default) in given.items():
        if value is not default and not (np.isscalar(value) and value == default):
            shown = repr(value) if np.isscalar(value) else "..."
            raise ValueError(
                f"{name}={shown} is not supported by codiag.drop_in.parafac; leave it out, or use TensorLy"
            )


def _check_hints(svd: Any, cvg_criterion: Any) -> None:
    if not isinstance(svd, str) and not callable(svd):
        raise TypeError(f"svd must be the name of a function of TensorLy; got {svd!r}")
    if cvg_criterion not in ("abs_rec_error", "rec_error"):
        raise ValueError(f"cvg_criterion must be 'abs_rec_error' or 'rec_error'; got {cvg_criterion!r}")


def _check_switch(name: str, value: Any) -> None:
    if not isinstance(value, int | np.bool_ | np.integer):
        raise TypeError(f"{name} must be True, False or a number of times; got {value!r}")


def _as_rank(rank: Any, shape: tuple[int, ...]) -> int:
    """Return the number of components; from a share of the entries, that which has so many parameters."""
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
    """Return how many entries a sparse component has: a share of them, or their number."""
    if sparsity is None:
        return 0
    as_number("sparsity", sparsity, zero=True)
    return min(int(sparsity * size) if isinstance(sparsity, float | np.floating) else int(sparsity), size)


def _fitted(
    tensor: Any, rank: int, init: Any, fixed: list[int], seed: Any, options: dict[str, Any]
) -> tuple[Factorization, str | None]:
    """Fit components, by what their kind asks for; return what is to be said of the fit, too."""
    order, max_sweeps = len(np.shape(tensor)), options["max_sweeps"]
    free = free_modes(fixed, order)
    if order == 2:
        return _of_matrix(tensor, rank, fixed), None
    if is_complex(tensor):
        held = [mode for mode in fixed if mode not in free]
        fit = fit_complex(tensor, rank, init, held, seed, Sweeps(**options))
        return fit, complaint_about_sweeps(fit, max_sweeps)
    if fixed:
        fit = with_fixed_modes(tensor, rank, init, free, options)
        return fit, complaint_about_sweeps(fit, max_sweeps)
    if isinstance(init, str):
        method, problem = _method(init, options), Problem(tensor, rank)
        fit = solve(problem, method, seed)
        return fit, complaint_about(fit, problem, method)
    swept = sweep_from(tensor, rank, init, options)  # a start of one's own may have modes apart
    if max_sweeps == 1 or swept.stopped:
        return like_start(swept.fit, init), complaint_about_sweeps(swept.fit, 1)
    method = NLS(init=swept.fit, max_replacements=0, **(options | {"max_sweeps": max_sweeps - 1}))
    problem = Problem(tensor, rank, symmetric=False)
    fit = solve(problem, method, seed)
    return like_start(fit, init), complaint_about(fit, problem, method)


def _method(init: str, options: dict[str, Any]) -> Method:
    if init == "svd":
        return Auto(**options)
    if init == "random":
        return NLS(**options)
    raise ValueError(f"init must be 'svd', 'random', a CPTensor or a pair (weights, factors); got {init!r}")


def _of_matrix(matrix: Any, rank: int, fixed: list[int]) -> Factorization:
    """Return the leading singular vectors of a matrix: the best fit, unless singular values are equal the only one."""
    if fixed:
        raise ValueError(f"fixed_modes must be empty for a matrix; got {fixed}. Use numpy.linalg.lstsq")
    entries = matrix if is_complex(matrix) else as_real_array(matrix, "tensor", "factorize its parts apart")
    xp = array_namespace(entries)
    if not bool(xp.all(xp.isfinite(entries))):
        raise ValueError("tensor must be finite; it holds NaN or infinite entries")
    if rank > min(entries.shape):
        raise ValueError(f"rank must be at most {min(entries.shape)}, the smaller side of the matrix; got {rank}")
    left, sizes, right = xp.linalg.svd(entries, full_matrices=False)
    norm = float(xp.linalg.vector_norm(sizes))
    error = float(xp.linalg.vector_norm(sizes[rank:])) / norm if norm > 0 else 0.0
    factors = (left[:, :rank], xp.matrix_transpose(right)[:, :rank])
    return Factorization(sizes[:rank], factors, error, norm, True)


def _with_unit_weights(fit: Factorization) -> Factorization:
    """Return the fit with its weights in the first factor, as TensorLy leaves them."""
    if bool(array_namespace(fit.weights).all(fit.weights == 1)):
        return fit
    first, *others = fit.factors
    return replace(fit, weights=fit.weights * 0 + 1, factors=(first * fit.weights, *others), symmetric=None)


def _with_unit_columns(fit: Factorization) -> Factorization:
    """Return the fit with unit columns and weights beside them, also where some factors came from a start."""
    xp = array_namespace(fit.weights)
    weights, factors = fit.weights, []
    for factor in fit.factors:
        length = xp.linalg.vector_norm(factor, axis=0)
        weights = weights * length
        factors.append(factor / xp.where(length > 0, length, xp.ones_like(length)))
    return replace(fit, weights=weights, factors=tuple(factors), symmetric=None)


def _with_sparse(fit: Factorization, tensor: Any, count: int) -> tuple[Any, Array]:
    """Return components, and so many of the largest entries of what they leave, zeros elsewhere."""
    entries = tensor if len(np.shape(tensor)) == 2 or is_complex(tensor) else as_tensor(tensor, False).to_dense()
    first, *others, last = fit.factors
    xp = array_namespace(last)
    model = khatri_rao([first * fit.weights, *others]) @ xp.matrix_transpose(last)
    rest = to_host(entries) - to_host(xp.reshape(model, np.shape(tensor)))
    kept = np.zeros(rest.size, dtype=rest.dtype)
    largest = np.argpartition(-np.abs(rest), count - 1, axis=None)[:count]
    kept[largest] = rest.ravel()[largest]
    return _as_cp(fit), like(kept.reshape(rest.shape), last)


def _as_cp(fit: Factorization) -> Any:
    """Return components as TensorLy has them, each mode with memory of its own."""
    try:
        from tensorly.cp_tensor import CPTensor
    except ModuleNotFoundError:
        return fit
    return CPTensor((fit.weights, _apart(fit.factors)))


def _apart(factors: Sequence[Array]) -> list[Array]:
    return [array_namespace(factor).asarray(factor, copy=True) for factor in factors]
