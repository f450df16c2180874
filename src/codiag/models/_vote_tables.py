"""Tables of results: data frames of pandas or polars, or arrays, as the votes were."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np

from codiag.models._votes import Votes


def class_names(classes: np.ndarray, taken: Iterable[str] = ()) -> list[str]:
    """Return names of classes for columns of a table; numbered where they would not be told apart."""
    names = [str(name) for name in classes.tolist()]
    if len({*names, *taken}) < len(names) + len(list(taken)):
        return [f"class {place}: {name}" for place, name in enumerate(names)]
    return names


class Tables:
    """Results in the container of the votes: a data frame where votes came in one, an array otherwise."""

    def __init__(self, votes: Votes) -> None:
        self.votes = votes

    def series(self, values: np.ndarray, name: str, index: np.ndarray, index_name: str) -> Any:
        """Return one value for each of the index."""
        if self.votes.container == "pandas":
            import pandas as pd

            return pd.Series(values, index=pd.Index(index, name=index_name), name=name)
        if self.votes.container == "polars":
            import polars as pl

            return pl.DataFrame({index_name: index, name: values})
        return values

    def by_class(self, values: np.ndarray) -> Any:
        """Return a row for each task, with a column for every class."""
        if self.votes.container == "pandas":
            import pandas as pd

            index, columns = pd.Index(self.votes.tasks, name="task"), pd.Index(self.votes.classes, name="label")
            return pd.DataFrame(values, index=index, columns=columns)
        if self.votes.container == "polars":
            return self._polars({"task": self.votes.tasks}, values)
        return values

    def intervals(self, values: np.ndarray) -> Any:
        """Return a row for each worker, with the columns low and high."""
        if self.votes.container == "pandas":
            import pandas as pd

            return pd.DataFrame(values, index=pd.Index(self.votes.workers, name="worker"), columns=["low", "high"])
        if self.votes.container == "polars":
            import polars as pl

            return pl.DataFrame({"worker": self.votes.workers, "low": values[:, 0], "high": values[:, 1]})
        return values

    def confusions(self, values: np.ndarray) -> Any:
        """Return rows by worker and given label, columns by true class; or an array (workers, given, true)."""
        k = self.votes.classes.size
        if self.votes.container == "pandas":
            import pandas as pd

            return pd.DataFrame(values.reshape(-1, k), index=self._pairs, columns=pd.Index(self.votes.classes))
        if self.votes.container == "polars":
            rows = {"worker": np.repeat(self.votes.workers, k), "label": np.tile(self.votes.classes, values.shape[0])}
            return self._polars(rows, values.reshape(-1, k))
        return values

    @cached_property
    def _pairs(self) -> Any:
        import pandas as pd

        return pd.MultiIndex.from_product([self.votes.workers, self.votes.classes], names=["worker", "label"])

    def _polars(self, index: dict[str, np.ndarray], values: np.ndarray) -> Any:
        import polars as pl

        names = class_names(self.votes.classes, taken=index)
        return pl.DataFrame(index | {name: values[:, place] for place, name in enumerate(names)})
