"""The entry: a tensor and a rank in, a factorization out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from codiag._arrays import Array, TensorLike
from codiag._checks import ConvergenceWarning, RNGLike, explains_keywords
from codiag._progress import progress_if
from codiag.constraints import ConstraintsLike
from codiag.labels import LabelsLike
from codiag.losses import Loss
from codiag.methods import Init, Method, as_method
from codiag.problem import Problem, as_problem
from codiag.result import Factorization, solve, warning_message, whitened_fit


@explains_keywords
def factorize(
    tensor: TensorLike,
    rank: int | str | None = None,
    *,
    loss: Loss | str | None = None,
    constraints: ConstraintsLike = None,
    mask: Array | None = None,
    weights: Array | None = None,
    symmetric: bool | Sequence[int] = False,
    init: Init = None,
    method: Method | str | None = None,
    labels: LabelsLike = None,
    rng: RNGLike = None,
    progress: bool | None = None,
) -> Factorization:
    r"""Write a tensor as a sum of components, :math:`T \approx \sum_i w_i\, a_i \otimes b_i \otimes c_i`.

    Parameters
    ----------
    tensor : array, Tensor or Problem
        Of order three or more. Arrays of NumPy, torch, CuPy, JAX and dask; zarr and h5py arrays, which are read in
        chunks. xarray.DataArray, masked arrays, COO tensors, and any `codiag.tensors.Tensor`. Data frames with a column
        for each mode and the values in the last. NaN and masked entries are missing. Infinities are an error.
        Combinations that a data frame does not list are missing; `codiag.io.labelled_tensor` can make them zero. A
        `codiag.Problem` states the arguments below itself, except `init`, `method`, `rng` and `progress`.
    rank : int or "auto"
        Number of components. "auto" takes the choice of `codiag.choose_rank`, and is an error if it finds none.
    loss : Loss or str, optional
        The noise distribution, by default "gaussian": least squares. "poisson" or "negative_binomial" for counts,
        "bernoulli" for binary data, "huber" for outliers; or an object of `codiag.losses`.
    constraints : Constraint, str, sequence with one for each mode, or dict from modes, optional
        What is known about the factors. "nonnegative", "orthogonal", or objects of `codiag.constraints`; None for a
        free mode. A single constraint applies to every mode. The keys of a dict are numbers or names of modes. If modes
        share a factor, a constraint on one holds for all.
    mask : array of bool in the shape of the tensor, optional
        True where an entry counts. The others are missing.
    weights : array in the shape of the tensor, optional
        Non-negative weights of the entries, proportional to 1 / variance.
    symmetric : bool or tuple of int
        Whether all modes share one factor, or which of them do. A stack of covariance matrices along mode 2 has (0,
        1). Symmetry is never detected. The tensor is averaged over permutations of these modes.
    init : fit, (weights, factors) or factors, optional
        The first start, such as an earlier fit. If its minimum leaves more than noise, the usual starts follow.
    method : Method or str, optional
        An object of `codiag.methods`, or its name. By default `codiag.methods.Auto`.
    labels : Labels, sequence of str, or dict of str to labels, optional
        Names of the modes and labels of their indices, if the tensor has none.
    rng : int or numpy.random.Generator, optional
        The source of random numbers (SPEC 7). The same integer gives the same answer, on every device.
    progress : bool, optional
        None shows a bar after ten seconds in terminals and notebooks. True always shows one, or prints a line every ten
        seconds where there is no terminal. False never does.

    Returns
    -------
    Factorization
        It unpacks as ``weights, factors = fit``, and has

        - ``weights``, largest first, and ``factors``, an array of unit columns for each mode;
        - ``relative_error``, ``explained_variance`` of each component, ``converged``, ``history``;
        - ``standard_errors``, ``conf_int()`` and ``bootstrap()``, with ``noise_model``, the noise they are valid for;
        - ``diagnose()``: which components the data determine, and what to try; ``describe()``: a methods section;
        - ``transform(new)``: coefficients of new samples; ``predict(indices)`` and ``to_tensor()``: fitted entries;
        - ``to_table()``, ``to_xarray()``, ``plot()``, ``save(path)``;
        - ``problem``, which was asked, and ``rank_choice``, how "auto" was chosen.

    See Also
    --------
    choose_rank : How many components a tensor supports.
    factorize_each : Many tensors, in parallel.
    joint_diagonalize : Stacks of matrices.
    codiag.methods : The methods, and which to use when.
    codiag.models.CP : An estimator of scikit-learn.

    Notes
    -----
    Small arrays, with at most four million entries times components, are fitted on one thread of linear algebra. The
    limit is one of the process while only such fits run, in any number of Python's threads, and is lifted afterwards.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> rng = np.random.default_rng(0)
    >>> a, b, c = (rng.standard_normal((size, 4)) for size in (5, 6, 7))
    >>> fit = codiag.factorize(np.einsum("ir,jr,kr->ijk", a, b, c), 4, rng=0)
    >>> fit.weights.shape, fit.relative_error < 1e-12, codiag.factor_error(fit, (a, b, c)) < 1e-10
    ((4,), True, True)

    A stack of symmetric matrices, with one factor for their rows and columns:

    >>> fit = codiag.factorize(np.einsum("ir,jr,kr->ijk", a, a, c), 4, symmetric=(0, 1), rng=0)
    >>> np.array_equal(fit.factors[0], fit.factors[1]), codiag.factor_error(fit, (a, a, c)) < 1e-10
    (True, True)
    """
    stated = {
        "loss": loss,
        "constraints": constraints,
        "mask": mask,
        "weights": weights,
        "symmetric": symmetric,
        "labels": labels,
    }
    problem = as_problem(tensor, rank, **stated)
    with progress_if(progress, "factorizing"):
        fit, message = fitted(problem, as_method(method, init), rng)
    if message is not None:
        warnings.warn(message, ConvergenceWarning, stacklevel=3)
    if fit.rank_choice is not None and fit.rank_choice.set_aside:
        warnings.warn(fit.rank_choice.entries_in_words, UserWarning, stacklevel=3)
    return fit


def fitted(problem: Problem, method: Method, rng: Any) -> tuple[Factorization, str | None]:
    """Return the fit of a problem, whose rank is chosen if it has none, and the text of a warning about it."""
    from codiag.selection import fit_with_chosen_rank

    choice, is_correlated = None, problem.loss is not None and problem.loss.has_covariance
    if problem.rank == 0:
        plain = problem.with_loss(None) if is_correlated else problem
        fit = fit_with_chosen_rank(plain, method, rng, "rank cannot be 'auto'")
        problem, choice = problem.with_rank(fit.rank), fit.rank_choice
    elif not is_correlated:
        fit = solve(problem, method, rng)
    if is_correlated:
        fit = replace(whitened_fit(problem, method, rng), rank_choice=choice)
    return with_settings(fit, method, rng), warning_message(fit, method)


def with_settings(fit: Factorization, method: Method, rng: Any) -> Factorization:
    """Return a fit that knows the version, the method and the seed it was computed with."""
    from codiag import __version__

    seed = int(rng) if isinstance(rng, int | np.integer) else None
    options = ", ".join(f"{name}={value!r}" for name, value in vars(method).items() if value is not None)
    return replace(
        fit, _settings={"version": __version__, "method": f"{type(method).__name__}({options})", "rng": seed}
    )
