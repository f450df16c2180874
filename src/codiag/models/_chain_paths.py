"""The most probable path of states of a Markov chain, given the symbols that they show, after Viterbi.

As in `_forward_backward`, all blocks of the sequences advance together, with maxima of sums in the place of sums of
products.
"""

from __future__ import annotations

import numpy as np

from codiag.models._chain_blocks import CutSequences


def best_paths(cut: CutSequences, start: np.ndarray, transitions: np.ndarray, emissions: np.ndarray) -> np.ndarray:
    """Return the most probable path of states of every sequence, in a row; all probabilities given as logarithms."""
    likely = emissions.T[cut.symbols]
    entering = _entering(cut, likely, start, transitions)
    best, back = np.empty_like(likely), np.empty(likely.shape, dtype=np.intp)
    best[0] = entering + likely[0]
    for time, width in enumerate(cut.widths[1:], start=1):
        options = best[time - 1, :width, :, None] + transitions
        np.argmax(options, axis=1, out=back[time, :width])
        np.add(np.max(options, axis=1), likely[time, :width], out=best[time, :width])
    traces, ends = _traces(cut, back), cut.ends(best)
    states = np.argmax(ends, axis=1)  # at the ends of blocks; right where no other follows
    for blocks, following in reversed(list(cut.neighbors())):
        begins = traces[0, following, states[following]]
        states[blocks] = np.argmax(ends[blocks] + transitions.T[begins], axis=1)
    return cut.in_a_row(np.take_along_axis(traces, states[None, :, None], axis=2)[:, :, 0])


def path_log_probability(
    path: np.ndarray, cut: CutSequences, start: np.ndarray, transitions: np.ndarray, emissions: np.ndarray
) -> float:
    """Return the joint log-probability of states in a row and symbols; all probabilities given as logarithms."""
    begins = np.cumsum(cut.lengths) - cut.lengths
    inside = np.ones(path.size, dtype=bool)
    inside[begins] = False
    moves = transitions[path[:-1], path[1:]][inside[1:]]
    return float(start[path[begins]].sum() + moves.sum() + emissions[path, cut.in_a_row(cut.symbols)].sum())


def _entering(cut: CutSequences, likely: np.ndarray, start: np.ndarray, transitions: np.ndarray) -> np.ndarray:
    """Return scores (blocks, k) of the best paths to each state at the beginnings of blocks, up to a constant each."""
    found = np.tile(start, (cut.sizes.size, 1))
    if len(cut.positions) == 1:
        return found
    products = _best_products(likely, cut.widths, transitions)
    for blocks, following in cut.neighbors():
        ends = np.max(found[blocks][:, :, None] + products[blocks], axis=1)
        scores = np.max(ends[:, :, None] + transitions, axis=1)
        found[following] = scores - scores.max(axis=1, keepdims=True)
    return found


def _best_products(likely: np.ndarray, widths: list[int], transitions: np.ndarray) -> np.ndarray:
    """Return scores (blocks, k, k) of the best paths through blocks, from each state to each."""
    k = transitions.shape[0]
    products = np.where(np.eye(k, dtype=bool), likely[0][:, :, None], -np.inf)
    for time, width in enumerate(widths[1:], start=1):
        earlier = products[:width]
        found = earlier[:, :, :1] + transitions[0]
        for state in range(1, k):
            np.maximum(found, earlier[:, :, state, None] + transitions[state], out=found)
        np.add(found, likely[time, :width, None], out=products[:width])
    return products


def _traces(cut: CutSequences, back: np.ndarray) -> np.ndarray:
    """Return the states (length, blocks, k) of the best path to each state at the end of each block."""
    _, n_blocks, k = back.shape
    traces, widths = np.zeros_like(back), cut.widths
    current = np.tile(np.arange(k), (n_blocks, 1))
    for time in range(len(widths) - 1, -1, -1):
        further = widths[time + 1] if time + 1 < len(widths) else 0
        if further:
            current[:further] = np.take_along_axis(back[time + 1, :further], current[:further], axis=1)
        traces[time, : widths[time]] = current[: widths[time]]
    return traces
