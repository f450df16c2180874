"""Factorize many tensors, each by itself, one after the other or in parallel."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from typing import Any, NamedTuple, NoReturn

import numpy as np

from codiag._arrays import Array, TensorLike
from codiag._checks import ConvergenceWarning, Seed, as_number, check_n_jobs, check_seed, explains_keywords
from codiag._factorize import fitted
from codiag._progress import progress_if
from codiag.constraints import ConstraintsLike
from codiag.labels import Labelled
from codiag.methods import Method, as_method
from codiag.problem import Problem, as_problem, logger
from codiag.result import Factorization

NAMED = 10
"""Tensors that a message names; it counts the others."""


class FailedFitsError(ValueError):
    """Some of many tensors could not be factorized; the fits of the others are kept.

    Parameters
    ----------
    message : str
        What happened.
    fits : sequence of Factorization or None
        One for each tensor, None for those that have none.
    errors : mapping of int to Exception
        Why there is none, by the index of the tensor.

    Attributes
    ----------
    fits, errors
        What was given.

    See Also
    --------
    factorize_each : Raises it.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> try:
    ...     codiag.factorize_each([np.ones((3, 3, 3)), np.zeros((3, 3, 3))], 1, seed=0)
    ... except codiag.FailedFitsError as failed:
    ...     print([fit is not None for fit in failed.fits], list(failed.errors))
    [True, False] [1]
    """

    def __init__(
        self,
        message: str,
        fits: Sequence[Factorization | None] = (),
        errors: Mapping[int, Exception] | None = None,
    ) -> None:
        super().__init__(message)
        self.fits, self.errors = list(fits), dict(errors or {})


@explains_keywords
def factorize_each(
    tensors: Iterable[TensorLike],
    rank: int | str | Iterable[int | str] | None = None,
    *,
    method: Method | str | None = None,
    symmetric: bool | Sequence[int] = False,
    constraints: ConstraintsLike = None,
    observed: Array | Sequence[Array] | None = None,
    seed: Seed = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> list[Factorization]:
    """Factorize each of many tensors: what a loop over `factorize` gives, with one warning and on all cores.

    Parameters
    ----------
    tensors : array of shape (n, d_0, d_1, d_2, ...), or iterable of arrays or tensors
        A stack of tensors along its first axis, or tensors of any shapes, each of them what `factorize` takes, labels
        included. An iterator is read as the fits go on, so only a few of its tensors are in memory at a time. NaN
        entries are missing; `codiag.Problem` objects, with `rank` left out, say more about each tensor.
    rank : int or "auto", or iterable with one for each tensor
        Number of components; "auto" chooses it for each tensor.
    method : Method or str, optional
        As for `factorize`, the same for all tensors.
    symmetric : bool or tuple of int, optional
        As for `factorize`, the same for all tensors.
    constraints : Constraint, str, or sequence with one for each mode, optional
        As for `factorize`, the same for all tensors.
    observed : array in the shape of a tensor, or sequence with one for each, optional
        Which entries were observed, or non-negative weights for them.
    seed : int or numpy.random.Generator, optional
        The same seed gives the same answers, whatever `n_jobs` is: tensor i is factorized as by ``factorize`` with
        ``seed=numpy.random.SeedSequence(seed, spawn_key=(i,))``.
    n_jobs : int, optional
        Number of processes, -1 for as many as there are cores. By default one, or what a ``joblib.parallel_config``
        around the call says. Small tensors are fitted on one thread of linear algebra each; see `factorize`.
    progress : bool, optional
        Whether to show a bar on the standard error, or below the cell of a notebook, if it takes more than two seconds.
        By default, one appears after ten seconds, and never where the standard error is no terminal.

    Returns
    -------
    list of Factorization
        One for each tensor, in their order. One warning names all tensors that did not converge.

    Raises
    ------
    FailedFitsError
        Where some tensors cannot be factorized, after all others have been: it names them, its cause is the error of
        the first, and its attribute ``fits`` has the other fits.

    See Also
    --------
    factorize : One tensor.
    FailedFitsError : Raised where some of the fits fail.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> factors = np.random.default_rng(0).standard_normal((3, 10, 6, 2))
    >>> stack = np.einsum("nir,njr,nkr->nijk", *factors)
    >>> fits = codiag.factorize_each(stack, 2, seed=0)
    >>> len(fits), max(fit.relative_error for fit in fits) < 1e-10
    (10, True)
    """
    from sklearn.utils.parallel import Parallel, delayed

    strategy, entropy = None if method is None else as_method(method), _entropy(seed)
    check_n_jobs(n_jobs)
    given = _Given(tensors, rank)
    with progress_if(progress, "factorizing tensors"):
        ends = Parallel(n_jobs=n_jobs)(
            delayed(_fitted if isinstance(tensors, Sized) else _fitted_and_let_go)(
                tensor,
                {"rank": its_rank, "constraints": constraints, "symmetric": symmetric}
                | {"observed": _observed_of(observed, tensor, index)},
                strategy,
                np.random.SeedSequence(entropy, spawn_key=(index,)),
            )
            for index, (tensor, its_rank) in enumerate(given)
        )
    if given.error is not None:
        raise given.error
    failures = {index: end for index, end in enumerate(ends) if isinstance(end, _Refusal)}
    if failures:
        _raise_failures(failures, [None if isinstance(end, _Refusal) else end.fit for end in ends])
    complaints = {index: end.complaint for index, end in enumerate(ends) if end.complaint is not None}
    if complaints:
        first, complaint = next(iter(complaints.items()))
        are = "is" if len(complaints) == 1 else "are"
        text = (
            f"{len(complaints)} of {len(ends)} fits {are} in doubt: {_names(complaints)}. tensors[{first}]: {complaint}"
        )
        warnings.warn(text, ConvergenceWarning, stacklevel=3)
    return [end.fit for end in ends]


class _Given:
    """An iterator over tensors and their ranks that ends at what is wrong with them, and keeps the error.

    It is read in threads of joblib, where an exception would not reach the caller in all versions.
    """

    def __init__(self, tensors: Any, rank: Any) -> None:
        _check_collection(tensors)
        self.error: Exception | None = None
        self._tensors = iter(tensors)
        self._one_for_all = rank is None or isinstance(rank, str | bytes) or not _is_iterable(rank)
        if not self._one_for_all and isinstance(rank, Sized) and isinstance(tensors, Sized):
            _check_number(str(len(rank)), len(tensors) == len(rank), f"{len(tensors)} tensors")
        self._ranks: Iterator[Any] = itertools.repeat(_checked_rank(rank)) if self._one_for_all else iter(rank)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        try:
            yield from self._pairs()
        except Exception as error:
            self.error = error

    def _pairs(self) -> Iterator[tuple[Any, Any]]:
        count = 0
        for count, tensor in enumerate(self._tensors, start=1):
            pair = list(itertools.islice(self._ranks, 1))
            _check_number(f"only {count - 1}", bool(pair), "the tensors")
            rank = _checked_rank(pair[0])
            if rank is None and not isinstance(tensor, Problem):
                raise TypeError(
                    "rank must be an integer or 'auto', or one of these for each tensor; it may be left out only for "
                    f"codiag.Problem objects, and tensors[{count - 1}] is of type {type(tensor).__name__}"
                )
            logger.info("tensor %d", count - 1)
            yield tensor, rank
        if not self._one_for_all:
            _check_number("more", not list(itertools.islice(self._ranks, 1)), f"{count} tensors")


class _End(NamedTuple):
    """A fit, and the text of a warning about it."""

    fit: Factorization
    complaint: str | None


class _Refusal(NamedTuple):
    """The error of a tensor, and whether the tensor could be factorized with other arguments."""

    error: Exception
    is_tensor_right: bool


def _observed_of(observed: Any, tensor: Any, index: int) -> Any:
    """Return the weights of the entries of one tensor: the same for all, or one for each."""
    if observed is None:
        return None
    order = len(getattr(tensor, "shape", np.shape(tensor)))
    return observed if getattr(observed, "ndim", None) == order else observed[index]


def _fitted(tensor: Any, stated: dict[str, Any], method: Method | None, seed: Any) -> _End | _Refusal:
    """Fit one tensor; return the error of a wrong one, to be raised in the process of the caller."""
    try:
        problem = as_problem(tensor, **stated)
    except (ValueError, TypeError) as refusal:
        return _Refusal(refusal, _is_right(tensor))
    try:
        return _End(*fitted(problem, method, seed))
    except (ValueError, TypeError) as refusal:
        return _Refusal(refusal, is_tensor_right=False)


def _fitted_and_let_go(*stated: Any) -> _End | _Refusal:
    """Do the same for a tensor that nobody else keeps: neither does the fit."""
    end = _fitted(*stated)
    return end if isinstance(end, _Refusal) else end._replace(fit=end.fit.without_data())


def _is_right(tensor: Any) -> bool:
    """Return whether a tensor can be factorized without constraints."""
    try:
        as_problem(tensor, None if isinstance(tensor, Problem) else 1)
    except (ValueError, TypeError):
        return False
    return True


def _raise_failures(failures: dict[int, _Refusal], fits: list[Factorization | None]) -> NoReturn:
    """Raise the error of an argument that no tensor could be fitted with, or one that names the tensors."""
    first, refusal = next(iter(failures.items()))
    if len(failures) == len(fits) and refusal.is_tensor_right:
        raise refusal.error
    n_kept = len(fits) - len(failures)
    others = f". The other {n_kept} are in `fits` of this error, a codiag.FailedFitsError" if n_kept else ""
    do = "does" if len(failures) == 1 else "do"
    raise FailedFitsError(
        f"tensors must each allow a fit; {_names(failures)} {do} not. tensors[{first}]: {refusal.error}{others}",
        fits,
        {index: failure.error for index, failure in failures.items()},
    ) from refusal.error


def _entropy(seed: Any) -> int:
    """Return the number that the seeds of all tensors derive from: an integer seed itself, else one that is drawn."""
    check_seed("seed", seed)
    if isinstance(seed, int | np.integer):
        return int(seed)
    return int(np.random.default_rng(seed).integers(2**63))


def _check_collection(tensors: Any) -> None:
    shape = getattr(tensors, "shape", None)
    if isinstance(shape, tuple) and len(shape) < 4 and getattr(tensors, "dtype", None) != np.dtype(object):
        raise ValueError(
            "tensors must be a stack of shape (n, d_0, d_1, d_2, ...), which has one axis more than its tensors, or an "
            f"iterable of tensors; got {type(tensors).__name__} of shape {shape}. For one tensor use codiag.factorize"
        )
    if isinstance(tensors, str | bytes | dict | Labelled) or not _is_iterable(tensors):
        raise TypeError(f"tensors must be a stack of tensors, or an iterable of them; got {type(tensors).__name__}")


def _is_iterable(values: Any) -> bool:
    return isinstance(values, Iterable) and getattr(values, "ndim", 1) > 0


def _checked_rank(rank: Any) -> Any:
    """Return a rank that could be one; `factorize` checks it against the tensor."""
    if rank is None or (isinstance(rank, str) and rank == "auto"):
        return rank
    if isinstance(rank, bool) or not isinstance(rank, int | np.integer):
        raise TypeError(f"rank must be an integer or 'auto', or one of these for each tensor; got {rank!r}")
    as_number("rank", int(rank), integer=True)
    return rank


def _check_number(n_ranks: str, is_right: bool, n_tensors: str) -> None:
    if not is_right:
        raise ValueError(f"rank must be one for all tensors, or one for each of {n_tensors}; got {n_ranks} of them")


def _names(by_index: dict[int, Any]) -> str:
    """Name some tensors by their indices, and count the others."""
    named = ", ".join(str(index) for index in list(by_index)[:NAMED])
    more = f" and {len(by_index) - NAMED} more" if len(by_index) > NAMED else ""
    return f"tensor{'s' if len(by_index) > 1 else ''} {named}{more}"
