"""Sums over samples from which Gaussians are estimated: means and moments around them, up to the third.

Moments of a mixture of spherical Gaussians, and the Gaussians that have them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from codiag._checks import UndeterminedError
from codiag.methods import Method
from codiag.models.frame import (
    N_DRAWS,
    BlockedMoments,
    Components,
    Diagnostics,
    MomentSums,
    check_second_moment,
    core_diagnostics,
    core_problem,
    hidden_component,
    is_hidden,
    random_bits,
    random_signs,
    weakest_direction,
)
from codiag.parts import Parts
from codiag.result import Factorization
from codiag.tensors import CrossMomentTensor, DenseTensor, MomentTensor, SymmetricOuterTensor, Tensor, symmetrize

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


MOST_FACTOR_STEPS = 100
"""Steps of principal factors, at most; a few dozen are enough where factors stand out."""
NARROWEST = 1e-8
"""The least variance of a Gaussian, relative to the mean variance of the features: densities are to be numbers."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Gaussians(Components):
    """Means (k, d), weights, and variances (k,), or (k, d) by feature."""

    unbounded: ClassVar[frozenset[str]] = frozenset({"means", "covariances"})
    key: ClassVar[str] = "means"

    means: np.ndarray
    covariances: np.ndarray


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples (n, d) around their mean, in a unit in which moments of all orders are numbers."""

    given: np.ndarray
    inside: np.ndarray
    center: np.ndarray
    unit: float

    @classmethod
    def of(cls, samples: np.ndarray) -> Samples:
        """Move samples to their mean, and divide them by a power of two, which rounds nothing."""
        largest = float(np.max(np.abs(samples)))
        if largest > 1e152:
            raise ValueError(
                f"X must hold numbers whose squares are numbers, below 1e152; the largest is {largest:.0e}"
            )
        center = samples.mean(axis=0)
        reach = float(np.max(np.abs(samples - center)))
        if reach <= 1e-15 * largest:
            raise ValueError(
                "X must hold samples that differ; all of them are the same, and a Gaussian around them would have no "
                "width"
            )
        if reach < 1e-151:
            raise ValueError(
                f"X must hold samples whose variances are numbers; they reach {reach:.0e} from their mean. Divide X by "
                "that"
            )
        unit = float(2.0 ** np.round(np.log2(reach)))
        return cls(samples, (samples - center) / unit, center, unit)


@dataclass(frozen=True, eq=False, kw_only=True)
class LocatedMoments(BlockedMoments):
    """Moments around a center, in a unit; the samples, where they are at hand, or parts that can be read again."""

    center: np.ndarray
    unit: float
    floor: float  # least variance
    samples: Samples | None = None
    parts: Parts | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class OneGaussian(LocatedMoments):
    """The second moment of samples, which is all that one Gaussian needs."""

    values: np.ndarray  # eigenvalues, largest first

    def parameters(self, fit: object) -> Gaussians:
        """Return the Gaussian whose mean and variance are those of the samples: nothing is uncertain."""
        diagnostics = Diagnostics(
            second_moment=self.values[:2].tolist(),
            second_moment_gap=1.0,
            sampling_noise=0.0,
            relative_error=0.0,
            clipped_mass=0.0,
            converged=True,
        )
        means, variances = np.zeros((1, self.values.size)), np.array([np.mean(self.values[::-1])])
        return Gaussians(weights=np.ones(1), means=means, covariances=variances, diagnostics=diagnostics)


@dataclass(frozen=True, eq=False, kw_only=True)
class GaussianMoments(LocatedMoments):
    """Moments of samples that were moved in a direction in which means do not differ, to make these independent."""

    alike: np.ndarray  # (d,), that direction
    offset: np.ndarray  # (d,), by which they were moved
    second: np.ndarray  # (d, d), the variance of the Gaussians taken off
    values: np.ndarray  # its eigenvalues, largest first
    basis: np.ndarray  # (d, k), of its range
    shift: np.ndarray  # (d,): sum_i pi_i sigma_i^2 mu_i
    variance: float  # mean of the Gaussians'
    noise: float  # what sampling alone would show of the last of k eigenvalues

    def parameters(self, fit: Factorization) -> Gaussians:
        """Return the Gaussians, from the factors of the third moment."""
        directions = self.basis @ np.asarray(fit.factors[0])
        # T = sum_i pi_i |mu_i|^3 u_i^(x3) and M2 = sum_i pi_i |mu_i|^2 u_i u_i^T, so lengths are ratios of weights.
        inverse = np.linalg.pinv(directions)
        squares = np.maximum(np.einsum("ia,ab,ib->i", inverse, self.second, inverse), 1e-12 * self.values[0])
        means = (directions * (np.asarray(fit.weights) / squares)).T
        raw_weights = np.linalg.lstsq(means.T, self.offset, rcond=None)[0]
        weights = np.maximum(raw_weights, 1e-6)
        raw = np.linalg.lstsq(means.T, self.shift, rcond=None)[0] / weights
        variances = np.maximum(np.clip(raw, 0.05 * self.variance, 20 * self.variance), self.floor)
        clipped = float(np.sum(weights - raw_weights) + np.sum(np.abs(variances - raw)) / np.sum(variances))
        return Gaussians(
            weights=weights / weights.sum(),
            means=means - np.outer(means @ self.alike, self.alike),
            covariances=variances,
            diagnostics=core_diagnostics(fit, self.values, self.noise, clipped),
        )


class Quiet(NamedTuple):
    """The directions in which Gaussians alone vary, and what follows from the covariance of samples for k of them."""

    floor: float
    directions: np.ndarray  # (d, d - k + 1)
    variance: float
    alike: np.ndarray  # (d,), one of the directions
    offset: np.ndarray  # (d,), along it, which is added to samples to make the means of Gaussians independent

    @classmethod
    def of(cls, values: np.ndarray, vectors: np.ndarray, k: int, near: np.ndarray | None = None) -> Quiet:
        """Return them from eigenvalues, smallest first, and eigenvectors of the covariance.

        Of all directions, that of the smallest eigenvalue, or the one nearest to a direction that is given: eigenvalues
        are all alike there, and a few other samples would turn their directions by any angle.
        """
        n_quiet = values.size - k + 1
        variance = float(np.mean(np.maximum(values[:n_quiet], 0)))
        directions = vectors[:, :n_quiet]
        alike = directions[:, 0] if near is None else directions @ (directions.T @ near)
        alike = alike / np.linalg.norm(alike) if near is not None else alike
        return cls(NARROWEST * float(np.mean(values)), directions, variance, alike, np.sqrt(values[-1]) * alike)


class Widths(NamedTuple):
    """What Gaussians add to the second moment and, with the sum of variances times means, to the third."""

    matrix: np.ndarray  # (d, d), diagonal
    values: np.ndarray  # eigenvalues of the covariance, smallest first, as if its width were the same in all directions
    vectors: np.ndarray
    by_feature: bool

    @classmethod
    def of(cls, covariance: np.ndarray, k: int, *, diagonal: bool) -> Widths:
        """Return one variance for all directions, or one for each feature, where that follows from the covariance."""
        values, vectors = np.linalg.eigh(covariance)
        d = values.size
        if not diagonal or (d - k + 1) ** 2 < d + k - 1:  # as many unknowns as numbers (Ledermann, 1937)
            return cls(Quiet.of(values, vectors, k).variance * np.eye(d), values, vectors, False)
        variances = unique_variances(covariance, k - 1)
        shared = covariance - np.diag(variances) + np.mean(variances) * np.eye(d)
        return cls(np.diag(variances), *np.linalg.eigh(shared), True)


def unique_variances(covariance: np.ndarray, rank: int) -> np.ndarray:
    """Return what the features vary by themselves, (d,), where the rest of the covariance has a rank.

    Principal factors: the diagonal of the rest is that of its leading part, until this stays.
    """
    total = np.diag(covariance)
    rest, before = covariance.copy(), total
    variances = np.full(total.size, np.mean(np.linalg.eigvalsh(covariance)[: total.size - rank]))
    for _ in range(MOST_FACTOR_STEPS):
        np.fill_diagonal(rest, total - variances)
        values, vectors = np.linalg.eigh(rest)
        leading = vectors[:, total.size - rank :]
        shared = np.sum(leading**2 * np.maximum(values[total.size - rank :], 0), axis=1)
        before, variances = variances, np.clip(total - shared, NARROWEST * np.mean(total), total)
        if np.max(np.abs(variances - before)) < 1e-4 * np.mean(total):
            break
    return variances


def gaussian_moments(
    samples: Samples, k: int, method: Method, *, diagonal: bool = False
) -> OneGaussian | GaussianMoments:
    """Ask for k Gaussians; where the origin lies makes no difference."""
    inside = samples.inside
    n = inside.shape[0]
    covariance = inside.T @ inside / n
    values = np.linalg.eigvalsh(covariance)
    place: dict[str, Any] = {"samples": samples, "center": samples.center, "unit": samples.unit}
    if k == 1:
        return OneGaussian(problem=None, values=values[::-1], floor=NARROWEST * float(np.mean(values)), **place)
    widths = Widths.of(covariance, k, diagonal=diagonal)
    quiet = Quiet.of(widths.values, widths.vectors, k)
    moved = inside + quiet.offset
    second = moved.T @ moved / n - widths.matrix
    shift = moved.T @ np.mean((inside @ quiet.directions) ** 2, axis=1) / n
    errors = [(moved.T * signs) @ moved / n for signs in random_signs(n)]
    return replace(_asked(MomentTensor(moved), second, shift, errors, quiet, widths, k, method), **place)


def moments_from_sums(
    sums: GaussianSums, k: int, method: Method, near: np.ndarray | None = None, *, diagonal: bool = False
) -> OneGaussian | GaussianMoments:
    """Ask for k Gaussians, from sums over samples alone, moved in a direction near to one that is given."""
    found = sums.finish()
    values = np.linalg.eigvalsh(found.second)
    place: dict[str, Any] = {"center": found.center, "unit": found.unit}
    if k == 1:
        return OneGaussian(problem=None, values=values[::-1], floor=NARROWEST * float(np.mean(values)), **place)
    widths = Widths.of(found.second, k, diagonal=diagonal)
    quiet = Quiet.of(widths.values, widths.vectors, k, near)
    square = quiet.directions @ quiet.directions.T / quiet.directions.shape[1]
    shift = np.einsum("abc,bc->a", found.third, square) + np.sum(square * found.second) * quiet.offset
    raw = found.second + np.outer(quiet.offset, quiet.offset)
    third = found.third + 3 * symmetrize(np.einsum("ab,c->abc", found.second, quiet.offset))
    third += np.einsum("a,b,c->abc", *[quiet.offset] * 3)
    signed = signed_around(found.signed, found.signed_first, found.signed_second, -quiet.offset)[2]
    second, moment = raw - widths.matrix, DenseTensor(symmetrize(third), symmetric=True)
    return replace(_asked(moment, second, shift, list(signed), quiet, widths, k, method), **place)


def _asked(
    raw: Tensor,
    second: np.ndarray,
    shift: np.ndarray,
    errors: list[np.ndarray],
    quiet: Quiet,
    widths: Widths,
    k: int,
    method: Method,
) -> GaussianMoments:
    """Ask for k Gaussians in moments of samples that were moved, the second without the variance of Gaussians."""
    values, vectors = np.linalg.eigh(second)
    values, basis = values[::-1], vectors[:, ::-1][:, :k]
    check_second_moment(values, k, "n_components")
    size, noise = weakest_direction(second, errors, k)
    if widths.by_feature:  # Entries of three features are right; of others, as if variances went with no Gaussian.
        third, shift = raw - SymmetricOuterTensor(widths.matrix, quiet.offset), quiet.variance * quiet.offset
    else:
        third = raw - SymmetricOuterTensor(np.eye(second.shape[0]), shift)
    return GaussianMoments(
        problem=core_problem(third, basis, values, orthogonal=method.needs_orthogonal),
        complaints=hidden_component(size, noise, k),
        hides_component=is_hidden(size, noise, k),
        center=np.zeros(second.shape[0]),
        unit=1.0,
        alike=quiet.alike,
        offset=quiet.offset,
        second=second,
        values=values,
        basis=basis,
        shift=shift,
        variance=quiet.variance,
        noise=noise,
        floor=quiet.floor,
    )
