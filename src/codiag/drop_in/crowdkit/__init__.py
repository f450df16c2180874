"""Labels from a crowd by the names of ``crowdkit.aggregation``: change the import and nothing else.

Signature, estimates and data frames are those of crowd-kit.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from codiag._checks import as_number, public_names
from codiag.models.crowd import (
    CrowdModel,
    Prior,
    Tables,
    Votes,
    as_votes,
    expect,
    maximize,
    one_coin,
    with_known_classes,
)

__all__ = ["DawidSkene", "OneCoinDawidSkene"]


class DawidSkene(BaseEstimator):
    """The model of Dawid and Skene with the signature and the attributes of crowd-kit.

    Expectation maximization from the shares of the votes, without smoothing, with probabilities of at least 1e-10:
    after the same number of steps the numbers are those of crowd-kit. Rows and columns are sorted, and ``errors_`` has
    a row for every worker and label. `codiag.models.DawidSkene` starts from moments, estimates a prior for workers with
    few votes, and has standard errors.

    Parameters
    ----------
    n_iter : int
        Largest number of steps; zero returns the shares of the votes.
    tol : float
        Steps end once the log-likelihood per vote rises by less.
    initial_error_strategy : {"assign", "addition"}, optional
        Meaning of `initial_error` of `fit`: the confusion matrices of all workers to start from, or counts from
        earlier tasks that are added to those of the first step.

    Attributes
    ----------
    labels_ : Series of shape (n_tasks,)
        The most probable class of every task.
    probas_ : DataFrame of shape (n_tasks, n_classes)
        The probability of each class.
    priors_ : Series of shape (n_classes,)
        The shares of the classes.
    errors_ : DataFrame of shape (n_workers * n_classes, n_classes)
        The probability of a given label, in rows by worker and label, for each true class.
    loss_history_ : list of float
        The log-likelihood per vote after each step, which increases; that of crowd-kit has another scale.

    Notes
    -----
    **Assumptions.** A data frame with the columns task, worker and label.

    **Complexity.** :math:`O(n k)` for each step, n votes and k classes.

    **Guarantees.** A likelihood that never decreases.

    **Limitations.** Fails as crowd-kit does, if the majority is a bad start, and for workers with few votes.

    Examples
    --------
    >>> import pandas as pd
    >>> from codiag.drop_in.crowdkit import DawidSkene
    >>> votes = pd.DataFrame({"task": [0, 0, 0, 1, 1, 1], "worker": [1, 2, 3] * 2, "label": list("aabbbb")})
    >>> DawidSkene(n_iter=10).fit_predict(votes).to_list()
    ['a', 'b']
    """

    one_coin = False

    def __init__(self, n_iter: int = 100, tol: float = 1e-5, initial_error_strategy: str | None = None) -> None:
        self.n_iter = n_iter
        self.tol = tol
        self.initial_error_strategy = initial_error_strategy

    def fit(self, data: Any, true_labels: Any = None, initial_error: Any = None) -> Self:
        """Estimate labels and workers from votes.

        Parameters
        ----------
        data : DataFrame
            Votes, in the columns task, worker and label.
        true_labels : Series, optional
            Known classes, indexed by task, which these tasks keep; tasks without votes are ignored.
        initial_error : DataFrame, optional
            Confusion matrices or counts, rows by worker and label, columns by true class: see
            `initial_error_strategy`.

        Returns
        -------
        self
        """
        as_number("n_iter", self.n_iter, integer=True, zero=True)
        as_number("tol", self.tol, zero=True)
        if len(data) == 0:
            return self._keep_nothing(data)
        votes = with_known_classes(as_votes(data), true_labels, any_tasks=True)
        classes, history = votes.shares, []
        model = self._start(votes, classes, initial_error)
        for _ in range(self.n_iter):
            # votes that no class explains still have a likelihood, as in crowd-kit
            floored = model._replace(confusions=np.maximum(model.confusions, 1e-10))
            classes, log_likelihood = expect(votes, floored)
            model = self._maximize(votes, classes)
            history.append(log_likelihood / votes.label.size)
            if len(history) > 1 and history[-1] - history[-2] < self.tol:
                break
        return self._keep(votes, model, classes, history)

    def fit_predict(self, data: Any, true_labels: Any = None, initial_error: Any = None) -> Any:
        """Return the label of every task.

        Parameters
        ----------
        data, true_labels, initial_error : as for `fit`

        Returns
        -------
        Series of shape (n_tasks,)
        """
        return self.fit(data, true_labels, initial_error).labels_

    def fit_predict_proba(self, data: Any, true_labels: Any = None, initial_error: Any = None) -> Any:
        """Return the probability of each class for every task.

        Parameters
        ----------
        data, true_labels, initial_error : as for `fit`

        Returns
        -------
        DataFrame of shape (n_tasks, n_classes)
        """
        return self.fit(data, true_labels, initial_error).probas_

    def _start(self, votes: Votes, classes: np.ndarray, initial_error: Any) -> CrowdModel:
        given = self._given(votes, initial_error)
        if given is None:
            return self._maximize(votes, classes)
        if self.initial_error_strategy == "addition":
            return self._maximize(votes, classes, given)
        sums = given.sum(axis=1, keepdims=True)
        if not np.all(sums > 0):
            worker = votes.workers.tolist()[int(np.argmax(np.any(sums[:, 0] <= 0, axis=1)))]
            raise ValueError(
                "The sum of each worker's error matrix in initial_error should be 1.0 for every true class, or that of "
                f"counts, with initial_error_strategy='assign'; worker {worker!r} has a class of sum zero. 'addition' "
                "accepts missing counts"
            )
        return CrowdModel(given / sums, classes.mean(axis=0))

    def _given(self, votes: Votes, initial_error: Any) -> np.ndarray | None:
        """Return `initial_error` as an array (workers, given, true), zero for missing rows and columns."""
        if self.initial_error_strategy not in (None, "assign", "addition"):
            raise ValueError(
                f"initial_error_strategy must be 'assign', 'addition' or None; got {self.initial_error_strategy!r}"
            )
        if initial_error is None:
            return None
        if self.initial_error_strategy is None:
            raise ValueError("initial_error needs initial_error_strategy='assign', or 'addition' for counts; got None")
        if not hasattr(initial_error, "reindex") or not initial_error.index.is_unique:
            raise TypeError(
                "initial_error must be a pandas DataFrame whose rows are by worker and label, each once; got "
                f"{type(initial_error).__name__}"
            )
        import pandas as pd

        rows = pd.MultiIndex.from_product([votes.workers, votes.classes], names=["worker", "label"])
        has_rows = initial_error.index.nlevels == 2 and rows.isin(initial_error.index).any()
        if not has_rows or not initial_error.columns.isin(votes.classes).any():
            worker, label = votes.workers.tolist()[0], votes.classes.tolist()[0]
            raise ValueError(
                "initial_error must have rows by worker and label and columns by true class, named as in the votes, "
                f"such as {(worker, label)!r} and {label!r}; no {'column' if has_rows else 'row'} is. Are both "
                "numbers, or both text?"
            )
        cells = initial_error.reindex(index=rows, columns=votes.classes).fillna(0.0).to_numpy(dtype=np.float64)
        if np.any(cells < 0):
            raise ValueError(f"initial_error must contain counts or probabilities; the least is {cells.min():g}")
        return cells.reshape(votes.workers.size, votes.classes.size, -1)

    def _maximize(self, votes: Votes, classes: np.ndarray, added: np.ndarray | float = 0.0) -> CrowdModel:
        return maximize(votes, classes, Prior(np.asarray(added), 0.0, None, self.one_coin))

    def _keep(self, votes: Votes, model: CrowdModel, classes: np.ndarray, history: list[float]) -> Self:
        tables = Tables(votes)
        self.labels_ = tables.by_task(votes.classes[np.argmax(classes, axis=1)], "agg_label")
        self.probas_ = tables.by_class(classes)
        self.priors_ = tables.by_label(model.shares, "prior")
        self.errors_ = tables.confusions(model.confusions)
        self.loss_history_ = history
        return self

    def _keep_nothing(self, data: Any) -> Self:
        """Set empty tables if there are no votes, as crowd-kit does."""
        if not {"task", "worker", "label"} <= set(getattr(data, "columns", ())):
            raise ValueError("data must be a data frame with the columns task, worker and label; got none of these")
        import pandas as pd

        self.probas_, self.errors_, self.loss_history_ = pd.DataFrame(), pd.DataFrame(), []
        self.priors_, self.labels_ = (pd.Series(dtype=float, name=name) for name in ("prior", "agg_label"))
        return self


class OneCoinDawidSkene(DawidSkene):
    """The model of crowd-kit in which a worker is right with one probability, and wrong labels are uniform.

    Assumptions, complexity, guarantees and limitations are those of `DawidSkene`.

    Parameters
    ----------
    n_iter, tol, initial_error_strategy : as for `DawidSkene`

    Attributes
    ----------
    skills_ : Series of shape (n_workers,)
        The probability that each worker is right.

    Examples
    --------
    >>> import pandas as pd
    >>> from codiag.drop_in.crowdkit import OneCoinDawidSkene
    >>> votes = pd.DataFrame({"task": [0, 0, 0, 1, 1, 1], "worker": [1, 2, 3] * 2, "label": list("aabbbb")})
    >>> OneCoinDawidSkene(n_iter=10).fit(votes).skills_.round(2).to_list()
    [1.0, 1.0, 0.5]
    """

    one_coin = True

    def _keep(self, votes: Votes, model: CrowdModel, classes: np.ndarray, history: list[float]) -> Self:
        model = model._replace(confusions=one_coin(model.confusions))  # unchanged, unless the user gave them
        right = model.confusions[:, 0, 0]
        self.skills_ = Tables(votes).by_worker(right, "skill")
        return super()._keep(votes, model, classes, history)


__dir__ = public_names(__all__)
