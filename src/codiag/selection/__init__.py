"""How many components: fits of several ranks, what speaks for each, and the one that all of it supports."""

from codiag.selection._choice import RankChoice
from codiag.selection._choose import choose_rank

__all__ = ["RankChoice", "choose_rank"]
