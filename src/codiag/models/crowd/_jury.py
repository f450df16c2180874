r"""Labels from workers who depend on each other: which families there are, and which model of them predicts votes best.

Classes that are three numbers or more may be ordered. Whether thresholds on a quality (`_ordered`) or confusion
matrices (`_family_model`) describe the workers better is decided by votes that were held out: a family's votes on a
tenth of the tasks, predicted from those of the other families.

Of two views of a task either may be right. With fewer than three, be they families or effective votes, labels are
those of the majority.

Known classes decide how far models are to be believed that were fitted without them. Probabilities of that model, of
confusion matrices from known classes alone, and of the majority are raised to powers and multiplied; the powers are
those under which the known classes are most probable, where each of these is predicted without its own class.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from codiag.models.crowd._dependence import Dependence, measure_dependence
from codiag.models.crowd._em import CrowdModel, CrowdPrior, Prior, added_votes, counted, estimate_prior, maximize
from codiag.models.crowd._families import MAX_ITER, MOST_TASKS, PLAIN, TOL, family_shares, sample_tasks
from codiag.models.crowd._family_model import run_families
from codiag.models.crowd._labelers import (
    LEAST,
    FamilyLabeler,
    Labeler,
    MajorityLabeler,
    MixedLabeler,
    OrderedLabeler,
    fitted_powers,
)
from codiag.models.crowd._ordered import may_be_ordered, run_ordered
from codiag.models.crowd._votes import Votes, views_of

HIDDEN = 0.1
"""Share of the votes that are held out to decide whether classes are ordered."""
FEWEST_VIEWS = 3
"""Views of a task, which families or effective votes may be, below which labels are those of the majority."""
PARTS = 8
"""Random parts of the tasks, to which the model is fitted again for its standard errors."""
FOLDS = 5
"""Parts of the known classes, each predicted from the others."""
ENOUGH_GOLD = 20
"""Known classes from which these decide how far models are to be believed (chosen by experience)."""


class Jury(NamedTuple):
    """Labels from dependent workers: how they are found, their probabilities, and why by majority, if so."""

    labeler: Labeler
    classes: np.ndarray
    log_likelihood: float
    history: list[float]
    converged: bool
    is_ordered: bool
    reason: str | None


def label_jury(
    votes: Votes,
    family: np.ndarray,
    starts: list[np.ndarray],
    prior: Prior,
    *,
    ordered: bool | None,
    max_iter: int,
    tol: float,
    rng: np.random.Generator,
) -> tuple[Jury, Dependence]:
    """Return labels from workers of these families, -1 for none, and how they depend on each other.

    `starts` are probabilities of the classes to begin with. Whether classes are ordered is decided if it is not given.
    """
    known = 0 if votes.gold is None else int(np.sum(votes.gold >= 0))
    own = replace(votes, gold=None) if known >= ENOUGH_GOLD else votes
    is_ordered = is_order_better(own, family, rng) if ordered is None else ordered
    if is_ordered:
        jury = _fit_ordered(own, family, max_iter, tol, rng)
    else:
        jury = _fit_families(own, family, starts, _plain(prior), max_iter, tol)
    dependence = measure_dependence(own, workers_of(own, jury.classes, prior)[0].confusions, jury.classes, family, rng)
    n_views = dependence.within.size + int(np.sum(family < 0))
    if max(n_views, dependence.votes) < FEWEST_VIEWS:
        majority = _majority(own, family, dependence)
        reason = _reason(votes, n_views, dependence)
        jury = jury._replace(labeler=majority, classes=majority.classes(own), converged=True, reason=reason)
    if known >= ENOUGH_GOLD:
        jury = _mixed(votes, family, jury, _majority(own, family, dependence), rng)
    return jury, dependence


def _fit_ordered(votes: Votes, family: np.ndarray, max_iter: int, tol: float, rng: np.random.Generator) -> Jury:
    """Fit a model of ordered classes: first to a sample of the tasks, and from there to all."""
    sample, model = sample_tasks(votes, rng), None
    if sample is not votes:
        model = run_ordered(sample, family, max_iter, tol).model
    run = run_ordered(votes, family, max_iter, tol, model)
    classes = votes.with_known(run.model.classes(run.quality))
    return Jury(OrderedLabeler(run.model), classes, run.log_likelihood, run.history, run.converged, True, None)


def _fit_families(
    votes: Votes, family: np.ndarray, starts: list[np.ndarray], prior: Prior, max_iter: int, tol: float
) -> Jury:
    """Fit a model of families from each start, and return the one under which the votes are most probable."""
    runs = [run_families(votes, family, start, prior, max_iter, tol) for start in starts]
    best = max(runs, key=lambda each: each.history[-1])
    return Jury(FamilyLabeler(best.model), best.classes, best.log_likelihood, best.history, best.converged, False, None)


def _plain(prior: Prior) -> Prior:
    """Return the prior of the workers of families, with the shares of the classes and the coin of this one."""
    return PLAIN._replace(shares=prior.shares, one_coin=prior.one_coin)


def model_spread(votes: Votes, jury: Jury, family: np.ndarray, prior: Prior, rng: np.random.Generator) -> np.ndarray:
    r"""Return the standard deviation of the accuracies of workers that the jury's model itself contributes, (workers,).

    The model is fitted again to random parts of the tasks, and all tasks are labelled by it. With m of n tasks in a
    part, the mean square of the deviations is that of the fit to all tasks times :math:`(n - m) / m`. Where ordered
    classes begin is known as well as few families tell, whatever the number of tasks.
    """
    n_tasks, n_workers = votes.tasks.size, votes.workers.size
    size, labeler = min(n_tasks // 2, MOST_TASKS), jury.labeler
    if not isinstance(labeler, FamilyLabeler | OrderedLabeler) or size < 1:
        return np.zeros(n_workers)
    squares, cuts = np.zeros(n_workers), np.zeros(n_workers)
    center = _mean_right(votes, jury.classes)
    if isinstance(labeler, OrderedLabeler):
        shifted = labeler.shifted(votes, rng.standard_normal((PARTS, votes.classes.size - 1)))
        cuts = np.mean([(_mean_right(votes, classes) - center) ** 2 for classes in shifted], axis=0)
    for _ in range(PARTS):
        chosen = np.zeros(n_tasks, dtype=bool)
        chosen[rng.permutation(n_tasks)[:size]] = True
        part, again = votes.of_tasks(chosen), labeler
        if isinstance(labeler, OrderedLabeler):
            again = OrderedLabeler(run_ordered(part, family, MAX_ITER, TOL, labeler.model).model)
        else:
            begin = jury.classes[chosen]
            run = run_families(part, family, begin, _plain(prior), MAX_ITER, TOL)
            again = FamilyLabeler(run.model)
        squares += (_mean_right(votes, again.classes(votes)) - center) ** 2
    return np.sqrt(squares / PARTS * size / (n_tasks - size) + cuts)


def _mean_right(votes: Votes, classes: np.ndarray) -> np.ndarray:
    """Return the mean probability of the labels that each worker gave, (workers,)."""
    right = np.bincount(votes.worker, classes[votes.task, votes.label], votes.workers.size)
    return right / np.maximum(votes.votes_of_workers, 1)


def workers_of(votes: Votes, classes: np.ndarray, prior: Prior) -> tuple[CrowdModel, CrowdPrior]:
    """Return the workers by the probabilities of the classes, with the prior that these votes suggest."""
    cells = counted(votes, classes)
    workers = estimate_prior(cells, one_coin=prior.one_coin)
    return maximize(votes, classes, prior._replace(cells=added_votes(cells, workers), tasks=1.0)), workers


def is_order_better(votes: Votes, family: np.ndarray, rng: np.random.Generator) -> bool:
    """Return whether ordered classes predict held-out votes better, from the votes of other families."""
    if not may_be_ordered(votes.classes):
        return False
    votes = sample_tasks(votes, rng)
    view = views_of(family)[votes.worker]
    hidden = (rng.random((votes.tasks.size, 2 * family.size)) < HIDDEN)[votes.task, view]
    shown = votes.select(~hidden)
    task, worker, label = votes.task[hidden], votes.worker[hidden], votes.label[hidden]
    nominal = run_families(shown, family, family_shares(shown, family), PLAIN, MAX_ITER, TOL)
    ordered = run_ordered(shown, family, MAX_ITER, TOL)
    chances = [
        np.sum(nominal.classes[task] * nominal.model.workers.confusions[worker, label], axis=1),
        np.sum(ordered.quality[task] * ordered.model.by_quality()[worker, label], axis=1),
    ]
    scores = [float(np.sum(np.log(np.maximum(each, 1e-12)))) for each in chances]
    return scores[1] > scores[0]


def _majority(votes: Votes, family: np.ndarray, dependence: Dependence) -> MajorityLabeler:
    """Return labels by majority, with the evidence of a vote by how often two votes on a task agree.

    Workers who are right with probability a, and otherwise give each other label as often, agree with probability
    :math:`p = a^2 + (1 - a)^2 / (k - 1)`.
    """
    k = votes.classes.size
    counts = np.bincount(votes.task * k + votes.label, minlength=votes.tasks.size * k).reshape(-1, k)
    sizes = counts.sum(axis=1)
    agreement = float(np.sum(counts * (counts - 1)) / max(np.sum(sizes * (sizes - 1)), 1))
    accuracy = min((1 + np.sqrt((k - 1) * max(k * agreement - 1, 0))) / k, 0.99)
    evidence = float(np.log(accuracy * (k - 1) / (1 - accuracy)))
    return MajorityLabeler(evidence, family, dependence.within, dependence.common)


def _reason(votes: Votes, n_views: int, dependence: Dependence) -> str:
    low, high = dependence.interval
    views = f"form {n_views} families" if n_views > 1 else "think as one"
    return (
        f"the {votes.workers.size} workers {views} and are worth {dependence.votes:.1f} independent votes on a task "
        f"({low:.1f} to {high:.1f}), too few to tell who is right"
    )


def _mixed(votes: Votes, family: np.ndarray, jury: Jury, majority: MajorityLabeler, rng: np.random.Generator) -> Jury:
    """Return labels that known classes decide: how far the jury's own model, they themselves and the majority count."""
    known = np.full(votes.tasks.size, -1) if votes.gold is None else votes.gold
    tasks, truth = votes.of_tasks(known >= 0), known[known >= 0]
    hidden = replace(tasks, gold=None)
    fold = rng.permutation(truth.size) % FOLDS
    predicted = np.empty((truth.size, votes.classes.size))
    for number in range(FOLDS):
        labeler = _learned(tasks.of_tasks(fold != number), family)
        predicted[fold == number] = labeler.classes(hidden.of_tasks(fold == number))
    logs = np.log(np.maximum([jury.labeler.classes(hidden), predicted, majority.classes(hidden)], LEAST))
    mixed = MixedLabeler((jury.labeler, _learned(tasks, family), majority), fitted_powers(logs, truth))
    return jury._replace(labeler=mixed, classes=mixed.classes(votes), reason=None)


def _learned(votes: Votes, family: np.ndarray) -> FamilyLabeler:
    """Return labels by confusion matrices from known classes alone."""
    return FamilyLabeler(run_families(votes, family, votes.shares, PLAIN, MAX_ITER, TOL).model)
