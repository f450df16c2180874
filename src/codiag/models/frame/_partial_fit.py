"""Models that stand on sums over the data, to which chunks are added that come one after the other."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from codiag._checks import UndeterminedError
from codiag.models.frame._components import Components
from codiag.models.frame._model import MomentModel, Moments, warn_caller
from codiag.parts import Parts, as_parts, is_matrix


@dataclass(frozen=True, eq=False, kw_only=True)
class SummedMoments(Moments):
    """Moments, and what `partial_fit` adds further data to; None where it begins anew."""

    seen: Any = None


M = TypeVar("M", bound=SummedMoments)
C = TypeVar("C", bound=Components)


class SummedModel(MomentModel[M, C]):
    """A model whose moments are sums over samples, which add up over parts of the data.

    A subclass implements `_checked_part`, `_with_part` and `_moments_of_seen`, and in `moments` gives its moments what
    further data is to be added to.
    """

    def partial_fit(self, X: Any, y: object = None) -> Self:  # noqa: N803
        """Add data to what was seen so far and estimate again, by moments alone.

        What chunks there are, and in which order they come, makes no difference but to rounding, or as the notes of the
        model say. While there is too little data to determine the model, its sums are kept, and a warning says so.
        Standard errors, if `n_blocks` asks for them, are there once there were as many samples; they need sums that
        began with `partial_fit`.

        Parameters
        ----------
        X : data
            A chunk, as for `fit`, not in parts.
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
        warn_caller(self.learn_more(X))
        return self

    def learn_more(self, data: Any) -> tuple[Warning, ...]:
        """Do the work of `partial_fit`, silently, and return what is to be warned of.

        Parameters
        ----------
        data : data
            As for `partial_fit`.

        Returns
        -------
        tuple of Warning
            What `partial_fit` warns of.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import SingleTopic
        >>> rng = np.random.default_rng(0)
        >>> topics = np.array([[0.5, 0.4, 0.1, 0.0], [0.0, 0.1, 0.4, 0.5]])
        >>> counts = np.array([rng.multinomial(10, topics[i]) for i in rng.integers(0, 2, 500)])
        >>> SingleTopic(2, random_state=0).learn_more(counts)
        ()
        """
        self.check_parameters()
        before = getattr(self, "_seen", None)
        part = self._checked_part(data, first=before is None)
        seen = self._with_part(before, part)
        try:
            return self.estimate(self._moments_of_seen(seen, part))
        except UndeterminedError as error:
            self._seen = seen
            state = "as it was before" if self.__sklearn_is_fitted__() else "not fitted yet"
            return (UserWarning(f"the model is {state}: {error}. What was seen is kept; partial_fit adds more"),)

    def __sklearn_is_fitted__(self) -> bool:
        """Tell whether there are estimates: sums alone are none."""
        return hasattr(self, "diagnostics_")

    @abstractmethod
    def _checked_part(self, raw: Any, *, first: bool) -> Any:
        """Return a chunk of data in the form that sums take, or say what is wrong with it."""

    @abstractmethod
    def _with_part(self, seen: Any, part: Any) -> Any:
        """Return what was seen, None before the first chunk, with a chunk added; the former is not changed."""

    @abstractmethod
    def _moments_of_seen(self, seen: Any, part: Any) -> M:
        """Return the moments after a chunk was added, with what is to be said about them and it."""

    def _check_reads(self, parts: Parts) -> None:
        """Raise where the data can be read once, and steps after the moments would read it again.

        Parameters
        ----------
        parts : Parts
        """
        if parts.once and self.polish:
            raise ValueError(
                f"polish must be 0 where X is an iterator, which can be read once; got {self.polish}. Give a list, a "
                "dask collection, or a function that returns an iterator to polish"
            )

    def keep(self, components: C, moments: M) -> None:
        """Set learned attributes, and keep what `partial_fit` adds to.

        Parameters
        ----------
        components : Components
        moments : Moments
        """
        super().keep(components, moments)
        self._seen = moments.seen


def refuse_parts(chunk: Any) -> None:
    """Raise where a chunk for `partial_fit` is itself in parts."""
    if as_parts(chunk, is_matrix) is not None:
        raise ValueError(
            f"X must be one chunk in one piece for partial_fit; got a {type(chunk).__name__} of parts. Call "
            "partial_fit for each of them, or fit for all"
        )
