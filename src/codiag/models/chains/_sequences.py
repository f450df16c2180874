"""Sequences of symbols: reading them from arrays, lists and parts, and cutting them into blocks for recursions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from codiag.parts import Parts, as_parts, is_dask

MAX_SYMBOL = 10**7
"""Largest integer symbol; emission probabilities have a column for every integer below, seen or not."""
WIDE = 500
"""Number of blocks from which on arithmetic takes longer than the calls of NumPy; found by measurement."""
MANY_STATES = 32
"""Number of states above which products of transition matrices, O(k^3), are slower than one step at a time, O(k^2)."""


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


def numbered(sequences: list[np.ndarray], symbols: np.ndarray) -> list[np.ndarray]:
    """Return sequences with every symbol replaced by its index in `symbols`; raise if one is not there."""
    if symbols.dtype.kind in "iu":
        if sequences[0].dtype.kind not in "iu":
            raise TypeError(f"X must contain symbols as integers, as in fit; got {sequences[0].dtype}")
        largest = max(int(sequence.max()) for sequence in sequences)
        if largest >= symbols.size:
            raise ValueError(f"X must contain symbols below {symbols.size}, as in fit; got {largest}")
        return [sequence.astype(np.intp) for sequence in sequences]
    index = {symbol: i for i, symbol in enumerate(symbols.tolist())}
    unknown = next((symbol for sequence in sequences for symbol in sequence.tolist() if symbol not in index), None)
    if unknown is not None:
        raise ValueError(f"X must contain symbols that were there in fit; {unknown!r} was not")
    return [np.array([index[symbol] for symbol in sequence.tolist()], dtype=np.intp) for sequence in sequences]


def sequences_in_parts(raw: Any, lengths: Any) -> Parts | None:
    """Return sequences in parts, or None if they are in one piece; a list is a sequence, or a list of sequences."""
    delayed = isinstance(raw, list | tuple) and bool(raw) and all(is_dask(part) for part in raw)
    if not (delayed or is_dask(raw) or callable(raw) or isinstance(raw, Iterator)):
        return None
    if lengths is not None:
        raise ValueError("lengths must be None if X comes in parts, each a sequence or a list of sequences")
    return as_parts(raw, is_dask)


def sequences_of_part(part: Any) -> list[np.ndarray]:
    """Return the sequences of a part."""
    if np.isscalar(part):
        raise TypeError(
            f"X must have parts that are sequences, or lists of them; got {part!r}. For an iterator over symbols give "
            "list(X)"
        )
    return split_sequences(part)


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


@dataclass(frozen=True, eq=False)
class CutSequences:
    """Sequences cut into blocks of equal length, longest blocks first, so that a recursion advances all of them."""

    lengths: np.ndarray  # (sequences,)
    symbols: np.ndarray  # (length, blocks); zero beyond the end of a block
    sources: np.ndarray  # (length, blocks): indices into the concatenated symbols; -1 beyond the end of a block
    sizes: np.ndarray  # (blocks,)
    owners: np.ndarray  # (blocks,): the sequence of each block
    before: np.ndarray  # (blocks,): the block before in the same sequence, or -1
    positions: list[np.ndarray]  # the first blocks of all sequences, the second blocks, ...; sequences in one order

    @classmethod
    def of(cls, sequences: list[np.ndarray], n_states: int, length: int | None = None) -> CutSequences:
        """Cut sequences into blocks of the given length, or of a length that makes recursions fast."""
        lengths = np.array([sequence.size for sequence in sequences])
        length = _fast_length(lengths, n_states) if length is None else length
        numbers = -(-lengths // length)
        owners = np.repeat(np.arange(lengths.size), numbers)
        ranks = np.arange(owners.size) - np.repeat(np.cumsum(numbers) - numbers, numbers)
        sizes = np.minimum(length, lengths[owners] - ranks * length)
        starts = (np.cumsum(lengths) - lengths)[owners] + ranks * length
        order = np.argsort(-sizes, kind="stable")
        position = np.empty(order.size, dtype=np.intp)
        position[order] = np.arange(order.size)
        before = np.where(ranks > 0, np.append(-1, position[:-1]), -1)[order]
        sources = starts[order] + np.arange(sizes.max())[:, None]
        sources = np.where(np.arange(sizes.max())[:, None] < sizes[order], sources, -1)
        symbols = np.where(sources >= 0, np.concatenate(sequences)[sources], 0)
        positions = [position[ranks == rank] for rank in range(int(numbers.max()))]
        return cls(lengths, symbols, sources, sizes[order], owners[order], before, positions)

    @property
    def widths(self) -> list[int]:
        """Number of blocks that are longer than each position; these are the first blocks."""
        return np.searchsorted(-self.sizes, -np.arange(self.symbols.shape[0]), side="left").tolist()

    @property
    def firsts(self) -> np.ndarray:
        """The first block of each sequence."""
        return self.positions[0]

    @property
    def is_cut(self) -> bool:
        """Whether some sequence has several blocks."""
        return len(self.positions) > 1

    @property
    def after(self) -> np.ndarray:
        """The block (blocks,) after each block in the same sequence, or -1."""
        after = np.full(self.sizes.size, -1)
        later = np.flatnonzero(self.before >= 0)
        after[self.before[later]] = later
        return after

    def ends(self, values: np.ndarray) -> np.ndarray:
        """Return values (..., length, blocks) at the last symbol of each block."""
        return values[..., self.sizes - 1, np.arange(self.sizes.size)]

    def neighbors(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield blocks and the blocks that follow them in the same sequences, from the start of sequences on."""
        for blocks in self.positions[1:]:
            yield self.before[blocks], blocks

    def in_a_row(self, values: np.ndarray) -> np.ndarray:
        """Return values (..., length, blocks) in the order of the symbols, (n, ...)."""
        inside = self.sources >= 0
        row = np.empty((int(self.lengths.sum()), *values.shape[:-2]), dtype=values.dtype)
        row[self.sources[inside]] = values[..., inside].T
        return row


def _fast_length(lengths: np.ndarray, n_states: int) -> int:
    """Return the block length that takes the fewest steps, or a longer one if there are more than `WIDE` blocks.

    A step advances all blocks by one symbol, or all sequences by one block.
    """
    longest = int(lengths.max())
    if n_states > MANY_STATES:
        return longest
    return min(longest, max(int(np.ceil(np.sqrt(2 * longest))), int(lengths.sum()) // WIDE))
