"""Counts of three symbols in a row, from which hidden Markov models are estimated.

Moments of three symbols in a row, scaled, and the chain of states that has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Self

import numpy as np
from scipy import sparse

from codiag._checks import UndeterminedError
from codiag.models.chains._sequences import MANY, CutSequences, numbered
from codiag.models.frame import (
    N_DRAWS,
    BlockedMoments,
    Components,
    MappedProblem,
    MomentSums,
    ViewMoments,
    random_bits,
    sorted_names,
    weakest_direction,
)
from codiag.parts import Parts
from codiag.problem import Problem
from codiag.result import Factorization
from codiag.tensors import CrossMomentTensor, SparseTensor

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


@dataclass(frozen=True, eq=False, kw_only=True)
class ChainMoments(BlockedMoments):
    """Moments of three symbols in a row, divided by roots of frequencies, and the way back."""

    counts: TripleCounts
    sequences: CutSequences | None = None  # every symbol by its place among all, where they are at hand
    parts: Parts | None = None  # or where they can be read again
    left_out: tuple[int, int] | None = None  # a block of so many, in what steps of Baum and Welch sum
    beginnings: bool  # whether these tell where chains start
    scales: list[np.ndarray]  # for the first, second and third of three symbols
    correlation: float
    noise: float
    mapped: MappedProblem | None  # where two views were mapped to the third

    def factors(self, fit: Factorization) -> tuple[np.ndarray, np.ndarray]:
        """Return the second and third factor (symbols seen, k) of the scaled moment."""
        if self.mapped is None:
            return np.asarray(fit.factors[1]), np.asarray(fit.factors[2])
        means = self.mapped.parameters(fit)[1]
        return means[1].T, means[2].T


@dataclass(frozen=True, eq=False, kw_only=True)
class Chain(Components):
    """Start (k,), transitions (k, k) and emissions (k, symbols); weights are how often states are visited."""

    key: ClassVar[str] = "emissionprob"

    startprob: np.ndarray
    transmat: np.ndarray
    emissionprob: np.ndarray

    def reordered(self, order: np.ndarray) -> Self:
        """Return states in a new order: of transitions, rows and columns."""
        moved = super().reordered(order)
        return replace(moved, transmat=moved.transmat[:, order])

    def parameter_names(self) -> tuple[str, ...]:
        """Return the names of the parameters; how often states are visited follows from them."""
        return "startprob", "transmat", "emissionprob"


def with_symbols_of(counts: TripleCounts, whole: TripleCounts) -> TripleCounts:
    """Return counts with all the symbols that others have."""
    places = {symbol: place for place, symbol in enumerate(whole.symbols.tolist())}
    seen = np.array([places[symbol] for symbol in counts.symbols[counts.seen].tolist()], dtype=np.intp)
    return counts._replace(symbols=whole.symbols, seen=seen)


def views_of(counts: TripleCounts, scales: list[np.ndarray]) -> ViewMoments:
    """Return the moments of three views, each an indicator of the symbol."""
    m = counts.numbers.size
    views = [
        sparse.csr_array((1 / scale[row], (np.arange(m), row)), shape=(m, scale.size))
        for scale, row in zip(scales, counts.triples, strict=True)
    ]
    return ViewMoments(CrossMomentTensor(*views, weights=counts.numbers / counts.numbers.sum()))


def scaled_problem(counts: TripleCounts, scales: list[np.ndarray], k: int) -> Problem:
    """Ask for the components of the third moment as it is, a sparse tensor of frequencies."""
    divided = np.prod([scale[row] for scale, row in zip(scales, counts.triples, strict=True)], axis=0)
    values = counts.numbers / (counts.numbers.sum() * divided)
    return Problem(SparseTensor(counts.triples, values, tuple(scale.size for scale in scales)), k, symmetric=False)


def stationary(transitions: np.ndarray) -> np.ndarray:
    """Return the distribution that transitions, columns of sum one, leave as it is; of several, the least."""
    k = transitions.shape[0]
    system = np.concatenate([transitions - np.eye(k), np.ones((1, k))])
    found = np.maximum(np.linalg.lstsq(system, np.append(np.zeros(k), 1.0), rcond=None)[0], 0)
    return found / found.sum()


def correlation(counts: TripleCounts, scales: list[np.ndarray], k: int) -> tuple[float, float]:
    """Return the k-th singular value of scaled pairs of neighbors, and its sampling noise."""
    left, right = counts.triples[0], counts.triples[1]
    divided = counts.numbers.sum() * scales[0][left] * scales[1][right]
    shape = scales[0].size, scales[1].size

    def pairs(numbers: np.ndarray) -> sparse.csr_array:
        return sparse.csr_array((numbers / divided, (left, right)), shape=shape)

    # Around the mean: signs of few blocks do not add up to zero, and their sum would be taken for noise.
    mean = counts.numbers / counts.numbers.sum()
    errors = [pairs(signed - signed.sum() * mean) for signed in counts.signed]
    return weakest_direction(pairs(counts.numbers), errors, k)
