"""Models with standard errors from sums over blocks of the data, each left out in turn."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from codiag._parts import Parts
from codiag.models._components import Components
from codiag.models._replicated import ReplicatedModel
from codiag.models._summed import SummedModel, SummedMoments
from codiag.models._sums import Blocks, block_of_rows, leave_one_out


@dataclass(frozen=True, eq=False, kw_only=True)
class BlockedMoments(SummedMoments):
    """Moments, and the sums by block that they come from; None where there are none."""

    blocks: Blocks | None = None


M = TypeVar("M", bound=BlockedMoments)
C = TypeVar("C", bound=Components)


class BlockedModel(ReplicatedModel[M, C], SummedModel[M, C]):
    """A model of samples that are dealt to blocks, where standard errors are asked for.

    A subclass implements `_moments_of` and, where it has steps of `polish`, `_with_others`; in `moments` it gives its
    moments the sums that they come from.
    """

    @abstractmethod
    def _moments_of(self, sums: Any, like: M | None = None) -> M:
        """Return the moments that sums make, without what is to be said about them.

        Where moments of nearly the same sums are given, what could be chosen in several ways is chosen as there: a
        jackknife is right for what varies smoothly with the data.
        """

    def _with_others(self, others: M, whole: M, block: int, found: C) -> M:
        """Return moments without a block with the data of the others, for steps of `polish`; by default without.

        Parameters
        ----------
        others : Moments
            From the sums over all blocks but one.
        whole : Moments
            Of all samples, with the data.
        block : int
        found : Components
            From all samples.

        Returns
        -------
        Moments
        """
        return others

    def _check_same_blocks(self, blocks: Blocks) -> None:
        """Raise where sums were not kept by as many blocks as are asked for now."""
        if self.n_blocks not in (0, blocks.n_blocks):
            raise ValueError(
                f"n_blocks must be {blocks.n_blocks}, as with the sums that data is added to; got {self.n_blocks}. "
                "Blocks are not kept after fit: for standard errors begin anew with partial_fit"
            )

    def _without_blocks(self, moments: M, found: C) -> Iterator[tuple[float, M]]:
        """Yield for every block its size, and the moments of all others; nothing before there are as many blocks."""
        blocks = moments.blocks
        if blocks is None or len(blocks.sums) < self.n_blocks:
            return
        sums = list(blocks.sums.values())
        for block, own, others in zip(blocks.sums, sums, leave_one_out(sums), strict=True):
            yield own.size, self._with_others(self._moments_of(others, moments), moments, block, found)


class PartsWithout(Parts):
    """Parts without the rows of one block, as they are dealt to blocks where sums are formed."""

    def __init__(self, parts: Parts, as_rows: Callable[[Any], Any], n_blocks: int, block: int) -> None:
        self._parts, self._as_rows, self._n_blocks, self._block = parts, as_rows, n_blocks, block
        self.n_parts, self.once = parts.n_parts, parts.once

    def reduce(self, function: Callable[..., Any], *shared: Any, numbered: bool = False) -> Any:
        """Return what a function gives for the rows that are left of all parts, merged in a tree."""
        left = self._as_rows, self._n_blocks, self._block
        return self._parts.reduce(_of_others, function, numbered, left, *shared, numbered=True)


def _of_others(part: Any, function: Callable[..., Any], numbered: bool, left: Any, *shared: Any, place: int) -> Any:
    as_rows, n_blocks, block = left
    rows = as_rows(part)
    kept = rows[block_of_rows(rows.shape[0], n_blocks, place) != block]
    if kept.shape[0] == 0:
        return None
    return function(kept, *shared, place=place) if numbered else function(kept, *shared)
