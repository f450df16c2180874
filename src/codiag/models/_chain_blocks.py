"""Sequences of symbols cut into blocks, so that recursions over time advance all blocks together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

WIDE = 500
"""Blocks, about, from which on arithmetic takes longer than calling it."""
MANY_STATES = 32
"""States above which products of transition operators, cubes of the number, take longer than one step at a time."""


@dataclass(frozen=True, eq=False)
class CutSequences:
    """Sequences as blocks of at most so many symbols, longest blocks first, the same place of all blocks together."""

    lengths: np.ndarray  # (sequences,)
    symbols: np.ndarray  # (length, blocks); zero beyond the end of a block
    sources: np.ndarray  # (length, blocks): places among all symbols in a row; -1 beyond the end of a block
    sizes: np.ndarray  # (blocks,)
    owners: np.ndarray  # (blocks,): the sequence of each
    before: np.ndarray  # (blocks,): the block before in the same sequence, or -1
    positions: list[np.ndarray]  # blocks that come first in their sequence, second, ...; sequences in one order

    @classmethod
    def of(cls, sequences: list[np.ndarray], n_states: int, length: int | None = None) -> CutSequences:
        """Cut sequences into blocks of a length that is given, or of one that makes recursions quick."""
        lengths = np.array([sequence.size for sequence in sequences])
        length = _quick_length(lengths, n_states) if length is None else length
        numbers = -(-lengths // length)
        owners = np.repeat(np.arange(lengths.size), numbers)
        ranks = np.arange(owners.size) - np.repeat(np.cumsum(numbers) - numbers, numbers)
        sizes = np.minimum(length, lengths[owners] - ranks * length)
        starts = (np.cumsum(lengths) - lengths)[owners] + ranks * length
        order = np.argsort(-sizes, kind="stable")
        place = np.empty(order.size, dtype=np.intp)
        place[order] = np.arange(order.size)
        before = np.where(ranks > 0, np.append(-1, place[:-1]), -1)[order]
        sources = starts[order] + np.arange(sizes.max())[:, None]
        sources = np.where(np.arange(sizes.max())[:, None] < sizes[order], sources, -1)
        symbols = np.where(sources >= 0, np.concatenate(sequences)[sources], 0)
        positions = [place[ranks == rank] for rank in range(int(numbers.max()))]
        return cls(lengths, symbols, sources, sizes[order], owners[order], before, positions)

    @property
    def widths(self) -> list[int]:
        """How many blocks reach each place; they are the first ones."""
        return np.searchsorted(-self.sizes, -np.arange(self.symbols.shape[0]), side="left").tolist()

    @property
    def firsts(self) -> np.ndarray:
        """The block with which each sequence begins."""
        return self.positions[0]

    @property
    def is_cut(self) -> bool:
        """Whether a sequence has several blocks."""
        return len(self.positions) > 1

    @property
    def after(self) -> np.ndarray:
        """The block (blocks,) that comes after each in the same sequence, or -1."""
        found = np.full(self.sizes.size, -1)
        later = np.flatnonzero(self.before >= 0)
        found[self.before[later]] = later
        return found

    def ends(self, values: np.ndarray) -> np.ndarray:
        """Return the last of values (..., length, blocks) in each block."""
        return values[..., self.sizes - 1, np.arange(self.sizes.size)]

    def neighbors(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield blocks, and the next ones in the same sequences, from the beginnings of sequences on."""
        for blocks in self.positions[1:]:
            yield self.before[blocks], blocks

    def in_a_row(self, values: np.ndarray) -> np.ndarray:
        """Return values (..., length, blocks) in the order of the symbols, (n, ...)."""
        inside = self.sources >= 0
        found = np.empty((int(self.lengths.sum()), *values.shape[:-2]), dtype=values.dtype)
        found[self.sources[inside]] = values[..., inside].T
        return found


def _quick_length(lengths: np.ndarray, n_states: int) -> int:
    """Return the length of blocks that takes the fewest steps, or longer ones where there are plenty of blocks.

    A step is a place in a block, for all blocks at once, or a block in a sequence, for all sequences at once.
    """
    longest = int(lengths.max())
    if n_states > MANY_STATES:
        return longest
    return min(longest, max(int(np.ceil(np.sqrt(2 * longest))), int(lengths.sum()) // WIDE))
