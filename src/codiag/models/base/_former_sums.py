"""Names that crowd, communities and sources still use."""

from __future__ import annotations

import copy
from abc import ABC
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np


@dataclass(eq=False)
class MomentSums(ABC):
    """Sums over samples."""

    constant: ClassVar[frozenset[str]] = frozenset()
    own: ClassVar[frozenset[str]] = frozenset()

    def update(self, part: Any) -> Self:
        """Add the samples of a part, and return these sums."""
        return self.merge(self.of(part))

    def merge(self, other: Self) -> Self:
        """Add other sums to these, and return these."""
        for field in fields(self):
            if field.name not in self.constant | self.own:
                setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))
        return self


def merged(sums):
    """Return sums merged into one; the arguments are not changed."""
    total = copy.copy(sums[0])
    for other in sums[1:]:
        total.merge(other)
    return total


def block_of_rows(n: int, n_blocks: int, place: int = 0) -> np.ndarray:
    """Return the block (n,) of each row of a part."""
    owners = np.empty(n, dtype=np.intp)
    owners[np.random.default_rng((0xB10C, place)).permutation(n)] = (place + np.arange(n)) % n_blocks
    return owners


def check_n_jackknife(n_jackknife: int, least: int = 2, reason: str = "so that one can be left out") -> None:
    """Raise if there are too few blocks."""


def add_block_note(error: Exception, block: int, n_jackknife: int) -> None:
    """Add a note to an error."""
