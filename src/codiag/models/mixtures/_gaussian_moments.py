"""Moments of a mixture of spherical Gaussians, from samples or from sums over parts, and the Gaussians."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from codiag._checks import UndeterminedError
from codiag.methods import Method
from codiag.models.base import (
    N_DRAWS,
    BlockedMoments,
    Components,
    Diagnostics,
    MomentSums,
    check_second_moment,
    core_diagnostics,
    core_problem,
    hidden_component,
    random_bits,
    random_signs,
    weakest_direction,
)
from codiag.parts import Parts
from codiag.result import Factorization
from codiag.tensors import CrossMomentTensor, DenseTensor, MomentTensor, SymmetricOuterTensor, Tensor, symmetrize

MAX_FEATURES = 256
"""Largest number of features for which a third moment is stored as an array, 128 MiB."""
MAX_IN_CUBES = 1e100
"""Largest absolute value of samples whose third moments are summed: cubes stay below the overflow threshold."""
MAX_IN_SQUARES = 1e152
"""Largest absolute value of samples in memory: squares stay below the overflow threshold."""
MAX_FACTOR_STEPS = 100
"""Largest number of principal-factor iterations; a few dozen suffice if factors are well separated."""
LEAST_VARIANCE = 1e-8
"""Least variance of a Gaussian, relative to the mean variance of the features, so that densities are finite."""

Signed = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Means of random signs (draws,), of samples times signs (draws, d), and of products times signs (draws, d, d)."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples (n, d) in memory, centered, in a unit in which their moments neither overflow nor underflow."""

    given: np.ndarray
    inside: np.ndarray  # (given - center) / unit
    center: np.ndarray
    unit: float  # a power of two, so that division does not round

    @classmethod
    def of(cls, samples: np.ndarray) -> Samples:
        """Center and scale samples."""
        largest = float(np.max(np.abs(samples)))
        if largest > MAX_IN_SQUARES:
            raise ValueError(
                f"X must contain numbers whose squares are numbers, below {MAX_IN_SQUARES:.0e}; the largest is "
                f"{largest:.0e}"
            )
        center = samples.mean(axis=0)
        unit = _unit(float(np.max(np.abs(samples - center))), largest, 1e-151, "variances")
        return cls(samples, (samples - center) / unit, center, unit)

    @cached_property
    def second(self) -> np.ndarray:
        """The covariance (d, d)."""
        return np.asarray(self.inside.T @ self.inside / len(self.inside))

    @cached_property
    def signed(self) -> Signed:
        """Moments of samples times random signs."""
        n, signs = len(self.inside), random_signs(len(self.inside))
        products = np.stack([(self.inside.T * row) @ self.inside for row in signs])
        return signs.mean(axis=1), signs @ self.inside / n, products / n

    def contracted(self, directions: np.ndarray) -> np.ndarray:
        """Return the third moment (d,), contracted with the mean projector on orthonormal directions (d, m)."""
        return np.asarray(self.inside.T @ np.mean((self.inside @ directions) ** 2, axis=1) / len(self.inside))

    def third(self, offset: np.ndarray) -> Tensor:
        """Return the third moment of the samples shifted by an offset."""
        return MomentTensor(self.inside + offset)


@dataclass(frozen=True, eq=False)
class CentralMoments:
    """Moments of samples that are not in memory, as those of `Samples`."""

    center: np.ndarray  # (d,)
    unit: float
    second: np.ndarray  # (d, d)
    cube: np.ndarray  # (d, d, d)
    signed: Signed

    def located(self, given: np.ndarray) -> Samples:
        """Return samples with this center and unit."""
        return Samples(given, (given - self.center) / self.unit, self.center, self.unit)

    def contracted(self, directions: np.ndarray) -> np.ndarray:
        """Return the third moment (d,), contracted with the mean projector on orthonormal directions (d, m)."""
        return np.asarray(np.einsum("abc,bc->a", self.cube, directions @ directions.T / directions.shape[1]))

    def third(self, offset: np.ndarray) -> Tensor:
        """Return the third moment of the samples shifted by an offset."""
        moved = self.cube + 3 * symmetrize(np.einsum("ab,c->abc", self.second, offset))
        return DenseTensor(symmetrize(moved + np.einsum("a,b,c->abc", offset, offset, offset)), symmetric=True)


@dataclass(eq=False)
class GaussianSums(MomentSums):
    """Sums of products of samples around their mean, up to the third order, and the same with random signs.

    Around the mean, since moments around a distant origin are differences of large numbers. Merging moves both sums to
    the common mean.
    """

    own: ClassVar[frozenset[str]] = frozenset({"start"})

    n: int
    mean: np.ndarray  # (d,)
    second: np.ndarray  # (d, d)
    third: np.ndarray  # (d, d, d)
    low: np.ndarray  # (d,): the minimum of every feature
    high: np.ndarray  # (d,): the maximum
    signed: np.ndarray  # (draws,): sums of random signs, and of what they multiply
    signed_first: np.ndarray
    signed_second: np.ndarray
    start: int = 0  # the number of the first sample, by which signs are drawn

    @classmethod
    def empty(cls, d: int, start: int = 0) -> Self:
        """Return sums over no samples."""
        if d > MAX_FEATURES:
            raise ValueError(
                f"X must have at most {MAX_FEATURES} features if it comes in parts or n_jackknife is positive, since "
                f"its third moment is stored; got {d}. Fit one array with n_jackknife=0, or reduce the features before"
            )
        none = np.zeros(d)
        bounds = np.full(d, np.inf), np.full(d, -np.inf)
        signed = np.zeros(N_DRAWS), np.zeros((N_DRAWS, d)), np.zeros((N_DRAWS, d, d))
        return cls(0, none, np.zeros((d, d)), np.zeros((d, d, d)), *bounds, *signed, start=start)

    @property
    def size(self) -> int:
        return self.n

    def of(self, part: np.ndarray) -> Self:
        """Return the sums over samples (n, d) alone, numbered after those summed so far."""
        n, d = part.shape
        if n == 0:
            return self.empty(d, self.start + self.n)
        largest = float(np.max(np.abs(part)))
        if largest > MAX_IN_CUBES:
            raise ValueError(
                f"X must contain numbers whose cubes are finite, below {MAX_IN_CUBES:.0e}; the largest is {largest:.0e}"
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
        mine = signed_around(self.signed, self.signed_first, self.signed_second, share * gap)
        theirs = signed_around(other.signed, other.signed_first, other.signed_second, (share - 1) * gap)
        self.signed, self.signed_first, self.signed_second = (a + b for a, b in zip(mine, theirs, strict=True))
        self.mean = self.mean + share * gap if self.n else other.mean
        self.low, self.high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        self.n = n
        return self

    def finish(self) -> CentralMoments:
        """Return the moments of all samples."""
        largest = float(np.max(np.abs([self.low, self.high])))
        reach = float(np.max([self.high - self.mean, self.mean - self.low]))
        unit = _unit(reach, largest, 1 / MAX_IN_CUBES, "third moments")
        sums = self.second, self.third, self.signed, self.signed_first, self.signed_second
        second, third, *signed = (a / self.n / unit**p for a, p in zip(sums, (2, 3, 0, 1, 2), strict=True))
        return CentralMoments(self.mean, unit, second, third, (signed[0], signed[1], signed[2]))


def _unit(reach: float, largest: float, least: float, what: str) -> float:
    """Return the power of two nearest to the largest distance from the mean, `reach`; raise if that is too small."""
    if reach <= 1e-15 * largest:
        raise UndeterminedError(
            "X must contain samples that differ; all of them are the same, and a Gaussian around them has no width"
        )
    if reach < least:
        raise ValueError(
            f"X must contain samples whose {what} are numbers; they reach {reach:.0e} from their mean. Divide X by that"
        )
    return float(2.0 ** np.round(np.log2(reach)))


def signed_around(number: np.ndarray, first: np.ndarray, second: np.ndarray, moved: np.ndarray) -> Signed:
    """Return sums with random signs around an origin that has moved by `moved`."""
    ends = np.einsum("sa,b->sab", first, moved)
    square = np.einsum("s,a,b->sab", number, moved, moved)
    return number, first - np.outer(number, moved), second - ends - np.swapaxes(ends, 1, 2) + square


@dataclass(frozen=True, eq=False, kw_only=True)
class Gaussians(Components):
    """Means (k, d), weights (k,), and variances (k,), or (k, d) by feature."""

    unbounded: ClassVar[frozenset[str]] = frozenset({"means", "covariances"})
    key: ClassVar[str] = "means"

    means: np.ndarray
    covariances: np.ndarray


@dataclass(frozen=True, eq=False, kw_only=True)
class LocatedMoments(BlockedMoments):
    """Moments around a center, in a unit, and the data if it can be read again."""

    center: np.ndarray
    unit: float
    floor: float  # least variance, in squares of the unit
    by_feature: bool = False  # whether they are freed of one variance per feature
    samples: Samples | None = None
    parts: Parts | None = None

    @abstractmethod
    def parameters(self, fit: Any) -> Gaussians:
        """Return the Gaussians, in the unit of the moments."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OneGaussian(LocatedMoments):
    """The second moment of samples, which determines one Gaussian."""

    values: np.ndarray  # eigenvalues, largest first

    def parameters(self, fit: object) -> Gaussians:
        """Return the Gaussian with the mean and the variance of the samples; there is no sampling noise to report."""
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
    """Moments of samples shifted in a direction in which means are equal, to make the means linearly independent."""

    alike: np.ndarray  # (d,): that direction
    offset: np.ndarray  # (d,): the shift
    second: np.ndarray  # (d, d): the second moment minus the variance of the Gaussians
    values: np.ndarray  # its eigenvalues, largest first
    basis: np.ndarray  # (d, k): its leading eigenvectors
    shift: np.ndarray  # (d,): sum_i pi_i sigma_i^2 mu_i
    variance: float  # mean variance of the Gaussians
    noise: float  # sampling noise of the last of k eigenvalues

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
    """The directions in which means of k Gaussians are equal, and what follows from the covariance of samples there."""

    floor: float
    directions: np.ndarray  # (d, d - k + 1)
    variance: float
    alike: np.ndarray  # (d,): one of the directions
    offset: np.ndarray  # (d,): along it, added to samples to make the means linearly independent

    @classmethod
    def of(cls, values: np.ndarray, vectors: np.ndarray, k: int, near: np.ndarray | None = None) -> Quiet:
        """Return them from eigenvalues, smallest first, and eigenvectors of the covariance.

        The direction `alike` is that of the smallest eigenvalue, or the one nearest to `near`: eigenvalues are nearly
        equal there, so that eigenvectors of a few other samples may differ by any angle.
        """
        n_quiet = values.size - k + 1
        variance = float(np.mean(np.maximum(values[:n_quiet], 0)))
        directions = vectors[:, :n_quiet]
        alike = directions[:, 0]
        if near is not None:
            alike = directions @ (directions.T @ near)
            alike = alike / np.linalg.norm(alike)
        return cls(LEAST_VARIANCE * float(np.mean(values)), directions, variance, alike, np.sqrt(values[-1]) * alike)


class Widths(NamedTuple):
    """The mean covariance of the Gaussians, and the covariance of samples as if it were the same in all directions."""

    matrix: np.ndarray  # (d, d): mean covariance of the Gaussians, diagonal
    values: np.ndarray  # eigenvalues of the covariance of samples, smallest first, after averaging `matrix`
    vectors: np.ndarray
    by_feature: bool

    @classmethod
    def of(cls, covariance: np.ndarray, k: int, *, by_feature: bool) -> Widths:
        """Return one variance for all directions, or one per feature if the covariance determines these."""
        values, vectors = np.linalg.eigh(covariance)
        d = values.size
        if not by_feature or (d - k + 1) ** 2 < d + k - 1:  # as many unknowns as equations (Ledermann, 1937)
            return cls(Quiet.of(values, vectors, k).variance * np.eye(d), values, vectors, False)
        variances = unique_variances(covariance, k - 1)
        common = covariance - np.diag(variances) + np.mean(variances) * np.eye(d)
        return cls(np.diag(variances), *np.linalg.eigh(common), True)


def unique_variances(covariance: np.ndarray, rank: int) -> np.ndarray:
    """Return a variance (d,) per feature such that the covariance minus these has a given rank (principal factors).

    The diagonal of the rest is replaced by that of its best approximation of that rank, until it converges.
    """
    total = np.diag(covariance)
    rest, before = covariance.copy(), total
    variances = np.full(total.size, np.mean(np.linalg.eigvalsh(covariance)[: total.size - rank]))
    for _ in range(MAX_FACTOR_STEPS):
        np.fill_diagonal(rest, total - variances)
        values, vectors = np.linalg.eigh(rest)
        leading = vectors[:, total.size - rank :]
        common = np.sum(leading**2 * np.maximum(values[total.size - rank :], 0), axis=1)
        before, variances = variances, np.clip(total - common, LEAST_VARIANCE * np.mean(total), total)
        if np.max(np.abs(variances - before)) < 1e-4 * np.mean(total):
            break
    return variances


def gaussian_moments(
    data: Samples | CentralMoments, k: int, method: Method, *, by_feature: bool = False, near: np.ndarray | None = None
) -> OneGaussian | GaussianMoments:
    """Return the moments for k Gaussians, with samples shifted in the direction nearest to `near`, if that is given."""
    located: dict[str, Any] = {"center": data.center, "unit": data.unit}
    located["samples"] = data if isinstance(data, Samples) else None
    if k == 1:
        values = np.linalg.eigvalsh(data.second)
        return OneGaussian(problem=None, values=values[::-1], floor=LEAST_VARIANCE * float(np.mean(values)), **located)
    widths = Widths.of(data.second, k, by_feature=by_feature)
    quiet = Quiet.of(widths.values, widths.vectors, k, near)
    offset = quiet.offset
    second = data.second + np.outer(offset, offset) - widths.matrix
    values, vectors = np.linalg.eigh(second)
    values, basis = values[::-1], vectors[:, ::-1][:, :k]
    check_second_moment(values, k, "n_components")
    size, noise = weakest_direction(second, list(signed_around(*data.signed, -offset)[2]), k)
    hidden = hidden_component(size, noise, k)
    shift, correction = _third_correction(data, widths, quiet)
    return GaussianMoments(
        problem=core_problem(data.third(offset) - correction, basis, values, orthogonal=method.needs_orthogonal),
        complaints=hidden,
        hides_component=bool(hidden),
        by_feature=by_feature,
        alike=quiet.alike,
        offset=offset,
        second=second,
        values=values,
        basis=basis,
        shift=shift,
        variance=quiet.variance,
        noise=noise,
        floor=quiet.floor,
        **located,
    )


def _third_correction(data: Samples | CentralMoments, widths: Widths, quiet: Quiet) -> tuple[np.ndarray, Tensor]:
    r"""Return :math:`\sum_i \pi_i \sigma_i^2 \mu_i`, and what the covariances of the Gaussians add to the third moment.

    With one variance per feature, entries of three different features need no correction, and all others are corrected
    as if the Gaussians had equal covariances.
    """
    if widths.by_feature:
        return quiet.variance * quiet.offset, SymmetricOuterTensor(widths.matrix, quiet.offset)
    variance = np.mean(np.sum(quiet.directions * (data.second @ quiet.directions), axis=0))
    shift = data.contracted(quiet.directions) + variance * quiet.offset
    return shift, SymmetricOuterTensor(np.eye(shift.size), shift)
