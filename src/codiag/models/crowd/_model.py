"""Labels from a crowd: the true classes and the confusion matrix of every worker, from votes alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from codiag._checks import ConvergenceWarning, as_flag, as_generator
from codiag.methods import Method, as_method
from codiag.models.base import (
    number_or_zero,
    positive_integer,
    warn_caller,
    word_or,
)
from codiag.models.crowd._em import Prior, Start, as_prior, expect, known_or_uniform, run_em
from codiag.models.crowd._prior import HIGH, LOW, beta_intervals, posterior_deviations, run_with_estimated_prior
from codiag.models.crowd._starts import start_from_given, start_from_moments
from codiag.models.crowd._tables import CrowdTables, Tables, keep_results
from codiag.models.crowd._votes import Votes, as_votes, with_known_classes


class VoteModel(CrowdTables):
    """Base of models of votes: fit, predict and tables. A model implements `_fit` and `_classes_of`."""

    def fit(self, X: Any, y: Any = None, *, progress: bool | None = None) -> Self:  # noqa: N803
        """Estimate labels and workers from votes.

        Parameters
        ----------
        X : data frame, dict or tuple of three columns, or array of shape (n_tasks, n_workers)
            Votes: a data frame (pandas, polars, pyarrow or another library that narwhals supports) or a dict with the
            columns task, worker (or judge) and label; a tuple of the three columns; or a matrix of labels, with
            `missing` for a task that a worker has not seen. A vote given twice counts twice.
        y : mapping, series, data frame, tuple of two columns or array of shape (n_tasks,), optional
            Known classes of tasks: a mapping from tasks to classes, a pandas Series with the tasks as its index, a data
            frame with the columns task and label, or a tuple of these; if X is a matrix, also a class for each of its
            rows, `missing` if it is not known. These tasks keep their class, and inform the estimates of the workers.
            Tasks without votes, and missing labels, are ignored; labels that no vote has are refused.
        progress : bool, optional
            Whether to show a bar on the standard error, or below the cell of a notebook, if it takes more than two
            seconds. By default, one appears after ten, and never where the standard error is no terminal.

        Returns
        -------
        self
            The fitted model.

        Examples
        --------
        >>> from codiag.models import DawidSkene
        >>> from codiag.synthetic import crowd_votes, worker_confusions
        >>> crowd = crowd_votes(100, worker_confusions(7, 2, rng=0), rng=1)
        >>> DawidSkene(random_state=0).fit(crowd.votes).labels_.shape
        (100,)
        """
        return self._fit_with_progress(progress, X, y)

    def _fit(self, data: Any, y: Any = None) -> tuple[Warning, ...]:
        """Do the work of `fit` without issuing warnings, and return them."""
        raise NotImplementedError

    def _classes_of(self, votes: Votes) -> np.ndarray:
        """Return the probabilities of the classes of new tasks (tasks, classes)."""
        raise NotImplementedError

    def fit_predict(self, X: Any, y: Any = None) -> Any:  # noqa: N803
        """Fit, and return the label of every task.

        Parameters
        ----------
        X, y : as for `fit`
            Votes and known classes.

        Returns
        -------
        array of shape (n_tasks,), or a series if votes came as a data frame of pandas
            The labels, in the order of `tasks_`.

        Examples
        --------
        >>> from codiag.models import DawidSkene
        >>> from codiag.synthetic import crowd_votes, worker_confusions
        >>> crowd = crowd_votes(100, worker_confusions(7, 2, rng=0), rng=1)
        >>> DawidSkene(random_state=0).fit_predict(crowd.votes).shape
        (100,)
        """
        warn_caller(self._fit(X, y))
        return self.labels_

    def fit_predict_proba(self, X: Any, y: Any = None) -> Any:  # noqa: N803
        """Fit, and return the probability of each class for every task.

        Parameters
        ----------
        X, y : as for `fit`
            Votes and known classes.

        Returns
        -------
        array of shape (n_tasks, n_classes), or a data frame if votes came as one of pandas
            The probabilities, with rows of sum one.

        Examples
        --------
        >>> from codiag.models import DawidSkene
        >>> from codiag.synthetic import crowd_votes, worker_confusions
        >>> crowd = crowd_votes(100, worker_confusions(7, 2, rng=0), rng=1)
        >>> DawidSkene(random_state=0).fit_predict_proba(crowd.votes).shape
        (100, 2)
        """
        warn_caller(self._fit(X, y))
        return self.probas_

    def predict_proba(self, X: Any) -> Any:  # noqa: N803
        """Return the probability of each class for tasks that workers of `fit` have voted on.

        Parameters
        ----------
        X : votes, as for `fit`
            Workers and labels must be among those of `fit`; tasks may be new.

        Returns
        -------
        array of shape (n_tasks, n_classes), or a data frame if votes came as one of pandas
            The probabilities, with rows of sum one.

        Examples
        --------
        >>> from codiag.models import DawidSkene
        >>> from codiag.synthetic import crowd_votes, worker_confusions
        >>> crowd = crowd_votes(100, worker_confusions(7, 2, rng=0), rng=1)
        >>> DawidSkene(random_state=0).fit(crowd.votes).predict_proba(crowd.votes).shape
        (100, 2)
        """
        check_is_fitted(self)
        votes = as_votes(X, self.missing, workers=self.workers_, classes=self.classes_)
        return Tables(votes).by_class(self._classes_of(votes))

    def predict(self, X: Any) -> Any:  # noqa: N803
        """Return the most probable class of tasks that workers of `fit` have voted on.

        Parameters
        ----------
        X : votes, as for `fit`
            Workers and labels must be among those of `fit`; tasks may be new.

        Returns
        -------
        array of shape (n_tasks,), or a series if votes came as a data frame of pandas
            The labels, task by task.

        Examples
        --------
        >>> from codiag.models import DawidSkene
        >>> from codiag.synthetic import crowd_votes, worker_confusions
        >>> crowd = crowd_votes(100, worker_confusions(7, 2, rng=0), rng=1)
        >>> DawidSkene(random_state=0).fit(crowd.votes).predict(crowd.votes).shape
        (100,)
        """
        check_is_fitted(self)
        votes = as_votes(X, self.missing, workers=self.workers_, classes=self.classes_)
        places = np.argmax(self._classes_of(votes), axis=1)
        return Tables(votes).by_task(self.classes_[places], "agg_label")

    def _read(self, data: Any, y: Any) -> Votes:
        self.check_parameters()
        return with_known_classes(as_votes(data, self.missing), y, missing=self.missing)


class DawidSkene(VoteModel):
    r"""Labels from a crowd by the model of Dawid and Skene: moments, then expectation maximization.

    A task has class c with probability :math:`\pi_c`, and worker i gives it label l with probability
    :math:`C_i[l, c]`, independently of the other workers. The confusion matrices :math:`C_i` are estimated by joint
    diagonalization of the third moment of the votes of three groups of workers, averaged over random partitions of the
    workers. Expectation maximization continues from there. `fit`, `fit_predict` and the tables are those of crowd-kit.

    Parameters
    ----------
    init : "moments", "majority" or array of shape (n_workers, n_classes, n_classes)
        Start of expectation maximization: moments, the shares of the votes, or these confusion matrices, given label by
        true class, for the workers in sorted order. If moments do not determine the model, the start is the majority
        vote, and a warning says so.
    max_iter : int
        Largest number of steps of expectation maximization. They end earlier once the objective rises by less than
        `tol` per vote; otherwise there is a warning. Zero returns the start itself.
    tol : float
        See `max_iter`.
    prior : "estimated", "uniform" or array of shape (n_classes,)
        The shares of the classes.
    smoothing : "estimated" or float
        The prior of a worker. By default it is estimated from the crowd (empirical Bayes): the distribution of skills
        over workers, the ease of classes, and the common wrong labels. The estimate for a worker with few votes is then
        close to that of the crowd. A number is added to every cell of every confusion matrix, in votes, and to every
        class, in tasks; the estimate for a worker with few votes is then close to chance.
    one_coin : bool
        Whether a worker is right with the same probability in all classes, and wrong labels are uniform.
    method : Method or str, optional
        How moments are factorized; by default by joint diagonalization alone.
    n_partitions : int
        Number of random partitions of the workers into three groups to average over.
    missing : object
        Marker of a cell without a vote in a matrix of tasks and workers, besides NaN and None.
    random_state : int or numpy.random.Generator, optional
        Seed of the partitions.

    Attributes
    ----------
    labels_ : array of shape (n_tasks,)
        The most probable class of every task. If votes came as a data frame of pandas, this and what follows are
        series and data frames.
    probas_ : array of shape (n_tasks, n_classes)
        The probability of each class.
    confusion_matrices_ : array of shape (n_workers, n_classes, n_classes)
        Confusion matrices, given label by true class, with columns of sum one, which are ``errors_`` of crowd-kit; in
        a data frame rows are by worker and given label.
    priors_ : array of shape (n_classes,)
        The shares of the classes.
    worker_accuracy_ : array of shape (n_workers,)
        Probability that a worker is right, over tasks like these.
    worker_accuracy_standard_errors_ : array of shape (n_workers,)
        Standard errors of `worker_accuracy_`.
    worker_accuracy_interval_ : array of shape (n_workers, 2)
        Lower and upper end of an interval that contains the accuracy with probability 0.9; in a data frame the columns
        are ``accuracy_low_90`` and ``accuracy_high_90``.
    confusion_matrices_standard_errors_ : as `confusion_matrices_`
        Standard errors of the confusion matrices.
    loss_history_ : list of float
        The objective after each step, per vote: the log-likelihood plus the log-density of the prior. It never
        decreases. If the prior is estimated, the steps are those after its last estimate.
    log_likelihood_ : float
        Log-likelihood of all votes.
    tasks_, workers_, classes_ : arrays
        The names, in the order of the arrays above.
    init_ : {"moments", "majority", "given"}
        The start of expectation maximization.
    converged_ : bool
        Whether the objective rose by less than `tol` in the last step.

    See Also
    --------
    Jury : The model of workers who depend on each other.
    codiag.datasets.load_crowd : Votes of published crowds.
    MultiviewMixture : A model of the same kind for numbers.

    Notes
    -----
    **Assumptions.** Three workers and, for k classes (at most 100), k tasks with votes of three workers, better far
    more; otherwise it starts from the majority vote, with a warning.

    **Complexity.** For n votes on t tasks, :math:`O(t k^3)` flops for each partition and :math:`O(n k)` for each step
    of expectation maximization, and memory for the votes and for one confusion matrix for each worker and partition.

    **Guarantees.** If the model is right, moments that converge to the truth as the number of tasks grows, and then an
    objective that never decreases.

    **Limitations.** Fails if most workers are wrong in the same way, or if workers who copy outvote the others on their
    tasks: votes alone do not distinguish this from being right.

    Classes are named by the assignment under which most votes are right: a crowd that is mostly wrong in the same way
    cannot be distinguished from one that is mostly right.

    Tasks, workers and classes are sorted by name when votes are read, so that results do not depend on the order of
    the votes. The partitions of the workers are random: they depend on `random_state`, and on which names come first.

    Standard errors are those of the posterior distribution of a worker, the other workers taken as known. Intervals
    are those of a Beta distribution with this mean and standard error.

    Workers who copy each other, or whose mistakes are the same mistakes, are not independent: `Jury` is a model of
    these.

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

    parameter_rules = VoteModel.parameter_rules | {
        "init": word_or(("moments", "majority"), "an array"),
        "prior": word_or(("estimated", "uniform"), "an array"),
        "smoothing": word_or(("estimated",), "a number", number_or_zero),
        "one_coin": as_flag,
        "n_partitions": positive_integer,
    }

    def __init__(
        self,
        *,
        init: str | ArrayLike = "moments",
        max_iter: int = 100,
        tol: float = 1e-6,
        prior: str | ArrayLike = "estimated",
        smoothing: float | str = "estimated",
        one_coin: bool = False,
        method: Method | str | None = None,
        n_partitions: int = 20,
        missing: Any = -1,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.prior = prior
        self.smoothing = smoothing
        self.one_coin = one_coin
        self.method = method
        self.n_partitions = n_partitions
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
        >>> from codiag.models import DawidSkene
        >>> from codiag.synthetic import crowd_votes, worker_confusions
        >>> crowd = crowd_votes(100, worker_confusions(7, 2, rng=0), rng=1)
        >>> DawidSkene(random_state=0)._fit(crowd.votes)
        ()
        """
        votes = self._read(data, y)
        prior = as_prior(votes, self.prior, self.smoothing, one_coin=self.one_coin)
        start = self._start(votes, prior)
        if isinstance(self.smoothing, str):
            run, workers = run_with_estimated_prior(votes, start, prior, self.max_iter, self.tol)
        else:
            run, workers = run_em(votes, start, prior, self.max_iter, self.tol), None
        confusion_errors, errors = posterior_deviations(votes, run, prior, workers)
        accuracy = run.model.accuracies
        low, high = beta_intervals(accuracy, errors).T
        columns = {"accuracy": accuracy, "standard_error": errors, LOW: low, HIGH: high}
        keep_results(self, votes, run.classes, known_or_uniform(run.model.confusions), run.model.shares, columns)
        self._model = run.model
        self.confusion_matrices_standard_errors_ = Tables(votes).confusions(confusion_errors)
        self.loss_history_, self.log_likelihood_ = run.history, run.log_likelihood
        self.init_, self.converged_ = start.init, run.converged
        return tuple(self._warnings(votes, start))

    def _start(self, votes: Votes, prior: Prior) -> Start:
        if not isinstance(self.init, str):
            return start_from_given(votes, self.init, prior)
        if self.init == "majority":
            return Start(votes.shares)
        rng = as_generator(self.random_state, "random_state")
        method = None if self.method is None else as_method(self.method)
        return start_from_moments(votes, self.n_partitions, method, rng, prior)

    def _classes_of(self, votes: Votes) -> np.ndarray:
        return expect(votes, self._model)[0]

    def _warnings(self, votes: Votes, start: Start) -> Iterator[Warning]:
        k = votes.classes.size
        if k > 1 and isinstance(self.init, str) and start.init != self.init:
            yield UserWarning(
                f"The method of moments cannot tell the {k} classes apart (too few votes, or classes that look alike), "
                "so EM started from the majority vote."
            )
        if self.max_iter > 0 and self.tol > 0 and not self.converged_:
            yield not_converged(self.max_iter, self.tol)


def not_converged(max_iter: int, tol: float) -> ConvergenceWarning:
    """Return the warning that steps ended before the objective was level."""
    return ConvergenceWarning(
        f"expectation maximization did not converge in max_iter={max_iter} steps: the objective still rises by more "
        f"than tol={tol:g} per vote; allow more steps, or set tol=0 for exactly this number"
    )
