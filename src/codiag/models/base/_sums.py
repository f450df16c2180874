"""Sums over samples from which models are estimated: over parts of the data, over jackknife blocks, chunk by chunk."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from codiag._checks import UndeterminedError
from codiag.models.base._model import warn_caller
from codiag.parts import Parts, as_parts, is_matrix


@dataclass(eq=False)
class MomentSums(ABC):
    """Sums over samples: ``update(part)`` adds data, ``merge(other)`` adds other sums, ``finish()`` returns moments.

    The moments do not depend on how data is cut into parts, or on their order, except for rounding. Arrays are replaced
    and never written to, so that a shallow copy is a copy. Fields in `constant` must be equal in sums that are merged,
    fields in `own` are not merged, and all others are added.
    """

    constant: ClassVar[frozenset[str]] = frozenset()
    own: ClassVar[frozenset[str]] = frozenset()

    @property
    @abstractmethod
    def size(self) -> float:
        """Number of samples."""

    @abstractmethod
    def of(self, part: Any) -> Self:
        """Return the sums over a part alone."""

    @abstractmethod
    def finish(self) -> Any:
        """Return the moments."""

    def update(self, part: Any) -> Self:
        """Add the samples of a part, and return these sums."""
        return self.merge(self.of(part))

    def by_block(self, part: Any, n_blocks: int, place: int) -> dict[int, Self]:
        """Return the sums over the samples of a part, (n, ...), for each block to which they are assigned."""
        owners = block_of_rows(part.shape[0], n_blocks, place)
        by_block, n_done = {}, 0
        for turn in range(min(n_blocks, part.shape[0])):
            block = (place + turn) % n_blocks
            rows = np.flatnonzero(owners == block)
            numbered: Any = copy.copy(self)
            numbered.start += n_done  # random signs are drawn by the numbers of samples
            by_block[block] = numbered.of(part[rows])
            n_done += rows.size
        return by_block

    def merge(self, other: Self) -> Self:
        """Add other sums to these, and return these."""
        if type(other) is not type(self):
            raise TypeError(f"other must be {type(self).__name__}, as these sums are; got {type(other).__name__}")
        for name in self.constant:
            if not np.array_equal(getattr(self, name), getattr(other, name)):
                raise ValueError(f"sums must have the same {name} to be merged; these differ. Begin both with one")
        for field in fields(self):
            if field.name not in self.constant | self.own:
                setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))
        return self


S = TypeVar("S", bound=MomentSums)


class Totals:
    """Plain totals of arrays over parts."""

    def __init__(self, *values: Any) -> None:
        self.values = values

    def merge(self, other: Totals) -> Totals:
        """Add other totals to these, and return these."""
        self.values = tuple(mine + theirs for mine, theirs in zip(self.values, other.values, strict=True))
        return self


def merged(sums: Sequence[S]) -> S:
    """Return sums merged into one; the arguments are not changed."""
    total = copy.copy(sums[0])
    for other in sums[1:]:
        total.merge(other)
    return total


def leave_one_out(blocks: Sequence[S], others: Sequence[S] = ()) -> Iterator[S]:
    """Yield for every block the sums over all others, by about n log2 n merges; nothing is subtracted."""
    if len(blocks) == 1:
        yield merged(others)
        return
    middle = len(blocks) // 2
    for inside, outside in ((blocks[:middle], blocks[middle:]), (blocks[middle:], blocks[:middle])):
        yield from leave_one_out(inside, [merged([*others, *outside])])


def block_of_rows(n: int, n_blocks: int, place: int = 0) -> np.ndarray:
    """Return the block (n,) of each row of a part, at random and in equal numbers: the order of rows may matter."""
    owners = np.empty(n, dtype=np.intp)
    owners[np.random.default_rng((0xB10C, place)).permutation(n)] = (place + np.arange(n)) % n_blocks
    return owners


class Blocks:
    """Sums for each of `n_blocks` jackknife blocks of the data; one block, number 0, if `n_blocks` is zero."""

    def __init__(self, sums: dict[int, Any], n_blocks: int = 0, n_parts: int = 1) -> None:
        self.sums, self.n_blocks, self.n_parts = sums, n_blocks, n_parts

    @classmethod
    def of(cls, sums: Any, samples: Any, n_blocks: int, place: int = 0) -> Blocks:
        """Return the sums over samples by block; `place` is the number of the part that the samples come from.

        The samples of every part are assigned to all blocks, since the order of parts may matter. Random signs are
        drawn by the numbers of samples, which continue those of `sums`.
        """
        by_block = sums.by_block(samples, n_blocks, place) if n_blocks else {}
        return cls(by_block or {0: sums.of(samples)}, n_blocks)

    @property
    def size(self) -> float:
        """Number of samples."""
        return sum(sums.size for sums in self.sums.values())

    def merge(self, other: Blocks) -> Blocks:
        """Add other sums to these, block by block, and return these."""
        mine = dict(self.sums)
        for block, sums in other.sums.items():
            mine[block] = copy.copy(mine[block]).merge(sums) if block in mine else sums
        self.sums, self.n_parts = mine, self.n_parts + other.n_parts
        return self

    def with_part(self, part: Any, n_blocks: int) -> Blocks:
        """Return these sums with those of a part added; raise if they are not by as many blocks as required."""
        if n_blocks not in (0, self.n_blocks):
            raise ValueError(
                f"n_jackknife must be {self.n_blocks}, as with the sums that data is added to; got {n_blocks}. "
                "Blocks are not kept after fit: for standard errors begin anew with partial_fit"
            )
        return copy.copy(self).merge(Blocks.of(self.total(), part, self.n_blocks, self.n_parts))

    def total(self) -> Any:
        """Return the sums over all blocks."""
        return merged(list(self.sums.values()))


class PartsWithout(Parts):
    """Parts without the rows of one block, as rows are assigned to blocks when sums are formed."""

    def __init__(self, parts: Parts, as_rows: Callable[[Any], Any], n_blocks: int, block: int) -> None:
        self._parts, self._left_out = parts, (as_rows, n_blocks, block)
        self.n_parts, self.once = parts.n_parts, parts.once

    def reduce(self, function: Callable[..., Any], *shared: Any, numbered: bool = False) -> Any:
        """Return the results of a function for the remaining rows of all parts, merged in a tree."""
        return self._parts.reduce(_of_others, function, numbered, self._left_out, *shared, numbered=True)


def _of_others(part: Any, function: Callable[..., Any], numbered: bool, left_out: Any, *shared: Any, place: int) -> Any:
    as_rows, n_blocks, block = left_out
    rows = as_rows(part)
    others = rows[block_of_rows(rows.shape[0], n_blocks, place) != block]
    if others.shape[0] == 0:
        return None
    return function(others, *shared, place=place) if numbered else function(others, *shared)


class PartialFit:
    """`partial_fit` for models of sums: a model implements `_with_chunk` and `_estimate_seen`.

    `fit` stores in ``_seen`` the sums that `partial_fit` continues, or None.
    """

    def partial_fit(self, X: Any, y: object = None) -> Self:  # noqa: N803
        """Add data to the data seen so far and estimate again, by moments alone.

        The estimate does not depend on how data is cut into chunks, or on their order, except for rounding and for what
        the notes of the model say. If there is too little data to determine the model, its sums are kept and a warning
        is issued.

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
        """Do the work of `partial_fit` without issuing warnings, and return them.

        Parameters
        ----------
        data : data
            As for `partial_fit`.

        Returns
        -------
        tuple of Warning
            The warnings of `partial_fit`.

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
        model: Any = self
        model.check_parameters()
        seen = self._with_chunk(getattr(self, "_seen", None), data)
        try:
            complaints = self._estimate_seen(seen)
        except UndeterminedError as error:
            state = "as it was before" if self.__sklearn_is_fitted__() else "not fitted yet"
            text = f"the model is {state}: {error}. What was seen is kept; partial_fit adds more"
            complaints = (UserWarning(text),)
        self._seen = seen
        return complaints

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether there are estimates; sums alone do not count."""
        return hasattr(self, "diagnostics_") or hasattr(self, "mixing_")

    @abstractmethod
    def _with_chunk(self, seen: Any, raw: Any) -> Any:
        """Check a chunk, and return the sums with it added; `seen` is None before the first chunk, and not changed."""

    @abstractmethod
    def _estimate_seen(self, seen: Any) -> tuple[Warning, ...]:
        """Estimate the model from sums, set learned attributes, and return the warnings."""


def refuse_parts(chunk: Any) -> None:
    """Raise if a chunk for `partial_fit` is itself in parts."""
    if as_parts(chunk, is_matrix) is not None:
        raise ValueError(
            f"X must be one chunk in one piece for partial_fit; got a {type(chunk).__name__} of parts. Call "
            "partial_fit for each of them, or fit for all"
        )


def check_reads(parts: Parts, max_iter: int) -> None:
    """Raise if the data can be read once, and steps after the moments would read it again."""
    if parts.once and max_iter:
        raise ValueError(
            f"max_iter must be 0 if X is an iterator, which can be read once; got {max_iter}. For steps after the "
            "moments give a list, a dask collection, or a function that returns an iterator"
        )
