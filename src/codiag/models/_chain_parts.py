"""Sequences of symbols that come in parts: what is counted, summed and predicted for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from codiag._parts import Parts, as_parts, is_dask
from codiag.models._chain_sums import ChainSums
from codiag.models._forward_backward import baum_welch_sums, best_path, forward, posteriors
from codiag.models._sequences import numbered, split_sequences
from codiag.models._sums import Totals

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


def of_sequences(part: Any, symbols: np.ndarray, function: Callable[..., Any], *parameters: np.ndarray) -> list[Any]:
    """Return what a function gives for every sequence of a part and the parameters."""
    return [function(sequence, *parameters) for sequence in numbered(_sequences_of(part), symbols)]


def sequence_log_likelihood(sequence: np.ndarray, *parameters: np.ndarray) -> float:
    """Return the log-likelihood of a sequence."""
    return float(np.sum(np.log(forward(sequence, *parameters)[1])))


def most_probable_path(sequence: np.ndarray, *parameters: np.ndarray) -> np.ndarray:
    """Return the most probable states of a sequence."""
    return best_path(sequence, *(np.log(np.maximum(probabilities, 1e-300)) for probabilities in parameters))


def state_probabilities(sequence: np.ndarray, *parameters: np.ndarray) -> np.ndarray:
    """Return the probability of every state at every time of a sequence."""
    return posteriors(sequence, *parameters)[0]


def counts_of_part(part: Any, place: int) -> ChainSums:
    """Return the counts over the sequences of a part."""
    return ChainSums.empty(start=place * PART_STRIDE).of(_sequences_of(part))


def steps_of_part(part: Any, symbols: np.ndarray, *parameters: np.ndarray) -> Totals:
    """Return what a step of Baum and Welch sums over the sequences of a part."""
    return Totals(*baum_welch_sums(numbered(_sequences_of(part), symbols), *parameters))
