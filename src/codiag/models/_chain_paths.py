"""The most probable path of states of a Markov chain, given the symbols that they show, after Viterbi.

As in `_forward_backward`, all blocks of the sequences advance together, with maxima of sums in the place of sums of
products.
"""

from __future__ import annotations

import numpy as np

from codiag.models._chain_blocks import CutSequences


def best_paths(cut: CutSequences, start: np.ndarray, transitions: np.ndarray, emissions: np.ndarray) -> np.ndarray:
    """Return the most probable path of states of every sequence, in a row; all probabilities given as logarithms."""
    likely, widths = emissions[:, cut.symbols], cut.widths
    best, back = np.empty_like(likely), np.empty(likely.shape, dtype=np.intp)
    np.add(_entering(cut, likely, start, transitions), likely[:, 0], out=best[:, 0])
    for time, width in enumerate(widths[1:], start=1):
        options = best[:, None, time - 1, :width] + transitions[:, :, None]
        back[:, time, :width] = np.argmax(options, axis=0)
        np.add(np.max(options, axis=0), likely[:, time, :width], out=best[:, time, :width])
    ends = cut.ends(best)
    states = np.argmax(ends, axis=0)  # at the ends of blocks; right where no other follows
    if not cut.is_cut:
        return cut.in_a_row(_traces(widths, back, states[None])[0])
    traces = _traces(widths, back, np.tile(np.arange(start.size)[:, None], (1, states.size)))
    for blocks, following in reversed(list(cut.neighbors())):
        begins = traces[states[following], 0, following]
        states[blocks] = np.argmax(ends[:, blocks] + transitions[:, begins], axis=0)
    return cut.in_a_row(np.take_along_axis(traces, states[None, None], axis=0)[0])


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
    """Return scores (k, blocks) of the best paths to each state at the beginnings of blocks, up to a constant each."""
    found = np.tile(start[:, None], (1, cut.sizes.size))
    if not cut.is_cut:
        return found
    products = _best_products(likely, cut.widths, transitions)
    for blocks, following in cut.neighbors():
        ends = np.max(found[None, :, blocks] + products[:, :, blocks], axis=1)
        scores = np.max(ends[:, None] + transitions[:, :, None], axis=0)
        found[:, following] = scores - scores.max(axis=0)
    return found


def _best_products(likely: np.ndarray, widths: list[int], transitions: np.ndarray) -> np.ndarray:
    """Return scores (k, k, blocks) of the best paths through blocks, to each state from each."""
    k = transitions.shape[0]
    products = np.where(np.eye(k, dtype=bool)[:, :, None], likely[:, :1], -np.inf)
    for time, width in enumerate(widths[1:], start=1):
        earlier, steps = products[:, :, :width], transitions[:, :, None, None]
        found = earlier[0] + steps[0]
        for state in range(1, k):
            np.maximum(found, earlier[state] + steps[state], out=found)
        np.add(found, likely[:, time, None, :width], out=earlier)
    return products


def _traces(widths: list[int], back: np.ndarray, current: np.ndarray) -> np.ndarray:
    """Return the states (m, length, blocks) of the best paths to m states (m, blocks) at the ends of blocks."""
    traces, further = np.zeros((current.shape[0], *back.shape[1:]), dtype=np.intp), 0
    for time in range(len(widths) - 1, -1, -1):
        if further:
            current[:, :further] = np.take_along_axis(back[:, time + 1, :further], current[:, :further], axis=0)
        further = widths[time]
        traces[:, time, :further] = current[:, :further]
    return traces
