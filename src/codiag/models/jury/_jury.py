"""Labels from judges who depend on each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri, softmax

from codiag._checks import as_flag, as_generator
from codiag.models.base import positive_integer, word_or
from codiag.models.crowd import (
    HIGH,
    LOW,
    TAILS,
    Tables,
    VoteModel,
    Votes,
    added_votes,
    beta_intervals,
    counted,
    estimate_prior,
    keep_results,
    not_converged,
    one_coin,
)
from codiag.models.jury._cluster_model import JuryRun, run_clusters
from codiag.models.jury._clusters import MAX_ITER, as_clusters, cluster_shares, find_clusters, sample_tasks
from codiag.models.jury._dependence import Dependence, find_copies, measure_dependence, residual_correlations
from codiag.models.jury._ordered import run_ordered


class Jury(VoteModel):
    r"""Labels from correlated judges: clusters of judges, items that are hard for all, and grades.

    A judge gives labels by a confusion matrix, as in `DawidSkene`. The judges of a cluster share a second answer to
    every item, which each follows with a probability of its own, so that their mistakes are the same mistakes and
    their votes count as one view of the item. Items differ in difficulty: on a hard one all judges guess more often.
    Votes are then correlated although judges are independent, and judges are called a cluster only if their votes
    agree more than class and difficulty of the items explain. Different clusters are independent given these two.

    Parameters
    ----------
    clusters : "auto", None, mapping or sequence of length n_workers
        Correlated judges, such as versions of one language model: found from the votes, none, or given. A mapping
        has the name of the cluster of every judge, a sequence has these in sorted order of the judges; None for a judge
        without one.
    ordered : bool
        Whether classes are grades, in sorted order, that judges give by thresholds on a quality of the item, which
        they see with errors of their own and of their cluster.
    one_coin : bool
        Whether a judge is right with the same probability in all classes, and wrong labels are uniform.
    max_iter : int
        Largest number of steps of expectation maximization. They end earlier once the objective rises by less than
        `tol` per vote; otherwise there is a warning.
    tol : float
        See `max_iter`.
    missing : object
        Marker of a cell without a vote in a matrix of items and judges, besides NaN and None.
    random_state : int or numpy.random.Generator, optional
        Seed of the items that are sampled to find clusters, and of the halves of the items for standard errors.

    Attributes
    ----------
    labels_, probas_, priors_, confusion_matrices_ : as of `DawidSkene`
        Labels, probabilities of the classes, their shares, and confusion matrices (worker, given, true).
    worker_accuracy_, worker_accuracy_standard_errors_, worker_accuracy_interval_ : as of `DawidSkene`
        How often each judge is right; errors come from fits to halves of the items.
    clusters_ : list of arrays
        The judges of each cluster of two or more.
    copies_ : list of pairs
        Judges who gave the same labels to all items they share, and to too many for chance.
    dependence_ : array of shape (n_workers, n_workers)
        Correlation of the votes of two judges beyond class and difficulty; NaN if they share too few items.
    n_effective_annotators_ : float
        Effective number of annotators: how many independent votes on an item hold as much information, in the mean
        over items.
    effective_annotators_interval_ : array of shape (2,)
        Lower and upper end of an interval that contains it with probability 0.9.
    reason_ : str or None
        Why labels are those of the majority, if they are.
    loss_history_ : list of float
        The objective after each step, per vote.
    converged_ : bool
        Whether the objective rose by less than `tol` in the last step.
    tasks_, workers_, classes_ : arrays
        The names, in the order of the arrays above.

    See Also
    --------
    DawidSkene : The model of independent workers.
    codiag.io.preference_votes : Choices between two answers as votes.
    codiag.plotting.dependence : The figure of correlated judges.

    Notes
    -----
    **Assumptions.** Three different voices: clusters, and judges who stand alone; with fewer, labels are those of the
    majority, with a warning.

    **Complexity.** For n votes on t items, k classes and f clusters, :math:`O(n k + t f k^2)` for each step of
    expectation maximization, and some thirty fits to at most 1000 items if clusters are sought.

    **Guarantees.** An objective that never decreases.

    **Limitations.** Fails if all judges are wrong in the same way: votes alone do not show it, but known classes do.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.models import Jury
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 3, 500)
    >>> votes = np.where(rng.random((8, 500)) < 0.7, truth, rng.integers(0, 3, (8, 500)))
    >>> votes[1:4] = np.where(rng.random((3, 500)) < 0.8, votes[0], votes[1:4])  # three often follow one
    >>> jury = Jury(random_state=0).fit(votes.T)
    >>> [cluster.tolist() for cluster in jury.clusters_]
    [[0, 1, 2, 3]]
    """

    parameter_rules = VoteModel.parameter_rules | {
        "clusters": word_or(("auto",), "None, or the cluster of every judge"),
        "ordered": as_flag,
        "one_coin": as_flag,
        "max_iter": positive_integer,
    }

    def __init__(
        self,
        *,
        clusters: str | Mapping[Any, Any] | Sequence[Any] | None = "auto",
        ordered: bool = False,
        one_coin: bool = False,
        max_iter: int = 100,
        tol: float = 1e-5,
        missing: Any = -1,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.clusters = clusters
        self.ordered = ordered
        self.one_coin = one_coin
        self.max_iter = max_iter
        self.tol = tol
        self.missing = missing
        self.random_state = random_state

    def _fit(self, data: Any, y: Any = None) -> tuple[Warning, ...]:
        """Do the work of `fit` without issuing warnings, and return them.

        Parameters
        ----------
        data, y : as X and y of `fit`
            Votes and known classes.

        Returns
        -------
        tuple of Warning
            The warnings of `fit`.

        Examples
        --------
        >>> from codiag.models import Jury
        >>> from codiag.synthetic import crowd_votes, worker_confusions
        >>> crowd = crowd_votes(100, worker_confusions(7, 2, rng=0), rng=1)
        >>> Jury(random_state=0)._fit(crowd.votes)
        ()
        """
        votes = self._read(data, y)
        rng = as_generator(self.random_state, "random_state")
        copies = find_copies(votes)
        cluster = self._cluster(votes, copies, rng)
        run = self._run(votes, cluster, rng)
        self._model = run.model
        dependence = self._dependence(votes, run, cluster, rng)
        self.n_effective_annotators_ = dependence.votes
        self.reason_ = _reason(votes, cluster, dependence)
        classes = self._classes_of(votes)
        cells = counted(votes, classes)
        cells += added_votes(cells, estimate_prior(cells, one_coin=self.one_coin))
        confusions = one_coin(cells) if self.one_coin else cells / cells.sum(axis=1, keepdims=True)
        shares = classes.mean(axis=0)
        accuracy = np.einsum("wcc,c->w", confusions, shares)
        errors, effective_error = self._errors(votes, run, cluster, rng)
        low, high = beta_intervals(accuracy, errors).T
        columns = {"accuracy": accuracy, "standard_error": errors, LOW: low, HIGH: high}
        columns |= {"cluster": cluster + 1, "weight": dependence.weights}
        keep_results(self, votes, classes, confusions, shares, columns)
        self._cluster_numbers, self._pairs = cluster, dependence.pairs
        self.clusters_ = [votes.workers[cluster == number] for number in range(cluster.max(initial=-1) + 1)]
        self.copies_ = [tuple(votes.workers[list(pair)].tolist()) for pair in copies]
        self.dependence_ = Tables(votes).by_worker(dependence_among(self, np.arange(cluster.size)), votes.workers)
        ends = dependence.votes + effective_error * ndtri(TAILS)
        self.effective_annotators_interval_ = np.clip(ends, 0, votes.label.size / votes.tasks.size)
        self.loss_history_, self.converged_ = run.history, run.converged
        return tuple(self._warnings())

    def _cluster(self, votes: Votes, copies: list[tuple[int, int]], rng: np.random.Generator) -> np.ndarray:
        if self.clusters is None:
            return np.full(votes.workers.size, -1)
        if not isinstance(self.clusters, str):
            return as_clusters(self.clusters, votes.workers)
        return find_clusters(votes, copies, rng)

    def _run(self, votes: Votes, cluster: np.ndarray, rng: np.random.Generator) -> JuryRun:
        if not self.ordered:
            start = cluster_shares(votes, cluster)
            return run_clusters(votes, cluster, start, self.max_iter, self.tol, coin=self.one_coin)
        sample, model = sample_tasks(votes, rng), None
        if sample is not votes:  # a step costs much, so that the first ones are for a sample
            model = run_ordered(sample, cluster, self.max_iter, self.tol).model
        return run_ordered(votes, cluster, self.max_iter, self.tol, model)

    def _dependence(self, votes: Votes, run: JuryRun, cluster: np.ndarray, rng: np.random.Generator) -> Dependence:
        pairs = residual_correlations(votes, run.model.by_state(), run.states, rng)
        return measure_dependence(votes, pairs, cluster)

    def _classes_of(self, votes: Votes) -> np.ndarray:
        if self.reason_ is not None:
            return _majority(votes, self.n_effective_annotators_)
        return votes.with_known(self._model.classes(self._model.states(votes)))

    def _errors(
        self, votes: Votes, run: JuryRun, cluster: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, float]:
        """Return standard errors of the accuracies of judges and of effective votes, by refitting to halves of items.

        The mean square of the deviations from the fit to all items is the variance of that fit. The labels of all items
        by the refitted models show what these contribute; the votes of a judge are a sample as well.
        """
        classes, halves = self._classes_of(votes), []
        center = np.append(_mean_right(votes, classes), self.n_effective_annotators_)
        for _ in range(8):
            chosen = rng.permutation(votes.tasks.size) < (votes.tasks.size + 1) // 2
            some = votes.of_tasks(chosen)
            if self.ordered:
                again = run_ordered(some, cluster, MAX_ITER, self.tol, run.model)
            else:
                again = run_clusters(some, cluster, classes[chosen], MAX_ITER, self.tol, coin=self.one_coin)
            found = classes
            if self.reason_ is None:
                found = votes.with_known(again.model.drawn(rng).classes(again.model.states(votes)))
            halves.append([*_mean_right(votes, found), self._dependence(some, again, cluster, rng).votes])
        squares = np.mean((np.array(halves) - center) ** 2, axis=0)
        right, n = center[:-1], votes.votes_of_workers
        sampling = (right * n + 1) * ((1 - right) * n + 1) / (n + 2) ** 2 / (n + 3)  # of a Beta distribution
        return np.sqrt(squares[:-1] + sampling), float(np.sqrt(squares[-1]))

    def _warnings(self) -> Iterator[Warning]:
        if self.tol > 0 and not self.converged_:
            yield not_converged(self.max_iter, self.tol)
        if self.reason_ is not None:
            yield UserWarning(
                f"{self.reason_}: labels are those of the majority. Votes of judges of another kind, or known classes "
                "of some items (y), would help"
            )


def dependence_among(model: Jury, workers: np.ndarray) -> np.ndarray:
    """Return ``dependence_`` of some judges, by their indices, as an array, also if votes came as a data frame."""
    return model._pairs.among(workers)


def _mean_right(votes: Votes, classes: np.ndarray) -> np.ndarray:
    """Return the mean probability of the labels that each judge gave, (workers,)."""
    right = np.bincount(votes.worker, classes[votes.task, votes.label], votes.workers.size)
    return right / np.maximum(votes.votes_of_workers, 1)


def _reason(votes: Votes, cluster: np.ndarray, dependence: Dependence) -> str | None:
    """Return why labels must be those of the majority: of two views of an item either may be right."""
    n_clusters = int(cluster.max(initial=-1)) + 1
    n_views = n_clusters + int(np.sum(cluster < 0))
    # fewer voices do not show who is right
    if n_clusters == 0 or max(n_views, dependence.votes) >= 3 or votes.known_class is not None:
        return None
    views = f"form {n_views} clusters" if n_views > 1 else "think as one"
    return (
        f"the {votes.workers.size} judges {views}, with {dependence.votes:.1f} effective votes on an item, "
        "too few to tell who is right"
    )


def _majority(votes: Votes, effective: float) -> np.ndarray:
    """Return probabilities of classes by the shares of the votes, as if an item had so many independent ones.

    Judges who are right with probability a, and otherwise give each other label as often, agree with probability
    :math:`p = a^2 + (1 - a)^2 / (k - 1)`.
    """
    counts, k = votes.labels_of_tasks, votes.classes.size
    sizes = counts.sum(axis=1)
    agreement = float(np.sum(counts * (counts - 1)) / max(np.sum(sizes * (sizes - 1)), 1))
    accuracy = min((1 + np.sqrt((k - 1) * max(k * agreement - 1, 0))) / k, 0.99)
    evidence = effective * float(np.log(accuracy * (k - 1) / (1 - accuracy)))
    return votes.with_known(softmax(evidence * counts / np.maximum(sizes, 1)[:, None], axis=1))
