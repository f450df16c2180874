"""Models with standard errors from sums over blocks of the data, each left out in turn."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from codiag._factorize import solve
from codiag.models._base import as_seed
from codiag.models._components import Components
from codiag.models._jackknife import jackknife
from codiag.models._summed import SummedModel, SummedMoments
from codiag.models._sums import Blocks, MomentSums, leave_one_out


@dataclass(frozen=True, eq=False, kw_only=True)
class BlockedMoments(SummedMoments):
    """Moments, and the sums by block that they come from; None where there are none."""

    blocks: Blocks | None = None


M = TypeVar("M", bound=BlockedMoments)
C = TypeVar("C", bound=Components)


class BlockedModel(SummedModel[M, C]):
    """A model of samples that are dealt to blocks, where standard errors are asked for.

    A subclass implements `_moments_of`, and in `moments` gives its moments the sums that they come from.
    """

    n_blocks: int
    """Blocks of the data that are left out in turn for standard errors; zero for none."""

    @abstractmethod
    def _moments_of(self, sums: Any, like: M | None = None) -> M:
        """Return the moments that sums make, without what is to be said about them.

        Where moments of nearly the same sums are given, what could be chosen in several ways is chosen as there: a
        jackknife is right for what varies smoothly with the data.
        """

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
        """Raise unless parameters are what they must be.

        Examples
        --------
        >>> from codiag.models import SingleTopic
        >>> SingleTopic().check_parameters()
        >>> SingleTopic(n_blocks=-1).check_parameters()  # refused
        Traceback (most recent call last):
            ...
        ValueError: n_blocks must not be negative; got -1
        """
        super().check_parameters()
        if self.n_blocks == 1:
            raise ValueError(
                "n_blocks must be 0, for no standard errors, or at least 2, of which one is left out; got 1"
            )

    def _check_blocks(self, n_samples: float | None = None) -> None:
        """Raise unless standard errors that are asked for can be had, from so many samples where that is known.

        Parameters
        ----------
        n_samples : int, optional
        """
        if self.n_blocks and self.polish:
            raise ValueError(
                f"polish must be 0 where n_blocks={self.n_blocks} asks for standard errors, which are those of "
                f"estimates by moments alone; got {self.polish}"
            )
        if n_samples is not None and n_samples < self.n_blocks:
            raise ValueError(
                f"n_blocks must be at most {n_samples}, the number of samples, as each belongs to one block; got "
                f"{self.n_blocks}"
            )

    def _check_same_blocks(self, blocks: Blocks) -> None:
        """Raise where sums were not kept by as many blocks as are asked for now."""
        if self.n_blocks not in (0, blocks.n_blocks):
            raise ValueError(
                f"n_blocks must be {blocks.n_blocks}, as with the sums that data is added to; got {self.n_blocks}. "
                "Blocks are not kept after fit: for standard errors begin anew with partial_fit"
            )

    def keep(self, components: C, moments: M) -> None:
        """Set learned attributes, standard errors among them where asked for.

        Parameters
        ----------
        components : Components
        moments : Moments
        """
        found = self._in_units(components, moments)
        known = self._standard_errors(found, moments)
        super().keep(found, moments)
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
