"""The function `choose_rank`: fit ranks upward, assess them, choose."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from codiag._arrays import Array, TensorLike, to_host
from codiag._checks import RNGLike, as_generator, as_number, explains_keywords
from codiag._progress import progress_if, tell
from codiag._text import listed
from codiag.constraints import ConstraintsLike
from codiag.diagnosis import FAIR, codes_of
from codiag.labels import LabelsLike
from codiag.losses import Loss
from codiag.methods import DEFAULT, Init, Method, as_method
from codiag.problem import Problem, as_problem, most_components
from codiag.reduction import safe_scale
from codiag.result import Factorization, solve
from codiag.selection._choice import RankChoice, entries_in_words
from codiag.selection._parafac2 import choose_slices
from codiag.selection._representative import Representative
from codiag.selection._upward import Tried, Upwards, best_prediction, takes_single_entries

FIRST_DIRECTIONS = 16
"""Directions of each mode of a large tensor in which ranks are tried first; then twice as many."""

ENOUGH, MOST_DEGENERATE = 2, 6
"""Ranks in a row that add nothing, and that are degenerate, after which no higher one is tried."""


@explains_keywords
def choose_rank(
    tensor: TensorLike,
    ranks: Iterable[int] | None = None,
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
    model: str = "cp",
) -> RankChoice:
    r"""Find the number of components that a tensor supports, and say why.

    Ranks are fitted upward, each from the one below as well as from the usual start. A rank is supported if every
    component of its fit

    - is *significant*: it exceeds the largest rank-one term that noise may have, by random sign flips of the residual,
      which assume neither a distribution of the noise nor equal variances, and allow for correlations along modes;
    - is *determined*: its expected congruence with the true component is at least .85, by its standard error, and no
      two components are degenerate;
    - *replicates*: it is found in both halves of the data, with a congruence of at least .85.

    This is what `Factorization.diagnose` says of a fit, too. The largest supported rank is chosen, once the next two
    add nothing: they are not supported, and do not predict held-out entries better. If higher ranks predict better but
    are not supported, the reason says so: the CP model may be wrong. An entry that is far out of line, such as a spike
    or a code for missing values, is set aside, and named. If no rank is supported, it is None.

    Core consistency is reported but not used: noise lowers it where factors are collinear, and rank one always has
    100 %.

    Parameters
    ----------
    tensor : anything that `codiag.factorize` takes
        Samples along the first mode, if any: halves are taken along it. The rank of a `codiag.Problem` is ignored.
    ranks : iterable of int, optional
        What to try; those too large for the shape, or for the constraints, are left out. By default ranks from one
        upward, until two in a row add nothing.
    loss : Loss or str, optional
        The noise distribution: "poisson" or "negative_binomial" for counts, "bernoulli" for binary data, "huber" for
        data with outliers, or an object of `codiag.losses`. By default "gaussian", least squares.
        ``Gaussian(covariance="modes")`` also estimates the noise variance along each mode.
    constraints : Constraint, str, sequence with one for each mode, or dict from modes, optional
        What is known about the factors: "nonnegative", "orthogonal", or objects of `codiag.constraints`; None for a
        free mode. A single constraint applies to every mode; a dict has numbers or names of modes. If modes share a
        factor, a constraint on one holds for all.
    mask : array of bool in the shape of the tensor, optional
        True where an entry counts. The others are missing, as NaN and masked entries are.
    weights : array in the shape of the tensor, optional
        Non-negative weights of the entries, proportional to 1 / variance.
    symmetric : bool or tuple of int
        Whether all modes share one factor, or which of them do: (0, 1) for a stack of covariance matrices along mode
        2. Symmetry is never detected. An array that is not symmetric is averaged over permutations of these modes.
    init : fit, (weights, factors) or factors, optional
        The first start of the fit with the rank that is chosen.
    method : Method or str, optional
        An object of `codiag.methods`, or its name, for the rank that is chosen. By default `codiag.methods.Auto`.
    labels : Labels, sequence of str, or dict of str to labels, optional
        Names of the modes, and labels of their indices, for a tensor that brings none.
    rng : int or numpy.random.Generator, optional
        The source of random numbers (SPEC 7). The same integer gives the same answer, on every device.
    progress : bool, optional
        None shows a bar after ten seconds in terminals and notebooks. True always shows one, or prints a line every ten
        seconds where there is no terminal. False never does.
    model : {"cp", "parafac2"}
        The model: with "parafac2", `tensor` is what `codiag.parafac2` takes, halves are taken of the slices, and of the
        other options only `constraints`, `mask`, `rng` and `progress` count.

    Returns
    -------
    RankChoice
        With ``rank``, ``reason``, ``fit``, ``fits``, ``table`` and ``plot()``; printed, all of it as a table.

    See Also
    --------
    codiag.factorize : With ``rank="auto"`` takes the rank chosen here.
    codiag.metrics.core_consistency : A part of the evidence.
    codiag.diagnosis.kruskal_condition : Whether so many components are unique.

    References
    ----------
    D. Hong, Y. Sheng and E. Dobriban, "Selecting the number of components in PCA via random signflips",
    arXiv:2012.02985. A. B. Owen and P. O. Perry, "Bi-cross-validation of the SVD and the nonnegative matrix
    factorization", Ann. Appl. Stat. 3(2), 2009. U. Lorenzo-Seva and J. M. F. ten Berge, "Tucker's congruence
    coefficient as a meaningful index of factor similarity", Methodology 2, 2006.

    Examples
    --------
    >>> import codiag
    >>> from codiag.synthetic import noisy_tensor
    >>> choice = codiag.choose_rank(noisy_tensor((8, 9, 10), 3, noise=0.01, rng=1).tensor, range(1, 6), rng=0)
    >>> choice.rank
    3
    >>> print(choice.reason[:47])
    Rank 3: all components are significant, determi
    """
    wanted = None if ranks is None else _checked(ranks)
    if model not in ("cp", "parafac2"):
        raise ValueError(f"model must be 'cp' or 'parafac2'; got {model!r}")
    if model == "parafac2":
        with progress_if(progress, "choosing the rank of PARAFAC2"):
            return choose_slices(tensor, wanted, constraints, mask, rng)
    rank = None if isinstance(tensor, Problem) else "auto"
    stated = {
        "loss": loss,
        "constraints": constraints,
        "mask": mask,
        "weights": weights,
        "symmetric": symmetric,
        "labels": labels,
    }
    problem = as_problem(tensor, rank, **stated)
    strategy = as_method(method, init)
    with progress_if(progress, "choosing the rank"):
        return choose(problem, wanted, as_generator(rng, apart=True), strategy)


def choose(
    problem: Problem, ranks: Sequence[int] | None, rng: np.random.Generator, method: Method = DEFAULT
) -> RankChoice:
    """Run `choose_rank` for a problem, whatever its rank; the rank that is chosen is fitted by the method."""
    scale = safe_scale(problem)
    wanted, n_directions = _possible_ranks(problem, ranks), max(FIRST_DIRECTIONS, *(ranks or [0]))
    codes = codes_of(problem) if takes_single_entries(problem) else []
    known = problem.without_entries(codes) if codes else problem
    while True:
        inside = Representative.of(known.scaled(1 / scale), n_directions, rng)
        upwards = Upwards(inside.problem, rng, set_aside=list(codes))
        for rank in wanted if inside.is_whole else [rank for rank in wanted if rank <= n_directions]:
            upwards.add(rank)
            if ranks is None and _should_stop(list(upwards.tried.values())):
                break
        tried = list(upwards.tried.values())
        if inside.is_whole or ranks is not None or _should_stop(tried) or n_directions >= max(problem.tensor.shape):
            break
        n_directions *= 2
    chosen = next((one for one in reversed(tried) if one.is_supported), None)
    final = problem.without_entries(upwards.set_aside) if upwards.set_aside else problem
    fits = {one.rank: _in_units(inside.outward(one.fit), problem.with_rank(one.rank), scale) for one in tried}
    if chosen is not None:
        tell("rank %d, to the end", chosen.rank, is_place=True)
        start = fits[chosen.rank]._components
        method = method.with_init((start.weights, start.factors)) if method is DEFAULT else method
        fits[chosen.rank] = solve(final.with_rank(chosen.rank), method, rng)
    values = to_host(problem.tensor.to_dense()) if upwards.set_aside else np.zeros(0)
    entries = tuple((place, float(values[place])) for place in upwards.set_aside)
    aside = entries_in_words(entries, tried[0].facts)
    reason = " ".join(filter(None, (_reason(chosen, tried), aside, _undetermined_rows(chosen), _tried(tried))))
    return RankChoice(None if chosen is None else chosen.rank, reason, fits, tuple(tried), entries, aside)


def _should_stop(tried: Sequence[Tried]) -> bool:
    """Return whether the last two ranks add nothing: they are not supported, and predict no better than a lower one.

    If what the rank below leaves passes for noise, a tenth of the error must be gained: noise with correlations is
    predicted a little better by every further component.
    """
    last, lower = tried[-ENOUGH:], tried[:-ENOUGH]
    if len(tried) < ENOUGH or any(one.is_supported for one in last):
        return False
    if len(tried) >= MOST_DEGENERATE and all(one.flaw == "degenerate" for one in tried[-MOST_DEGENERATE:]):
        return True
    below = next((one for one in reversed(lower) if one.is_supported), last[0])
    if below.facts.residual_ratio <= 1 and not any(one.held_out_error < 0.9 * below.held_out_error for one in last):
        return True
    best = best_prediction(lower or last[:1])
    return best is None or not any(one.predicts_better_than(best) for one in last)


def fit_with_chosen_rank(problem: Problem, method: Method, rng: Any, failure: str) -> Factorization:
    """Return a fit with the rank that is chosen; raise if no rank is supported."""
    choice = choose(problem, None, as_generator(rng, apart=True), method)
    if choice.rank is None:
        raise ValueError(f"{failure} here. {choice.reason} See codiag.choose_rank, or give an integer")
    return replace(choice.fit, rank_choice=choice)


def _reason(chosen: Tried | None, tried: Sequence[Tried]) -> str:
    """Return why a rank was chosen, as a sentence of a methods section."""
    if chosen is None:
        flaws = " or ".join(sorted({_flaw_at_any_rank(one) for one in tried})).replace("or are", "or")
        said = f"No rank is supported: at every rank that was tried components {flaws}."
        facts = tried[0].facts
        names = [facts.labels.names[mode] for mode in facts.correlated]
        if not names or facts.fit.problem.labels is not None:
            return said
        return (
            f"{said} Noise is taken to be correlated along {listed(names)}: if indices of a mode have no order, as "
            "patients have none, give it labels that are text."
        )
    said = "all components are significant, determined and found in both halves of the data"
    if math.isnan(chosen.congruence):
        said = "all components are significant and determined"
        if chosen.events is not None:
            said = "each component improves the prediction of events that are held out"
    elif chosen.congruence < 1:
        said += f" (congruence {chosen.congruence:.2f})"
    after = [one for one in tried if one.rank > chosen.rank]
    why = f"; at rank {after[0].rank}, {_flaw_in_words(after[0])}" if after else ""
    better = best_prediction(after)
    more = ""
    if better is not None and chosen.facts.residual_ratio > 1 and better.predicts_better_than(chosen):
        more = (
            f" Higher ranks predict held-out entries better (error {better.held_out_error:.3g} at rank {better.rank}, "
            f"{chosen.held_out_error:.3g} at rank {chosen.rank}), but are not supported: the CP model may be wrong."
        )
    return f"Rank {chosen.rank}: {said}{why}.{more}"


def _flaw_at_any_rank(one: Tried) -> str:
    """Return what is wrong with the components of a rank, without their numbers."""
    if not one.flaw:
        return "differ between halves of the data"
    return "are more than the entries determine" if one.flaw == "no residual degrees of freedom" else f"are {one.flaw}"


def _flaw_in_words(one: Tried) -> str:
    """Return a clause on what is wrong with a rank."""
    if one.flaw == "no residual degrees of freedom":
        return "no degrees of freedom are left"
    if one.flaw == "degenerate":
        return "components are degenerate"
    if one.flaw:
        known = one.facts.significances if one.flaw == "not significant" else None
        numbers = [] if known is None else (np.flatnonzero(known <= 1) + 1).tolist()
        if len(numbers) == 1:
            return f"component {numbers[0]} is {one.flaw}"
        return f"components {listed(numbers)} are {one.flaw}" if numbers else f"components are {one.flaw}"
    if one.congruence < FAIR:
        return f"components differ between halves of the data (congruence {one.congruence:.2f})"
    return "components are supported, too"


def _undetermined_rows(chosen: Tried | None) -> str:
    """Return a sentence on rows of the factors that are not determined, or nothing."""
    rows = () if chosen is None else chosen.fit._sensitivity.undetermined
    if chosen is None or not any(rows):
        return ""
    return f"Too little was observed to determine the factors at {chosen.facts.named_rows(rows)}."


def _tried(tried: Sequence[Tried]) -> str:
    """Return a sentence on the ranks that were fitted."""
    ranks = [one.rank for one in tried]
    if len(ranks) == 1:
        return f"Only rank {ranks[0]} was tried."
    is_range = len(ranks) > 2 and ranks[-1] - ranks[0] == len(ranks) - 1
    return f"Ranks {f'{ranks[0]} to {ranks[-1]}' if is_range else listed(ranks)} were tried."


def _in_units(fit: Factorization, problem: Problem, scale: float) -> Factorization:
    """Return a fit in the units and with the labels of the problem that was stated."""
    stated = problem.with_loss(fit.problem.loss)
    stated = stated if fit.problem.has_data else stated.drop_data()
    return replace(fit, weights=fit.weights * scale, _norm=fit._norm * scale, problem=stated)


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


def _possible_ranks(problem: Problem, ranks: Sequence[int] | None) -> list[int]:
    """Return the ranks that the shape and the constraints allow; raise the error of the first if there are none."""
    allowed, errors = [], []
    for rank in range(1, most_components(problem.tensor.shape) + 1) if ranks is None else ranks:
        try:
            allowed.append(problem.with_rank(rank).rank)
        except ValueError as error:
            errors.append(error)
            if ranks is None and allowed:
                break
    if not allowed:
        raise ValueError(f"ranks must contain one that can be fitted: {errors[0]}")
    return allowed
