"""Names that communities still use."""

from __future__ import annotations

from codiag.models.base._model import random_groups

block_of_rows = random_groups


def check_n_jackknife(n_jackknife: int, least: int = 2, reason: str = "so that one can be left out") -> None:
    """Raise if there are too few blocks."""


def add_block_note(error: Exception, block: int, n_jackknife: int) -> None:
    """Add a note to an error."""
