"""Many tensors, each factorized by itself, in parallel where that is asked for."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from codiag._factorization import Factorization
from codiag._factorize import as_method, as_problem, complaint_about, solve
from codiag._validation import ConvergenceWarning, check_seed
from codiag.methods import Method

NAMED = 10
"""Tensors that a message names; it counts the others."""


def factorize_each(
    tensors: Iterable[Any],
    rank: int | Sequence[int] | None = None,
    *,
    method: Method | str | None = None,
    symmetric: bool | Sequence[int] | None = None,
    constraints: Any = None,
    seed: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
) -> list[Factorization]:
    """Factorize each of many tensors: what a loop over `factorize` gives, with one warning and on all cores.

    Parameters
    ----------
    tensors : array of shape (n, d_0, d_1, d_2, ...), or iterable of arrays or tensors
        A stack of tensors along its first axis, or tensors of any shapes, each of them what `factorize` takes. NaN
        entries are missing; `codiag.Problem` objects, with `rank` left out, say more about each tensor.
    rank : int, or sequence with one for each tensor
        Number of components.
    method, symmetric, constraints
        As for `factorize`, the same for all tensors.
    seed : int or numpy.random.Generator, optional
        The same seed gives the same answers, whatever `n_jobs` is: tensor i is factorized as by ``factorize`` with
        ``seed=numpy.random.SeedSequence(seed, spawn_key=(i,))``.
    n_jobs : int, optional
        Number of processes, -1 for as many as there are cores. By default one, or what a ``joblib.parallel_config``
        around the call says. Small tensors are fitted on one thread of linear algebra each; see `factorize`.

    Returns
    -------
    list of Factorization
        One for each tensor, in their order. One warning names all tensors that did not converge. Where some tensors
        cannot be factorized at all, an error names them, with that of the first as its cause.

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

    strategy, entropy = as_method(method), _entropy(seed)
    given = _listed(tensors)
    jobs = (
        _Job(index, tensor, own, symmetric, constraints, strategy, entropy)
        for index, (tensor, own) in enumerate(zip(given, _ranks(rank, len(given)), strict=True))
    )
    ends = Parallel(n_jobs=n_jobs)(delayed(_fitted)(job) for job in jobs)
    failures = {index: end for index, end in enumerate(ends) if isinstance(end, Exception)}
    if failures:
        first, error = next(iter(failures.items()))
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"tensors must each allow a fit; {_names(failures)} do not. tensors[{first}]: {error}") from error
    complaints = {index: end.complaint for index, end in enumerate(ends) if end.complaint is not None}
    if complaints:
        first, complaint = next(iter(complaints.items()))
        text = (
            f"{len(complaints)} of {len(ends)} fits are in doubt: {_names(complaints)}. tensors[{first}]: {complaint}"
        )
        warnings.warn(text, ConvergenceWarning, stacklevel=2)
    return [end.fit for end in ends]


class _Job(NamedTuple):
    """One tensor, and all that is said about it."""

    place: int
    tensor: Any
    rank: int | None
    symmetric: bool | Sequence[int] | None
    constraints: Any
    method: Method
    entropy: int


class _End(NamedTuple):
    """A fit, and what is to be said of it."""

    fit: Factorization
    complaint: str | None


def _fitted(job: _Job) -> _End | Exception:
    """Fit one tensor; return what a wrong one is refused with, which belongs to the caller's process."""
    try:
        problem = as_problem(job.tensor, job.rank, job.constraints, None, job.symmetric)
        fit = solve(problem, job.method, np.random.SeedSequence(job.entropy, spawn_key=(job.place,)))
    except (ValueError, TypeError) as refusal:
        return refusal
    return _End(fit, complaint_about(fit, problem, job.method))


def _entropy(seed: Any) -> int:
    """Return the number that the seeds of all tensors derive from: an integer seed itself, else one that is drawn."""
    check_seed("seed", seed)
    if isinstance(seed, int | np.integer):
        return int(seed)
    return int(np.random.default_rng(seed).integers(2**63))


def _listed(tensors: Iterable[Any]) -> list[Any]:
    if isinstance(tensors, str | bytes | dict) or not isinstance(tensors, Iterable):
        raise TypeError(f"tensors must be a stack of tensors, or an iterable of them; got {type(tensors).__name__}")
    return list(tensors)


def _ranks(rank: Any, count: int) -> list[Any]:
    """Return one rank for each tensor; `factorize` checks what they are."""
    if not isinstance(rank, Sequence | np.ndarray) or isinstance(rank, str) or np.ndim(rank) == 0:
        return [rank] * count
    if len(rank) != count:
        raise ValueError(f"rank must be one integer, or one for each of {count} tensors; got {len(rank)} of them")
    return list(rank)


def _names(found: dict[int, Any]) -> str:
    """Name some tensors by their indices, and count the others."""
    named = ", ".join(str(index) for index in list(found)[:NAMED])
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return f"tensors {named}{more}"
