"""Counts of three symbols in a row, from which hidden Markov models are estimated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from codiag._validation import UndeterminedError
from codiag.models._names import sorted_names
from codiag.models._sampling_noise import N_DRAWS, random_bits
from codiag.models._sequences import MANY, numbered
from codiag.models._sums import MomentSums

BLOCKS = 32
"""Blocks of a chain, at most, that are taken for independent of each other, where its own sampling noise is told."""


class TripleCounts(NamedTuple):
    """How often symbols, and three of them in a row, occur."""

    symbols: np.ndarray  # all that are counted: 0, 1, ... up to the largest number, or the names in their order
    seen: np.ndarray  # places of those that occur
    triples: np.ndarray  # (3, m): the different ones, by place among those that occur
    numbers: np.ndarray  # (m,)
    signed: np.ndarray  # (draws, m): the same with a random sign for each block of a sequence
    frequencies: np.ndarray  # of symbols that occur
    firsts: np.ndarray  # how often they begin a sequence
    n_sequences: int


@dataclass(eq=False)
class ChainSums(MomentSums):
    """Counts over sequences of symbols; those of other symbols are merged by name."""

    symbols: np.ndarray  # that occur, in their order
    triples: np.ndarray  # (3, m): the different ones, by place
    numbers: np.ndarray  # (1 + draws, m): how often, and with random signs
    frequencies: np.ndarray
    firsts: np.ndarray
    n_sequences: int = 0
    start: int = 0  # the number of the first symbol, by which signs are drawn

    @classmethod
    def empty(cls, start: int = 0) -> Self:
        """Return counts over nothing."""
        none = np.zeros(0)
        triples, numbers = np.zeros((3, 0), dtype=np.intp), np.zeros((1 + N_DRAWS, 0))
        return cls(np.zeros(0, dtype=np.intp), triples, numbers, none, none, start=start)

    @property
    def size(self) -> float:
        return float(self.frequencies.sum())

    def of(self, part: list[np.ndarray]) -> Self:
        """Return the counts over some sequences alone, which come after those seen so far."""
        return self._by_owner(part, np.zeros(sum(sequence.size for sequence in part), dtype=np.intp))[0]

    def by_block(self, part: list[np.ndarray], n_blocks: int, place: int) -> dict[int, Self]:
        """Return the counts by stretches of time; three symbols in a row belong to that of the middle one."""
        return self._by_owner(part, time_blocks([sequence.size for sequence in part], n_blocks, place))

    def _by_owner(self, part: list[np.ndarray], owners: np.ndarray) -> dict[int, Self]:
        """Return counts by what symbols, all sequences in a row, belong to."""
        symbols = _occurring(part)
        sequences = numbered(part, symbols) if symbols.dtype.kind not in "iu" else _ranked(part, symbols)
        row, lengths = np.concatenate(sequences), np.array([sequence.size for sequence in sequences])
        starts = np.cumsum(lengths) - lengths
        inner = np.ones(row.size, dtype=bool)
        inner[starts] = inner[starts + lengths - 1] = False
        middle = np.flatnonzero(inner)
        triples = np.stack([row[middle - 1], row[middle], row[middle + 1]])
        signs = np.concatenate([np.ones((1, middle.size)), _signs_of_blocks(self.start + int(self.size), middle.size)])
        found = {}
        for owner in np.unique(owners).tolist():
            own = owners[middle] == owner
            different, numbers = _added(triples[:, own], signs[:, own], symbols.size)
            begun = starts[owners[starts] == owner]
            frequencies, firsts = (
                np.bincount(some, minlength=symbols.size).astype(np.float64)
                for some in (row[owners == owner], row[begun])
            )
            found[owner] = type(self)(symbols, different, numbers, frequencies, firsts, begun.size)
        return found

    def merge(self, other: Self) -> Self:
        """Add other counts to these, by the names of symbols, and return these."""
        if self.size and other.size and _named(self.symbols) != _named(other.symbols):
            raise TypeError("X must hold symbols of one kind, all integers or all strings; got both")
        used = [one for one in (self, other) if one.size]
        if not used:
            return self
        symbols = _union([one.symbols for one in used])
        places = [_places(one.symbols, symbols) for one in used]
        triples = np.concatenate([place[one.triples] for one, place in zip(used, places, strict=True)], axis=1)
        numbers = np.concatenate([one.numbers for one in used], axis=1)
        frequencies, firsts = np.zeros(symbols.size), np.zeros(symbols.size)
        for one, place in zip(used, places, strict=True):
            frequencies[place] += one.frequencies
            firsts[place] += one.firsts
        self.triples, self.numbers = _added(triples, numbers, symbols.size)
        self.symbols, self.frequencies, self.firsts = symbols, frequencies, firsts
        self.n_sequences = self.n_sequences + other.n_sequences
        return self

    def finish(self) -> TripleCounts:
        """Return the counts, with all symbols there are."""
        if not self.numbers.shape[1]:
            raise UndeterminedError("X must hold a sequence of three symbols or more; all are shorter")
        symbols, seen = self.symbols, np.arange(self.symbols.size)
        if not _named(symbols):
            symbols, seen = np.arange(int(symbols[-1]) + 1), symbols.astype(np.intp)
        rest = self.frequencies, self.firsts, self.n_sequences
        return TripleCounts(symbols, seen, self.triples, self.numbers[0], self.numbers[1:], *rest)


def time_blocks(lengths: Sequence[int] | np.ndarray, n_blocks: int, place: int = 0) -> np.ndarray:
    """Return the block (n,) of every symbol, all sequences of a part in a row: stretches of one length.

    Neighbors depend on each other, and stay together. Sequences follow each other at random: their order may mean
    something.
    """
    sizes = np.asarray(lengths)
    order = np.random.default_rng((0xB10C, place)).permutation(sizes.size)
    offsets = np.empty_like(sizes)
    offsets[order] = np.cumsum(sizes[order]) - sizes[order]
    total, starts = int(sizes.sum()), np.cumsum(sizes) - sizes
    positions = np.arange(total) + np.repeat(offsets - starts, sizes)
    return (positions * n_blocks // max(total, 1) + place) % n_blocks


def _signs_of_blocks(start: int, n: int) -> np.ndarray:
    """Return signs (draws, n), one for each block of neighbors, other ones for symbols of other numbers.

    Neighbors depend on each other. Blocks grow at least like the cube root of the length, as in the block bootstrap.
    """
    n_blocks = min(BLOCKS, int(np.ceil(n ** (2 / 3))))
    bits = random_bits(start * N_DRAWS, n_blocks * N_DRAWS).reshape(n_blocks, N_DRAWS).T
    return 2.0 * bits[:, np.arange(n) * n_blocks // max(n, 1)] - 1


def _named(symbols: np.ndarray) -> bool:
    return symbols.dtype.kind not in "iu"


def _occurring(sequences: list[np.ndarray]) -> np.ndarray:
    """Return the symbols that occur, in their order."""
    if _named(sequences[0]):
        return sorted_names([symbol for sequence in sequences for symbol in sequence.tolist()])
    symbols = np.unique(np.concatenate(sequences))
    if symbols[-1] >= MANY:
        raise ValueError(
            f"X must hold symbols below {MANY}, as they number the columns of emissionprob_; got {symbols[-1]}. Number "
            "those that occur by numpy.unique(X, return_inverse=True), or give them as strings"
        )
    return symbols


def _ranked(sequences: list[np.ndarray], symbols: np.ndarray) -> list[np.ndarray]:
    return [np.searchsorted(symbols, sequence) for sequence in sequences]


def _union(parts: list[np.ndarray]) -> np.ndarray:
    if _named(parts[0]):
        return sorted_names([symbol for part in parts for symbol in part.tolist()])
    return np.unique(np.concatenate(parts))


def _places(symbols: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Return the place of each symbol among others."""
    places = {symbol: place for place, symbol in enumerate(among.tolist())}
    return np.array([places[symbol] for symbol in symbols.tolist()], dtype=np.intp)


def _added(triples: np.ndarray, numbers: np.ndarray, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the different triples, sorted, and the sums of the numbers (n, m) that belong to each."""
    if d**3 < 2**62:
        keys, places = np.unique((triples[0] * d + triples[1]) * d + triples[2], return_inverse=True)
        different = np.stack([keys // d**2, keys // d % d, keys % d])
    else:
        different, places = np.unique(triples, axis=1, return_inverse=True)
    places = places.ravel()
    summed = [np.bincount(places, weights=row, minlength=different.shape[1]) for row in numbers]
    return different, np.stack(summed)
