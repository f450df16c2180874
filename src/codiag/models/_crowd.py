"""Labels from a crowd: the truth and every worker's confusion matrix, from votes alone."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from codiag._factorize import as_method
from codiag._validation import as_flag, as_generator, as_number, check_seed
from codiag.models._crowd_em import CrowdModel, Prior, Run, Start, expect, one_coin, run_em, standard_errors
from codiag.models._crowd_moments import estimate_crowd, random_groups
from codiag.models._crowd_prior import CrowdPrior, added_votes, estimate_prior
from codiag.models._crowd_samples import Uncertainty, beta_intervals, sample_uncertainty
from codiag.models._votes import Tables, Votes, as_votes, class_names

PASSES = 4
"""How often the prior of workers is estimated."""


class DawidSkene(BaseEstimator):
    r"""The model of Dawid and Skene for labels from a crowd: moments first, then expectation maximization.

    A task has a class c with probability :math:`\pi_c`, and worker i gives it label l with probability
    :math:`C_i[l, c]`, whatever the others say. Confusion matrices are found by joint diagonalization of the moments of
    three groups of workers, averaged over random partitions of the workers; expectation maximization goes on from
    there. `fit`, `fit_predict` and the tables are those of crowd-kit; its `n_iter` is `em_rounds`.

    Parameters
    ----------
    init : "moments", "majority" or array of shape (n_workers, n_classes, n_classes)
        Where expectation maximization starts: from moments, from the shares of the votes, or from confusion matrices
        of yours, given label by true class, for the workers in sorted order. Where moments do not determine the model,
        the majority is asked, and a warning says why.
    em_rounds : int
        At most so many rounds; fewer once the objective rises by less than `tol` per vote. Zero is the start itself.
    prior : "estimated", "uniform" or array of shape (n_classes,)
        The shares of the classes.
    smoothing : "estimated" or float
        What is believed of a worker who has not voted. By default it is estimated from the crowd (empirical Bayes): how
        skills are spread over workers, how easy classes are, which wrong labels are common. A worker with few votes is
        then taken for one of this crowd. A number is so many votes added to every cell of a confusion matrix, and
        tasks to every class, the same for all; a worker with few votes is then near chance.
    pooling : float
        Where smoothing is a number: from 0, the added votes are spread evenly, to 1, they are spread like the votes of
        all workers together.
    one_coin : bool
        Whether a worker is right with one probability, whatever the class, and otherwise guesses evenly.
    method : Method or str, optional
        How moments are factorized; by default by joint diagonalization alone.
    n_partitions : int
        Random partitions of the workers into three groups to average over.
    groups : array of shape (n_workers,) or (n_partitions, n_workers), optional
        Partitions of your own instead: 0, 1 or 2 for every worker, in sorted order.
    tol : float
        See `em_rounds`.
    missing : object
        What stands for no vote in a matrix of tasks and workers, besides NaN and None.
    random_state : int, optional
        Seed of the partitions.

    Attributes
    ----------
    labels_, probas_ : the label of every task, and the probability of each class
    errors_ : confusion matrices: rows by worker and given label, columns by true class, which sum to one
    priors_ : the shares of the classes
    worker_accuracy_ : how often a worker is right, over tasks like these
    worker_accuracy_standard_errors_ : its standard errors
    worker_accuracy_interval_ : low and high, between which it lies with probability 0.9
    errors_standard_errors_ : standard errors of confusion matrices
    errors_spread_ : standard deviation over partitions of what moments alone say; NaN where they were not used
    loss_history_ : list of float
        The objective after each round, per vote: the log-likelihood, plus what the smoothing adds. Never falls. Where
        smoothing is estimated, the rounds are those after it was.
    log_likelihood_ : float
        Of all votes.
    tasks_, workers_, classes_ : arrays
        The names, in the order of the arrays above.
    diagnostics_ : dict

    Tables come as the votes did: data frames of pandas or polars for data frames, arrays for arrays.

    Notes
    -----
    Classes are named by the assignment under which the workers, vote for vote, are right most often: a crowd that is
    mostly wrong in the same way cannot be told from one that is mostly right.

    With the estimated prior, standard errors and intervals come from Gibbs sampling: the truth of the tasks, the other
    workers and the prior are all uncertain. With a number for smoothing, standard errors take the other workers for
    known, and intervals are those of a Beta distribution with this mean and standard deviation.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.models import DawidSkene
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, 200)
    >>> votes = np.where(rng.random((200, 9)) < 0.8, truth[:, None], 1 - truth[:, None])     # tasks x workers
    >>> model = DawidSkene(random_state=0).fit(votes)
    >>> bool(np.mean(model.labels_ == truth) > 0.95)
    True
    """

    def __init__(
        self,
        *,
        init: Any = "moments",
        em_rounds: int = 100,
        prior: Any = "estimated",
        smoothing: float | str = "estimated",
        pooling: float = 0.0,
        one_coin: bool = False,
        method: Any = None,
        n_partitions: int = 20,
        groups: Any = None,
        tol: float = 1e-6,
        missing: Any = -1,
        random_state: int | None = None,
    ) -> None:
        self.init = init
        self.em_rounds = em_rounds
        self.prior = prior
        self.smoothing = smoothing
        self.pooling = pooling
        self.one_coin = one_coin
        self.method = method
        self.n_partitions = n_partitions
        self.groups = groups
        self.tol = tol
        self.missing = missing
        self.random_state = random_state

    def fit(self, X: Any, y: object = None) -> DawidSkene:  # noqa: N803
        """Estimate labels and workers from votes.

        Parameters
        ----------
        X : data frame, dict or tuple of three columns, or array of shape (n_tasks, n_workers)
            Votes: a frame of pandas or polars, or a dict, with the columns task, worker and label; a tuple of the three
            columns; or a matrix of labels with `missing` where a worker has not seen a task. A vote given twice counts
            twice. An array or a list that looks like three columns is refused, or read as such where it is a list of
            three: lines of a matrix share their labels, and columns do not.
        y : ignored
        """
        self._check()
        votes = as_votes(X, self.missing)
        prior = self._prior(votes)
        start, found, spread = self._start(votes, prior)
        run, uncertainty = self._run_from(votes, start, prior)
        self._keep(votes, run, uncertainty, spread)
        self.diagnostics_ = {**found, "em_rounds": len(run.history), "converged": run.converged}
        return self

    def fit_predict(self, X: Any, y: object = None) -> Any:  # noqa: N803
        """Return the label of every task."""
        return self.fit(X).labels_

    def fit_predict_proba(self, X: Any, y: object = None) -> Any:  # noqa: N803
        """Return the probability of each class for every task."""
        return self.fit(X).probas_

    def predict_proba(self, X: Any) -> Any:  # noqa: N803
        """Return the probability of each class for tasks that workers of `fit` have voted on."""
        votes, classes = self._expect(X)
        return Tables(votes).by_class(classes)

    def predict(self, X: Any) -> Any:  # noqa: N803
        """Return the label of tasks that workers of `fit` have voted on."""
        votes, classes = self._expect(X)
        return Tables(votes).series(self.classes_[np.argmax(classes, axis=1)], "agg_label", votes.tasks, "task")

    def label_table(self) -> dict[str, np.ndarray]:
        """Return columns to write to a file: task, label, its probability, and the probability of every class."""
        check_is_fitted(self)
        best = np.argmax(self._run.classes, axis=1)
        columns = {"task": self.tasks_, "label": self.classes_[best], "probability": np.max(self._run.classes, axis=1)}
        named = zip(class_names(self.classes_), self._run.classes.T, strict=True)
        return columns | {f"p({name})": column for name, column in named}

    def worker_table(self) -> dict[str, np.ndarray]:
        """Return columns to write to a file: worker, votes, accuracy, its error and interval, confusion matrices."""
        check_is_fitted(self)
        accuracy, deviations, intervals = self._accuracy
        columns = {
            "worker": self.workers_,
            "votes": self._votes_of_workers,
            "accuracy": accuracy,
            "standard_error": deviations,
            "low": intervals[:, 0],
            "high": intervals[:, 1],
        }
        names = class_names(self.classes_)
        cells = {
            f"p({given}|{true})": self._run.model.errors[:, row, column]
            for column, true in enumerate(names)
            for row, given in enumerate(names)
        }
        return columns | cells

    def _expect(self, X: Any) -> tuple[Votes, np.ndarray]:  # noqa: N803
        check_is_fitted(self)
        votes = as_votes(X, self.missing, workers=self.workers_, classes=self.classes_)
        return votes, expect(votes, self._run.model)[0]

    def _check(self) -> None:
        as_number("em_rounds", self.em_rounds, integer=True, zero=True)
        as_flag("one_coin", self.one_coin)
        as_number("n_partitions", self.n_partitions, integer=True)
        if isinstance(self.smoothing, str) and self.smoothing != "estimated":
            raise ValueError(f"smoothing must be 'estimated' or a number; got {self.smoothing!r}")
        if not isinstance(self.smoothing, str):
            as_number("smoothing", self.smoothing, zero=True)
        as_number("tol", self.tol, zero=True)
        as_method(self.method)
        check_seed("random_state", self.random_state)
        as_number("pooling", self.pooling, zero=True)
        if self.pooling > 1:
            raise ValueError(f"pooling must be between 0 and 1; got {self.pooling}")
        if self.pooling > 0 and isinstance(self.smoothing, str):
            raise ValueError(
                f"pooling must be 0 where smoothing is 'estimated', which learns from all workers by itself; got "
                f"{self.pooling}. Give the votes to add, smoothing=1.0"
            )
        for name, words in (("init", ("moments", "majority")), ("prior", ("estimated", "uniform"))):
            value = getattr(self, name)
            if isinstance(value, str) and value not in words:
                raise ValueError(f"{name} must be {words[0]!r}, {words[1]!r} or an array; got {value!r}")

    def _prior(self, votes: Votes) -> Prior:
        k = votes.classes.size
        shares = None if isinstance(self.prior, str) else _as_numbers("prior", self.prior)
        if isinstance(self.prior, str) and self.prior == "uniform":
            shares = np.full(k, 1 / k)
        if shares is not None and (shares.shape != (k,) or not np.all(shares > 0) or not abs(shares.sum() - 1) < 1e-6):
            raise ValueError(f"prior must hold {k} positive shares of sum one, one for each class; got {shares}")
        added = 0.0 if isinstance(self.smoothing, str) else float(self.smoothing)
        typical = pooled(votes) if self.pooling > 0 else np.full((k, k), 1 / k)
        cells = added * k * (self.pooling * typical + (1 - self.pooling) / k)
        return Prior(cells / k if self.one_coin else cells, added, shares, self.one_coin)

    def _run_from(self, votes: Votes, start: Start, prior: Prior) -> tuple[Run, Uncertainty]:
        if isinstance(self.smoothing, str):
            run, workers = self._run_estimated(votes, start, prior)
            rng = as_generator(self.random_state, "random_state").spawn(1)[0]
            return run, sample_uncertainty(votes, run, workers, prior.shares, rng)
        run = run_em(votes, start, prior, self.em_rounds, self.tol)
        deviations = standard_errors(votes, run, prior)
        own = np.einsum("wcc->wc", deviations) * run.model.priors
        uncertain = own.sum(axis=1) if self.one_coin else np.sqrt(np.sum(own**2, axis=1))
        return run, Uncertainty(deviations, uncertain, beta_intervals(accuracies(run.model), uncertain))

    def _run_estimated(self, votes: Votes, start: Start, prior: Prior) -> tuple[Run, CrowdPrior]:
        """Estimate the prior of workers from the start, then from what it leads to, and run from there."""
        k = votes.classes.size
        for _ in range(PASSES):
            cells = (votes.by_worker @ start.classes).reshape(-1, k, k)
            workers = estimate_prior(cells, one_coin=self.one_coin)
            prior = prior._replace(cells=added_votes(cells, workers), tasks=1.0)
            run = run_em(votes, start, prior, self.em_rounds, self.tol)
            start = start if self.em_rounds == 0 else Start(run.classes, None)
        return run, workers

    def _start(self, votes: Votes, prior: Prior) -> tuple[Start, dict[str, Any], np.ndarray]:
        """Return where to begin, what there is to say about it, and how much partitions differ."""
        k, n_workers = votes.classes.size, votes.workers.size
        unknown = np.full((n_workers, k, k), np.nan)
        majority = Start(votes.shares, None), {"init": "majority"}, unknown
        if not isinstance(self.init, str):
            errors = _as_numbers("init", self.init)
            if errors.shape != unknown.shape or np.any(errors < 0) or not np.allclose(errors.sum(axis=1), 1):
                raise ValueError(
                    f"init must hold a matrix for each of {n_workers} workers, {unknown.shape}, given label by true "
                    f"class, with columns of sum one; got shape {errors.shape}"
                )
            return self._start_from(votes, errors, np.full(k, 1 / k), prior), {"init": "given"}, unknown
        if self.init == "majority" or k == 1:
            return majority
        found = estimate_crowd(votes, self._groups(votes), self.method, self.random_state)
        if isinstance(found, str):
            message = f"moments do not determine this crowd: {found}; started from the majority vote instead"
            warnings.warn(message, UserWarning, stacklevel=3)
            return *majority[:1], {"init": "majority", "reason": found}, unknown
        start = self._start_from(votes, found.errors, found.priors, prior)
        return start, {"init": "moments", "n_partitions": found.n_partitions}, found.spread

    def _start_from(self, votes: Votes, errors: np.ndarray, shares: np.ndarray, prior: Prior) -> Start:
        model = CrowdModel(
            one_coin(errors) if self.one_coin else errors, shares if prior.shares is None else prior.shares
        )
        return Start(expect(votes, model)[0], model)

    def _groups(self, votes: Votes) -> np.ndarray:
        n_workers = votes.workers.size
        if self.groups is None:
            rng = as_generator(self.random_state, "random_state")
            return np.stack([random_groups(votes, rng) for _ in range(self.n_partitions)])
        groups = np.atleast_2d(_as_numbers("groups", self.groups))
        if groups.ndim != 2 or groups.shape[1] != n_workers or not np.all(np.isin(groups, (0, 1, 2))):
            raise ValueError(
                f"groups must hold 0, 1 or 2 for each of {n_workers} workers; got shape {np.shape(self.groups)}"
            )
        return groups.astype(np.int64)

    def _keep(self, votes: Votes, run: Run, uncertainty: Uncertainty, spread: np.ndarray) -> None:
        tables, (errors, priors) = Tables(votes), run.model
        labels = votes.classes[np.argmax(run.classes, axis=1)]
        accuracy = accuracies(run.model)
        low, high = uncertainty.intervals.T
        intervals = np.stack([np.minimum(low, accuracy), np.maximum(high, accuracy)], axis=1)
        self._run, self._votes_of_workers = run, votes.votes_of_workers
        self._accuracy = accuracy, uncertainty.accuracy, intervals
        self.tasks_, self.workers_, self.classes_ = votes.tasks, votes.workers, votes.classes
        self.labels_ = tables.series(labels, "agg_label", votes.tasks, "task")
        self.probas_ = tables.by_class(run.classes)
        self.errors_ = tables.confusions(errors)
        self.errors_standard_errors_ = tables.confusions(uncertainty.errors)
        self.errors_spread_ = tables.confusions(spread)
        self.priors_ = tables.series(priors, "prior", votes.classes, "label")
        self.worker_accuracy_ = tables.series(accuracy, "accuracy", votes.workers, "worker")
        deviations = tables.series(uncertainty.accuracy, "standard_error", votes.workers, "worker")
        self.worker_accuracy_standard_errors_ = deviations
        self.worker_accuracy_interval_ = tables.intervals(intervals)
        self.loss_history_, self.log_likelihood_ = run.history, run.log_likelihood


def accuracies(model: CrowdModel) -> np.ndarray:
    """Return how often workers are right, over tasks like these."""
    return np.einsum("wcc,c->w", model.errors, model.priors)


def _as_numbers(name: str, values: Any) -> np.ndarray:
    """Return an option of numbers as an array."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be an array of numbers; got {values!r:.60}: {error}") from None


def pooled(votes: Votes) -> np.ndarray:
    """Return the confusion matrix (given, true) of all workers as one, the majority taken for the truth."""
    cells = (votes.by_worker @ votes.shares).reshape(votes.workers.size, votes.classes.size, -1).sum(axis=0) + 1
    return cells / cells.sum(axis=0)
