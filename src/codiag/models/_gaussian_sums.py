"""Sums over samples from which Gaussians are estimated: means and moments around them, up to the third."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np

from codiag._validation import UndeterminedError
from codiag.models._sampling_noise import N_DRAWS, random_bits
from codiag.models._sums import MomentSums
from codiag.tensors import CrossMomentTensor, symmetrize

MOST_FEATURES = 256
"""Features up to which a third moment is kept as an array."""
LARGEST = 1e100
"""Numbers whose cubes are numbers."""


class CentralMoments(NamedTuple):
    """The mean of samples, and their moments around it in a unit in which these are numbers of ordinary size."""

    center: np.ndarray  # (d,)
    unit: float  # a power of two
    second: np.ndarray  # (d, d)
    third: np.ndarray  # (d, d, d)
    signed: np.ndarray  # (draws,): mean of random signs of the samples
    signed_first: np.ndarray  # (draws, d): of samples times these
    signed_second: np.ndarray  # (draws, d, d)


@dataclass(eq=False)
class GaussianSums(MomentSums):
    """Numbers, means and sums of products of samples around their means, and the same with random signs.

    Around means, since moments of samples that are far from zero are differences of large numbers. Merging moves both
    sums to the common mean.
    """

    own: ClassVar[frozenset[str]] = frozenset({"start"})

    n: int
    mean: np.ndarray  # (d,)
    second: np.ndarray  # (d, d)
    third: np.ndarray  # (d, d, d)
    low: np.ndarray  # (d,): the least of every feature
    high: np.ndarray  # (d,): the largest
    signed: np.ndarray  # (draws,): sums of random signs, and of what they multiply
    signed_first: np.ndarray
    signed_second: np.ndarray
    start: int = 0  # the number of the first sample, by which signs are drawn

    @classmethod
    def empty(cls, d: int, start: int = 0) -> Self:
        """Return sums over nothing."""
        if d > MOST_FEATURES:
            raise ValueError(
                f"X must have at most {MOST_FEATURES} features where it comes in parts or n_blocks asks for standard "
                f"errors, since its third moment is kept; got {d}. Fit one array, or reduce the features before"
            )
        none = np.zeros(d)
        bounds = np.full(d, np.inf), np.full(d, -np.inf)
        signed = np.zeros(N_DRAWS), np.zeros((N_DRAWS, d)), np.zeros((N_DRAWS, d, d))
        return cls(0, none, np.zeros((d, d)), np.zeros((d, d, d)), *bounds, *signed, start=start)

    @property
    def size(self) -> int:
        return self.n

    def of(self, part: np.ndarray) -> Self:
        """Return the sums over samples (n, d) alone, which come after those seen so far."""
        n, d = part.shape
        if n == 0:
            return self.empty(d, self.start + self.n)
        largest = float(np.max(np.abs(part)))
        if largest > LARGEST:
            raise ValueError(
                f"X must hold numbers whose cubes are numbers, below {LARGEST:.0e}; the largest is {largest:.0e}"
            )
        center = part.mean(axis=0)
        inside = part - center
        signs = 2.0 * random_bits((self.start + self.n) * N_DRAWS, n * N_DRAWS).reshape(n, N_DRAWS).T - 1
        third = CrossMomentTensor(inside, inside, inside, weights=np.ones(n), symmetric=False, check=False).to_dense()
        return type(self)(
            n=n,
            mean=center,
            second=inside.T @ inside,
            third=third,
            low=part.min(axis=0),
            high=part.max(axis=0),
            signed=signs.sum(axis=1),
            signed_first=signs @ inside,
            signed_second=np.stack([(inside.T * row) @ inside for row in signs]),
        )

    def merge(self, other: Self) -> Self:
        """Add other sums to these, moved to the common mean, and return these."""
        if type(other) is not type(self) or other.mean.size != self.mean.size:
            raise ValueError("X must have parts with the same number of features, to be merged; these differ")
        n, gap = self.n + other.n, other.mean - self.mean
        if other.n == 0 or self.n == 0:
            gap = np.zeros_like(gap)
        share = other.n / max(n, 1)
        cross = (1 - share) * other.second - share * self.second
        lower = self.n * share
        self.third = (
            self.third
            + other.third
            + 3 * symmetrize(np.einsum("ab,c->abc", cross, gap))
            + lower * (1 - 2 * share) * np.einsum("a,b,c->abc", gap, gap, gap)
        )
        self.second = self.second + other.second + lower * np.outer(gap, gap)
        mine, theirs = self._signed_around(share * gap), other._signed_around((share - 1) * gap)
        self.signed, self.signed_first, self.signed_second = (a + b for a, b in zip(mine, theirs, strict=True))
        self.mean = self.mean + share * gap if self.n else other.mean
        self.low, self.high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        self.n = n
        return self

    def finish(self) -> CentralMoments:
        """Return the moments of all samples."""
        largest = float(np.max(np.abs([self.low, self.high])))
        reach = float(np.max([self.high - self.mean, self.mean - self.low]))
        if reach <= 1e-15 * largest:
            raise UndeterminedError(
                "X must hold samples that differ; all of them are the same, and a Gaussian around them would have no "
                "width"
            )
        if reach < 1 / LARGEST:
            raise ValueError(
                f"X must hold samples whose third moments are numbers; they reach {reach:.0e} from their mean. Divide "
                "X by that"
            )
        unit = float(2.0 ** np.round(np.log2(reach)))
        sums = self.second, self.third, self.signed, self.signed_first, self.signed_second
        powers = 2, 3, 0, 1, 2
        return CentralMoments(self.mean, unit, *(a / self.n / unit**p for a, p in zip(sums, powers, strict=True)))

    def _signed_around(self, moved: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the sums with signs around a mean that has moved by so much."""
        return signed_around(self.signed, self.signed_first, self.signed_second, moved)


def signed_around(
    number: np.ndarray, first: np.ndarray, second: np.ndarray, moved: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return sums of signs, and of samples and their products times signs, around an origin that has moved."""
    ends = np.einsum("sa,b->sab", first, moved)
    square = np.einsum("s,a,b->sab", number, moved, moved)
    return number, first - np.outer(number, moved), second - ends - np.swapaxes(ends, 1, 2) + square
