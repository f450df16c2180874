"""Sequences of symbols cut into blocks, so that recursions over time advance all blocks together.

Sequences of symbols that come in parts: what is counted, summed and predicted for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from codiag.models.chains._forward_backward import (
    LEAST,
    baum_welch_sums,
    best_paths,
    filtered,
    path_log_probability,
    smoothed,
)
from codiag.models.chains._moments import ChainSums, time_blocks
from codiag.models.chains._sequences import CutSequences, numbered, split_sequences
from codiag.models.frame import Blocks, Totals
from codiag.parts import Parts, as_parts, is_dask

PART_STRIDE = 2**36
"""Distance between the numbers that symbols of different parts have: more than a part can hold."""


def sequences_in_parts(raw: Any, lengths: Any) -> Parts | None:
    """Return sequences in parts; a list is a sequence, or a list of them."""
    delayed = isinstance(raw, list | tuple) and bool(raw) and all(is_dask(part) for part in raw)
    if not (delayed or is_dask(raw) or callable(raw) or isinstance(raw, Iterator)):
        return None
    if lengths is not None:
        raise ValueError("lengths must be None where X comes in parts, each a sequence or a list of sequences")
    return as_parts(raw, is_dask)


def _sequences_of(part: Any) -> list[np.ndarray]:
    if np.isscalar(part):
        raise TypeError(
            f"X must have parts that are sequences, or lists of them; got {part!r}. For an iterator over symbols give "
            "list(X)"
        )
    return split_sequences(part)


def of_sequences(part: Any, symbols: np.ndarray, function: Callable[..., Any], *parameters: np.ndarray) -> Any:
    """Return what a function gives for the sequences of a part and the parameters."""
    return function(numbered(_sequences_of(part), symbols), *parameters)


def log_likelihood(sequences: list[np.ndarray], *parameters: np.ndarray) -> tuple[float, int]:
    """Return the log-likelihood of sequences, and how many symbols they hold."""
    cut = CutSequences.of(sequences, parameters[0].size)
    return float(filtered(cut, *parameters).log_likelihoods(cut).sum()), int(cut.lengths.sum())


def likelihood_and_states(sequences: list[np.ndarray], *parameters: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the log-likelihood of sequences, and the probability of every state at every time."""
    cut = CutSequences.of(sequences, parameters[0].size)
    past = filtered(cut, *parameters)
    return float(past.log_likelihoods(cut).sum()), cut.in_a_row(smoothed(cut, past, parameters[1])[0])


def viterbi(sequences: list[np.ndarray], *parameters: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the most probable states of sequences, and their joint log-probability with the symbols."""
    cut = CutSequences.of(sequences, parameters[0].size)
    logs = [np.log(np.maximum(probabilities, LEAST)) for probabilities in parameters]
    path = best_paths(cut, *logs)
    return path_log_probability(path, cut, *logs), path


def most_probable_states(sequences: list[np.ndarray], *parameters: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the most probable state at every time, and the joint log-probability of all with the symbols."""
    cut = CutSequences.of(sequences, parameters[0].size)
    path = np.argmax(likelihood_and_states(sequences, *parameters)[1], axis=1)
    return path_log_probability(path, cut, *[np.log(np.maximum(one, LEAST)) for one in parameters]), path


def counts_of_part(part: Any, n_blocks: int, place: int) -> Blocks:
    """Return the counts over the sequences of a part, by block."""
    return Blocks.of(ChainSums.empty(start=place * PART_STRIDE), _sequences_of(part), n_blocks, place)


def steps_of_part(
    part: Any, symbols: np.ndarray, left_out: tuple[int, int] | None, *parameters: np.ndarray, place: int
) -> Totals:
    """Return what a step of Baum and Welch sums over the sequences of a part, those of a block left out."""
    sequences = CutSequences.of(numbered(_sequences_of(part), symbols), parameters[0].size)
    return Totals(*baum_welch_sums(sequences, *parameters, kept=kept_symbols(sequences.lengths, left_out, place)))


def kept_symbols(lengths: np.ndarray, left_out: tuple[int, int] | None, place: int = 0) -> np.ndarray | None:
    """Return which symbols, all sequences in a row, do not belong to a block of so many; None where that is all."""
    if left_out is None:
        return None
    block, n_blocks = left_out
    return time_blocks(lengths, n_blocks, place) != block
