"""States of a Markov chain given the symbols that they show: forward and backward in time.

The recursions are exact, and parallel in time: sequences are cut into blocks, of each of which the product of its
transition operators is formed, all blocks together; the products carry what is known from one block to the next; then
the recursions run within all blocks together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from codiag.models._chain_blocks import CutSequences

LEAST = 1e-300
"""The least probability that a symbol is given, where states, as estimated, cannot show it."""
RESCALE_EVERY = 4
"""Steps after which products of operators are scaled: until then numbers do not vanish."""


class Filtered(NamedTuple):
    """What is known of the states from the past."""

    likely: np.ndarray  # (length, blocks, k): the probability of each symbol in every state
    states: np.ndarray  # (length, blocks, k): state probabilities, given symbols so far; zero beyond a block
    scales: np.ndarray  # (length, blocks): the probability of each symbol, given those before; one beyond a block
    products: Operators | None

    def log_likelihoods(self, cut: CutSequences) -> np.ndarray:
        """Return the log-likelihood of every sequence."""
        return np.bincount(cut.owners, np.log(self.scales).sum(axis=0), minlength=cut.lengths.size)


class Operators(NamedTuple):
    """Products of operators over blocks, from the state at their beginning to that at their end."""

    shares: np.ndarray  # (blocks, k, k): rows whose sums are about one, or zero
    logs: np.ndarray  # (blocks, k): logarithms of what rows were divided by

    @classmethod
    def of(cls, likely: np.ndarray, widths: list[int], transitions: np.ndarray) -> Operators:
        """Multiply the operators of all blocks, one place after the other."""
        _, n_blocks, k = likely.shape
        shares, logs, ones = likely[0][:, :, None] * np.eye(k), np.zeros((n_blocks, k)), np.ones(k)
        for time, width in enumerate(widths):
            reached = shares[:width]
            if time:
                np.multiply(
                    (reached.reshape(-1, k) @ transitions).reshape(-1, k, k), likely[time, :width, None], reached
                )
            if time % RESCALE_EVERY == 0:
                sums = reached @ ones
                with np.errstate(divide="ignore"):  # from a state that cannot show the symbols
                    logs[:width] += np.log(sums)
                reached /= np.maximum(sums, LEAST)[:, :, None]
        return cls(shares, logs)

    def after(self, blocks: np.ndarray, entering: np.ndarray) -> np.ndarray:
        """Return states (m, k) at the end of blocks, given those at their beginning, before its symbol is seen."""
        with np.errstate(divide="ignore"):
            logs = np.log(entering) + self.logs[blocks]
        return _unit(np.einsum("bi,bij->bj", _exponentials(logs), self.shares[blocks]))

    def before(self, blocks: np.ndarray, leaving: np.ndarray) -> np.ndarray:
        """Return how probable the symbols of blocks and later are from each state, up to scale."""
        with np.errstate(divide="ignore"):
            return _exponentials(np.log(np.einsum("bij,bj->bi", self.shares[blocks], leaving)) + self.logs[blocks])


def filtered(cut: CutSequences, start: np.ndarray, transitions: np.ndarray, emissions: np.ndarray) -> Filtered:
    """Return what is known of the states from the past."""
    likely, widths = emissions.T[cut.symbols], cut.widths
    products = Operators.of(likely, widths, transitions) if len(cut.positions) > 1 else None
    entering = np.tile(start, (cut.sizes.size, 1))
    if products is not None:
        for blocks, following in cut.neighbors():
            entering[following] = products.after(blocks, entering[blocks]) @ transitions
    states, scales, ones = np.zeros_like(likely), np.ones(likely.shape[:2]), np.ones(start.size)
    for time, width in enumerate(widths):
        predicted = states[time - 1, :width] @ transitions if time else entering
        current = np.multiply(predicted, likely[time, :width], out=states[time, :width])
        np.maximum(current @ ones, LEAST, out=scales[time, :width])
        current /= scales[time, :width, None]
    return Filtered(likely, states, scales, products)


def smoothed(cut: CutSequences, past: Filtered, transitions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return state probabilities (length, blocks, k) given all symbols, and expected transitions."""
    states, widths = past.states, [*cut.widths, 0]
    # States that the past excludes stay excluded: what the future says of them may be beyond all numbers.
    evidence = np.where(states > LEAST**0.95, past.likely / past.scales[:, :, None], 0)
    leaving, backward = _leaving(cut, past, transitions), np.zeros_like(states)
    for time in range(len(widths) - 2, -1, -1):
        further, width = widths[time + 1], widths[time]
        if further:
            np.matmul(evidence[time + 1, :further], transitions.T, out=backward[time, :further])
        backward[time, further:width] = leaving[further:width]
        evidence[time, :width] *= backward[time, :width]
    k = transitions.shape[0]
    pairs = states[:-1].reshape(-1, k).T @ evidence[1:].reshape(-1, k)
    later = np.flatnonzero(cut.before >= 0)
    pairs += cut.ends(states)[cut.before[later]].T @ evidence[0, later]
    return states * backward, transitions * pairs


def _leaving(cut: CutSequences, past: Filtered, transitions: np.ndarray) -> np.ndarray:
    """Return what the future says of the states (blocks, k) at the ends of blocks, of mean one given the past."""
    found, ends = np.ones((cut.sizes.size, transitions.shape[0])), cut.ends(past.states)
    if past.products is None:
        return found
    for blocks, following in reversed(list(cut.neighbors())):
        future = past.products.before(following, found[following]) @ transitions.T
        found[blocks] = future / np.maximum(np.sum(ends[blocks] * future, axis=1), LEAST)[:, None]
    return found


def baum_welch_sums(
    cut: CutSequences, start: np.ndarray, transitions: np.ndarray, emissions: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return expected beginnings, transitions and emissions, sums over sequences."""
    states, moves = smoothed(cut, filtered(cut, start, transitions, emissions), transitions)
    shown = [
        np.bincount(cut.symbols.ravel(), states[:, :, state].ravel(), minlength=emissions.shape[1])
        for state in range(start.size)
    ]
    return states[0, cut.firsts].sum(axis=0), moves, np.stack(shown)


def from_baum_welch_sums(
    first: np.ndarray, moves: np.ndarray, shown: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return start, transitions and emissions after one step of Baum and Welch."""
    rows = [matrix + 1e-10 for matrix in (first[None], moves, shown)]
    normal = [matrix / matrix.sum(axis=1, keepdims=True) for matrix in rows]
    return normal[0][0], normal[1], normal[2]


def _exponentials(logs: np.ndarray) -> np.ndarray:
    """Return exponentials of each row, the largest of which is one; zeros where all are zero."""
    return np.exp(logs - np.maximum(logs.max(axis=1, keepdims=True), -np.finfo(np.float64).max))


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(rows.sum(axis=1, keepdims=True), LEAST)
