"""The entry: a tensor and a rank in, a factorization out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from codiag._arrays import Array, TensorLike
from codiag._checks import ConvergenceWarning, Seed, explains_keywords
from codiag._progress import progress_if
from codiag.constraints import ConstraintsLike
from codiag.losses import Loss
from codiag.methods import Method, as_method
from codiag.problem import Problem, as_problem, warn_of_unlisted_counts
from codiag.result import Factorization, complaint_about, solve, whitened_fit


@explains_keywords
def factorize(
    tensor: TensorLike,
    rank: int | str | None = None,
    *,
    loss: Loss | str | None = None,
    method: Method | str | None = None,
    symmetric: bool | Sequence[int] = False,
    constraints: ConstraintsLike = None,
    observed: Array | None = None,
    seed: Seed = None,
    progress: bool | None = None,
) -> Factorization:
    r"""Write a tensor as a sum of components, :math:`T \approx \sum_i w_i\, a_i \otimes b_i \otimes c_i`.

    Parameters
    ----------
    tensor : array or Tensor
        Of order three or more: an array of NumPy (also mapped from a file), torch, CuPy, JAX or dask, an array of zarr
        or h5py, a COO tensor of pydata/sparse or pyttb, or any `codiag.tensors.Tensor`. Never modified. A large array
        of dask, zarr or h5py stays in its chunks, which dask reads a few times; the result is in NumPy. Indices of a
        sparse tensor that have no entries take no memory but for their rows of zeros in the factors. Labels are kept of
        an xarray.DataArray, a pandas Series whose index has a level for each mode, and a data frame with a column of
        labels for each mode and the values in its last column; of the latter two, combinations that are not listed are
        missing, unless `codiag.io.labelled_tensor` says otherwise.
        A `codiag.Problem` says all of this itself, and more; then only `method` and `seed` are given beside it.
    rank : int or "auto"
        Number of components; "auto" is what `codiag.choose_rank` chooses, and an error where it finds no rank
        supported. ``fit.rank_choice`` has the evidence.
    loss : Loss or str, optional
        How entries scatter, by a name or an object of `codiag.losses`: "poisson" or "negative_binomial" for counts,
        "bernoulli" for yes or no, "huber" for entries with outliers. By default "gaussian", plain least squares;
        ``Gaussian(covariance="modes")`` estimates variances of the noise along each mode.
    method : Method or str, optional
        A configured object of `codiag.methods`, or the name of one: "ojd0", "ojd1", "nojd0", "nojd1", "als", "nls",
        "tpm". By default `codiag.methods.Auto`: joint diagonalization, then least
        squares.
    symmetric : bool or tuple of int, optional
        Whether all modes share one factor, or which of them do: (0, 1) for a stack of covariances or of similarities
        along mode 2. False by default: symmetry is never detected, but a `codiag.tensors.Tensor` may declare it. An
        array that noise has made asymmetric is factorized as its mean over permutations of these modes.
    constraints : Constraint, str, sequence with one for each mode, or dict from modes, optional
        What is known about the factors: "nonnegative", "orthogonal", or objects of `codiag.constraints`; None for a
        free mode. A single constraint applies to every mode. If modes share a factor, constraining one constrains all.
    observed : array in the shape of the tensor, optional
        Which entries were observed, or non-negative weights for them. By default all entries count equally.
    seed : int or numpy.random.Generator, optional
        The same seed gives the same answer, on every device.
    progress : bool, optional
        Whether to show a bar on the standard error, or below the cell of a notebook; where the standard error is no
        terminal, a line every ten seconds. By default, a bar appears after ten seconds in terminals and notebooks.

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
    more would only wait for each other. The limit is one of the process while only such fits run, in any number of
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
    stated = {"constraints": constraints, "observed": observed, "symmetric": symmetric, "loss": loss}
    problem = as_problem(tensor, rank, **stated)
    warn_of_unlisted_counts(problem.loss, tensor, problem.n_observed, problem.tensor.shape, stacklevel=4)
    with progress_if(progress, "factorizing"):
        fit, complaint = fitted(problem, method, seed)
    if complaint is not None:
        warnings.warn(complaint, ConvergenceWarning, stacklevel=3)
    return fit


def fitted(problem: Problem, method: Any, seed: Any) -> tuple[Factorization, str | None]:
    """Return the fit of a problem, whose rank is chosen if it has none, and the text of a warning about it."""
    from codiag.selection import fit_with_chosen_rank

    strategy, choice = as_method(method), None
    is_correlated = problem.loss is not None and problem.loss.has_covariance
    if problem.rank == 0:
        plain = problem.with_loss(None) if is_correlated else problem
        fit = fit_with_chosen_rank(plain, method, seed, "rank cannot be 'auto'")
        problem, choice = problem.with_rank(fit.rank), fit.rank_choice
    elif not is_correlated:
        fit = solve(problem, strategy, seed)
    if is_correlated:
        fit = replace(whitened_fit(problem, strategy, seed), rank_choice=choice)
    return fit, complaint_about(fit, strategy)
