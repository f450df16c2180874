"""The function `choose_rank`: fit several ranks, collect evidence, choose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from codiag._arrays import Array, TensorLike
from codiag._checks import Seed, as_generator, as_number, check_n_jobs, explains_keywords
from codiag._progress import progress_if, tell
from codiag.constraints import ConstraintsLike
from codiag.losses import Loss
from codiag.methods import as_method
from codiag.problem import Problem, as_problem, most_components, warn_of_unlisted_counts
from codiag.result import Factorization, safe_scale, solve
from codiag.selection._choice import RankChoice
from codiag.selection._deviance import choose_by_deviance
from codiag.selection._evidence import (
    Evidence,
    compare_halves,
    decide,
    evidence_for,
    is_settled,
    ranks_tried,
    split_halves,
)
from codiag.selection._scan import Scan, scan

FIRST_RANKS = 10
"""Ranks from one that are tried first where none are given; then twice as many, until the choice is settled."""


@explains_keywords
def choose_rank(
    tensor: TensorLike,
    ranks: Iterable[int] | None = None,
    *,
    loss: Loss | str | None = None,
    constraints: ConstraintsLike = None,
    observed: Array | None = None,
    symmetric: bool | Sequence[int] = False,
    seed: Seed = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> RankChoice:
    r"""Find the number of components that a tensor supports, and say why.

    Every rank is fitted, and its components are compared with noise. What component i is worth is the growth of the
    squared distance without it, after all others have adapted: to first order for all components, and exactly for the
    smallest, from the fit of the rank below. The largest rank-one term of white noise of standard deviation
    :math:`\sigma` has a squared weight of at most :math:`\sigma^2 (\sum_m \sqrt{d_m} + 3.7)^2` in 999 of 1000 cases: a
    component that is worth no more than that may be noise. The components of a rank are *sound* where each is worth
    more, and no two cancel each other.

    - Where the residual of the largest sound rank passes for white noise (its largest singular value is below the edge
      of the Tracy-Widom law, or where parameters are more than half of the entries below what projected noise shows in
      simulations), the assumption behind that test is met, and this rank is chosen: fewer components leave one in the
      residual, more fit noise.
    - Where the residual is not white, or not known to be, the test says little: noise that is correlated has components
      too. Then what replicates and predicts decides. Of the sound ranks whose components are found in both halves of
      the data (cosines of 0.85 at least), the smallest is chosen that predicts the entries left out as well as the
      best, within one standard error of the difference.

    Where nothing is left, the rank is None: no rank is supported. Core consistency is reported but not used: noise
    lowers it where factors are collinear, and rank one always has 100 %.

    *Needs* what `factorize` needs. *Costs*, for a free and complete tensor, one compression, for the largest rank, and
    fits to the core, each from the diagonalization and from the rank before, with a few steps on the tensor itself
    where that has at most two million entries; halves likewise. Of a larger tensor nothing but the core is visited, and
    the rank that is chosen is fitted to the end. Constraints and missing entries take three fits a rank. *Guarantees*,
    for white noise, a chance of about one in a thousand that a component of noise is taken for one of the tensor.
    *Fails* where components are smaller than the largest term of noise, which no method can distinguish from noise, and
    where noise is correlated in the same way in both halves. Has little power where noise is not white and half of the
    data does not show the components, as in counts, for which there is ``loss="poisson"``. Rows of which too little was
    observed are named in the reason, and do not count against a rank.

    Parameters
    ----------
    tensor : anything that `codiag.factorize` takes
        Samples along the first mode, if any: halves are taken along it. The rank of a `codiag.Problem` is ignored.
    ranks : iterable of int, optional
        What to try; those too large for the shape, or for the constraints, are left out. By default the ranks from one
        to ten, then to twenty, forty and so on, until the last two ranks predict what was left out no better than a
        lower one, within one standard error, and a rank below them is chosen, or none is supported.
    loss : Loss or str, optional
        How entries scatter, as in `codiag.factorize`. Under a loss other than least squares, a quarter of the entries
        is left out four times, and the smallest rank is chosen that predicts them as well as the best, within one
        standard error of the difference of deviances. Every rank starts from least squares and from the rank below, and
        is fitted until steps gain less than noise explains; after one that predicts worse, the next gets a few steps
        from there, and after two no higher one is tried. The rank that is chosen is fitted as `codiag.factorize` does.
    constraints : Constraint, str, or sequence with one for each mode, optional
        What is known about the factors, as in `codiag.factorize`.
    observed : array in the shape of the tensor, optional
        Which entries were observed, or non-negative weights for them.
    symmetric : bool or tuple of int, optional
        Whether all modes share one factor, or which of them do, as in `codiag.factorize`.
    seed : int or numpy.random.Generator, optional
        The same seed gives the same answer, whatever `n_jobs` is.
    n_jobs : int, optional
        Number of processes, -1 for as many as there are cores; three are of use, for the tensor and its two halves. By
        default one, or what a ``joblib.parallel_config`` around the call says. They take about two seconds to start.
    progress : bool, optional
        Whether to show a bar on the standard error, or below the cell of a notebook; where the standard error is no
        terminal, a line every ten seconds. By default, a bar appears after ten seconds in terminals and notebooks.

    Returns
    -------
    RankChoice
        With ``rank``, ``reason``, ``fit``, ``fits``, ``table`` and ``plot()``; printed, all of it as a table.

    See Also
    --------
    codiag.factorize : With ``rank="auto"`` takes the rank chosen here.
    codiag.metrics.core_consistency : A part of the evidence.
    codiag.theory.kruskal_condition : Whether so many components are unique.

    References
    ----------
    I. M. Johnstone, "On the distribution of the largest eigenvalue in principal components analysis", Ann. Statist.
    29(2), 2001. A. B. Owen and P. O. Perry, "Bi-cross-validation of the SVD and the nonnegative matrix factorization",
    Ann. Appl. Stat. 3(2), 2009.

    Examples
    --------
    >>> import codiag
    >>> from codiag.synthetic import noisy_tensor
    >>> choice = codiag.choose_rank(noisy_tensor((8, 9, 10), 3, noise=0.01, seed=1).tensor, range(1, 6), seed=0)
    >>> choice.rank
    3
    >>> print(choice.reason[:47])
    Rank 3: all components stand out from the noise
    """
    wanted = None if ranks is None else _checked(ranks)
    rank = None if isinstance(tensor, Problem) else "auto"
    stated = {"constraints": constraints, "observed": observed, "symmetric": symmetric, "loss": loss}
    problem = as_problem(tensor, rank, **stated)
    warn_of_unlisted_counts(problem.loss, tensor, problem.n_observed, problem.tensor.shape, stacklevel=4)
    check_n_jobs(n_jobs)
    with progress_if(progress, "choosing the rank"):
        return choose(problem, wanted, as_generator(seed, apart=True), n_jobs)


def choose(
    problem: Problem, ranks: Sequence[int] | None, rng: np.random.Generator, n_jobs: int | None = None
) -> RankChoice:
    """Run `choose_rank` for a problem, whatever its rank, with ranks in ascending order, or as many as are needed."""
    if problem.loss is not None:
        most = range(1, most_components(problem.tensor.shape) + 1)
        return choose_by_deviance(problem, _allowed(problem, most if ranks is None else ranks), rng)
    if ranks is not None:
        return _chosen(problem, _tried(problem, _allowed(problem, ranks), rng, n_jobs))
    n_ranks = FIRST_RANKS
    tried = _tried(problem, _allowed(problem, range(1, n_ranks + 1)), rng, n_jobs)
    while not is_settled(tried.evidence, tried.rank):
        n_ranks = 2 * n_ranks
        allowed = _allowed(problem, range(1, n_ranks + 1))
        if len(allowed) == len(tried.evidence):  # higher ranks are not allowed
            break
        tried = _tried(problem, allowed, rng, n_jobs)
    return _chosen(problem, tried)


class _Tried(NamedTuple):
    """The scan of some ranks, the evidence, and what it says."""

    scanned: Scan
    evidence: tuple[Evidence, ...]
    rank: int | None
    reason: str


def _tried(problem: Problem, ranks: Sequence[int], rng: np.random.Generator, n_jobs: int | None) -> _Tried:
    """Fit ranks, to the tensor and to its halves, and decide."""
    from sklearn.utils.parallel import Parallel, delayed

    begun = Scan.begun(problem.scaled(1 / safe_scale(problem)).with_rank(ranks[-1]), rng)
    split = split_halves(begun, ranks, rng)
    whole = delayed(scan)(begun, ranks, np.random.default_rng(rng.integers(2**63)))
    tasks = [whole]
    for part in split.parts:
        own = np.random.default_rng(rng.integers(2**63))
        tasks.append(delayed(scan)(Scan.begun(part, own), split.ranks, own, polish=False))
    scanned, *scanned_halves = Parallel(n_jobs=n_jobs)(tasks)
    halves = compare_halves(split, scanned_halves, rng)
    evidence = tuple(evidence_for(scanned, rank, halves) for rank in ranks)
    return _Tried(scanned, evidence, *decide(evidence))


def _chosen(problem: Problem, tried: _Tried) -> RankChoice:
    """Fit the rank that is chosen to the end."""
    scanned, evidence, rank, reason = tried
    ranks = [one.rank for one in evidence]
    if rank is not None:
        tell("rank %d, to the end", rank, is_place=True)
        scanned.finish(rank)
    scale = safe_scale(problem)
    fits = {rank: _final(fit, problem.with_rank(rank), scale) for rank, fit in scanned.fits.items()}
    return RankChoice(rank, f"{reason} {ranks_tried(ranks)}", fits, evidence)


def fit_with_chosen_rank(problem: Problem, method: Any, seed: Any, refusal: str) -> Factorization:
    """Return a fit with the rank that is chosen, by a method if one is given; raise if no rank is supported."""
    choice = choose(problem, None, as_generator(seed, apart=True))
    if choice.rank is None:
        raise ValueError(f"{refusal} here. {choice.reason} See codiag.choose_rank, or give an integer")
    fit = choice.fit if method is None else solve(problem.with_rank(choice.rank), as_method(method), seed)
    return replace(fit, rank_choice=choice)


def _final(fit: Factorization, problem: Problem, scale: float) -> Factorization:
    """Return a fit in the units and with the labels of the problem that was stated."""
    stated = None if fit.problem is None else problem.with_loss(fit.loss)
    return replace(fit, weights=fit.weights * scale, norm=fit.norm * scale, problem=stated, labels=problem.labels)


def _checked(ranks: Any) -> list[int]:
    """Return ranks in ascending order, each once."""
    if isinstance(ranks, str) or not isinstance(ranks, Iterable):
        raise TypeError(f"ranks must be a range, as range(1, 11), or another iterable of integers; got {ranks!r}")
    wanted = list(ranks)
    for rank in wanted:
        as_number("ranks", rank, integer=True)
    if not wanted:
        raise ValueError("ranks must contain at least one rank; got none")
    return sorted({int(rank) for rank in wanted})


def _allowed(problem: Problem, ranks: Sequence[int]) -> list[int]:
    """Return the ranks that the shape and the constraints allow; raise the error of the first if there are none."""
    allowed, errors = [], []
    for rank in ranks:
        try:
            allowed.append(problem.with_rank(rank).rank)
        except ValueError as error:
            errors.append(error)
    if not allowed:
        raise errors[0]
    return allowed
