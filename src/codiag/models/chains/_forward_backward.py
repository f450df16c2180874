"""Recursions of hidden Markov models in log space: forward-backward, Viterbi, and the sums of Baum-Welch steps.

Sequences are concatenated. The recursions advance all sequences of similar length together. Start, transition and
emission probabilities are given as logarithms (k,), (k, k) and (k, symbols).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from codiag._arrays import blocks
from codiag.models.base import RowSums


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


def _recursion(likely: np.ndarray, widths: np.ndarray, start: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Return log-probabilities (time, k, sequences) of all symbols before a time and the state at that time.

    `steps` are transitions (k, k, sequences).
    """
    predicted = np.full_like(likely, -np.inf)
    predicted[0] = start
    for time, width in enumerate(widths[1:].tolist(), 1):
        before = predicted[time - 1, :, :width] + likely[time - 1, :, :width]
        np.logaddexp.reduce(before[:, None] + steps[:, :, :width], axis=0, out=predicted[time, :, :width])
    return predicted


def _past_and_future(
    likely: np.ndarray, inside: np.ndarray, start: np.ndarray, transitions: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return log-probabilities (time, k, sequences) of the state and all symbols up to a time, and of those after it.

    The backward recursion is the forward recursion of reversed sequences, with transposed transitions.
    """
    n_times, k, m = likely.shape
    mirrored = (inside.sum(axis=0) - 1 - np.arange(n_times)[:, None]) % n_times
    turned = np.take_along_axis(likely, mirrored[:, None], axis=0)
    both, steps, starts = np.empty((n_times, k, 2 * m)), np.empty((k, k, 2 * m)), np.zeros((k, 2 * m))
    both[:, :, ::2], both[:, :, 1::2] = likely, turned
    steps[:, :, ::2], steps[:, :, 1::2] = transitions[:, :, None], transitions.T[:, :, None]
    starts[:, ::2] = start[:, None]
    predicted = _recursion(both, 2 * inside.sum(axis=1), starts, steps)
    return predicted[:, :, ::2] + likely, np.take_along_axis(predicted[:, :, 1::2], mirrored[:, None], axis=0)


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
    for index in padded(lengths):
        inside = index >= 0
        likely = np.moveaxis(emissions[:, symbols[index]], 0, 1)
        past, future = _past_and_future(likely, inside, start, transitions)
        ends = past[inside.sum(axis=0) - 1, :, np.arange(index.shape[1])]
        scores = np.logaddexp.reduce(ends, axis=1)
        # The sum over states is the likelihood of the sequence at all times, up to rounding, which grows with time.
        # states of impossible sequences have probability zero
        past -= np.maximum(np.logaddexp.reduce(past + future, axis=1, keepdims=True), np.finfo(np.float64).min)
        shares = np.exp(past + future)
        states[index[inside]] = np.moveaxis(shares, 1, 2)[inside]
        moves = _moves(past, np.where(inside[:, None], likely + future, -np.inf), transitions)
        total = total + ChainPosterior(float(scores.sum()), shares[0].sum(axis=1), moves)
    return states, total


def _moves(past: np.ndarray, later: np.ndarray, transitions: np.ndarray) -> np.ndarray:
    """Return the expected numbers of transitions (k, k), summed over times and sequences."""
    k = transitions.shape[0]
    moves = np.zeros((k, k))
    for rows in blocks(past.shape[0] - 1, k * k * past.shape[2]):
        before, after = past[rows], later[rows.start + 1 : rows.stop + 1]
        moves += np.exp(before[:, :, None] + transitions[:, :, None] + after[:, None]).sum(axis=(0, 3))
    return moves


@dataclass(frozen=True, eq=False)
class BaumWelchSums(RowSums):
    """Expected numbers of initial states (k,), transitions (k, k) and emissions (k, symbols)."""

    first: np.ndarray
    moves: np.ndarray
    shown: np.ndarray

    def probabilities(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return start, transition and emission probabilities after one Baum-Welch step."""
        rows = [matrix + 1e-10 for matrix in (self.first[None], self.moves, self.shown)]
        normal = [matrix / matrix.sum(axis=1, keepdims=True) for matrix in rows]
        return normal[0][0], normal[1], normal[2]


def baum_welch_sums(symbols: np.ndarray, lengths: np.ndarray, *model: np.ndarray) -> BaumWelchSums:
    """Return the sums of a Baum-Welch step; `model` are start, transition and emission probabilities."""
    states, sums = forward_backward(symbols, lengths, *logarithms(*model))
    shown = [np.bincount(symbols, shares, minlength=model[2].shape[1]) for shares in states.T]
    return BaumWelchSums(sums.first, sums.moves, np.stack(shown))


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
