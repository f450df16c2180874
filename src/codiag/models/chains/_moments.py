"""Moments of three consecutive symbols: counts over sequences, and the scaled moment to factorize."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from codiag.labels import sorted_names
from codiag.models.base import Components, MappedProblem, Moments, ViewMoments, random_signs, weakest_direction
from codiag.models.chains._sequences import MAX_SYMBOL, indices, split_sequences
from codiag.problem import Problem
from codiag.result import Factorization
from codiag.tensors import SparseTensor


@dataclass(frozen=True, eq=False)
class ChainSums:
    """Counts over sequences of symbols, which are added by the names of the symbols."""

    symbols: np.ndarray  # that occur, sorted
    triples: np.ndarray  # (3, m): different triples, as indices into `symbols`
    numbers: np.ndarray  # (1 + draws, m): how often they occur, plain and with random signs
    frequencies: np.ndarray  # number of each symbol
    firsts: np.ndarray  # number of sequences that start with each symbol
    n_sequences: int

    @classmethod
    def of(cls, sequences: list[np.ndarray]) -> ChainSums:
        """Count the symbols and triples of sequences."""
        symbols, whole = _occurring(sequences), np.concatenate(sequences)
        row = indices(whole, symbols) if _are_names(symbols) else np.searchsorted(symbols, whole)
        lengths = np.array([sequence.size for sequence in sequences])
        starts = np.cumsum(lengths) - lengths
        inner = np.ones(row.size, dtype=bool)
        inner[starts] = inner[starts + lengths - 1] = False
        middle = np.flatnonzero(inner)
        triples = np.stack([row[middle - 1], row[middle], row[middle + 1]])
        signs = _block_signs(middle.size, zlib.crc32(row[:1000].tobytes()))  # not the same in all chunks
        different = _summed(triples, np.concatenate([np.ones((1, middle.size)), signs]), symbols.size)
        frequencies, firsts = (np.bincount(some, minlength=symbols.size) * 1.0 for some in (row, row[starts]))
        return cls(symbols, *different, frequencies, firsts, lengths.size)

    def __add__(self, other: ChainSums) -> ChainSums:
        if _are_names(self.symbols) != _are_names(other.symbols):
            raise TypeError("X must contain symbols of one kind, all integers or all strings; got both")
        symbols = _occurring([self.symbols, other.symbols])
        places = [indices(sums.symbols, symbols) for sums in (self, other)]
        triples = np.concatenate([places[0][self.triples], places[1][other.triples]], axis=1)
        numbers = np.concatenate([self.numbers, other.numbers], axis=1)
        frequencies, firsts = np.zeros(symbols.size), np.zeros(symbols.size)
        for sums, place in zip((self, other), places, strict=True):
            frequencies[place] += sums.frequencies
            firsts[place] += sums.firsts
        different = _summed(triples, numbers, symbols.size)
        return ChainSums(symbols, *different, frequencies, firsts, self.n_sequences + other.n_sequences)

    def among(self, symbols: np.ndarray) -> np.ndarray:
        """Return the indices of the symbols that occur among all symbols."""
        return indices(self.symbols, symbols) if _are_names(symbols) else self.symbols.astype(np.intp)

    def all_symbols(self) -> np.ndarray:
        """Return the symbols that occur, if they are names; else all integers up to the largest."""
        return self.symbols if _are_names(self.symbols) else np.arange(int(self.symbols[-1]) + 1)


def counts_of_block(block: np.ndarray) -> ChainSums:
    """Return the counts over a block of a dask array, which is a sequence."""
    return ChainSums.of(split_sequences(block))


def _block_signs(n: int, chunk: int) -> np.ndarray:
    """Return random signs (draws, n), one for each block of neighbors, since neighbors are not independent.

    The number of blocks grows like n^(2/3), up to a limit.
    """
    # blocks that are treated as independent
    n_blocks = min(32, int(np.ceil(n ** (2 / 3))))
    return random_signs(n_blocks, chunk)[:, np.arange(n) * n_blocks // max(n, 1)]


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
class ChainMoments(Moments):
    """The moment of three consecutive symbols, divided by roots of their frequencies."""

    counts: ChainSums
    symbols: np.ndarray  # all symbols: 0, 1, ... up to the largest integer, or the sorted names
    sequences: Any = None  # concatenated symbols and lengths, or a dask array; None if they cannot be read again
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


def views_of(counts: ChainSums, scales: list[np.ndarray]) -> ViewMoments:
    """Return the moments of three views, which are scaled indicators of the three symbols."""
    m = counts.numbers.shape[1]
    views = [
        sparse.csr_array((1 / scale[row], (np.arange(m), row)), shape=(m, scale.size))
        for scale, row in zip(scales, counts.triples, strict=True)
    ]
    return ViewMoments(views, counts.numbers[0])


def scaled_problem(counts: ChainSums, scales: list[np.ndarray], k: int) -> Problem:
    """Return the problem of the scaled third moment, a sparse tensor."""
    divisors = np.prod([scale[row] for scale, row in zip(scales, counts.triples, strict=True)], axis=0)
    values = counts.numbers[0] / (counts.numbers[0].sum() * divisors)
    return Problem(SparseTensor(counts.triples, values, tuple(scale.size for scale in scales)), k, symmetric=False)


def stationary(transitions: np.ndarray) -> np.ndarray:
    """Return the stationary distribution of transitions with columns of sum one; if several, that of least norm."""
    k = transitions.shape[0]
    system = np.concatenate([transitions - np.eye(k), np.ones((1, k))])
    solution = np.maximum(np.linalg.lstsq(system, np.append(np.zeros(k), 1.0), rcond=None)[0], 0)
    return solution / solution.sum()


def correlation(counts: ChainSums, scales: list[np.ndarray], k: int) -> tuple[float, float]:
    """Return the k-th singular value of the scaled moment of neighbors, and its sampling noise."""
    first, second = counts.triples[0], counts.triples[1]
    divisors = counts.numbers[0].sum() * scales[0][first] * scales[1][second]
    shape = scales[0].size, scales[1].size

    def pairs(numbers: np.ndarray) -> sparse.csr_array:
        return sparse.csr_array((numbers / divisors, (first, second)), shape=shape)

    # Around the mean: signs of few blocks do not sum to zero, and their sum would count as noise.
    mean = counts.numbers[0] / counts.numbers[0].sum()
    errors = [pairs(signed - signed.sum() * mean) for signed in counts.numbers[1:]]
    return weakest_direction(pairs(counts.numbers[0]), errors, k)
