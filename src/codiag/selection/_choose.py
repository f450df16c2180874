"""The function `choose_rank`: fit several ranks, collect evidence, choose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from codiag._arrays import Array, TensorLike
from codiag._checks import Seed, as_generator, as_number, check_n_jobs, explains_keywords
from codiag._progress import progress_if
from codiag.constraints import ConstraintsLike
from codiag.losses import Loss
from codiag.methods import as_method
from codiag.problem import Problem, as_problem
from codiag.result import Factorization, safe_scale, solve
from codiag.selection._choice import RankChoice
from codiag.selection._deviance import choose_by_deviance
from codiag.selection._evidence import Split, compare_halves, decide, evidence_for, split_halves
from codiag.selection._scan import Scan, scan, tell_rank

DEFAULT_RANKS = range(1, 11)


@explains_keywords
def choose_rank(
    tensor: TensorLike,
    ranks: Iterable[int] = DEFAULT_RANKS,
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
    ranks : iterable of int
        What to try; those too large for the shape, or for the constraints, are left out.
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
        Whether to show a bar on the standard error, or below the cell of a notebook, if it takes more than two seconds.
        By default, one appears after ten seconds, and never where the standard error is no terminal.

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
    wanted = _checked(ranks)
    rank = None if isinstance(tensor, Problem) else "auto"
    stated = {"constraints": constraints, "observed": observed, "symmetric": symmetric, "loss": loss}
    problem = as_problem(tensor, rank, **stated)
    check_n_jobs(n_jobs)
    with progress_if(progress, "choosing the rank"):
        return choose(problem, wanted, as_generator(seed, apart=True), n_jobs)


def choose(problem: Problem, ranks: Sequence[int], rng: np.random.Generator, n_jobs: int | None = None) -> RankChoice:
    """Run `choose_rank` for a problem, whatever its rank, with ranks in ascending order."""
    from sklearn.utils.parallel import Parallel, delayed

    scale = safe_scale(problem)
    allowed = _allowed(problem, ranks)
    if problem.loss is not None:
        return choose_by_deviance(problem, allowed, rng)
    begun = Scan.begun(problem.scaled(1 / scale).with_rank(allowed[-1]), rng)
    split = split_halves(begun, allowed, rng)
    whole = delayed(scan)(begun, allowed, np.random.default_rng(rng.integers(2**63)))
    scanned, *scanned_halves = Parallel(n_jobs=n_jobs)([whole, *_scans_of(split, rng)])
    halves = compare_halves(split, scanned_halves, rng)
    evidence = tuple(evidence_for(scanned, rank, halves) for rank in allowed)
    rank, reason = decide(evidence)
    others = split_halves(begun, allowed, rng, but=split.mode) if rank is None and split.parts else Split()
    if others.parts:  # what does not replicate in samples may replicate in channels
        halves = compare_halves(others, Parallel(n_jobs=n_jobs)(_scans_of(others, rng)), rng)
        again = tuple(evidence_for(scanned, rank, halves) for rank in allowed)
        rank, found = decide(again)
        if rank is not None:
            differ = f"those of mode {split.mode} differ at every rank, so that this rank is less certain"
            evidence, reason = again, f"{found} These are halves of mode {others.mode}; {differ}."
    if rank is not None:
        tell_rank(rank, ranks, ", to the end")
        scanned.finish(rank)
    fits = {rank: _final(fit, problem.with_rank(rank), scale) for rank, fit in scanned.fits.items()}
    return RankChoice(rank, reason, fits, evidence)


def _scans_of(split: Split, rng: np.random.Generator) -> list[Any]:
    """Return the scans of both halves, to be run."""
    from sklearn.utils.parallel import delayed

    tasks = []
    for part in split.parts:
        own = np.random.default_rng(rng.integers(2**63))
        tasks.append(delayed(scan)(Scan.begun(part, own), split.ranks, own, polish=False))
    return tasks


def fit_with_chosen_rank(problem: Problem, method: Any, seed: Any, refusal: str) -> Factorization:
    """Return a fit with the rank chosen from one to ten, by a method if one is given; raise if no rank is supported."""
    choice = choose(problem, DEFAULT_RANKS, as_generator(seed, apart=True))
    if choice.rank is None:
        raise ValueError(f"{refusal} here. {choice.reason} See codiag.choose_rank, or give an integer")
    return choice.fit if method is None else solve(problem.with_rank(choice.rank), as_method(method), seed)


def _final(fit: Factorization, problem: Problem, scale: float) -> Factorization:
    """Return a fit in the units and with the labels of the problem that was stated."""
    stated, data = (None if kept is None else problem for kept in (fit.problem, fit.data))
    weights = fit.weights * scale
    return replace(fit, weights=weights, norm=fit.norm * scale, problem=stated, labels=problem.labels, data=data)


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
