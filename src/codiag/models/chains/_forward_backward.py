"""Recursions of hidden Markov models: forward-backward, Viterbi in log space, and the sums of Baum-Welch steps.

Sequences are concatenated. The recursions advance all sequences of similar length together. Start, transition and
emission probabilities are given as logarithms (k,), (k, k) and (k, symbols).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from codiag.models.base import RowSums

MOST_PRODUCTS = 20_000
"""Products in a step of the matrices of a chunk of sequences, below which calls cost more than arithmetic."""
TINY = 1e-300
"""The least sum of messages; the root of its inverse is how much more likely the future may be of impossible states."""


def padded(lengths: np.ndarray) -> Iterator[np.ndarray]:
    """Yield indices (time, sequences) into concatenated sequences, -1 beyond the end of one, longest sequences first.

    Lengths that are padded together differ by a factor of at most two.
    """
    starts, sizes = np.cumsum(lengths) - lengths, np.floor(np.log2(lengths)).astype(int)
    for size in np.unique(sizes):
        chosen = np.flatnonzero(sizes == size)
        chosen = chosen[np.argsort(-lengths[chosen], kind="stable")]
        times = np.arange(lengths[chosen[0]])[:, None]
        yield np.where(times < lengths[chosen], starts[chosen] + times, -1)


def _messages(likely: np.ndarray, start: np.ndarray, transitions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return messages (time, sequences, k): states before their symbols, given the past; and the likelihood after them.

    With :math:`D_t = diag(b_t) A`, these are :math:`p_{t+1} = p_t D_t` and :math:`r_t = D_t r_{t+1}`, scaled to the sum
    :math:`p_t r_t = 1`. Chunks of few and long sequences advance together, in three times the root of the length: first
    the products of their matrices, then the messages at their ends, then those inside.
    """
    n_times, m, k = likely.shape
    length = math.isqrt(n_times - 1) + 1 if k**3 * m < MOST_PRODUCTS else n_times
    n_chunks = -(-n_times // length)
    whole = np.ones((n_chunks * length, m, k))
    whole[:n_times] = likely
    steps = np.swapaxes(whole.reshape(n_chunks, length, m, k), 0, 1)
    first, last = _ends_of_chunks(steps, start, transitions)
    past, future = np.empty((2, length, n_chunks, m, k))
    for time in range(length):
        past[time] = first
        first = _scaled((first * steps[time]) @ transitions)
    for time in range(length - 1, -1, -1):
        last = future[time] = _scaled(steps[time] * (last @ transitions.T), past[time])
    past, future = (np.swapaxes(one, 0, 1).reshape(-1, m, k)[:n_times] for one in (past, future))
    return past, future


def _ends_of_chunks(steps: np.ndarray, start: np.ndarray, transitions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the messages (chunks, sequences, k) before the first and after the last symbol of every chunk."""
    _, n_chunks, m, k = steps.shape
    first, last = np.ones((2, n_chunks, m, k))
    first[0] = start
    if n_chunks == 1:
        return first, last
    products, sizes = np.tile(np.eye(k), (n_chunks, m, 1, 1)), np.zeros((n_chunks, m, k))
    with np.errstate(divide="ignore"):
        for step in steps:
            products = (products * step[:, :, None]) @ transitions
            totals = products.sum(axis=3)  # by rows: what is unlikely from a state may be all there is from another
            products, sizes = products / np.maximum(totals, TINY)[..., None], sizes + np.log(totals)
        for chunk in range(n_chunks - 1):
            shares = np.log(first[chunk]) + sizes[chunk]
            shares = np.exp(shares - np.maximum(shares.max(axis=1, keepdims=True), np.log(TINY)))
            first[chunk + 1] = _scaled((shares[:, None] @ products[chunk])[:, 0])
        for chunk in range(n_chunks - 1, 0, -1):
            levels = sizes[chunk] + np.log((products[chunk] @ last[chunk][:, :, None])[:, :, 0])
            top = np.max(levels + np.log(first[chunk]), axis=1, keepdims=True)
            # where states are impossible, their likelihoods do not count
            levels = np.minimum(levels - np.where(np.isneginf(top), 0, top), -np.log(TINY) / 2)
            last[chunk - 1] = _scaled(np.exp(levels), first[chunk])
    return first, last


def _scaled(messages: np.ndarray, other: np.ndarray | float = 1.0) -> np.ndarray:
    """Return messages whose products with others have sum one; those of impossible symbols remain zero."""
    total = np.maximum(np.sum(messages * other, axis=-1, keepdims=True), TINY)
    return np.asarray(np.minimum(messages, total / np.sqrt(TINY)) / total)


@dataclass(frozen=True, eq=False)
class ChainPosterior(RowSums):
    """Sums over sequences: the log-likelihood, and expected numbers of initial states and transitions."""

    log_likelihood: float
    first: np.ndarray  # (k,)
    moves: np.ndarray  # (k, k)


def forward_backward(
    symbols: np.ndarray, lengths: np.ndarray, start: np.ndarray, transitions: np.ndarray, emissions: np.ndarray
) -> tuple[np.ndarray, ChainPosterior]:
    """Return the probability of every state at every time (n, k), and sums over sequences."""
    k = start.size
    states = np.empty((symbols.size, k))
    total = ChainPosterior(0.0, np.zeros(k), np.zeros((k, k)))
    largest = np.max(emissions, axis=0)  # of each symbol, so that its probabilities do not underflow
    largest[np.isneginf(largest)] = 0.0
    scaled, matrix = np.exp(emissions - largest).T, np.exp(transitions)
    for index in padded(lengths):
        inside = index >= 0
        likely = np.where(inside[:, :, None], scaled[symbols[index]], 1.0)  # rows of transitions have sum one
        past, future = _messages(likely, np.exp(start), matrix)
        with np.errstate(divide="ignore"):
            levels = np.log(np.sum(past * likely, axis=2)) + largest[symbols[index]]
        shares = _scaled(past * future)
        states[index[inside]] = shares[inside]
        before, after = (past * likely)[:-1], np.where(inside[:, :, None], future, 0.0)[1:]
        chances = np.sum((before @ matrix) * after, axis=2, keepdims=True)
        before /= np.where(chances > TINY, chances, np.inf)
        moves = matrix * np.tensordot(before, after, axes=((0, 1), (0, 1)))
        total = total + ChainPosterior(float(levels[inside].sum()), shares[0].sum(axis=0), moves)
    return states, total


@dataclass(frozen=True, eq=False)
class BaumWelchSums(RowSums):
    """Expected numbers of initial states (k,), transitions (k, k) and emissions (k, symbols)."""

    first: np.ndarray
    moves: np.ndarray
    shown: np.ndarray
    log_likelihood: float  # of the parameters before the step

    def probabilities(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return start, transition and emission probabilities after one Baum-Welch step."""
        rows = [matrix + 1e-10 for matrix in (self.first[None], self.moves, self.shown)]
        normal = [matrix / matrix.sum(axis=1, keepdims=True) for matrix in rows]
        return normal[0][0], normal[1], normal[2]


def baum_welch_sums(symbols: np.ndarray, lengths: np.ndarray, *model: np.ndarray) -> BaumWelchSums:
    """Return the sums of a Baum-Welch step; `model` are start, transition and emission probabilities."""
    states, sums = forward_backward(symbols, lengths, *logarithms(*model))
    shown = [np.bincount(symbols, shares, minlength=model[2].shape[1]) for shares in states.T]
    return BaumWelchSums(sums.first, sums.moves, np.stack(shown), sums.log_likelihood)


def logarithms(*model: np.ndarray) -> list[np.ndarray]:
    """Return the logarithms of probabilities, minus infinity for zero."""
    with np.errstate(divide="ignore"):
        return [np.log(part) for part in model]


def viterbi(
    symbols: np.ndarray, lengths: np.ndarray, start: np.ndarray, transitions: np.ndarray, emissions: np.ndarray
) -> np.ndarray:
    """Return the most probable paths of states (n,)."""
    path = np.empty(symbols.size, dtype=np.intp)
    for index in padded(lengths):
        widths, columns = (index >= 0).sum(axis=1), np.arange(index.shape[1])
        likely = np.moveaxis(emissions[:, symbols[index]], 0, 1)
        scores, back = start[:, None] + likely[0], np.zeros(likely.shape, dtype=np.intp)
        for time, width in enumerate(widths[1:], 1):
            options = scores[:, None, :width] + transitions[:, :, None]
            back[time, :, :width] = np.argmax(options, axis=0)
            scores[:, :width] = np.max(options, axis=0) + likely[time, :, :width]
        states = np.argmax(scores, axis=0)
        for time in range(len(widths) - 1, -1, -1):
            width = widths[time]
            path[index[time, :width]] = states[:width]
            states[:width] = back[time, states[:width], columns[:width]]
    return path


def path_log_probability(
    path: np.ndarray,
    symbols: np.ndarray,
    lengths: np.ndarray,
    start: np.ndarray,
    transitions: np.ndarray,
    emissions: np.ndarray,
) -> float:
    """Return the joint log-probability of concatenated states and symbols."""
    begins = np.cumsum(lengths) - lengths
    inside = np.ones(path.size, dtype=bool)
    inside[begins] = False
    moves = transitions[path[:-1], path[1:]][inside[1:]]
    return float(start[path[begins]].sum() + moves.sum() + emissions[path, symbols].sum())
