"""Models that stand on sums over the data: chunks that come one after the other, and standard errors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np

from codiag._factorize import solve
from codiag._parts import Parts
from codiag.models._base import MomentModel, Moments, as_seed, warn_caller
from codiag.models._components import Components
from codiag.models._jackknife import jackknife
from codiag.models._sums import Blocks, MomentSums, leave_one_out


@dataclass(frozen=True, eq=False, kw_only=True)
class SummedMoments(Moments):
    """Moments, and the sums that they come from, to which further data can be added; None where there are none."""

    blocks: Blocks | None = None


M = TypeVar("M", bound=SummedMoments)
C = TypeVar("C", bound=Components)


class SummedModel(MomentModel[M, C]):
    """A model whose moments are sums over samples, which add up over parts of the data.

    A subclass implements `_checked_part`, `_empty_sums` and `_moments_of`, and in `moments` gives its moments the sums
    they come from, by block, where standard errors are asked for.
    """

    n_blocks: int
    """Blocks of the data that are left out in turn for standard errors; zero for none."""

    def partial_fit(self, X: Any, y: object = None) -> Self:  # noqa: N803
        """Add data to what was seen so far and estimate again, by moments alone.

        What chunks there are, and in which order they come, makes no difference but to rounding, where the first fixes
        nothing; see the notes of the model. Standard errors, if `n_blocks` asks for them, are there once there were as
        many chunks: each belongs to one block.

        Parameters
        ----------
        X : data
            A chunk, as for `fit`, not in parts.
        y : ignored

        Returns
        -------
        self
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
        """
        self.check_parameters()
        seen: Blocks | None = getattr(self, "_blocks", None)
        part = self._checked_part(data, first=seen is None)
        blocks = (Blocks({0: self._empty_sums(part)}) if seen is None else seen).with_part(part, self.n_blocks)
        return self.estimate(self._moments_of_chunk(blocks, part))

    @abstractmethod
    def _checked_part(self, raw: Any, *, first: bool) -> Any:
        """Return a chunk of data in the form that sums take, or say what is wrong with it."""

    @abstractmethod
    def _empty_sums(self, part: Any) -> MomentSums:
        """Return sums over nothing, to which this chunk can be added."""

    @abstractmethod
    def _moments_of(self, sums: Any, like: M | None = None) -> M:
        """Return the moments that sums make, without what is to be said about them.

        Where moments of nearly the same sums are given, what could be chosen in several ways is chosen as there: a
        jackknife is right for what varies smoothly with the data.
        """

    @abstractmethod
    def _moments_of_chunk(self, blocks: Blocks, part: Any) -> M:
        """Return the moments after a chunk was added, with what is to be said about them and it."""

    def _in_units(self, components: C, moments: M) -> C:
        """Return components in the units of the data; by default they are.

        Parameters
        ----------
        components : Components
            In the units of the moments.
        moments : Moments

        Returns
        -------
        Components
        """
        return components

    def check_parameters(self) -> None:
        """Raise unless parameters are what they must be."""
        super().check_parameters()
        if self.n_blocks == 1:
            raise ValueError(
                "n_blocks must be 0, for no standard errors, or at least 2, of which one is left out; got 1"
            )

    def _check_blocks(self, available: int | None, what: str) -> None:
        """Raise unless standard errors that are asked for can be had from so many parts or samples.

        Parameters
        ----------
        available : int or None
            How many there are; None where that is not known.
        what : str
            What they are.
        """
        if self.n_blocks and self.polish:
            raise ValueError(
                f"polish must be 0 where n_blocks={self.n_blocks} asks for standard errors, which are those of "
                f"estimates by moments alone; got {self.polish}"
            )
        if available is not None and available < self.n_blocks:
            raise ValueError(
                f"n_blocks must be at most {available}, the number of {what}, as each belongs to one block; got "
                f"{self.n_blocks}"
            )

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
        """Set learned attributes, standard errors among them where asked for, and keep the sums for `partial_fit`.

        Parameters
        ----------
        components : Components
        moments : Moments
        """
        found = self._in_units(components, moments)
        super().keep(found, moments)
        self._blocks = moments.blocks
        known = self._standard_errors(found, moments)
        for name in found.parameter_names():
            attribute = f"{name}_standard_errors_"
            if name in known:
                setattr(self, attribute, known[name])
            elif hasattr(self, attribute):  # of an earlier fit
                delattr(self, attribute)

    def _standard_errors(self, found: C, moments: M) -> dict[str, np.ndarray]:
        blocks = moments.blocks
        if blocks is None or not 2 <= self.n_blocks <= len(blocks.sums):
            return {}
        sizes = np.array([sums.size for sums in blocks.sums.values()])
        return jackknife(found, list(self._replicates(list(blocks.sums.values()), moments)), sizes)

    def _replicates(self, sums: list[MomentSums], whole: M) -> Iterator[C]:
        """Yield the parameters of components without each of the blocks."""
        for place, others in enumerate(leave_one_out(sums)):
            try:
                moments = self._moments_of(others, whole)
                fit = None
                if moments.problem is not None:
                    fit = solve(moments.problem, self.strategy(), as_seed(self.random_state))
                yield self._in_units(self.parameters(fit, moments), moments)
            except ValueError as error:
                error.add_note(f"This was without block {place} of {len(sums)}, for standard errors (n_blocks).")
                raise
