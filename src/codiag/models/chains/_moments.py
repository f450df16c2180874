"""Moments of three consecutive symbols: counts over sequences, and the scaled moment to factorize."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy import sparse

from codiag._checks import UndeterminedError
from codiag.labels import sorted_names
from codiag.models.chains._sequences import MAX_SYMBOL, CutSequences, numbered, sequences_of_part
from codiag.models.base import (
    N_DRAWS,
    BlockedMoments,
    Blocks,
    Components,
    MappedProblem,
    MomentSums,
    ViewMoments,
    random_bits,
    weakest_direction,
)
from codiag.parts import Parts
from codiag.problem import Problem
from codiag.result import Factorization
from codiag.tensors import CrossMomentTensor, SparseTensor

MAX_SIGN_BLOCKS = 32
"""Largest number of blocks of a sequence that are treated as independent when its sampling noise is estimated."""
PART_STRIDE = 2**36
"""Difference between the numbers of the first symbols of consecutive parts; larger than any part."""


class TripleCounts(NamedTuple):
    """Numbers of symbols and of triples of consecutive symbols."""

    symbols: np.ndarray  # all symbols: 0, 1, ... up to the largest integer, or the sorted names
    seen: np.ndarray  # indices of the symbols that occur
    triples: np.ndarray  # (3, m): different triples, as indices into `seen`
    numbers: np.ndarray  # (m,)
    signed: np.ndarray  # (draws, m): the same with a random sign for each block of a sequence
    frequencies: np.ndarray  # number of each symbol that occurs
    firsts: np.ndarray  # number of sequences that start with each symbol
    n_sequences: int


@dataclass(eq=False)
class ChainSums(MomentSums):
    """Counts over sequences of symbols; merged by the names of the symbols."""

    symbols: np.ndarray  # that occur, sorted
    triples: np.ndarray  # (3, m): different triples, as indices into `symbols`
    numbers: np.ndarray  # (1 + draws, m): how often they occur, plain and with random signs
    frequencies: np.ndarray
    firsts: np.ndarray
    n_sequences: int = 0
    start: int = 0  # the number of the first symbol, by which signs are drawn

    @classmethod
    def empty(cls, start: int = 0) -> Self:
        """Return counts over no sequences."""
        none = np.zeros(0)
        triples, numbers = np.zeros((3, 0), dtype=np.intp), np.zeros((1 + N_DRAWS, 0))
        return cls(np.zeros(0, dtype=np.intp), triples, numbers, none, none, start=start)

    @property
    def size(self) -> float:
        return float(self.frequencies.sum())

    def of(self, part: list[np.ndarray]) -> Self:
        """Return the counts over some sequences alone, numbered after those counted so far."""
        return self._by_owner(part, np.zeros(sum(sequence.size for sequence in part), dtype=np.intp))[0]

    def by_block(self, part: list[np.ndarray], n_blocks: int, place: int) -> dict[int, Self]:
        """Return the counts by blocks of time; a triple belongs to the block of its middle symbol."""
        return self._by_owner(part, time_blocks([sequence.size for sequence in part], n_blocks, place))

    def _by_owner(self, part: list[np.ndarray], owners: np.ndarray) -> dict[int, Self]:
        """Return the counts by owner; `owners` (n,) are those of the concatenated symbols."""
        symbols = _occurring(part)
        sequences = numbered(part, symbols) if _are_names(symbols) else [np.searchsorted(symbols, x) for x in part]
        row, lengths = np.concatenate(sequences), np.array([sequence.size for sequence in sequences])
        starts = np.cumsum(lengths) - lengths
        inner = np.ones(row.size, dtype=bool)
        inner[starts] = inner[starts + lengths - 1] = False
        middle = np.flatnonzero(inner)
        triples = np.stack([row[middle - 1], row[middle], row[middle + 1]])
        signs = np.concatenate([np.ones((1, middle.size)), _block_signs(self.start + int(self.size), middle.size)])
        counts = {}
        for owner in np.unique(owners).tolist():
            chosen = owners[middle] == owner
            begun = starts[owners[starts] == owner]
            frequencies, firsts = (
                np.bincount(some, minlength=symbols.size).astype(np.float64)
                for some in (row[owners == owner], row[begun])
            )
            different = _summed(triples[:, chosen], signs[:, chosen], symbols.size)
            counts[owner] = type(self)(symbols, *different, frequencies, firsts, begun.size)
        return counts

    def merge(self, other: Self) -> Self:
        """Add other counts to these, by the names of symbols, and return these."""
        if self.size and other.size and _are_names(self.symbols) != _are_names(other.symbols):
            raise TypeError("X must contain symbols of one kind, all integers or all strings; got both")
        used = [sums for sums in (self, other) if sums.size]
        if not used:
            return self
        symbols = _occurring([sums.symbols for sums in used])
        indices = [_indices(sums.symbols, symbols) for sums in used]
        triples = np.concatenate([index[sums.triples] for sums, index in zip(used, indices, strict=True)], axis=1)
        numbers = np.concatenate([sums.numbers for sums in used], axis=1)
        frequencies, firsts = np.zeros(symbols.size), np.zeros(symbols.size)
        for sums, index in zip(used, indices, strict=True):
            frequencies[index] += sums.frequencies
            firsts[index] += sums.firsts
        self.triples, self.numbers = _summed(triples, numbers, symbols.size)
        self.symbols, self.frequencies, self.firsts = symbols, frequencies, firsts
        self.n_sequences = self.n_sequences + other.n_sequences
        return self

    def finish(self) -> TripleCounts:
        """Return the counts, with the integers that do not occur added to the symbols."""
        if not self.numbers.shape[1]:
            raise UndeterminedError("X must contain a sequence of three symbols or more; all are shorter")
        seen = np.arange(self.symbols.size) if _are_names(self.symbols) else self.symbols.astype(np.intp)
        rest = self.frequencies, self.firsts, self.n_sequences
        return TripleCounts(self.all_symbols(), seen, self.triples, self.numbers[0], self.numbers[1:], *rest)

    def all_symbols(self) -> np.ndarray:
        """Return the symbols that occur, if they are names; else all integers up to the largest."""
        return self.symbols if _are_names(self.symbols) else np.arange(int(self.symbols[-1]) + 1)


def counts_of_part(part: Any, n_blocks: int, place: int) -> Blocks:
    """Return the counts over the sequences of a part, by block."""
    return Blocks.of(ChainSums.empty(start=place * PART_STRIDE), sequences_of_part(part), n_blocks, place)


def time_blocks(lengths: Sequence[int] | np.ndarray, n_blocks: int, place: int = 0) -> np.ndarray:
    """Return the block (n,) of each of the concatenated symbols of a part: stretches of time of equal length.

    Neighboring symbols depend on each other and stay together. Sequences are concatenated in random order, since their
    order may matter.
    """
    sizes = np.asarray(lengths)
    order = np.random.default_rng((0xB10C, place)).permutation(sizes.size)
    offsets = np.empty_like(sizes)
    offsets[order] = np.cumsum(sizes[order]) - sizes[order]
    total, starts = int(sizes.sum()), np.cumsum(sizes) - sizes
    positions = np.arange(total) + np.repeat(offsets - starts, sizes)
    return (positions * n_blocks // max(total, 1) + place) % n_blocks


def _block_signs(start: int, n: int) -> np.ndarray:
    """Return random signs (draws, n), one for each block of neighbors, for symbols numbered from `start`.

    Neighboring symbols depend on each other. Blocks grow at least like the cube root of n, as in the block bootstrap.
    """
    n_blocks = min(MAX_SIGN_BLOCKS, int(np.ceil(n ** (2 / 3))))
    bits = random_bits(start * N_DRAWS, n_blocks * N_DRAWS).reshape(n_blocks, N_DRAWS).T
    return 2.0 * bits[:, np.arange(n) * n_blocks // max(n, 1)] - 1


def _are_names(symbols: np.ndarray) -> bool:
    return symbols.dtype.kind not in "iu"


def _occurring(sequences: list[np.ndarray]) -> np.ndarray:
    """Return the symbols that occur, sorted."""
    if _are_names(sequences[0]):
        return sorted_names([symbol for sequence in sequences for symbol in sequence.tolist()])
    symbols = np.unique(np.concatenate(sequences))
    if symbols[-1] >= MAX_SYMBOL:
        raise ValueError(
            f"X must contain symbols below {MAX_SYMBOL}, as they number the columns of emissionprob_; got "
            f"{symbols[-1]}. Number those that occur by numpy.unique(X, return_inverse=True), or give them as strings"
        )
    return symbols


def _indices(symbols: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the index of each symbol among the known symbols."""
    index = {symbol: i for i, symbol in enumerate(known.tolist())}
    return np.array([index[symbol] for symbol in symbols.tolist()], dtype=np.intp)


def _summed(triples: np.ndarray, numbers: np.ndarray, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the different triples of indices below d, sorted, and the sums of the numbers (n, m) of each."""
    if d**3 < 2**62:
        keys, groups = np.unique((triples[0] * d + triples[1]) * d + triples[2], return_inverse=True)
        different = np.stack([keys // d**2, keys // d % d, keys % d])
    else:
        different, groups = np.unique(triples, axis=1, return_inverse=True)
    sums = [np.bincount(groups.ravel(), weights=row, minlength=different.shape[1]) for row in numbers]
    return different, np.stack(sums)


@dataclass(frozen=True, eq=False, kw_only=True)
class ChainMoments(BlockedMoments):
    """The moment of three consecutive symbols, divided by roots of their frequencies."""

    counts: TripleCounts
    sequences: CutSequences | None = None  # the data, if it is in memory
    parts: Parts | None = None  # or if it can be read again
    left_out: tuple[int, int] | None = None  # (block, n_blocks): a block that Baum-Welch sums leave out
    use_firsts: bool  # whether start probabilities come from the first symbols of sequences
    scales: list[np.ndarray]  # roots of the frequencies of the first, second and third of three symbols
    correlation: float  # last singular value of the moment of neighbors
    noise: float
    mapped: MappedProblem | None  # for methods that need orthogonal factors

    def factors(self, fit: Factorization) -> tuple[np.ndarray, np.ndarray]:
        """Return the second and third factor (symbols that occur, k) of the scaled moment."""
        if self.mapped is None:
            return np.asarray(fit.factors[1]), np.asarray(fit.factors[2])
        means = self.mapped.parameters(fit)[1]
        return means[1].T, means[2].T


@dataclass(frozen=True, eq=False, kw_only=True)
class Chain(Components):
    """Start (k,), transition (k, k) and emission (k, symbols) probabilities; weights are stationary probabilities."""

    key: ClassVar[str] = "emissionprob"

    startprob: np.ndarray
    transmat: np.ndarray
    emissionprob: np.ndarray

    def reordered(self, order: np.ndarray) -> Self:
        """Return states in a new order, in rows and columns of the transition matrix."""
        moved = super().reordered(order)
        return replace(moved, transmat=moved.transmat[:, order])

    def parameter_names(self) -> tuple[str, ...]:
        """Return the names of the parameters; the weights follow from them."""
        return "startprob", "transmat", "emissionprob"


def with_symbols_of(counts: TripleCounts, whole: TripleCounts) -> TripleCounts:
    """Return counts with the symbols of other counts, which include all of theirs."""
    return counts._replace(symbols=whole.symbols, seen=_indices(counts.symbols[counts.seen], whole.symbols))


def views_of(counts: TripleCounts, scales: list[np.ndarray]) -> ViewMoments:
    """Return the moments of three views, which are scaled indicators of the three symbols."""
    m = counts.numbers.size
    views = [
        sparse.csr_array((1 / scale[row], (np.arange(m), row)), shape=(m, scale.size))
        for scale, row in zip(scales, counts.triples, strict=True)
    ]
    return ViewMoments(CrossMomentTensor(*views, weights=counts.numbers / counts.numbers.sum()))


def scaled_problem(counts: TripleCounts, scales: list[np.ndarray], k: int) -> Problem:
    """Return the problem of the scaled third moment, a sparse tensor."""
    divisors = np.prod([scale[row] for scale, row in zip(scales, counts.triples, strict=True)], axis=0)
    values = counts.numbers / (counts.numbers.sum() * divisors)
    return Problem(SparseTensor(counts.triples, values, tuple(scale.size for scale in scales)), k, symmetric=False)


def stationary(transitions: np.ndarray) -> np.ndarray:
    """Return the stationary distribution of transitions with columns of sum one; if several, that of least norm."""
    k = transitions.shape[0]
    system = np.concatenate([transitions - np.eye(k), np.ones((1, k))])
    solution = np.maximum(np.linalg.lstsq(system, np.append(np.zeros(k), 1.0), rcond=None)[0], 0)
    return solution / solution.sum()


def correlation(counts: TripleCounts, scales: list[np.ndarray], k: int) -> tuple[float, float]:
    """Return the k-th singular value of the scaled moment of neighbors, and its sampling noise."""
    first, second = counts.triples[0], counts.triples[1]
    divisors = counts.numbers.sum() * scales[0][first] * scales[1][second]
    shape = scales[0].size, scales[1].size

    def pairs(numbers: np.ndarray) -> sparse.csr_array:
        return sparse.csr_array((numbers / divisors, (first, second)), shape=shape)

    # Around the mean: signs of few blocks do not sum to zero, and their sum would count as noise.
    mean = counts.numbers / counts.numbers.sum()
    errors = [pairs(signed - signed.sum() * mean) for signed in counts.signed]
    return weakest_direction(pairs(counts.numbers), errors, k)
