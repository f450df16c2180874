"""Moments of three symbols in a row, scaled, and the chain of states that has them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from scipy import sparse

from codiag._factorization import Factorization
from codiag._parts import Parts
from codiag._problem import Problem
from codiag.models._blocked import BlockedMoments
from codiag.models._chain_blocks import CutSequences
from codiag.models._chain_sums import TripleCounts
from codiag.models._components import Components
from codiag.models._sampling_noise import weakest_direction
from codiag.models._view_moments import MappedProblem, ViewMoments
from codiag.tensors import CrossMomentTensor, SparseTensor


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
