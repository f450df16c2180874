"""Sums over data from which models are estimated: they add up over parts, machines and days, in any order."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self, TypeVar

import numpy as np


@dataclass(eq=False)
class MomentSums(ABC):
    """Sums over samples: ``update(part)`` adds data, ``merge(other)`` adds other sums, ``finish()`` gives moments.

    However data is cut into parts, and in whatever order these come, the moments are the same to rounding. Arrays are
    replaced and never written to, so that a shallow copy is a copy. Fields in `constant` must agree between sums that
    are merged; those in `own` belong to the object; all others are added.
    """

    constant: ClassVar[frozenset[str]] = frozenset()
    own: ClassVar[frozenset[str]] = frozenset()

    @property
    @abstractmethod
    def size(self) -> float:
        """How many samples there were."""

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
        """Return the sums over the samples of a part, (n, ...), by the block that they are dealt to."""
        owners = block_of_rows(part.shape[0], n_blocks, place)
        found, done = {}, 0
        for turn in range(min(n_blocks, part.shape[0])):
            block = (place + turn) % n_blocks
            rows = np.flatnonzero(owners == block)
            numbered: Any = copy.copy(self)
            numbered.start += done  # random signs are drawn by the numbers of samples
            found[block] = numbered.of(part[rows])
            done += rows.size
        return found

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


def block_of_rows(n: int, n_blocks: int, place: int = 0) -> np.ndarray:
    """Return the block (n,) that each row of a part is dealt to, at random: the order of rows may mean something."""
    owners = np.empty(n, dtype=np.intp)
    owners[np.random.default_rng((0xB10C, place)).permutation(n)] = (place + np.arange(n)) % n_blocks
    return owners


class Totals:
    """Plain totals of arrays over parts."""

    def __init__(self, *values: Any) -> None:
        self.values = values

    def merge(self, other: Totals) -> Totals:
        """Add other totals to these, and return these."""
        self.values = tuple(mine + theirs for mine, theirs in zip(self.values, other.values, strict=True))
        return self


class Blocks:
    """Sums by the block of the data they are over, `n_blocks` of them, or one, 0, where nothing is to be left out."""

    def __init__(self, sums: dict[int, Any], n_blocks: int = 0, n_parts: int = 1) -> None:
        self.sums, self.n_blocks, self.n_parts = sums, n_blocks, n_parts

    @classmethod
    def of(cls, sums: Any, samples: Any, n_blocks: int, place: int = 0) -> Blocks:
        """Return the sums over samples, dealt to blocks as these sums have it: the samples of each part to all blocks.

        The order of the parts that samples come in may mean something. Samples come after those that are in `sums`, by
        whose number random signs are drawn.
        """
        found = sums.by_block(samples, n_blocks, place) if n_blocks else {}
        return cls(found or {0: sums.of(samples)}, n_blocks)

    @property
    def size(self) -> float:
        """How many samples there were."""
        return sum(sums.size for sums in self.sums.values())

    def merge(self, other: Blocks) -> Blocks:
        """Add other sums to these, block by block, and return these."""
        mine = dict(self.sums)
        for block, sums in other.sums.items():
            mine[block] = copy.copy(mine[block]).merge(sums) if block in mine else sums
        self.sums, self.n_parts = mine, self.n_parts + other.n_parts
        return self

    def with_part(self, part: Any) -> Blocks:
        """Return sums to which those of a part were added."""
        return copy.copy(self).merge(Blocks.of(self.total(), part, self.n_blocks, self.n_parts))

    def total(self) -> Any:
        """Return the sums over all blocks."""
        return merged(list(self.sums.values()))


def merged(sums: Sequence[S]) -> S:
    """Return sums merged into one; none of them is changed."""
    total = copy.copy(sums[0])
    for other in sums[1:]:
        total.merge(other)
    return total


def leave_one_out(blocks: Sequence[S], others: Sequence[S] = ()) -> Iterator[S]:
    """Yield for every block the sums over all others, after about n log2 n merges; nothing is subtracted."""
    if len(blocks) == 1:
        yield merged(others)
        return
    middle = len(blocks) // 2
    for kept, left in ((blocks[:middle], blocks[middle:]), (blocks[middle:], blocks[:middle])):
        yield from leave_one_out(kept, [merged([*others, *left])])
