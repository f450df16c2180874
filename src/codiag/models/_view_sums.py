"""Sums over samples of three small views, as of tasks that groups of workers voted on, or of nodes and their links."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np

from codiag.models._sums import MomentSums
from codiag.models._view_moments import ViewMoments
from codiag.tensors import CrossMomentTensor, DenseTensor, Tensor


@dataclass(eq=False)
class ViewSums(MomentSums):
    """Weights, and weighted sums of three views, of products of two and of all three of them."""

    total: float  # of the weights
    first: np.ndarray  # (d_0 + d_1 + d_2,): of the views side by side
    second: np.ndarray  # (d_0 + d_1 + d_2,) twice
    third: np.ndarray  # (d_0, d_1, d_2)
    n: int = 0

    @classmethod
    def empty(cls, *sizes: int) -> Self:
        """Return sums over nothing, for views of these sizes."""
        d = sum(sizes)
        return cls(0.0, np.zeros(d), np.zeros((d, d)), np.zeros(sizes))

    @property
    def size(self) -> int:
        return self.n

    def of(self, part: tuple[np.ndarray, ...]) -> Self:
        """Return the sums over some samples alone: their weights (n,) and three views (n, d)."""
        weights, *views = part
        side = np.hstack(views)
        third = CrossMomentTensor(*views, weights=weights, symmetric=False, check=False).to_dense()
        return type(self)(float(weights.sum()), weights @ side, (side.T * weights) @ side, third, weights.size)

    def finish(self, alpha_0: float = 0.0) -> SummedViews:
        """Return the moments, of samples that mix components where `alpha_0` says so."""
        return SummedViews(self, alpha_0)


class SummedViews(ViewMoments):
    """Moments of three views from sums alone."""

    def __init__(self, sums: ViewSums, alpha_0: float = 0.0) -> None:
        self.alpha_0, self.shape = alpha_0, sums.third.shape
        ends = np.cumsum([0, *self.shape]).tolist()
        self._modes = [slice(low, high) for low, high in pairwise(ends)]
        self._first, self._second = sums.first / sums.total, sums.second / sums.total
        self._dense = DenseTensor(sums.third / sums.total, symmetric=False)

    @property
    def unmixed(self) -> Tensor:
        """The third moment of samples that do not mix components."""
        return self._dense

    def mean(self, mode: int) -> np.ndarray:
        """Return the mean of a view, (d,)."""
        return self._first[self._modes[mode]]

    def products(self, left: int, right: int) -> np.ndarray:
        """Return the mean of products of two views."""
        return self._second[self._modes[left], self._modes[right]]
