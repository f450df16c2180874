"""Documents that are read once: kept until they show the range of the second moment, and summed in it from then on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from codiag.models._sums import Blocks
from codiag.models._topic_moments import pair_noise, range_of_pairs
from codiag.models._word_statistics import WordStatistics

SHOWN = 4
"""How far above sampling noise the weakest of k directions must be. The sine of the angle between the basis and the
true range is at most the noise over the eigenvalue: 1/4, so that the basis holds 15/16 of what there is to see."""
MOST_BYTES = 2**27
"""Documents that are kept, at most, until they show the range."""


@dataclass(frozen=True, eq=False)
class TopicStream:
    """What was seen of documents: `waiting`, the documents themselves, or the sums over them in a basis, by block."""

    waiting: tuple[sparse.csr_array, ...] = ()
    blocks: Blocks | None = None
    n_tested: int = 0  # documents when it was last tried whether they show the range
    n_basis: int | None = None  # documents that fixed the basis, where they did not show it

    @property
    def is_empty(self) -> bool:
        """Whether nothing was seen."""
        return self.blocks is None and not self.waiting

    def documents(self) -> sparse.csr_array:
        """Return the documents that are kept, as one matrix."""
        return self.waiting[0] if len(self.waiting) == 1 else sparse.vstack(self.waiting, format="csr")

    def with_part(self, part: sparse.csr_array, k: int, alpha_0: float, seed: int | None, n_blocks: int) -> TopicStream:
        """Return this with documents added; where all of them together show k directions, these are the basis."""
        if self.blocks is not None:
            return replace(self, blocks=self.blocks.with_part(part))
        found = replace(self, waiting=(*self.waiting, part))
        n = sum(kept.shape[0] for kept in found.waiting)
        full = sum(kept.data.nbytes + kept.indices.nbytes for kept in found.waiting) > MOST_BYTES
        if n < 2 * self.n_tested and not full:  # trials cost what documents do: in all, as much as the last
            return found
        counts = found.documents()
        basis = range_of_pairs(counts, min(3 * k, counts.shape[1]), alpha_0, seed)
        shown = _is_shown(counts, basis[:, :k], alpha_0)
        if not shown and not full:
            return replace(found, n_tested=n)
        blocks = Blocks.of(WordStatistics.empty(basis), counts, n_blocks)
        return TopicStream(blocks=blocks, n_basis=None if shown else n)

    def complaints(self, k: int) -> tuple[str, ...]:
        """Return what a user must be told where the basis may be a poor one."""
        if self.n_basis is None:
            return ()
        return (
            f"the basis was fixed by the first {self.n_basis} documents, which do not show n_components={k} topics "
            "clearly: topics may be less precise than the data allows. Give parts that can be read again (a list, a "
            "dask collection, a function that returns an iterator) to fit, or ask for fewer topics",
        )


def _is_shown(counts: sparse.csr_array, basis: np.ndarray, alpha_0: float) -> bool:
    """Tell whether the second moment is well above its sampling noise along all columns of a basis (words, k)."""
    if not np.any(np.asarray(counts.sum(axis=1)) >= 2):
        return False
    square = WordStatistics.empty(basis).of(counts).finish(alpha_0)[2]
    return bool(np.linalg.eigvalsh(square)[0] > SHOWN * pair_noise(counts, alpha_0, basis))
