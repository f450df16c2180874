"""Factorize many tensors, each by itself: those of one shape in batches, others one after the other, or in parallel."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import is_array_api_obj

from codiag._arrays import Array, TensorLike, on_host
from codiag._checks import ConvergenceWarning, RNGLike, check_n_jobs, check_rng, explains_keywords
from codiag._factorize import fitted, with_settings
from codiag._progress import progress_if, tell
from codiag.constraints import ConstraintsLike
from codiag.labels import LabelsLike
from codiag.losses import Loss
from codiag.methods import Init, Method, as_method, is_default
from codiag.problem import Problem, as_problem
from codiag.result import Factorization, solve_together, warning_message

NAMED = 10
"""Tensors that a message names; it counts the others."""

HOST_BATCH = 2**21
"""Entries of the tensors that are swept together, at most: 262 tensors of 20 x 20 x 20. More are no faster."""

DEVICE_BATCH = 2**27
"""Entries of the tensors that are swept together on an accelerator, at most."""


class _Item(NamedTuple):
    """One of the tensors, and what was said about it."""

    place: int
    tensor: Any
    stated: dict[str, Any]
    method: Method
    rng: np.random.SeedSequence


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
    ...     codiag.factorize_each([np.ones((3, 3, 3)), np.zeros((3, 3, 3))], 1, rng=0)
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
    rank: int | str | Sequence[int | str] | None = None,
    *,
    loss: Loss | str | None = None,
    constraints: ConstraintsLike = None,
    mask: Array | Sequence[Array] | None = None,
    weights: Array | Sequence[Array] | None = None,
    symmetric: bool | Sequence[int] = False,
    init: Init | Sequence[Init] = None,
    method: Method | str | None = None,
    labels: LabelsLike = None,
    rng: RNGLike = None,
    progress: bool | None = None,
    n_jobs: int | None = None,
) -> list[Factorization]:
    """Factorize each of many tensors: what a loop over `factorize` gives, in a fraction of its time.

    Small complete tensors of one shape and rank are fitted together by accelerated alternating least squares, if
    factors are free or non-negative and the method is the default one. Those whose residual is not noise are then
    fitted one by one, as all others are: by `factorize`. Fits are the minima that `factorize` finds, to its tolerance.

    Parameters
    ----------
    tensors : array of shape (n, d_0, d_1, d_2, ...), or iterable of arrays or tensors
        A stack of tensors along its first axis, or tensors of any shapes, each of them what `factorize` takes, labels
        included. An iterator is read as the fits go on, so only as many of its tensors as have two million entries
        together are in memory at a time. NaN entries are missing; `codiag.Problem` objects, with `rank` left out, say
        more about each tensor.
    rank : int or "auto", or sequence with one for each tensor
        Number of components; "auto" chooses it for each tensor.
    loss, constraints : as in `factorize`, optional
        The same for all tensors.
    mask, weights : array in the shape of a tensor, or sequence with one for each, optional
        As in `factorize`.
    symmetric : bool or tuple of int
        As in `factorize`, the same for all tensors.
    init : as in `factorize`, or list with one for each tensor, optional
        The first start.
    method, labels : as in `factorize`, optional
        The same for all tensors.
    rng : int or numpy.random.Generator, optional
        The same integer gives the same answers, whatever `n_jobs` is and whatever the other tensors are: the random
        numbers of tensor i are those of ``numpy.random.SeedSequence(rng, spawn_key=(i,))``.
    progress : bool, optional
        None shows a bar after ten seconds in terminals and notebooks. True always shows one, or prints a line every ten
        seconds where there is no terminal. False never does.
    n_jobs : int, optional
        Number of processes, -1 for as many as there are cores. By default one, or what a ``joblib.parallel_config``
        around the call says. Small tensors are fitted on one thread of linear algebra each.

    Returns
    -------
    list of Factorization
        One for each tensor, in their order. One warning names all tensors that did not converge.

    Raises
    ------
    FailedFitsError
        Where some tensors cannot be factorized, after all others have been: it names them, its cause is the error of
        the first, and its attribute ``fits`` has the other fits. Where all fail for the same reason, that error is
        raised as it is.

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
    >>> fits = codiag.factorize_each(stack, 2, rng=0)
    >>> len(fits), max(fit.relative_error for fit in fits) < 1e-10
    (10, True)
    """
    from joblib import effective_n_jobs
    from sklearn.utils.parallel import Parallel, delayed

    check_n_jobs(n_jobs)
    _check_collection(tensors, rank)
    entropy = _entropy(rng)
    stated = {"loss": loss, "constraints": constraints, "symmetric": symmetric, "labels": labels}
    entries, broken = {"mask": mask, "weights": weights}, list[Exception]()
    items = (
        _Item(
            index,
            tensor,
            stated | {"rank": its_rank} | {key: _of_one(given, tensor, index) for key, given in entries.items()},
            as_method(method, init[index] if isinstance(init, list) else init),
            np.random.SeedSequence(entropy, spawn_key=(index,)),
        )
        for index, (tensor, its_rank) in enumerate(_until_error(_with_ranks(tensors, rank), broken))
    )
    most, is_kept = math.inf, isinstance(tensors, Sized)
    if is_kept:
        most = math.ceil(len(tensors) / effective_n_jobs(n_jobs))  # type: ignore[arg-type]
    with progress_if(progress, "factorizing tensors"):
        batches = Parallel(n_jobs=n_jobs)(delayed(_fitted)(batch, is_kept=is_kept) for batch in _batches(items, most))
    ends = [end for batch in batches for end in batch]
    if broken:
        raise broken[0]
    errors = {index: end for index, end in enumerate(ends) if isinstance(end, Exception)}
    if errors:
        raise _failure(errors, [None if index in errors else end[0] for index, end in enumerate(ends)])
    doubts = {index: doubt for index, (_, doubt) in enumerate(ends) if doubt is not None}
    if doubts:
        first, doubt = next(iter(doubts.items()))
        text = f"{len(doubts)} of {len(ends)} fits with a warning: {_names(doubts)}. tensors[{first}]: {doubt}"
        warnings.warn(text, ConvergenceWarning, stacklevel=3)
    return [fit for fit, _ in ends]


def _check_collection(tensors: Any, rank: Any) -> None:
    shape = getattr(tensors, "shape", None)
    if isinstance(shape, tuple) and len(shape) < 4 and getattr(tensors, "dtype", None) != np.dtype(object):
        raise ValueError(
            "tensors must be a stack of shape (n, d_0, d_1, d_2, ...), which has one axis more than its tensors, or an "
            f"iterable of tensors; got {type(tensors).__name__} of shape {shape}. For one tensor use codiag.factorize"
        )
    if isinstance(tensors, str | bytes | dict) or not isinstance(tensors, Iterable):
        raise TypeError(f"tensors must be a stack of tensors, or an iterable of them; got {type(tensors).__name__}")
    if _is_for_each(rank) and isinstance(tensors, Sized) and len(tensors) != len(rank):
        raise ValueError(_wrong_number(rank))


def _is_for_each(rank: Any) -> bool:
    """Return whether there is a rank for each tensor."""
    return isinstance(rank, Sized) and not isinstance(rank, str | bytes) and getattr(rank, "ndim", 1) > 0


def _wrong_number(rank: Any) -> str:
    return f"rank must be one for all tensors, or one for each of them; got {len(rank)} ranks for another number"


def _until_error(pairs: Iterator[tuple[Any, Any]], broken: list[Exception]) -> Iterator[tuple[Any, Any]]:
    """Yield pairs until their iterator raises, and keep that error, which joblib before 1.3 would lose."""
    try:
        yield from pairs
    except Exception as error:
        broken.append(error)


def _with_ranks(tensors: Iterable[Any], rank: Any) -> Iterator[tuple[Any, Any]]:
    """Yield tensors with their ranks."""
    index = -1
    for index, tensor in enumerate(tensors):
        tell("tensor %d", index, is_place=True)
        if _is_for_each(rank) and index >= len(rank):
            raise ValueError(_wrong_number(rank))
        yield tensor, rank[index] if _is_for_each(rank) else rank
    if _is_for_each(rank) and index + 1 < len(rank):
        raise ValueError(_wrong_number(rank))


def _of_one(given: Any, tensor: Any, index: int) -> Any:
    """Return the mask or the weights of one tensor: the same for all, or one for each."""
    if given is None:
        return None
    order = len(getattr(tensor, "shape", np.shape(tensor)))
    return given if getattr(given, "ndim", None) == order else given[index]


def _batches(items: Iterator[_Item], most: float) -> Iterator[list[_Item]]:
    """Yield tensors together that may be swept together, as many as the memory for a batch holds."""
    batch, left = list[_Item](), 0.0
    for item in items:
        size = math.prod(getattr(item.tensor, "shape", ()))
        if batch and (size > left or len(batch) >= most or not is_default(item.method)):
            yield batch
            batch = []
        if not batch:
            left = DEVICE_BATCH if is_array_api_obj(item.tensor) and not on_host(item.tensor) else HOST_BATCH
            left = left if is_default(item.method) else 0
        batch.append(item)
        left -= size
    if batch:
        yield batch


def _fitted(batch: list[_Item], *, is_kept: bool) -> list[tuple[Factorization, str | None] | Exception]:
    """Fit tensors, and let go of those that nobody else keeps; return the errors of wrong ones."""
    problems, ends = dict[int, Problem](), list[tuple[Factorization, str | None] | Exception]()
    errors: dict[int, Exception] = {}
    for item in batch:
        try:
            problems[item.place] = as_problem(item.tensor, **item.stated)
        except (ValueError, TypeError) as error:
            errors[item.place] = error
    joined = [item for item in batch if item.place in problems and is_default(item.method)]
    together = solve_together([problems[item.place] for item in joined], [item.rng for item in joined])
    known = {item.place: fit for item, fit in zip(joined, together, strict=True) if fit is not None}
    for item in batch:
        if item.place in errors:
            ends.append(errors[item.place])
            continue
        try:
            fit, doubt = _end(problems.pop(item.place), item, known.get(item.place))
        except (ValueError, TypeError) as error:
            ends.append(error)
        else:
            ends.append((fit if is_kept else fit.drop_data(), doubt))
    return ends


def _end(problem: Problem, item: _Item, fit: Factorization | None) -> tuple[Factorization, str | None]:
    """Return a fit, or that of one that the batch has left over, and the text of a warning about it."""
    if fit is None:
        return fitted(problem, item.method, item.rng)
    return with_settings(fit, item.method, item.rng), warning_message(fit, item.method)


def _failure(errors: Mapping[int, Exception], fits: Sequence[Factorization | None]) -> Exception:
    """Return the error that all tensors share, or one that names those without a fit."""
    first, error = next(iter(errors.items()))
    if len(errors) == len(fits) and len({str(other) for other in errors.values()}) == 1:
        return error
    failure = FailedFitsError(
        f"tensors must each allow a fit; {_names(errors)} of {len(fits)} did not. tensors[{first}]: {error}. The other "
        "fits are in `fits` of this error, a codiag.FailedFitsError",
        fits,
        errors,
    )
    failure.__cause__ = error
    return failure


def _entropy(rng: Any) -> int:
    """Return the number that the seeds of all tensors derive from: an integer seed itself, else one that is drawn."""
    check_rng("rng", rng)
    return int(rng) if isinstance(rng, int | np.integer) else int(np.random.default_rng(rng).integers(2**63))


def _names(by_index: Mapping[int, Any]) -> str:
    """Name some tensors by their indices, and count the others."""
    named = ", ".join(str(index) for index in list(by_index)[:NAMED])
    more = f" and {len(by_index) - NAMED} more" if len(by_index) > NAMED else ""
    return f"tensor{'s' if len(by_index) > 1 else ''} {named}{more}"
