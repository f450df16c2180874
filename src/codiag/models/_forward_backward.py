"""States of a Markov chain given the symbols that they show: forward and backward in time, and the best path."""

from __future__ import annotations

import numpy as np


def forward(
    symbols: np.ndarray, start: np.ndarray, transitions: np.ndarray, emissions: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return filtered state probabilities and the predictive probability of every symbol."""
    likely = emissions.T[symbols]
    filtered, scales = np.empty_like(likely), np.empty(symbols.size)
    current = start
    for time in range(symbols.size):
        current = (current if time == 0 else current @ transitions) * likely[time]
        scales[time] = max(current.sum(), 1e-300)
        current = current / scales[time]
        filtered[time] = current
    return filtered, scales


def posteriors(
    symbols: np.ndarray, start: np.ndarray, transitions: np.ndarray, emissions: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return smoothed state probabilities, and expected transitions."""
    filtered, scales = forward(symbols, start, transitions, emissions)
    likely = emissions.T[symbols] / scales[:, None]
    backward = np.ones_like(filtered)
    for time in range(symbols.size - 2, -1, -1):
        backward[time] = transitions @ (likely[time + 1] * backward[time + 1])
    pairs = transitions * (filtered[:-1].T @ (likely[1:] * backward[1:]))
    return filtered * backward, pairs


def baum_welch_sums(
    sequences: list[np.ndarray], start: np.ndarray, transitions: np.ndarray, emissions: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return expected beginnings, transitions and emissions, sums over sequences."""
    first, moves, shown = np.zeros_like(start), np.zeros_like(transitions), np.zeros_like(emissions)
    for symbols in sequences:
        states, pairs = posteriors(symbols, start, transitions, emissions)
        first, moves = first + states[0], moves + pairs
        for state in range(start.size):
            shown[state] += np.bincount(symbols, states[:, state], minlength=emissions.shape[1])
    return first, moves, shown


def from_baum_welch_sums(
    first: np.ndarray, moves: np.ndarray, shown: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return start, transitions and emissions after one step of Baum and Welch."""
    rows = [matrix + 1e-10 for matrix in (first[None], moves, shown)]
    normal = [matrix / matrix.sum(axis=1, keepdims=True) for matrix in rows]
    return normal[0][0], normal[1], normal[2]


def best_path(symbols: np.ndarray, start: np.ndarray, transitions: np.ndarray, emissions: np.ndarray) -> np.ndarray:
    """Return the most probable path of states after Viterbi, all probabilities given as logarithms."""
    likely = emissions.T[symbols]
    best = start + likely[0]
    back = np.empty((symbols.size, start.size), dtype=np.intp)
    for time in range(1, symbols.size):
        options = best[:, None] + transitions
        back[time] = np.argmax(options, axis=0)
        best = options[back[time], np.arange(start.size)] + likely[time]
    path = np.empty(symbols.size, dtype=np.intp)
    path[-1] = np.argmax(best)
    for time in range(symbols.size - 1, 0, -1):
        path[time - 1] = back[time, path[time]]
    return path
