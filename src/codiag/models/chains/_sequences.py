"""Sequences of symbols: reading them from arrays and lists, and numbering the symbols."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

MAX_SYMBOL = 10**7
"""Largest integer symbol; emission probabilities have a column for every integer below, seen or not."""


def split_sequences(raw: Any, lengths: Any = None) -> list[np.ndarray]:
    """Return sequences as arrays of symbols, either all integers or all names.

    The input is an array of all symbols, (n,) or (n, 1), with the lengths of the sequences if there are several; or a
    list of sequences.
    """
    if isinstance(raw, str | bytes | Mapping) or not isinstance(raw, Iterable) or getattr(raw, "ndim", 1) == 0:
        hint = "; for the characters of a string give list(X)" if isinstance(raw, str) else ""
        raise TypeError(f"X must contain symbols, or be a list of sequences of them; got {type(raw).__name__}{hint}")
    entries = raw if isinstance(raw, np.ndarray) or hasattr(raw, "__array__") else list(raw)
    if isinstance(entries, list) and entries and all(_is_sequence(entry) for entry in entries):
        sequences = [_as_symbols(entry) for entry in entries]
        if any(sequence.size > 1 for sequence in sequences):
            if lengths is not None:
                raise ValueError("lengths must be None if X is a list of sequences")
            return _of_one_kind(sequences)
    symbols = _as_symbols(entries)
    if lengths is None:
        return [symbols]
    counts = np.asarray(lengths)
    if counts.ndim != 1 or counts.dtype.kind not in "iu" or np.any(counts < 1):
        raise ValueError(f"lengths must be positive integers; got {lengths!r:.100}")
    if counts.sum() != symbols.size:
        raise ValueError(f"lengths must add up to {symbols.size}, the number of symbols; they add up to {counts.sum()}")
    return np.split(symbols, np.cumsum(counts)[:-1])


def numbered(sequences: list[np.ndarray], symbols: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return concatenated sequences, with every symbol replaced by its index in `symbols`, and their lengths."""
    lengths = np.array([sequence.size for sequence in sequences])
    row = np.concatenate(sequences)
    if symbols.dtype.kind in "iu":
        if row.dtype.kind not in "iu":
            raise TypeError(f"X must contain symbols as integers, as in fit; got {row.dtype}")
        if row.max() >= symbols.size:
            raise ValueError(f"X must contain symbols below {symbols.size}, as in fit; got {row.max()}")
        return row.astype(np.intp), lengths
    return indices(row, symbols), lengths


def indices(row: np.ndarray, symbols: np.ndarray) -> np.ndarray:
    """Return the index of every entry of a row in `symbols`; raise if one is not there."""
    index = {symbol: i for i, symbol in enumerate(symbols.tolist())}
    entries = row.tolist()
    unknown = next((symbol for symbol in entries if symbol not in index), None)
    if unknown is not None:
        raise ValueError(f"X must contain symbols that were there in fit; {unknown!r} was not")
    return np.array([index[symbol] for symbol in entries], dtype=np.intp)


def _is_sequence(entry: Any) -> bool:
    return isinstance(entry, Iterable) and not isinstance(entry, str | bytes) and getattr(entry, "ndim", 1) > 0


def _as_symbols(raw: Any) -> np.ndarray:
    """Return one sequence as an array of integers or of names."""
    entries = raw if isinstance(raw, np.ndarray) or hasattr(raw, "__array__") else list(raw)
    kinds = {type(entry) for entry in entries} if isinstance(entries, list) else set()
    try:
        mixed = len(kinds) > 1 and any(issubclass(kind, str | bytes | type(None)) for kind in kinds)
        symbols = np.array(entries, dtype=object) if mixed else np.asarray(entries)
    except ValueError as error:
        raise ValueError(f"X must contain symbols, or be a list of sequences of them: {error}") from error
    symbols = symbols.ravel() if symbols.ndim == 2 and symbols.shape[1] == 1 else symbols
    if symbols.ndim != 1 or symbols.size == 0:
        raise ValueError(f"X must contain symbols, shape (n,) or (n, 1), in every sequence; got {symbols.shape}")
    if symbols.dtype.kind == "O":
        return _checked_names(symbols)
    if symbols.dtype.kind not in "iubUST":
        raise TypeError(f"X must contain symbols as integers 0, 1, ... or as strings; got {symbols.dtype}")
    if symbols.dtype.kind in "iu" and symbols.min() < 0:
        raise ValueError(f"X must contain symbols that are not negative; got {symbols.min()}")
    return symbols


def _checked_names(symbols: np.ndarray) -> np.ndarray:
    kinds = sorted({type(symbol).__name__ for symbol in symbols.tolist()})
    if kinds == ["int"]:
        raise ValueError("X must contain symbols as integers 0, 1, ... that fit into 64 bits; some are larger")
    if kinds != ["str"]:
        raise TypeError(
            f"X must contain symbols of one kind, integers or strings, none missing; got {', '.join(kinds)}"
        )
    return symbols


def _of_one_kind(sequences: list[np.ndarray]) -> list[np.ndarray]:
    kinds = {"integers" if sequence.dtype.kind in "iu" else "names" for sequence in sequences}
    if len(kinds) > 1:
        raise TypeError("X must contain symbols of one kind, all integers or all strings; got both")
    return sequences
