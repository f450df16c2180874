"""Labels of a crowd under a prior that is estimated from the crowd: variational expectation maximization."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

from codiag.models.crowd_em import CrowdModel, Run, Start, expect
from codiag.models.crowd_prior import Belief, CrowdPrior, Outcomes, believe, first_prior, log_even, update_prior
from codiag.models.votes import Votes

EVERY = 4
"""Rounds after which more than the shares of the kinds of workers is estimated anew."""


class Settings(NamedTuple):
    """The shares of the classes where they are known, whether a worker has one rate for all classes, when to stop."""

    shares: np.ndarray | None
    one_coin: bool
    n_rounds: int
    tol: float


def run_variational(votes: Votes, start: Start, settings: Settings) -> tuple[Run, CrowdPrior]:
    r"""Estimate classes, workers and the distribution workers come from, in turn.

    With q the probabilities of the classes, and n the votes they make right and wrong, the objective is
    :math:`\log p(n) + \sum_t \sum_c q_{tc} (\log \pi_c - \log q_{tc})`, a lower bound on the log-probability of the
    votes. Every step raises it: the prior, the shares of the classes, then q from mean logarithms of the confusion
    matrices. Workers are integrated out. At last the labels are taken from the mean confusion matrices, which predict
    votes that were left out better than mean logarithms do.
    """
    classes, k = start.classes, start.classes.shape[1]
    prior = first_prior(k, one_coin=settings.one_coin)
    history: list[float] = []
    converged = False
    while True:
        outcomes = Outcomes.of((votes.by_worker @ classes).reshape(-1, k, k), one_coin=settings.one_coin)
        prior, scores = update_prior(outcomes, prior, propose=len(history) % EVERY == 0)
        belief = believe(outcomes, prior, scores)
        shares = _shares(classes, settings.shares)
        if len(history) >= settings.n_rounds or converged:
            break
        history.append(_objective(classes, shares, prior, belief, settings) / votes.label.size)
        converged = len(history) > 1 and history[-1] - history[-2] < settings.tol
        classes = expect(votes, CrowdModel(np.exp(belief.logarithms), shares))[0]
    model = CrowdModel(belief.errors, shares)
    if settings.n_rounds == 0:
        model = start.model or model
        return Run(model, start.classes, expect(votes, model)[1], [], False), prior
    classes, log_likelihood = expect(votes, model)
    return Run(model, classes, log_likelihood, history, bool(converged)), prior


def _shares(classes: np.ndarray, known: np.ndarray | None) -> np.ndarray:
    """Return the shares of the classes, a task added to each."""
    if known is not None:
        return known
    shares = classes.sum(axis=0) + 1
    return shares / shares.sum()


def _objective(
    classes: np.ndarray, shares: np.ndarray, prior: CrowdPrior, belief: Belief, settings: Settings
) -> float:
    entropy = -float(np.sum(xlogy(classes, classes)))
    added = float(np.sum(np.log(shares))) if settings.shares is None else 0.0
    fit = float(np.sum(classes @ np.log(shares)))
    return belief.log_evidence + log_even(prior) + fit + entropy + added
