"""Labels from a crowd: the truth and every worker's confusion matrix, from votes alone."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from codiag._validation import as_generator, as_number, check_seed
from codiag.factorize import as_method
from codiag.models.crowd_em import CrowdModel, Prior, Run, Start, expect, one_coin, run_em, standard_errors
from codiag.models.crowd_moments import estimate_crowd, random_groups
from codiag.models.votes import Tables, Votes, as_votes, class_names


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
    smoothing : float
        Votes added to every cell of a confusion matrix, and tasks to every class. The default is Laplace's rule: all
        confusion matrices are as likely, before a worker has voted. A worker with few votes is thus near chance: that
        is what the votes tell, not that the worker guesses.
    pooling : float
        From 0, the added votes are spread evenly, to 1, they are spread like the votes of all workers together, which
        helps where most workers gave few votes.
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
    errors_standard_errors_ : standard errors of confusion matrices, smoothing included, those of others taken as known
    errors_spread_ : standard deviation over partitions of what moments alone say; NaN where they were not used
    loss_history_ : list of float
        The objective after each round, per vote: the log-likelihood, plus what the smoothing adds. Never falls.
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
        smoothing: float = 1.0,
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
            twice.
        y : ignored
        """
        self._check()
        votes = as_votes(X, self.missing)
        prior = self._prior(votes)
        start, found, spread = self._start(votes, prior)
        run = run_em(votes, start, prior, self.em_rounds, self.tol)
        self._keep(votes, run, standard_errors(votes, run, prior), spread)
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
        """Return columns to write to a file: worker, votes, accuracy, its standard error, and confusion matrices."""
        check_is_fitted(self)
        columns = {
            "worker": self.workers_,
            "votes": self._votes_of_workers,
            "accuracy": self._accuracy[0],
            "standard_error": self._accuracy[1],
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
        as_number("n_partitions", self.n_partitions, integer=True)
        as_number("smoothing", self.smoothing, zero=True)
        as_number("tol", self.tol, zero=True)
        as_method(self.method)
        check_seed("random_state", self.random_state)
        as_number("pooling", self.pooling, zero=True)
        if self.pooling > 1:
            raise ValueError(f"pooling must be between 0 and 1; got {self.pooling}")
        for name, words in (("init", ("moments", "majority")), ("prior", ("estimated", "uniform"))):
            value = getattr(self, name)
            if isinstance(value, str) and value not in words:
                raise ValueError(f"{name} must be {words[0]!r}, {words[1]!r} or an array; got {value!r}")

    def _prior(self, votes: Votes) -> Prior:
        k = votes.classes.size
        shares = None if isinstance(self.prior, str) else np.asarray(self.prior, dtype=np.float64)
        if isinstance(self.prior, str) and self.prior == "uniform":
            shares = np.full(k, 1 / k)
        if shares is not None and (shares.shape != (k,) or np.any(shares <= 0) or abs(shares.sum() - 1) > 1e-6):
            raise ValueError(f"prior must hold {k} positive shares of sum one, one for each class; got {shares}")
        typical = pooled(votes) if self.pooling > 0 else np.full((k, k), 1 / k)
        cells = self.smoothing * k * (self.pooling * typical + (1 - self.pooling) / k)
        return Prior(cells / k if self.one_coin else cells, self.smoothing, shares, self.one_coin)

    def _start(self, votes: Votes, prior: Prior) -> tuple[Start, dict[str, Any], np.ndarray]:
        """Return where to begin, what there is to say about it, and how much partitions differ."""
        k, n_workers = votes.classes.size, votes.workers.size
        unknown = np.full((n_workers, k, k), np.nan)
        majority = Start(votes.shares, None), {"init": "majority"}, unknown
        if not isinstance(self.init, str):
            errors = np.asarray(self.init, dtype=np.float64)
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
        groups = np.atleast_2d(np.asarray(self.groups))
        if groups.ndim != 2 or groups.shape[1] != n_workers or not np.all(np.isin(groups, (0, 1, 2))):
            raise ValueError(
                f"groups must hold 0, 1 or 2 for each of {n_workers} workers; got shape {np.shape(self.groups)}"
            )
        return groups.astype(np.int64)

    def _keep(self, votes: Votes, run: Run, deviations: np.ndarray, spread: np.ndarray) -> None:
        tables, (errors, priors) = Tables(votes), run.model
        labels = votes.classes[np.argmax(run.classes, axis=1)]
        accuracy = np.einsum("wcc,c->w", errors, priors)
        own = np.einsum("wcc->wc", deviations) * priors
        uncertain = own.sum(axis=1) if self.one_coin else np.sqrt(np.sum(own**2, axis=1))
        self._run, self._votes_of_workers, self._accuracy = run, votes.votes_of_workers, (accuracy, uncertain)
        self.tasks_, self.workers_, self.classes_ = votes.tasks, votes.workers, votes.classes
        self.labels_ = tables.series(labels, "agg_label", votes.tasks, "task")
        self.probas_ = tables.by_class(run.classes)
        self.errors_ = tables.confusions(errors)
        self.errors_standard_errors_ = tables.confusions(deviations)
        self.errors_spread_ = tables.confusions(spread)
        self.priors_ = tables.series(priors, "prior", votes.classes, "label")
        self.worker_accuracy_ = tables.series(accuracy, "accuracy", votes.workers, "worker")
        self.worker_accuracy_standard_errors_ = tables.series(uncertain, "standard_error", votes.workers, "worker")
        self.loss_history_, self.log_likelihood_ = run.history, run.log_likelihood


def pooled(votes: Votes) -> np.ndarray:
    """Return the confusion matrix (given, true) of all workers as one, the majority taken for the truth."""
    cells = (votes.by_worker @ votes.shares).reshape(votes.workers.size, votes.classes.size, -1).sum(axis=0) + 1
    return cells / cells.sum(axis=0)
