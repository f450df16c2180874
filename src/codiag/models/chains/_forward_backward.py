"""Recursions of hidden Markov models: Viterbi paths, forward-backward probabilities, sums of Baum-Welch steps.

The recursions are exact and parallel in time. Sequences are cut into blocks, and the product of the transition
operators of each block is formed for all blocks together. Products over several blocks, by doubling, give the
probabilities at the borders of blocks; then the recursion runs within all blocks together. Viterbi's recursion is the
same with maxima of sums instead of sums of products.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from codiag.models.chains._sequences import CutSequences

LEAST = 1e-300
"""Least probability of a symbol, for symbols that no state emits according to the estimate."""
EXCLUDED = 1e-280
"""Probability below which a state counts as impossible; quotients by larger probabilities do not overflow."""
RESCALE_EVERY = 8
"""Number of steps after which products of operators are rescaled; they do not underflow before."""


def best_paths(cut: CutSequences, start: np.ndarray, transitions: np.ndarray, emissions: np.ndarray) -> np.ndarray:
    """Return the most probable paths of states, concatenated (Viterbi); all probabilities are logarithms."""
    likely, widths = emissions[:, cut.symbols], cut.widths
    best, back = np.empty_like(likely), np.empty(likely.shape, dtype=np.intp)
    np.add(_entering(cut, likely, start, transitions), likely[:, 0], out=best[:, 0])
    for time, width in enumerate(widths[1:], start=1):
        options = best[:, None, time - 1, :width] + transitions[:, :, None]
        back[:, time, :width] = np.argmax(options, axis=0)
        np.add(np.max(options, axis=0), likely[:, time, :width], out=best[:, time, :width])
    ends = cut.ends(best)
    states = np.argmax(ends, axis=0)  # at the ends of blocks; final for the last block of each sequence
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
    """Return the joint log-probability of concatenated states and the symbols; all probabilities are logarithms."""
    begins = np.cumsum(cut.lengths) - cut.lengths
    inside = np.ones(path.size, dtype=bool)
    inside[begins] = False
    moves = transitions[path[:-1], path[1:]][inside[1:]]
    return float(start[path[begins]].sum() + moves.sum() + emissions[path, cut.in_a_row(cut.symbols)].sum())


def _entering(cut: CutSequences, likely: np.ndarray, start: np.ndarray, transitions: np.ndarray) -> np.ndarray:
    """Return scores (k, blocks) of the best paths to each state at the start of blocks, up to a constant per block."""
    entering = np.tile(start[:, None], (1, cut.sizes.size))
    if not cut.is_cut:
        return entering
    products = _best_products(likely, cut.widths, transitions)
    for blocks, following in cut.neighbors():
        ends = np.max(entering[None, :, blocks] + products[:, :, blocks], axis=1)
        scores = np.max(ends[:, None] + transitions[:, :, None], axis=0)
        entering[:, following] = scores - scores.max(axis=0)
    return entering


def _best_products(likely: np.ndarray, widths: list[int], transitions: np.ndarray) -> np.ndarray:
    """Return scores (k, k, blocks) of the best paths through blocks, to each state from each state."""
    k = transitions.shape[0]
    products = np.where(np.eye(k, dtype=bool)[:, :, None], likely[:, :1], -np.inf)
    for time, width in enumerate(widths[1:], start=1):
        earlier, steps = products[:, :, :width], transitions[:, :, None, None]
        scores = earlier[0] + steps[0]
        for state in range(1, k):
            np.maximum(scores, earlier[state] + steps[state], out=scores)
        np.add(scores, likely[:, time, None, :width], out=earlier)
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


class Operators(NamedTuple):
    """Products of transition operators over blocks, from the state at the start of a block to that of the next."""

    shares: np.ndarray  # (blocks, k, k): rows of sum one, or zero
    logs: np.ndarray  # (blocks, k): logarithms of the divisors of rows, up to a constant per block

    @classmethod
    def of(cls, likely: np.ndarray, widths: list[int], transitions: np.ndarray) -> Operators:
        """Multiply the operators of all blocks, one position after the other."""
        k, _, n_blocks = likely.shape
        products, logs = np.empty((n_blocks, k, k)), np.zeros((n_blocks, k))
        shares, steps = np.eye(k)[:, :, None] * likely[:, :1], transitions.T.copy()  # (to, from, blocks)
        for time, width in enumerate(widths):
            if time and width < widths[time - 1]:
                products[width : shares.shape[2]] = shares[:, :, width:].T
                shares = shares[:, :, :width].copy()
            if time:
                moved = (steps @ shares.reshape(k, -1)).reshape(shares.shape)
                np.multiply(moved, likely[:, time, None, :width], out=shares)
            if time % RESCALE_EVERY == 0:
                sums = shares.sum(axis=0)
                logs[:width] += np.log(sums).T
                shares /= np.maximum(sums, LEAST)
        products[: shares.shape[2]] = shares.T
        return cls._scaled(products @ transitions, logs)

    @classmethod
    def _scaled(cls, products: np.ndarray, logs: np.ndarray) -> Operators:
        sums = products.sum(axis=2)
        return cls(products / np.maximum(sums, LEAST)[:, :, None], _below_zero(logs + np.log(sums)))

    def _times(self, other: Operators) -> Operators:
        terms = np.log(self.shares) + other.logs[:, None]
        return self._scaled(np.exp(_below_zero(terms)) @ other.shares, self.logs + terms.max(axis=2))

    def accumulated(self, links: np.ndarray, *, earlier: bool) -> Operators:
        """Return the products over each block and all blocks before it, or after it, in the same sequence.

        `links` (blocks,) are the indices of the block before or after each, or -1. Links are doubled, so that products
        over m blocks take log m steps.
        """
        shares, logs = self.shares.copy(), self.logs.copy()
        while np.any(links >= 0):
            rows = np.flatnonzero(links >= 0)
            pair = [Operators(shares[blocks], logs[blocks]) for blocks in (links[rows], rows)]
            shares[rows], logs[rows] = pair[0]._times(pair[1]) if earlier else pair[1]._times(pair[0])
            links = np.where(links >= 0, links[links], -1)
        return Operators(shares, logs)


class Filtered(NamedTuple):
    """Probabilities of the states given the symbols so far."""

    likely: np.ndarray  # (k, length, blocks): the probability of each symbol in every state
    states: np.ndarray  # (k, length, blocks): state probabilities, given symbols so far; zero beyond a block
    scales: np.ndarray  # (length, blocks): the probability of each symbol, given those before; one beyond a block
    products: Operators | None  # None if no sequence has several blocks

    def log_likelihoods(self, cut: CutSequences) -> np.ndarray:
        """Return the log-likelihood of every sequence."""
        return np.bincount(cut.owners, np.log(self.scales).sum(axis=0), minlength=cut.lengths.size)


def filtered(cut: CutSequences, start: np.ndarray, transitions: np.ndarray, emissions: np.ndarray) -> Filtered:
    """Return the probabilities of the states given the symbols so far (forward recursion)."""
    likely, widths, steps = emissions[:, cut.symbols], cut.widths, transitions.T.copy()
    entering, products = np.tile(start, (cut.sizes.size, 1)), None
    if cut.is_cut:
        with np.errstate(divide="ignore"):  # logarithms of zero
            products = Operators.of(likely, widths, transitions)
            shares, logs = products.accumulated(cut.before, earlier=True)
            rows = np.exp(_below_zero(np.log(start) + logs))
        ends = np.matmul(rows[:, None], shares)[:, 0]
        ends /= np.maximum(ends.sum(axis=1, keepdims=True), LEAST)
        entering[cut.before >= 0] = ends[cut.before[cut.before >= 0]]
    states, scales = np.zeros_like(likely), np.ones(likely.shape[1:])
    for time, width in enumerate(widths):
        predicted = steps @ states[:, time - 1, :width] if time else entering.T
        current = np.multiply(predicted, likely[:, time, :width], out=predicted if time else None)
        scale = np.maximum(current.sum(axis=0), LEAST, out=scales[time, :width])
        np.divide(current, scale, out=states[:, time, :width])
    return Filtered(likely, states, scales, products)


def smoothed(
    cut: CutSequences, past: Filtered, transitions: np.ndarray, kept: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return state probabilities (k, length, blocks) given all symbols, and expected transitions (k, k).

    If `kept` (length, blocks) is given, only transitions to these symbols are counted.
    """
    states, widths = past.states, [*cut.widths, 0]
    # States that the past excludes stay excluded: their backward probabilities may overflow.
    evidence = np.where(states > EXCLUDED, past.likely, 0)
    evidence /= past.scales
    leaving, backward = _leaving(cut, past, transitions).T, np.zeros_like(states)
    for time in range(len(widths) - 2, -1, -1):
        further, width = widths[time + 1], widths[time]
        if further:
            np.matmul(transitions, evidence[:, time + 1, :further], out=backward[:, time, :further])
        if further < width:
            backward[:, time, further:width] = leaving[:, further:width]
        evidence[:, time, :width] *= backward[:, time, :width]
    if kept is not None:
        evidence *= kept
    k = transitions.shape[0]
    pairs = states[:, :-1].reshape(k, -1) @ evidence[:, 1:].reshape(k, -1).T
    later = np.flatnonzero(cut.before >= 0)
    pairs += cut.ends(states)[:, cut.before[later]] @ evidence[:, 0, later].T
    return np.multiply(states, backward, out=backward), transitions * pairs


def _leaving(cut: CutSequences, past: Filtered, transitions: np.ndarray) -> np.ndarray:
    """Return backward probabilities (blocks, k) at the ends of blocks, scaled to mean one given the past."""
    leaving = np.ones((cut.sizes.size, transitions.shape[0]))
    if past.products is None:
        return leaving
    with np.errstate(divide="ignore"):  # logarithms of zero
        logs = past.products.accumulated(cut.after, earlier=False).logs
    possible = np.where(past.states[:, 0].T > EXCLUDED, logs, -np.inf)
    future, ends = np.exp(_below_zero(possible)) @ transitions.T, cut.ends(past.states).T
    blocks = np.flatnonzero(cut.after >= 0)
    future = future[cut.after[blocks]] * (ends[blocks] > EXCLUDED)
    leaving[blocks] = future / np.maximum(np.sum(ends[blocks] * future, axis=1), LEAST)[:, None]
    return leaving


def baum_welch_sums(
    cut: CutSequences,
    start: np.ndarray,
    transitions: np.ndarray,
    emissions: np.ndarray,
    *,
    kept: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the expected numbers of initial states, transitions and emissions, summed over sequences.

    If `kept` (n,) is given for the concatenated symbols, sums are over these symbols, given all symbols.
    """
    inside = None if kept is None else kept[cut.sources] & (cut.sources >= 0)
    states, moves = smoothed(cut, filtered(cut, start, transitions, emissions), transitions, inside)
    if inside is not None:
        states *= inside
    symbols, d = cut.symbols.ravel(), emissions.shape[1]
    shown = np.stack([np.bincount(symbols, shares.ravel(), minlength=d) for shares in states])
    return states[:, 0, cut.firsts].sum(axis=1), moves, shown


def from_baum_welch_sums(
    first: np.ndarray, moves: np.ndarray, shown: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return start, transition and emission probabilities after one Baum-Welch step."""
    rows = [matrix + 1e-10 for matrix in (first[None], moves, shown)]
    normal = [matrix / matrix.sum(axis=1, keepdims=True) for matrix in rows]
    return normal[0][0], normal[1], normal[2]


def _below_zero(logs: np.ndarray) -> np.ndarray:
    """Return logarithms minus the largest along the last axis; rows of minus infinity stay."""
    return logs - np.maximum(logs.max(axis=-1, keepdims=True), -np.finfo(np.float64).max)
