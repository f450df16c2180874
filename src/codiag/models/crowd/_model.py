"""Labels from a crowd: the true classes and the confusion matrix of every worker, from votes alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from codiag._checks import ConvergenceWarning, as_flag, as_generator, as_number
from codiag._progress import progress_if
from codiag.methods import Method, as_method
from codiag.models.crowd._dependence import Dependence, measure_dependence
from codiag.models.crowd._em import (
    CrowdPrior,
    Prior,
    Run,
    Start,
    as_prior,
    expect,
    known_or_uniform,
    run_em,
    run_with_estimated_prior,
)
from codiag.models.crowd._families import TOL, as_families, family_shares, find_families
from codiag.models.crowd._jury import Jury, label_jury, model_spread, workers_of
from codiag.models.crowd._starts import (
    as_groups,
    labels_of_classes,
    start_from_given,
    start_from_majority,
    start_from_moments,
)
from codiag.models.crowd._tables import CrowdTables, Tables
from codiag.models.crowd._uncertainty import Uncertainty, information_uncertainty, sample_uncertainty
from codiag.models.crowd._votes import Votes, as_votes, collect_votes, refuse_parts, warnings_for, with_gold
from codiag.models.base import Model, warn_caller


class DawidSkene(CrowdTables, Model):
    r"""Labels from a crowd by the model of Dawid and Skene: moments, then expectation maximization.

    A task has class c with probability :math:`\pi_c`, and worker i gives it label l with probability
    :math:`C_i[l, c]`, independently of the other workers. The confusion matrices :math:`C_i` are estimated by joint
    diagonalization of the third moment of the votes of three groups of workers, averaged over random partitions of the
    workers. Expectation maximization continues from there. `fit`, `fit_predict` and the tables are those of crowd-kit.

    *Needs* three workers and, for k classes (at most 100), k tasks with votes of three workers, better far more;
    otherwise it starts from the majority vote, with a warning. *Costs*, for n votes on t tasks, :math:`O(t k^3)` flops
    for each partition and :math:`O(n k)` for each step of expectation maximization or sampling, and memory for the
    votes and for one confusion matrix for each worker and partition. *Guarantees*, if the model is right, moments that
    converge to the truth as the number of tasks grows, without local optima, and then an objective that never
    decreases. *Fails* if most workers are wrong in the same way, or if workers who copy outvote the others on their
    tasks: votes alone do not distinguish this from being right.

    Parameters
    ----------
    init : "moments", "majority" or array of shape (n_workers, n_classes, n_classes)
        Start of expectation maximization: moments, the shares of the votes, or these confusion matrices, given label by
        true class, for the workers in sorted order. If moments do not determine the model, the start is the majority
        vote, and a warning says why.
    max_iter : int
        Largest number of steps of expectation maximization. They end earlier once the objective rises by less than
        `tol` per vote; otherwise there is a warning. Zero returns the start itself.
    prior : "estimated", "uniform" or array of shape (n_classes,)
        The shares of the classes.
    smoothing : "estimated" or float
        The prior of a worker. By default it is estimated from the crowd (empirical Bayes): the distribution of skills
        over workers, the ease of classes, and the common wrong labels. The estimate for a worker with few votes is then
        close to that of the crowd. A number is added to every cell of every confusion matrix, in votes, and to every
        class, in tasks; the estimate for a worker with few votes is then close to chance.
    pooling : float
        If `smoothing` is a number, the distribution of the added votes: from 0, uniform, to 1, like the votes of all
        workers together.
    one_coin : bool
        Whether a worker is right with the same probability in all classes, and wrong labels are uniform. If known
        classes show that labels, of three or more, mostly denote other classes, this is the probability of the label
        that denotes the class.
    families : "auto", "none", mapping or array of shape (n_workers,)
        Workers who think alike, such as copies of one language model: found from the votes, none, or given. A mapping
        has the name of the family of every worker, an array has these in sorted order of the workers; None for a
        worker without one. The votes of a family count as one view of a task, by a model in which its members share
        mistakes. Without families, workers are independent given the class.
    ordered : "auto" or bool
        Whether classes are grades, in sorted order, that workers give by thresholds on a quality. By default this is
        decided by held-out votes, if workers are in families and classes are three numbers or more.
    decision : {"mode", "mean"}
        The label of a task: the most probable class, or, for grades, the class nearest to the mean of the grades by
        their probabilities, which does not jump where two grades are as probable.
    method : Method or str, optional
        How moments are factorized; by default by joint diagonalization alone.
    n_partitions : int
        Number of random partitions of the workers into three groups to average over.
    groups : array of shape (n_workers,) or (n_partitions, n_workers), optional
        Partitions to use instead: 0, 1 or 2 for every worker, in sorted order.
    tol : float
        See `max_iter`.
    missing : object
        Marker of a cell without a vote in a matrix of tasks and workers, besides NaN and None.
    random_state : int or numpy.random.Generator, optional
        Seed of the partitions, and of the samples for standard errors.

    Attributes
    ----------
    labels_ : array of shape (n_tasks,)
        The most probable class of every task. If votes came as a data frame, this and what follows are series and
        data frames of the same library, with its names of tasks, workers and labels.
    probas_ : array of shape (n_tasks, n_classes)
        The probability of each class.
    confusion_ : array of shape (n_workers, n_classes, n_classes)
        Confusion matrices, given label by true class, with columns of sum one, which are ``errors_`` of crowd-kit; in
        a data frame rows are by worker and given label.
    confusion_matrices_ : array of shape (n_workers, n_classes, n_classes)
        The same as in scikit-learn: a row for each true class, of sum one, and a column for each given label.
    priors_ : array of shape (n_classes,)
        The shares of the classes.
    priors_standard_errors_ : array of shape (n_classes,)
        Standard errors of `priors_`; zero if these are given.
    worker_accuracy_ : array of shape (n_workers,)
        Probability that a worker is right, over tasks like these.
    worker_accuracy_standard_errors_ : array of shape (n_workers,)
        Standard errors of `worker_accuracy_`.
    worker_accuracy_interval_ : array of shape (n_workers, 2)
        Lower and upper end of an interval that contains the accuracy with probability 0.9; in a data frame the columns
        are ``accuracy_low_90`` and ``accuracy_high_90``.
    confusion_standard_errors_ : as `confusion_`
        Standard errors of the confusion matrices.
    families_ : list of arrays
        The workers of each family of two or more.
    dependence_ : array of shape (n_workers, n_workers)
        Correlation of the votes of two workers beyond what the classes explain; NaN if they share too few tasks. Of
        more than 3000 workers, a sparse array of SciPy with those who share enough.
    effective_votes_ : float
        Number of independent votes on a task that the votes are worth, in the mean over tasks.
    effective_votes_interval_ : array of shape (2,)
        Lower and upper end of an interval that contains it with probability 0.9.
    confusion_spread_ : as `confusion_`
        Standard deviation of the confusion matrices by moments alone over partitions; NaN if moments were not used.
    loss_history_ : list of float
        The objective after each step, per vote: the log-likelihood plus the log-density of the prior. It never
        decreases. If the prior is estimated, the steps are those after its last estimate.
    log_likelihood_ : float
        Log-likelihood of all votes.
    tasks_, workers_, classes_ : arrays
        The names, in the order of the arrays above.
    diagnostics_ : Diagnostics
        The start of expectation maximization, the reason if it is not from moments, `n_partitions`, the number of
        steps and ``converged``.

    See Also
    --------
    codiag.io.read_votes : Read votes from a file.
    codiag.datasets.load_crowd : Votes of published crowds.
    codiag.reports.crowd_report : A page about labels and workers.
    MultiviewMixture : A model of the same kind for numbers.

    Notes
    -----
    If votes came as a data frame, attributes are series and frames of the same library, except for names, lists and
    numbers.

    Classes are named by the assignment under which most votes are right: a crowd that is mostly wrong in the same way
    cannot be distinguished from one that is mostly right.

    Tasks, workers and classes are sorted by name when votes are read, so that results do not depend on the order of
    the votes. The partitions of the workers and the samples behind standard errors are random: they depend on
    `random_state`, and on which names come first.

    With the estimated prior, standard errors and intervals come from Gibbs sampling, in which the classes of the tasks,
    the other workers and the prior are all uncertain. With a number for smoothing, standard errors assume that the
    other workers are known, and intervals are those of a Beta distribution with this mean and standard deviation.

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
        init: str | ArrayLike = "moments",
        max_iter: int = 100,
        prior: str | ArrayLike = "estimated",
        smoothing: float | str = "estimated",
        pooling: float = 0.0,
        one_coin: bool = False,
        families: str | Mapping[Any, Any] | Sequence[Any] = "auto",
        ordered: bool | str = "auto",
        decision: str = "mode",
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
        self.families = families
        self.ordered = ordered
        self.decision = decision
        self.method = method
        self.n_partitions = n_partitions
        self.groups = groups
        self.tol = tol
        self.missing = missing
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, gold: Any = None, progress: bool | None = None) -> Self:  # noqa: N803
        """Estimate labels and workers from votes.

        Parameters
        ----------
        X : data frame, dict or tuple of three columns, or array of shape (n_tasks, n_workers)
            Votes: a data frame (pandas, polars, pyarrow or another library that narwhals supports) or a dict with the
            columns task, worker and label; a tuple of the three columns; or a matrix of labels, with `missing` for a
            task that a worker has not seen. A vote given twice counts twice. An array or a list that looks like three
            columns is refused; a list of three is read as columns if it looks like them: lines of a matrix share their
            labels, and columns do not. Or a table in parts, each a frame, a dict or a tuple of columns: a data frame of
            dask, a list of frames, an iterator, or a function that returns one. Parts are read once; three integers
            are stored for each vote, and a task may be in several parts.
        y : known classes, optional
            The same as `gold`, in the position of scikit-learn and crowd-kit; give one of the two.
        gold : mapping, series, data frame, tuple of two columns or array of shape (n_tasks,), optional
            Known classes of tasks: a mapping from tasks to classes, a pandas Series with the tasks as its index, a data
            frame with the columns task and label, or a tuple of these; if X is a matrix, also a class for each of its
            rows, `missing` if it is not known. These tasks keep their class. They inform the estimates of the workers,
            and decide which class is which if a crowd is mostly wrong. Tasks without votes, and missing labels, are
            ignored; labels that no vote has are refused.
        progress : bool, optional
            Whether to show a bar on the standard error, or below the cell of a notebook, if it takes more than two
            seconds. By default, one appears after ten, and never where the standard error is no terminal.

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
        >>> from codiag.synthetic import crowd_votes, worker_confusions
        >>> crowd = crowd_votes(100, worker_confusions(7, 2, seed=0), seed=1)
        >>> DawidSkene(random_state=0).fit(crowd.votes).labels_.shape
        (100,)
        """
        with progress_if(progress, f"fitting {type(self).__name__}"):
            found = self.learn(X, _one_of(y, gold))
        warn_caller(found)
        return self

    def learn(self, data: Any, gold: Any = None) -> tuple[Warning, ...]:
        """Run `fit` without issuing warnings, and return these.

        Parameters
        ----------
        data : votes, as for `fit`
            The votes.
        gold : known classes, as for `fit`, optional
            Known classes of tasks.

        Returns
        -------
        tuple of Warning
            The warnings of `fit`.

        Examples
        --------
        >>> from codiag.models import DawidSkene
        >>> from codiag.synthetic import crowd_votes, worker_confusions
        >>> crowd = crowd_votes(100, worker_confusions(7, 2, seed=0), seed=1)
        >>> DawidSkene(random_state=0).learn(crowd.votes)
        ()
        """
        self.check_parameters()
        given = with_gold(collect_votes(data, self.missing), gold, missing=self.missing)
        labels = self._labels(given)
        original = np.argsort(labels)
        votes = replace(given, label=original[given.label])
        prior = as_prior(votes, self.prior, self.smoothing, self.pooling, one_coin=self.one_coin)
        start = self._start(votes, labels, prior)
        run, workers = self._run_from(votes, start, prior)
        rng, sampling_rng = as_generator(self.random_state, "random_state").spawn(2)
        family = self._families(votes, run, rng)
        jury: Jury | None = None
        if np.any(family >= 0) or (self.ordered is True and self.max_iter > 0):
            jury, dependence = self._jury(votes, family, prior, rng)
            model, workers = workers_of(votes, jury.classes, prior)
            run = Run(model, jury.classes, jury.log_likelihood, jury.history, jury.converged)
        else:
            dependence = measure_dependence(votes, run.model.confusions, run.classes, family, rng)
        self._labeler = None if jury is None else jury.labeler
        self._original, self._family, self._dependence = original, family, dependence
        uncertainty = self._uncertainty(votes, run, prior, workers, sampling_rng, is_fixed=jury is not None)
        if jury is not None:
            uncertainty = uncertainty.widened(run.model.accuracies, model_spread(votes, jury, family, prior, rng))
        uncertainty = uncertainty.with_labels(labels, run.model.shares)
        run = run._replace(model=run.model._replace(confusions=run.model.confusions[:, original]))
        spread = np.full_like(run.model.confusions, np.nan) if start.spread is None else start.spread[:, original]
        self._keep(given, run, uncertainty, spread)
        self.diagnostics_ = replace(start.diagnostics, em_rounds=len(run.history), converged=run.converged)
        if jury is not None:
            self.diagnostics_ = replace(self.diagnostics_, reason=jury.reason)
        return (*warnings_for(votes), *self._warnings(start, run, jury))

    def fit_predict(self, X: Any, y: Any = None, *, gold: Any = None) -> Any:  # noqa: N803
        """Return the label of every task.

        Parameters
        ----------
        X : votes, as for `fit`
            The votes.
        y, gold : known classes, as for `fit`, optional
            Known classes of tasks, in one of the two.

        Returns
        -------
        array of shape (n_tasks,), or a series or data frame if votes came as a data frame
            The labels, in the order of `tasks_`.

        See Also
        --------
        DawidSkene.predict : Labels of new tasks.

        Examples
        --------
        >>> from codiag.models import DawidSkene
        >>> from codiag.synthetic import crowd_votes, worker_confusions
        >>> crowd = crowd_votes(100, worker_confusions(7, 2, seed=0), seed=1)
        >>> labels = DawidSkene(random_state=0).fit_predict(crowd.votes)
        >>> bool((labels == crowd.truth).mean() > 0.9)
        True
        """
        warn_caller(self.learn(X, _one_of(y, gold)))
        return self.labels_

    def fit_predict_proba(self, X: Any, y: Any = None, *, gold: Any = None) -> Any:  # noqa: N803
        """Return the probability of each class for every task.

        Parameters
        ----------
        X : votes, as for `fit`
            The votes.
        y, gold : known classes, as for `fit`, optional
            Known classes of tasks, in one of the two.

        Returns
        -------
        array of shape (n_tasks, n_classes), or a data frame if votes came as one
            The probabilities, with rows of sum one.

        See Also
        --------
        DawidSkene.predict_proba : Probabilities for new tasks.

        Examples
        --------
        >>> from codiag.models import DawidSkene
        >>> from codiag.synthetic import crowd_votes, worker_confusions
        >>> crowd = crowd_votes(100, worker_confusions(7, 2, seed=0), seed=1)
        >>> DawidSkene(random_state=0).fit_predict_proba(crowd.votes).shape
        (100, 2)
        """
        warn_caller(self.learn(X, _one_of(y, gold)))
        return self.probas_

    def predict_proba(self, X: Any) -> Any:  # noqa: N803
        """Return the probability of each class for tasks that workers of `fit` have voted on.

        Parameters
        ----------
        X : votes, as for `fit`
            Workers and labels must be among those of `fit`; tasks may be new.

        Returns
        -------
        array of shape (n_tasks, n_classes), or a data frame if votes came as one
            The probabilities, with rows of sum one.

        See Also
        --------
        DawidSkene.predict : The most probable class.

        Examples
        --------
        >>> from codiag.models import DawidSkene
        >>> from codiag.synthetic import crowd_votes, worker_confusions
        >>> crowd = crowd_votes(100, worker_confusions(7, 2, seed=0), seed=1)
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
            Workers and labels must be among those of `fit`; tasks may be new.

        Returns
        -------
        array of shape (n_tasks,), or a series or data frame if votes came as a data frame
            The labels, task by task.

        See Also
        --------
        DawidSkene.predict_proba : The probability of each class.

        Examples
        --------
        >>> from codiag.models import DawidSkene
        >>> from codiag.synthetic import crowd_votes, worker_confusions
        >>> crowd = crowd_votes(100, worker_confusions(7, 2, seed=0), seed=1)
        >>> model = DawidSkene(random_state=0).fit(crowd.votes)
        >>> model.predict(crowd.votes).shape
        (100,)
        """
        votes, classes = self._expect(X)
        return Tables(votes).by_task(self.classes_[self._decided(classes)], "agg_label")

    def _expect(self, X: Any) -> tuple[Votes, np.ndarray]:  # noqa: N803
        check_is_fitted(self)
        refuse_parts(X)
        votes = as_votes(X, self.missing, workers=self.workers_, classes=self.classes_)
        if self._labeler is not None:
            return votes, self._labeler.classes(replace(votes, label=self._original[votes.label]))
        return votes, expect(votes, self._run.model).classes

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
        as_flag("one_coin", self.one_coin)
        as_number("tol", self.tol, zero=True)
        as_number("pooling", self.pooling, zero=True)
        if isinstance(self.families, str) and self.families not in ("auto", "none"):
            raise ValueError(
                f"families must be 'auto', 'none', or give the family of every worker; got {self.families!r}"
            )
        if isinstance(self.ordered, str):
            if self.ordered != "auto":
                raise ValueError(f"ordered must be 'auto', True or False; got {self.ordered!r}")
        else:
            as_flag("ordered", self.ordered)
        if self.pooling > 1:
            raise ValueError(f"pooling must be between 0 and 1; got {self.pooling}")
        if not isinstance(self.smoothing, str):
            as_number("smoothing", self.smoothing, zero=True)
        elif self.smoothing != "estimated":
            raise ValueError(f"smoothing must be 'estimated' or a number; got {self.smoothing!r}")
        elif self.pooling > 0:
            raise ValueError(
                f"pooling must be 0 if smoothing is 'estimated', which already learns from all workers; got "
                f"{self.pooling}. Give the number of votes to add, smoothing=1.0"
            )
        if self.decision not in ("mode", "mean"):
            raise ValueError(f"decision must be 'mode' or 'mean'; got {self.decision!r}")
        for name, words in (("init", ("moments", "majority")), ("prior", ("estimated", "uniform"))):
            value = getattr(self, name)
            if isinstance(value, str) and value not in words:
                raise ValueError(f"{name} must be {words[0]!r}, {words[1]!r} or an array; got {value!r}")

    def _labels(self, votes: Votes) -> np.ndarray:
        """Return the label that denotes each class: that of its name, unless known classes contradict.

        This is for one coin with three or more classes: its wrong labels are uniform, so that no confusion matrix could
        express that a label denotes another class.
        """
        k = votes.classes.size
        return labels_of_classes(votes) if self.one_coin and k > 2 else np.arange(k)

    def _start(self, votes: Votes, labels: np.ndarray, prior: Prior) -> Start:
        if not isinstance(self.init, str):
            return start_from_given(votes, self.init, labels, prior)
        if self.init == "majority" or votes.classes.size == 1:
            return start_from_majority(votes)
        groups = as_groups(votes, self.groups, self.n_partitions, self.random_state)
        return start_from_moments(votes, groups, self._method(), self.random_state, prior)

    def _run_from(self, votes: Votes, start: Start, prior: Prior) -> tuple[Run, CrowdPrior | None]:
        if not isinstance(self.smoothing, str):
            return run_em(votes, start, prior, self.max_iter, self.tol), None
        return run_with_estimated_prior(votes, start, prior, self.max_iter, self.tol)

    def _families(self, votes: Votes, run: Run, rng: np.random.Generator) -> np.ndarray:
        if not isinstance(self.families, str):
            return as_families(self.families, votes.workers)
        if self.families == "none" or self.max_iter == 0 or votes.classes.size == 1:
            return np.full(votes.workers.size, -1)
        return find_families(votes, run.model, run.classes, rng)

    def _jury(
        self, votes: Votes, family: np.ndarray, prior: Prior, rng: np.random.Generator
    ) -> tuple[Jury, Dependence]:
        """Return labels from dependent workers, from the best of two starts: families as one vote each, and moments."""
        starts = [family_shares(votes, family)]
        if isinstance(self.init, str) and self.init == "moments" and self.groups is None:
            groups = as_groups(votes, None, self.n_partitions, self.random_state, family)
            moments = start_from_moments(votes, groups, self._method(), self.random_state, prior)
            starts += [] if moments.diagnostics.reason else [moments.classes]
        ordered = None if isinstance(self.ordered, str) and not self.one_coin else self.ordered is True
        tol = max(self.tol, TOL) if self.tol > 0 else 0.0
        return label_jury(
            votes, family, starts, prior, ordered=ordered, max_iter=max(self.max_iter, 1), tol=tol, rng=rng
        )

    def _method(self) -> Method | None:
        return None if self.method is None else as_method(self.method)

    def _uncertainty(
        self,
        votes: Votes,
        run: Run,
        prior: Prior,
        workers: CrowdPrior | None,
        rng: np.random.Generator,
        *,
        is_fixed: bool,
    ) -> Uncertainty:
        if workers is None:
            return information_uncertainty(votes, run, prior)
        return sample_uncertainty(votes, run, workers, prior.shares, rng, is_fixed=is_fixed)

    def _warnings(self, start: Start, run: Run, jury: Jury | None) -> Iterator[Warning]:
        reason = start.diagnostics.reason
        if reason is not None and jury is None:
            yield UserWarning(f"moments do not determine this crowd: {reason}; started from the majority vote instead")
        if self.max_iter > 0 and self.tol > 0 and not run.converged:
            yield ConvergenceWarning(
                f"expectation maximization did not converge in max_iter={self.max_iter} steps: the objective still "
                f"rises by more than tol={self.tol:g} per vote; allow more steps, or set tol=0 for exactly this number"
            )
        if jury is not None and jury.reason is not None:
            yield UserWarning(
                f"{jury.reason}: labels are those of the majority. Votes of workers of another kind, or known classes "
                "of some tasks (gold), would help"
            )

    def _keep(self, votes: Votes, run: Run, uncertainty: Uncertainty, spread: np.ndarray) -> None:
        tables = Tables(votes)
        tasks, workers, classes = votes.tasks, votes.workers, votes.classes
        accuracy, accuracy_errors = run.model.accuracies, uncertainty.accuracies
        low, high = uncertainty.intervals.T
        intervals = np.stack([np.minimum(low, accuracy), np.maximum(high, accuracy)], axis=1)
        self._run, self._votes_of_workers = run, votes.votes_of_workers
        self._votes_of_tasks = np.bincount(votes.task, minlength=tasks.size)
        self._accuracy = accuracy, accuracy_errors, intervals
        self.tasks_, self.workers_, self.classes_ = tasks, workers, classes
        self._form = votes.names, votes.library
        self.labels_ = tables.by_task(classes[self._decided(run.classes)], "agg_label")
        self.probas_ = tables.by_class(run.classes)
        confusions = known_or_uniform(run.model.confusions)
        self.confusion_ = tables.confusions(confusions)
        self.confusion_matrices_ = np.swapaxes(confusions, 1, 2)
        self.confusion_standard_errors_ = tables.confusions(uncertainty.confusions)
        self.confusion_spread_ = tables.confusions(spread)
        self.priors_ = tables.series(run.model.shares, "prior", classes, votes.names[2])
        self.priors_standard_errors_ = tables.series(uncertainty.shares, "standard_error", classes, votes.names[2])
        self.worker_accuracy_ = tables.by_worker(accuracy, "accuracy")
        self.worker_accuracy_standard_errors_ = tables.by_worker(accuracy_errors, "standard_error")
        self.worker_accuracy_interval_ = tables.intervals(intervals)
        self.families_ = [workers[self._family == number] for number in range(self._family.max(initial=-1) + 1)]
        self.dependence_ = tables.by_worker_pair(self._dependence.pairs.matrix(workers.size))
        self.effective_votes_ = self._dependence.votes
        self.effective_votes_interval_ = self._dependence.interval
        self.loss_history_, self.log_likelihood_ = run.history, run.log_likelihood


def _one_of(y: Any, gold: Any) -> Any:
    """Return the known classes, from whichever of both arguments they are in."""
    if y is not None and gold is not None:
        raise ValueError("gold and y are both known classes of tasks; got both. Give one of them")
    return gold if y is None else y
