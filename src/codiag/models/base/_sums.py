"""Sums over rows, from which models are estimated: of an array, of the blocks of a dask array, or chunk by chunk."""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import reduce
from typing import Any, ClassVar, Self

from codiag._arrays import FAN_IN, is_dask, pass_with
from codiag._checks import RankDeficientError
from codiag.models.base._model import Model, warn_caller


@dataclass(frozen=True, eq=False)
class RowSums:
    """Sums over rows. The sums over two sets of rows are added field by field."""

    constant: ClassVar[frozenset[str]] = frozenset()
    """Names of fields that are no sums, and the same in all sums that are added."""

    def __add__(self, other: Self) -> Self:
        values = {name: (getattr(self, name), getattr(other, name)) for name in (field.name for field in fields(self))}
        return type(self)(**{name: a if name in self.constant else a + b for name, (a, b) in values.items()})


def sum_over_rows(function: Callable[..., Any], data: Any, *shared: Any, n_rows: int | None = None) -> Any:
    """Return the sum of ``function(rows, *shared)`` over chunks of rows.

    Parameters
    ----------
    function : callable
        A function of a module, without a closure, that returns sums over some rows: an array, `RowSums`, or any other
        object that supports addition.
    data : array, sparse matrix or dask array
        The rows. A dask array is read block by block, on the workers of its scheduler, and sums are added in a tree.
    *shared
        Further arguments of the function.
    n_rows : int, optional
        Number of rows of a chunk, if `data` is an array; by default all.

    Returns
    -------
    object
        The sum.
    """
    if is_dask(data):
        return pass_with(shared, lambda reference: _sum_over_blocks(function, data, reference))
    if n_rows is None or n_rows >= data.shape[0]:
        return function(data, *shared)
    chunks = (data[start : start + n_rows] for start in range(0, data.shape[0], n_rows))
    return reduce(operator.add, (function(chunk, *shared) for chunk in chunks))


def _sum_over_blocks(function: Callable[..., Any], data: Any, shared: Any) -> Any:
    import dask

    of_block, add = dask.delayed(_of_block, pure=False), dask.delayed(_added, pure=False)
    level = [of_block(function, block, number, shared) for number, block in enumerate(row_blocks(data))]
    while len(level) > 1:
        level = [add(level[start : start + FAN_IN]) for start in range(0, len(level), FAN_IN)]
    return dask.compute(level[0])[0]


def row_blocks(data: Any) -> list[Any]:
    """Return the blocks of a dask array as delayed objects; blocks are whole rows."""
    whole = data.rechunk(dict.fromkeys(range(1, data.ndim), -1)) if data.ndim > 1 else data
    return list(whole.to_delayed().ravel())


def first_block(data: Any) -> Any:
    """Return the first block of a dask array that is not empty, in memory; an array as it is."""
    if not is_dask(data):
        return data
    for block in row_blocks(data):
        rows = block.compute()
        if rows.shape[0]:
            return rows
    raise ValueError("X must contain samples; all blocks of the dask array are empty")


def _of_block(function: Callable[..., Any], block: Any, number: int, shared: tuple[Any, ...]) -> Any:
    """Return the sums over a block, None if it is empty; errors name the block."""
    if block.shape[0] == 0:
        return None
    try:
        return function(block, *shared)
    except Exception as error:
        error.add_note(f"This was in block {number} of X.")
        raise


def _added(sums: Sequence[Any]) -> Any:
    given = [part for part in sums if part is not None]
    return reduce(operator.add, given) if given else None


class PartialFit(Model):
    """`partial_fit` for models of sums: a model implements `_with_chunk` and `_estimate_seen`.

    `fit` deletes ``_seen``, the sums that `partial_fit` continues, so that data is not counted twice.
    """

    def partial_fit(self, X: Any, y: object = None) -> Self:  # noqa: N803
        """Add data to the data seen so far and estimate again, by moments alone.

        The estimate does not depend on how data is cut into chunks, or on their order, except for rounding and for what
        the notes of the model say. If there is too little data to determine the model, its sums are kept and a warning
        is issued. After `fit`, it begins anew.

        Parameters
        ----------
        X : data
            A chunk, as for `fit`, in memory.
        y : ignored
            Not used; there for the interface of scikit-learn.

        Returns
        -------
        self
            The model.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import SingleTopic
        >>> rng = np.random.default_rng(0)
        >>> topics = np.array([[0.5, 0.4, 0.1, 0.0], [0.0, 0.1, 0.4, 0.5]])
        >>> counts = np.array([rng.multinomial(10, topics[i]) for i in rng.integers(0, 2, 500)])
        >>> model = SingleTopic(2, random_state=0)
        >>> for chunk in np.array_split(counts, 5):
        ...     model = model.partial_fit(chunk)
        >>> model.components_.shape
        (2, 4)
        """
        warn_caller(self._learn_more(X))
        return self

    def _learn_more(self, data: Any) -> tuple[Warning, ...]:
        """Do the work of `partial_fit` without issuing warnings, and return them."""
        self.check_parameters()
        if self.n_components is None:
            raise ValueError("n_components must be given to partial_fit; got None. `fit` finds the number in all data")
        if is_dask(data):
            raise ValueError("X must be in memory for partial_fit; got a dask array. Call fit, which reads its blocks")
        seen = self._with_chunk(getattr(self, "_seen", None), data)
        try:
            found = self._estimate_seen(seen)
        except RankDeficientError as error:
            state = "as it was before" if self.__sklearn_is_fitted__() else "not fitted yet"
            found = (UserWarning(f"the model is {state}: {error}. What was seen is kept; partial_fit adds more"),)
        self._seen = seen
        return found

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether there are estimates; sums alone do not count."""
        return "n_components_" in vars(self)

    @abstractmethod
    def _with_chunk(self, seen: Any, raw: Any) -> Any:
        """Check a chunk, and return the sums with it added; `seen` is None before the first chunk, and not changed."""

    @abstractmethod
    def _estimate_seen(self, seen: Any) -> tuple[Warning, ...]:
        """Estimate the model from sums, set learned attributes, and return the warnings."""
