"""Labels from a crowd: the truth and every worker's confusion matrix, from votes alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from codiag._checks import ConvergenceWarning, as_generator
from codiag.methods import Method, as_method
from codiag.models.crowd._copies import examine, in_doubt, with_shared_votes
from codiag.models.crowd._em import Prior, Run, Start, expect, run_em
from codiag.models.crowd._gold import one_of, with_gold
from codiag.models.crowd._order import Order, in_own_order
from codiag.models.crowd._prior import CrowdPrior, as_prior, check_options, run_with_estimated_prior
from codiag.models.crowd._starts import (
    as_groups,
    start_from_given,
    start_from_majority,
    start_from_moments,
    with_labels_of_classes,
)
from codiag.models.crowd._tables import CrowdTables, Tables
from codiag.models.crowd._uncertainty import Uncertainty, information_uncertainty, sample_uncertainty
from codiag.models.crowd._votes import Votes, as_votes, complaints_about, refuse_parts, votes_at_hand
from codiag.models.frame import Model, warn_caller


class DawidSkene(CrowdTables, Model):
    r"""The model of Dawid and Skene for labels from a crowd: moments first, then expectation maximization.

    A task has a class c with probability :math:`\pi_c`, and worker i gives it label l with probability
    :math:`C_i[l, c]`, independently of the others. Confusion matrices :math:`C_i` are found by joint diagonalization of
    the third moment of the votes of three groups of workers, averaged over random partitions of the workers;
    expectation maximization continues from there. `fit`, `fit_predict` and the tables are those of crowd-kit; its
    ``n_iter`` is `max_iter`.

    *Needs* three workers and, for k classes (at most 100), k tasks with votes of three workers, better far more;
    otherwise it starts from the majority vote, and warns. *Costs*, for n votes on t tasks, :math:`O(t k^3)` flops a
    partition and :math:`O(n k)` a round of expectation maximization or of sampling, and memory for the votes and for a
    confusion matrix a worker and partition. *Guarantees*, where the model holds, moments that converge to the truth as
    tasks become more, with no local optimum in the way, and then an objective that never falls. *Fails* where most
    workers are wrong in the same way, or where those who copy outvote the others on their tasks, which cannot be told
    from being right.

    Parameters
    ----------
    init : "moments", "majority" or array of shape (n_workers, n_classes, n_classes)
        Where expectation maximization starts: from moments, from the shares of the votes, or from these confusion
        matrices, given label by true class, for the workers in sorted order. Where moments do not determine the model,
        it starts from the majority, and a warning says why.
    max_iter : int
        Maximal number of rounds; they end earlier once the objective rises by less than `tol` per vote, and a warning
        says where it does not. Zero returns the start itself.
    prior : "estimated", "uniform" or array of shape (n_classes,)
        The shares of the classes.
    smoothing : "estimated" or float
        What is assumed about a worker who has not voted. By default it is estimated from the crowd (empirical Bayes):
        the distribution of skills over workers, how easy classes are, which wrong labels are common. A worker with few
        votes is then judged as one of this crowd. A number is how many votes are added to every cell of a confusion
        matrix, and tasks to every class, the same for all; a worker with few votes is then near chance.
    pooling : float
        Where smoothing is a number, how the added votes are distributed: from 0, evenly, to 1, like the votes of all
        workers together.
    one_coin : bool
        Whether a worker is right with one probability, whatever the class, and otherwise guesses evenly. Where known
        classes tell that labels, of three or more, mostly stand for others, that is the probability of the label that
        stands for the class.
    copies : {"share", "count"}
        What becomes of the votes of workers who copy from each other, by the most probable explanation of all votes:
        those for the same label of a task share the weight of one vote, or each counts in full.
    method : Method or str, optional
        How moments are factorized; by default by joint diagonalization alone.
    n_partitions : int
        Random partitions of the workers into three groups to average over.
    groups : array of shape (n_workers,) or (n_partitions, n_workers), optional
        Partitions of your own instead: 0, 1 or 2 for every worker, in sorted order.
    tol : float
        See `max_iter`.
    missing : object
        What stands for no vote in a matrix of tasks and workers, besides NaN and None.
    random_state : int or numpy.random.Generator, optional
        Seed of the partitions, and of the samples for standard errors.

    Attributes
    ----------
    labels_ : array of shape (n_tasks,)
        The most probable class of every task.
    probas_ : array of shape (n_tasks, n_classes)
        The probability of each class.
    errors_ : array of shape (n_workers, n_classes, n_classes)
        Confusion matrices, given label by true class, with columns of sum one. The name is crowd-kit's; in a data frame
        rows are by worker and given label.
    confusion_matrices_ : array of shape (n_workers, n_classes, n_classes)
        The same as scikit-learn has it: a row for each true class, of sum one, and a column for each given label.
    priors_ : array of shape (n_classes,)
        The shares of the classes.
    priors_standard_errors_ : array of shape (n_classes,)
        Zero where they are given.
    worker_accuracy_ : array of shape (n_workers,)
        How often a worker is right, over tasks like these.
    worker_accuracy_standard_errors_ : array of shape (n_workers,)
        Standard errors of `worker_accuracy_`.
    worker_accuracy_interval_ : array of shape (n_workers, 2)
        Low and high, between which the accuracy lies with probability 0.9.
    errors_standard_errors_ : as `errors_`
        Standard errors of the confusion matrices.
    copies_ : array of shape (n_pairs, 2)
        Pairs of workers who agree more often than their confusion matrices and the votes of all others explain, the
        most certain first. With known confusion matrices, no pair of workers who vote independently is among them
        with probability 0.95; here they are estimated, by the run, with such pairs sharing a weight or not, that makes
        the votes most probable. Nobody is named, and a warning says so, where a run that names others, or nobody, makes
        the votes nearly as probable. See `copy_table`.
    errors_spread_ : as `errors_`
        Standard deviation of the confusion matrices by moments alone over partitions; NaN where moments were not used.
    loss_history_ : list of float
        The objective after each round, per vote: the log-likelihood, plus what the smoothing adds. Never falls. Where
        smoothing is estimated, the rounds are those after the last estimate.
    log_likelihood_ : float
        Of all votes.
    tasks_, workers_, classes_ : arrays
        The names, in the order of the arrays above.
    diagnostics_ : Diagnostics
        Where expectation maximization started, why not from moments, `n_partitions`, ``em_rounds`` and ``converged``.

    See Also
    --------
    codiag.io.read_votes : Read votes from a file.
    codiag.datasets.load_crowd : Votes of published crowds.
    codiag.reports.crowd_report : A page about labels and workers.
    MultiviewMixture : The same kind of model for numbers.

    Notes
    -----
    Where votes came as a data frame of pandas or polars, attributes are series and frames of the same library, except
    for names, lists and numbers.

    Classes are named by the assignment under which the workers, vote for vote, are right most often: a crowd that is
    mostly wrong in the same way cannot be told from one that is mostly right.

    Names and order of votes, tasks, workers and classes make no difference, not even to standard errors, unless votes
    are the same with two classes exchanged: random numbers are dealt in an order that votes determine.

    With the estimated prior, standard errors and intervals come from Gibbs sampling: the truth of the tasks, the other
    workers and the prior are all uncertain. With a number for smoothing, standard errors assume that the other workers
    are known, and intervals are those of a Beta distribution with this mean and standard deviation.

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

    former_parameters: ClassVar[Mapping[str, str]] = {"em_rounds": "max_iter"}

    def __init__(
        self,
        *,
        init: str | ArrayLike = "moments",
        max_iter: int = 100,
        prior: str | ArrayLike = "estimated",
        smoothing: float | str = "estimated",
        pooling: float = 0.0,
        one_coin: bool = False,
        copies: str = "share",
        method: Method | str | None = None,
        n_partitions: int = 20,
        groups: ArrayLike | None = None,
        tol: float = 1e-6,
        missing: Any = -1,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.init = init
        self.max_iter = max_iter
        self.prior = prior
        self.smoothing = smoothing
        self.pooling = pooling
        self.one_coin = one_coin
        self.copies = copies
        self.method = method
        self.n_partitions = n_partitions
        self.groups = groups
        self.tol = tol
        self.missing = missing
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, gold: Any = None) -> Self:  # noqa: N803
        """Estimate labels and workers from votes.

        Parameters
        ----------
        X : data frame, dict or tuple of three columns, or array of shape (n_tasks, n_workers)
            Votes: a frame of pandas or polars, or a dict, with the columns task, worker and label; a tuple of the three
            columns; or a matrix of labels with `missing` where a worker has not seen a task. A vote given twice counts
            twice. An array or a list that looks like three columns is refused, or read as such where it is a list of
            three: lines of a matrix share their labels, and columns do not. Or a table in parts, each a frame, a dict
            or a tuple of columns: a data frame of dask, a list of frames, an iterator, or a function that returns one.
            Parts are read once; of each vote three whole numbers are kept, and a task may be in several parts.
        y : known classes, optional
            The same as `gold`, in the place where scikit-learn and crowd-kit have it; one of the two.
        gold : mapping, series, data frame, tuple of two columns or array of shape (n_tasks,), optional
            Classes of tasks that are known: a mapping from tasks to classes, a pandas Series with the tasks as its
            index, a data frame with the columns task and label, or a tuple of these; where X is a matrix, also a class
            for each of its rows, `missing` where it is not known. Such tasks are held at their class, so that workers
            are judged by them, and they tell which class is which where a crowd is mostly wrong. Tasks without votes,
            and labels that are missing, are left out; labels that no vote has are refused. Nothing, or missing labels
            alone, is as None.

        Returns
        -------
        self
            The fitted model.

        See Also
        --------
        DawidSkene.fit_predict : Fit and return the labels.

        Examples
        --------
        >>> from codiag.models import DawidSkene
        >>> from codiag.synthetic import crowd_votes, worker_errors
        >>> crowd = crowd_votes(100, worker_errors(7, 2, seed=0), seed=1)
        >>> DawidSkene(random_state=0).fit(crowd.votes).labels_.shape
        (100,)
        """
        warn_caller(self.learn(X, one_of(y, gold)))
        return self

    def learn(self, data: Any, gold: Any = None) -> tuple[Warning, ...]:
        """Do the work of `fit`, silently, and return what is to be warned of.

        Parameters
        ----------
        data : votes, as for `fit`
            The votes.
        gold : known classes, as for `fit`, optional
            Classes of tasks that are known.

        Returns
        -------
        tuple of Warning
            What `fit` warns of.

        Examples
        --------
        >>> from codiag.models import DawidSkene
        >>> from codiag.synthetic import crowd_votes, worker_errors
        >>> crowd = crowd_votes(100, worker_errors(7, 2, seed=0), seed=1)
        >>> DawidSkene(random_state=0).learn(crowd.votes)
        ()
        """
        self.check_parameters()
        given = with_gold(votes_at_hand(data, self.missing), gold, missing=self.missing)
        votes, order = in_own_order(given)
        votes, order = with_labels_of_classes(votes, order) if self.one_coin else (votes, order)
        prior = as_prior(votes, self.prior, self.smoothing, self.pooling, one_coin=self.one_coin, order=order)
        start = self._start(votes, order, prior)
        run, workers = self._run_from(votes, start, prior)
        found = examine(votes, run, lambda shared: self._run_from(shared, start, prior)[0], one_coin=self.one_coin)
        if self.copies == "share" and len(found.believed) > 0 and self.max_iter > 0:
            votes = with_shared_votes(votes, found.believed)
            run, workers = self._run_from(votes, start, prior)
        self._copies = found.named._replace(pairs=np.sort(order.workers[found.named.pairs], axis=1))
        uncertainty = self._uncertainty(votes, order, run, prior, workers)
        self._keep(given, start.undone(order), run.undone(order), uncertainty.undone(order, run.model.shares))
        return (*complaints_about(votes), *self._told(start, run), *in_doubt(found, votes.workers))

    def fit_predict(self, X: Any, y: Any = None, *, gold: Any = None) -> Any:  # noqa: N803
        """Return the label of every task.

        Parameters
        ----------
        X : votes, as for `fit`
            The votes.
        y, gold : known classes, as for `fit`, optional
            Classes of tasks that are known, in one of the two.

        Returns
        -------
        array of shape (n_tasks,), or a series or data frame where votes came as a data frame
            The labels, in the order of `tasks_`.

        See Also
        --------
        DawidSkene.predict : Labels of new tasks.

        Examples
        --------
        >>> from codiag.models import DawidSkene
        >>> from codiag.synthetic import crowd_votes, worker_errors
        >>> crowd = crowd_votes(100, worker_errors(7, 2, seed=0), seed=1)
        >>> labels = DawidSkene(random_state=0).fit_predict(crowd.votes)
        >>> bool((labels == crowd.truth).mean() > 0.9)
        True
        """
        warn_caller(self.learn(X, one_of(y, gold)))
        return self.labels_

    def fit_predict_proba(self, X: Any, y: Any = None, *, gold: Any = None) -> Any:  # noqa: N803
        """Return the probability of each class for every task.

        Parameters
        ----------
        X : votes, as for `fit`
            The votes.
        y, gold : known classes, as for `fit`, optional
            Classes of tasks that are known, in one of the two.

        Returns
        -------
        array of shape (n_tasks, n_classes), or a data frame where votes came as one
            The probabilities, with rows of sum one.

        See Also
        --------
        DawidSkene.predict_proba : Probabilities for new tasks.

        Examples
        --------
        >>> from codiag.models import DawidSkene
        >>> from codiag.synthetic import crowd_votes, worker_errors
        >>> crowd = crowd_votes(100, worker_errors(7, 2, seed=0), seed=1)
        >>> DawidSkene(random_state=0).fit_predict_proba(crowd.votes).shape
        (100, 2)
        """
        warn_caller(self.learn(X, one_of(y, gold)))
        return self.probas_

    def predict_proba(self, X: Any) -> Any:  # noqa: N803
        """Return the probability of each class for tasks that workers of `fit` have voted on.

        Parameters
        ----------
        X : votes, as for `fit`
            Of workers and with labels that were there in `fit`; tasks may be new.

        Returns
        -------
        array of shape (n_tasks, n_classes), or a data frame where votes came as one
            The probabilities, with rows of sum one.

        See Also
        --------
        DawidSkene.predict : The most probable class.

        Examples
        --------
        >>> from codiag.models import DawidSkene
        >>> from codiag.synthetic import crowd_votes, worker_errors
        >>> crowd = crowd_votes(100, worker_errors(7, 2, seed=0), seed=1)
        >>> model = DawidSkene(random_state=0).fit(crowd.votes)
        >>> model.predict_proba(crowd.votes).shape
        (100, 2)
        """
        votes, classes = self._expect(X)
        return Tables(votes).by_class(classes)

    def predict(self, X: Any) -> Any:  # noqa: N803
        """Return the label of tasks that workers of `fit` have voted on.

        Parameters
        ----------
        X : votes, as for `fit`
            Of workers and with labels that were there in `fit`; tasks may be new.

        Returns
        -------
        array of shape (n_tasks,), or a series or data frame where votes came as a data frame
            The labels, task by task.

        See Also
        --------
        DawidSkene.predict_proba : The probability of each class.

        Examples
        --------
        >>> from codiag.models import DawidSkene
        >>> from codiag.synthetic import crowd_votes, worker_errors
        >>> crowd = crowd_votes(100, worker_errors(7, 2, seed=0), seed=1)
        >>> model = DawidSkene(random_state=0).fit(crowd.votes)
        >>> model.predict(crowd.votes).shape
        (100,)
        """
        votes, classes = self._expect(X)
        return Tables(votes).series(self.classes_[np.argmax(classes, axis=1)], "agg_label", votes.tasks, "task")

    def _expect(self, X: Any) -> tuple[Votes, np.ndarray]:  # noqa: N803
        check_is_fitted(self)
        refuse_parts(X)
        votes = as_votes(X, self.missing, workers=self.workers_, classes=self.classes_)
        return votes, expect(votes, self._run.model)[0]

    def check_parameters(self) -> None:
        """Raise unless parameters are what they must be.

        Examples
        --------
        >>> from codiag.models import DawidSkene
        >>> DawidSkene().check_parameters()
        >>> DawidSkene(tol=-1.0).check_parameters()  # refused
        Traceback (most recent call last):
            ...
        ValueError: tol must not be negative; got -1.0
        """
        super().check_parameters()
        check_options(self)

    def _start(self, votes: Votes, order: Order, prior: Prior) -> Start:
        if not isinstance(self.init, str):
            return start_from_given(votes, order, self.init, prior)
        if self.init == "majority" or votes.classes.size == 1:
            return start_from_majority(votes)
        groups = as_groups(votes, order, self.groups, self.n_partitions, self.random_state)
        method = None if self.method is None else as_method(self.method)
        return start_from_moments(votes, groups, method, self.random_state, prior)

    def _run_from(self, votes: Votes, start: Start, prior: Prior) -> tuple[Run, CrowdPrior | None]:
        if not isinstance(self.smoothing, str):
            return run_em(votes, start, prior, self.max_iter, self.tol), None
        return run_with_estimated_prior(votes, start, prior, self.max_iter, self.tol)

    def _uncertainty(
        self, votes: Votes, order: Order, run: Run, prior: Prior, workers: CrowdPrior | None
    ) -> Uncertainty:
        if workers is None:
            return information_uncertainty(votes, run, prior)
        rng = as_generator(self.random_state, "random_state").spawn(1)[0]
        found = sample_uncertainty(votes, run, workers, prior.shares, rng)
        return found._replace(
            confusions=order.averaged(found.confusions),
            accuracies=order.averaged(found.accuracies),
            intervals=order.averaged(found.intervals),
        )

    def _told(self, start: Start, run: Run) -> Iterator[Warning]:
        """Yield what a user must be told."""
        reason = start.diagnostics.reason
        if reason is not None:
            yield UserWarning(f"moments do not determine this crowd: {reason}; started from the majority vote instead")
        if self.max_iter > 0 and self.tol > 0 and not run.converged:
            yield ConvergenceWarning(
                f"expectation maximization did not converge in max_iter={self.max_iter} rounds: the objective still "
                f"rises by more than tol={self.tol:g} per vote; allow more rounds, or set tol=0 to ask for just so many"
            )

    def _keep(self, votes: Votes, start: Start, run: Run, uncertainty: Uncertainty) -> None:
        tables, k = Tables(votes), votes.classes.size
        accuracy, deviations = run.model.accuracies, uncertainty.accuracies
        low, high = uncertainty.intervals.T
        intervals = np.stack([np.minimum(low, accuracy), np.maximum(high, accuracy)], axis=1)
        spread = np.full((votes.workers.size, k, k), np.nan) if start.spread is None else start.spread
        self._run, self._votes_of_workers = run, votes.votes_of_workers
        self._votes_of_tasks = np.bincount(votes.task, minlength=votes.tasks.size)
        self._accuracy = accuracy, deviations, intervals
        self.tasks_, self.workers_, self.classes_ = votes.tasks, votes.workers, votes.classes
        labels = votes.classes[np.argmax(run.classes, axis=1)]
        self.labels_ = tables.series(labels, "agg_label", votes.tasks, "task")
        self.probas_ = tables.by_class(run.classes)
        self.errors_ = tables.confusions(run.model.confusions)
        self.confusion_matrices_ = np.swapaxes(run.model.confusions, 1, 2)
        self.errors_standard_errors_ = tables.confusions(uncertainty.confusions)
        self.errors_spread_ = tables.confusions(spread)
        self.priors_ = tables.series(run.model.shares, "prior", votes.classes, "label")
        self.priors_standard_errors_ = tables.series(uncertainty.shares, "standard_error", votes.classes, "label")
        self.worker_accuracy_ = tables.series(accuracy, "accuracy", votes.workers, "worker")
        self.worker_accuracy_standard_errors_ = tables.series(deviations, "standard_error", votes.workers, "worker")
        self.worker_accuracy_interval_ = tables.intervals(intervals)
        self.copies_ = votes.workers[self._copies.pairs]
        self.loss_history_, self.log_likelihood_ = run.history, run.log_likelihood
        self.diagnostics_ = replace(start.diagnostics, em_rounds=len(run.history), converged=run.converged)
