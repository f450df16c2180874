"""The one entry point."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from codiag._array import Array, TensorLike, double, to_host
from codiag._factorization import Factorization
from codiag._keywords import explains_keywords
from codiag._labelled import read_labelled
from codiag._labels import Labels
from codiag._problem import Problem
from codiag._result import as_factorization
from codiag._threads import few_threads
from codiag._validation import ConvergenceWarning, Seed, UndeterminedError, as_generator
from codiag.constraints._names import ConstraintsLike
from codiag.methods import METHODS, Auto, Method
from codiag.methods._method import fit_or_refuse
from codiag.methods.least_squares._objective import LeastSquares
from codiag.tensors import DenseTensor, Tensor
from codiag.tensors._first_look import is_large, sketch_width
from codiag.theory._diagnosis import CANCELLING, cancelling_pairs, congruences, whole_norm

ALIASES = {"ojd": "ojd1", "nojd": "nojd1"}

MOST_EMPTY_BYTES = 2**30
"""Memory that rows of zeros may take in the factors of a sparse tensor."""


@explains_keywords
def factorize(
    tensor: TensorLike,
    rank: int | str | None = None,
    *,
    method: Method | str | None = None,
    symmetric: bool | Sequence[int] | None = None,
    constraints: ConstraintsLike = None,
    observed: Array | None = None,
    seed: Seed = None,
) -> Factorization:
    r"""Write a tensor as a sum of components, :math:`T \approx \sum_i w_i\, a_i \otimes b_i \otimes c_i`.

    Parameters
    ----------
    tensor : array or Tensor
        Of order three or more: an array of NumPy (also mapped from a file), torch, CuPy, JAX or dask, a COO tensor of
        pydata/sparse or pyttb, or any `codiag.tensors.Tensor`. Never modified. A dask array too large for memory stays
        in its chunks, which the scheduler of dask reads a few times; the result is in NumPy. Indices of a sparse tensor
        that have no entries take no memory but for their rows of zeros in the factors. Labels are kept of an
        xarray.DataArray, a pandas Series whose index has a level for each mode, and a data frame with a column of
        labels for each mode and the values in its last column; of the latter two, combinations that are not listed are
        missing, unless `codiag.tables.labelled_tensor` says otherwise.
        A `codiag.Problem` says all of this itself, and more; then only `method` and `seed` are given beside it.
    rank : int or "auto"
        Number of components; "auto" is what `codiag.choose_rank` chooses of one to ten, and an error where it finds no
        rank supported.
    method : Method or str, optional
        A configured object of `codiag.methods`, or the name of one: "ojd0", "ojd1", "nojd0", "nojd1", "als", "nls",
        "tpm", "lathauwer", "sd2", "givens". By default `codiag.methods.Auto`: joint diagonalization, then least
        squares.
    symmetric : bool or tuple of int, optional
        Whether all modes share one factor, or which of them do: (0, 1) for a stack of covariances or of similarities
        along mode 2. By default that is detected for arrays, and declared by other tensors; some modes alone are never
        detected. An array that noise has made asymmetric is factorized as its mean over permutations of these modes.
    constraints : Constraint, str, or sequence with one for each mode, optional
        What is known about the factors: "nonnegative", "orthogonal", or objects of `codiag.constraints`; None for a
        free mode. One alone holds for all modes, and one for a mode that shares its factor for all that share it.
    observed : array in the shape of the tensor, optional
        Which entries were observed, or non-negative weights for them. By default all entries count equally.
    seed : int or numpy.random.Generator, optional
        The same seed gives the same answer, on every device.

    Returns
    -------
    Factorization
        With ``weights, factors = fit``.

    See Also
    --------
    choose_rank : How many components a tensor supports.
    factorize_each : Many tensors, in parallel.
    joint_diagonalize : Stacks of matrices.
    codiag.methods : The methods, and which to use when.
    codiag.models.CP : An estimator of scikit-learn.

    Notes
    -----
    Small arrays, with at most four million entries times components, are fitted on a single thread of linear algebra:
    more would only wait for each other. The limit holds for the process while only such fits run, in any number of
    Python's threads, and is lifted afterwards.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> rng = np.random.default_rng(0)
    >>> a, b, c = (rng.standard_normal((size, 4)) for size in (5, 6, 7))
    >>> fit = codiag.factorize(np.einsum("ir,jr,kr->ijk", a, b, c), 4, seed=0)
    >>> fit.weights.shape, fit.relative_error < 1e-12, codiag.factor_error(fit, (a, b, c)) < 1e-10
    ((4,), True, True)

    A stack of symmetric matrices, with one factor for their rows and columns:

    >>> fit = codiag.factorize(np.einsum("ir,jr,kr->ijk", a, a, c), 4, symmetric=(0, 1), seed=0)
    >>> np.array_equal(fit.factors[0], fit.factors[1]), codiag.factor_error(fit, (a, a, c)) < 1e-10
    (True, True)
    """
    tensor, labels = read_labelled(tensor)
    problem = as_problem(tensor, rank, constraints, observed, symmetric, seed)
    strategy = as_method(method)
    fit = solve(problem, strategy, seed)
    complaint = complaint_about(fit, problem, strategy)
    if complaint is not None:
        warnings.warn(complaint, ConvergenceWarning, stacklevel=3)
    return fit if labels is None else with_labels(fit, labels)


def with_labels(fit: Factorization, labels: Labels) -> Factorization:
    """Return a fit that knows what its modes and their indices are called."""
    sizes = [len(labels.index(mode, size)) for mode, size in enumerate(fit.shape[: len(labels.values)])]
    if len(labels.values) != len(fit.shape) or sizes != list(fit.shape):
        raise ValueError(f"labels must be for the modes of the tensor, {fit.shape}; got {sizes}")
    return replace(fit, labels=labels)


def with_chosen_rank(problem: Problem, seed: Any, refusal: str = "rank cannot be 'auto'") -> Problem:
    """Ask for as many components as the tensor supports, of one to ten; raise where it supports none."""
    from codiag.selection._choose import DEFAULT_RANKS, choose

    choice = choose(problem, DEFAULT_RANKS, as_generator(seed, apart=True))
    if choice.rank is None:
        raise ValueError(f"{refusal} here. {choice.reason} See codiag.choose_rank, or give an integer")
    return replace(problem, rank=choice.rank)


def as_problem(tensor: Any, rank: Any, constraints: Any, observed: Any, symmetric: Any, seed: Any = None) -> Problem:
    """Return the problem that arguments of `factorize` state; one that was given says all of this itself."""
    if not isinstance(tensor, Problem):
        if isinstance(rank, str) and rank == "auto":
            return with_chosen_rank(Problem(tensor, 1, constraints, observed, symmetric=symmetric), seed)
        if rank is None or isinstance(rank, str):
            raise TypeError(f"rank must be an integer, or 'auto' for what choose_rank chooses; got {rank!r}")
        return Problem(tensor, rank, constraints, observed, symmetric=symmetric)
    given = {"rank": rank, "symmetric": symmetric, "constraints": constraints, "observed": observed}
    for name, value in given.items():
        if value is not None:
            raise TypeError(
                f"{name} must be left out where a Problem is given, which has its own; got {name}={value!r}"
            )
    return tensor


def solve(problem: Problem, method: Method, seed: Any = None) -> Factorization:
    """Do the work of `factorize`, silently: what is to be said of the fit, `complaint_about` says."""
    with few_threads(float(problem.rank) * math.prod(problem.tensor.shape)):
        return _solved(problem, method, seed)


def _solved(problem: Problem, method: Method, seed: Any) -> Factorization:
    rng = as_generator(seed, apart=True)
    smaller, kept = (problem, None) if method.sized or problem.asks else _without_empty_rows(problem)
    if is_large(smaller.tensor.shape) and smaller.tensor.holds_entries and not problem.asks:
        smaller.tensor.look(sketch_width(problem.rank, smaller.tensor.shape))
    norm = math.sqrt(LeastSquares(smaller).total)
    if not 0 < norm < math.inf:
        raise UndeterminedError(f"tensor must be finite, and not all zero; the norm of {problem.tensor!r} is {norm:g}")
    # What a method was given for this tensor is not scaled with it.
    scale = 1.0 if method.sized or has_safe_powers(problem.tensor, norm) else norm
    estimate = fit_or_refuse(method, in_double_precision(smaller.scaled(1 / scale)), rng)
    if scale != 1:
        found, left = estimate.components, estimate.squared_distance
        estimate = estimate._replace(
            components=found.changed(lambda factor, _: factor, found.weights * scale),
            squared_distance=None if left is None else left * scale**2,
        )
    fit = as_factorization(estimate, smaller)
    return fit if kept is None else _with_empty_rows(fit, kept, problem.tensor)


def has_safe_powers(tensor: Tensor, norm: float) -> bool:
    """Tell whether powers of the entries of a tensor are numbers, too, neither infinite nor zero."""
    safe = 1e40 if tensor.reference.dtype == array_namespace(tensor.reference).float64 else 1e6
    return 1 / safe < norm < safe


def in_double_precision(problem: Problem) -> Problem:
    """Ask the same of an array in double precision where entries count one by one, or constraints must hold exactly."""
    tensor = problem.tensor
    if not problem.asks or not isinstance(tensor, DenseTensor):
        return problem
    entries = tensor.to_dense()
    exact = double(entries)
    return problem if exact is entries else replace(problem, tensor=DenseTensor.of(exact, symmetric=tensor.symmetric))


def complaint_about(fit: Factorization, problem: Problem, method: Method) -> str | None:
    """Return what a user must be told of a fit, in a sentence, or None where there is nothing to tell."""
    largest, norm = float(np.max(np.abs(to_host(fit.weights)))), whole_norm(fit)
    if largest > CANCELLING * norm or (fit.converged and _has_large_cancelling_pair(fit)):
        return (
            f"components cancel each other: the largest weight is {largest:.2g}, the norm of {problem.tensor!r} "
            f"{norm:.2g}; there may be no best fit with rank {fit.rank}, try a lower one"
        )
    if fit.converged:
        return None
    sweeps = sum(stage.sweeps for stage in fit.stages)
    return (
        f"{type(method).__name__} did not converge in {sweeps} sweeps on {problem.tensor!r} with rank {fit.rank}; "
        f"the best fit is returned, relative error {fit.relative_error:.3g}. A lower rank may be easier to find"
    )


def _without_empty_rows(problem: Problem) -> tuple[Problem, list[np.ndarray] | None]:
    """Ask for a sparse tensor on the indices that have entries, where its components are; return those indices, too."""
    tensor, rank = problem.tensor, problem.rank
    if problem.second_moment is not None:
        return problem, None
    smaller, kept = tensor.without_empty_rows(at_least=rank)
    if smaller.shape == tensor.shape:
        return problem, None
    modes = range(1 if tensor.symmetric else tensor.order)
    n_empty = sum(tensor.shape[mode] - smaller.shape[mode] for mode in modes)
    n_bytes = n_empty * rank * tensor.reference.dtype.itemsize
    if n_bytes > MOST_EMPTY_BYTES:
        raise ValueError(
            f"tensor must not have so many indices without entries: {tensor!r} has {n_empty}, whose rows of zeros "
            f"would take {n_bytes / 1e9:.1f} GB in factors of rank {rank}. Number its indices anew, or factorize the "
            "first of smaller, kept = codiag.tensors.SparseTensor(...).without_empty_rows(), where row i of a factor "
            "belongs to index kept[mode][i]"
        )
    return problem.on(smaller), kept


def _with_empty_rows(fit: Factorization, kept: list[np.ndarray], tensor: Tensor) -> Factorization:
    """Return the factors with rows of zeros for indices that have no entries."""
    factors: list[np.ndarray] = []
    for factor, rows, size in zip(fit.factors, kept, tensor.shape, strict=True):
        whole = np.zeros((size, fit.rank), dtype=factor.dtype)
        whole[rows] = factor
        factors.append(whole)
        if tensor.symmetric:
            factors *= tensor.order
            break
    return replace(fit, factors=tuple(factors), n_observed=None)


def _has_large_cancelling_pair(fit: Factorization) -> bool:
    """Tell whether two components with more energy than the tensor nearly cancel each other."""
    weights = np.abs(to_host(fit.weights).astype(np.float64))
    pairs = cancelling_pairs(weights, congruences(fit))
    return any(weights[i] ** 2 + weights[j] ** 2 > whole_norm(fit) ** 2 for i, j, _ in pairs)


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
