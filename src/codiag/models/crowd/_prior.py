r"""The options of a model of a crowd: whether they are what they must be, and what they say before any vote.

The distribution that the workers of a crowd come from, estimated from their votes, and what it says of each worker.

Given the true class c, a worker is right with a probability that has a Beta distribution of mean
:math:`\sigma(\mathrm{logit}\, r + d_c)` and strength s. Skill r and strength s belong to the worker and are drawn from
a grid, with frequencies that are estimated; the ease :math:`d_c` of a class is common to all workers. Wrong labels
have a Dirichlet distribution of strength t around the wrong labels of all workers. A worker with few votes is thus
judged as one of this crowd, a worker with many votes by these. Workers may be of several kinds, such as experts and
spammers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaln, expit, gammaln, logit, logsumexp

from codiag._checks import as_flag, as_number
from codiag.models.crowd._em import Prior, Run, Start, run_em
from codiag.models.crowd._order import Order
from codiag.models.crowd._starts import as_numbers
from codiag.models.crowd._votes import Votes

WORDS = {"init": ("moments", "majority"), "prior": ("estimated", "uniform")}
"""What options may be that may also be arrays."""


def check_options(model: Any) -> None:
    """Raise unless the options of an estimator are what they must be."""
    as_number("max_iter", model.max_iter, integer=True, zero=True)
    as_flag("one_coin", model.one_coin)
    if model.copies not in ("share", "count"):
        raise ValueError(f"copies must be 'share' or 'count'; got {model.copies!r}")
    as_number("tol", model.tol, zero=True)
    as_number("pooling", model.pooling, zero=True)
    if model.pooling > 1:
        raise ValueError(f"pooling must be between 0 and 1; got {model.pooling}")
    if not isinstance(model.smoothing, str):
        as_number("smoothing", model.smoothing, zero=True)
    elif model.smoothing != "estimated":
        raise ValueError(f"smoothing must be 'estimated' or a number; got {model.smoothing!r}")
    elif model.pooling > 0:
        raise ValueError(
            f"pooling must be 0 where smoothing is 'estimated', which learns from all workers by itself; got "
            f"{model.pooling}. Give the votes to add, smoothing=1.0"
        )
    for name, words in WORDS.items():
        value = getattr(model, name)
        if isinstance(value, str) and value not in words:
            raise ValueError(f"{name} must be {words[0]!r}, {words[1]!r} or an array; got {value!r}")


def as_prior(
    votes: Votes, prior: Any, smoothing: float | str, pooling: float, *, one_coin: bool, order: Order | None = None
) -> Prior:
    """Return what is added to the votes; nothing where that is estimated later.

    Where votes are in an order of their own, shares of classes are given in that they came in.
    """
    k = votes.classes.size
    shares = None if isinstance(prior, str) else as_numbers("prior", prior)
    if isinstance(prior, str) and prior == "uniform":
        shares = np.full(k, 1 / k)
    if shares is not None and (shares.shape != (k,) or not np.all(shares > 0) or not abs(shares.sum() - 1) < 1e-6):
        raise ValueError(f"prior must hold {k} positive shares of sum one, one for each class; got {shares}")
    shares = shares if shares is None or order is None else order.applied(shares, "c")
    added = 0.0 if isinstance(smoothing, str) else float(smoothing)
    typical = pooled(votes) if pooling > 0 else np.full((k, k), 1 / k)
    cells = added * k * (pooling * typical + (1 - pooling) / k)
    return Prior(cells / k if one_coin else cells, added, shares, one_coin)


def pooled(votes: Votes) -> np.ndarray:
    """Return the confusion matrix (given, true) of all workers as one, the majority taken for the truth."""
    cells = (votes.by_worker @ votes.shares).reshape(votes.workers.size, votes.classes.size, -1).sum(axis=0) + 1
    return cells / cells.sum(axis=0)


SKILLS = expit(np.linspace(-4.4, 4.4, 12))
STRENGTHS = np.array([2.0, 10.0, 50.0])
SKILL, STRENGTH = (grid.ravel() for grid in np.meshgrid(SKILLS, STRENGTHS, indexing="ij"))
"""Skill and strength of every kind of worker."""
WEAKEST, STRONGEST = 0.2, 2000.0
"""Bounds of the strength of wrong labels."""
ADDED = np.where(SKILL > 0.5, 1.0, 0.01) / np.sum(np.where(SKILL > 0.5, 1.0, 0.01))
"""A worker, mostly of the kinds that are better than a coin, who is added before frequencies of the kinds are taken."""
LEAST = 1e-3
"""Votes that are added to every cell at least."""
STEPS = 50
"""Steps of expectation maximization for the frequencies of the kinds."""
PASSES = 4
"""How often the prior of workers is estimated."""


class Outcomes(NamedTuple):
    """Votes of workers by what they are worth.

    Attributes
    ----------
    right, wrong : arrays of shape (n_workers, n_columns)
        Votes that name the true class and those that do not, by true class, or in one column where the class does not
        matter.
    cells : array of shape (n_workers, n_classes, n_classes) or None
        All votes, given label by true class; None where wrong labels are even.
    """

    right: np.ndarray
    wrong: np.ndarray
    cells: np.ndarray | None

    @classmethod
    def of(cls, cells: np.ndarray, *, one_coin: bool) -> Outcomes:
        """Sort votes (workers, given, true)."""
        right = np.einsum("wcc->wc", cells)
        wrong = np.maximum(cells.sum(axis=1) - right, 0)
        if one_coin:
            return cls(right.sum(axis=1, keepdims=True), wrong.sum(axis=1, keepdims=True), None)
        return cls(right, wrong, cells)


class CrowdPrior(NamedTuple):
    """The distribution workers come from.

    Attributes
    ----------
    frequencies : array of shape (n_kinds,)
        The share of the workers that each kind has.
    ease : array of shape (n_columns,)
        What a class adds to the logit of a skill.
    wrong : array of shape (n_classes, n_classes)
        Wrong labels (given, true): columns of sum one, zero on the diagonal.
    strength : float
        How many votes the wrong labels of all are worth for a single worker.
    """

    frequencies: np.ndarray
    ease: np.ndarray
    wrong: np.ndarray
    strength: float

    @property
    def rates(self) -> np.ndarray:
        """How often a worker of each kind is right, (n_kinds, n_columns)."""
        return expit(logit(SKILL)[:, None] + self.ease)


def estimate_prior(cells: np.ndarray, *, one_coin: bool) -> CrowdPrior:
    """Return the prior under which votes (workers, given, true) are nearly most probable, after a few steps.

    Frequencies of kinds are found by expectation maximization; the rest is proposed from the votes of all workers
    together, and accepted where that makes the votes more probable.
    """
    outcomes, k = Outcomes.of(cells, one_coin=one_coin), cells.shape[1]
    frequencies = np.full(SKILL.size, 1 / SKILL.size)
    prior = CrowdPrior(frequencies, np.zeros(1 if one_coin else k), _wrong_labels(cells.sum(axis=0)), 2.0)
    if outcomes.cells is not None:
        prior = _with_ease(outcomes, prior)
        prior = prior._replace(strength=_climb(lambda strength: _wrong_evidence(cells, prior.wrong, strength), 2.0))
    scores = kind_scores(outcomes, prior)
    for _ in range(STEPS):
        joint = scores + np.log(prior.frequencies)
        expected = np.exp(joint - logsumexp(joint, axis=1, keepdims=True)).sum(axis=0) + ADDED
        prior = prior._replace(frequencies=expected / expected.sum())
    return prior


def added_votes(cells: np.ndarray, prior: CrowdPrior) -> np.ndarray:
    """Return votes (workers, given, true) to add to `cells`, with which their shares are what is believed of workers.

    That is the mean over the kinds a worker may be, given the votes, and over wrong labels. As many votes are added as
    these kinds are strong.
    """
    k, same = prior.wrong.shape[0], np.eye(prior.wrong.shape[0], dtype=bool)
    outcomes = Outcomes.of(cells, one_coin=prior.ease.size < k)
    joint = kind_scores(outcomes, prior) + np.log(prior.frequencies)
    kinds = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    totals = outcomes.right + outcomes.wrong
    mean = np.empty_like(totals)
    for c in range(mean.shape[1]):
        first = STRENGTH * prior.rates[:, c] + outcomes.right[:, c, None]
        mean[:, c] = np.sum(kinds * first / (STRENGTH + totals[:, c, None]), axis=1)
    strength = (kinds @ STRENGTH)[:, None]
    right, wrong = mean * (strength + totals), (1 - mean) * (strength + totals)
    if outcomes.cells is None:
        right, wrong = (np.maximum(part, LEAST) / k for part in (right - outcomes.right, wrong - outcomes.wrong))
        return np.where(same, right[:, None], wrong[:, None] / max(k - 1, 1))
    pattern = (prior.strength * prior.wrong + np.where(same, 0.0, cells)) / (prior.strength + outcomes.wrong[:, None])
    return np.maximum(np.where(same, right[:, None], wrong[:, None] * pattern) - cells, LEAST)


def run_with_estimated_prior(
    votes: Votes, start: Start, prior: Prior, n_rounds: int, tol: float
) -> tuple[Run, CrowdPrior]:
    """Estimate the prior of workers from the start, then from what it leads to, and run from there."""
    k = votes.classes.size
    for _ in range(PASSES):
        cells = (votes.by_worker @ start.classes).reshape(-1, k, k)
        workers = estimate_prior(cells, one_coin=prior.one_coin)
        prior = prior._replace(cells=added_votes(cells, workers), tasks=1.0)
        run = run_em(votes, start, prior, n_rounds, tol)
        start = start if n_rounds == 0 else Start(run.classes)
    return run, workers


def kind_scores(outcomes: Outcomes, prior: CrowdPrior) -> np.ndarray:
    """Return the log-probability that votes are right and wrong as they are, for each kind of worker."""
    right, wrong = outcomes.right, outcomes.wrong
    first, second = STRENGTH[:, None] * prior.rates, STRENGTH[:, None] * (1 - prior.rates)
    scores = np.zeros((right.shape[0], SKILL.size))
    both = np.zeros((right.shape[0], STRENGTHS.size))
    for c in range(right.shape[1]):
        scores += gammaln(first[:, c] + right[:, c, None])
        scores += gammaln(second[:, c] + wrong[:, c, None])
        both += gammaln(STRENGTHS + (right[:, c, None] + wrong[:, c, None]))
    return scores - np.tile(both, SKILLS.size) - betaln(first, second).sum(axis=1)


def _evidence(scores: np.ndarray, frequencies: np.ndarray) -> float:
    return float(np.sum(logsumexp(scores + np.log(frequencies), axis=1)))


def _with_ease(outcomes: Outcomes, prior: CrowdPrior) -> CrowdPrior:
    """Return the prior with the ease of classes that the votes of all workers show, where that is more probable."""
    ease = np.log(outcomes.right.sum(axis=0) + 1) - np.log(outcomes.wrong.sum(axis=0) + 1)
    proposed = prior._replace(ease=ease - ease.mean())
    return max((prior, proposed), key=lambda one: _evidence(kind_scores(outcomes, one), one.frequencies))


def _climb(score: Callable[[float], float], value: float) -> float:
    """Return the value, doubled or halved for as long as its score rises and it is within bounds."""
    best = score(value)
    for factor in (2.0, 0.5):
        while WEAKEST < value * factor < STRONGEST and (other := score(value * factor)) > best:
            value, best = value * factor, other
    return value


def _wrong_labels(cells: np.ndarray) -> np.ndarray:
    """Return the distribution of wrong labels (given, true), after one vote in all is added to every column."""
    k = cells.shape[0]
    cells = np.where(np.eye(k, dtype=bool), 0.0, cells + 1 / max(k - 1, 1))
    return cells / np.maximum(cells.sum(axis=0), 1e-300)


def _wrong_evidence(cells: np.ndarray, wrong: np.ndarray, strength: float) -> float:
    """Return the log-probability of the wrong labels, given which votes are wrong."""
    off = ~np.eye(cells.shape[1], dtype=bool)
    counts, alpha = cells[:, off], (strength * wrong)[off]
    totals = np.maximum(cells.sum(axis=1) - np.einsum("wcc->wc", cells), 0)
    evidence = np.sum(gammaln(alpha + counts)) - counts.shape[0] * np.sum(gammaln(alpha))
    return float(evidence + totals.size * gammaln(strength) - np.sum(gammaln(strength + totals)))
