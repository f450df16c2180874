"""Moments of a mixture of spherical Gaussians, from sums over samples, and the Gaussians."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from codiag._checks import RankDeficientError
from codiag.methods import Method
from codiag.models.base import (
    Components,
    Diagnostics,
    Moments,
    RowSums,
    check_second_moment,
    core_diagnostics,
    core_problem,
    first_block,
    hidden_component,
    random_signs,
    sum_over_rows,
    weakest_direction,
)
from codiag.result import Factorization
from codiag.tensors import CrossMomentTensor, DenseTensor, symmetrize

MAX_FEATURES = 256
"""Largest number of features for which a third moment is stored as an array, 128 MiB."""
LARGEST, SMALLEST = 1e152, 1e-151
"""Bounds of samples and of their distances from the mean; squares of numbers between them are finite and positive."""
LEAST_VARIANCE = 1e-8
"""Least variance of a Gaussian, relative to the mean variance of the features, so that densities are finite."""


class Location(NamedTuple):
    """An origin and a unit in which sums over samples neither overflow nor cancel."""

    center: np.ndarray  # (d,): the mean of the first chunk
    unit: float  # a power of two, so that division does not round

    @classmethod
    def of(cls, samples: np.ndarray) -> Location:
        """Return the location of a first chunk of samples."""
        center = samples.mean(axis=0)
        reach, largest = float(np.max(np.abs(samples - center))), float(np.max(np.abs(samples)))
        size = reach if reach > 1e-15 * largest else largest or 1.0
        return cls(center, float(2.0 ** np.round(np.log2(size))))

    def inside(self, samples: np.ndarray) -> np.ndarray:
        """Return samples relative to this origin, in this unit."""
        return (samples - self.center) / self.unit


@dataclass(frozen=True, eq=False)
class GaussianSums(RowSums):
    """Sums of products of augmented samples z = (1, x), with x in the unit of a location."""

    pairs: np.ndarray  # (1 + d, 1 + d): of z z^T
    signed: np.ndarray  # (draws, 1 + d, 1 + d): of the same with random signs
    triples: np.ndarray | float = 0.0  # (1 + d, 1 + d, 1 + d): of z (x) z (x) z, only if samples are read once

    @property
    def n(self) -> int:
        """Number of samples."""
        return round(float(self.pairs[0, 0]))


def sums_of_samples(samples: np.ndarray, location: Location, with_triples: bool = False) -> GaussianSums:
    """Return the sums over samples (n, d)."""
    samples = np.asarray(samples, dtype=np.float64)
    _check_finite(samples)
    z = _augmented(samples, location)
    signs = random_signs(len(z), zlib.crc32(samples[:1].tobytes()))  # not the same in all chunks
    signed = np.stack([(z.T * row) @ z for row in signs])
    return GaussianSums(z.T @ z, signed, _cubes(z, np.ones(len(z))) if with_triples else 0.0)


def third_sums(samples: np.ndarray, location: Location, core: np.ndarray, quiet: np.ndarray) -> np.ndarray:
    """Return the sum of (A^T z) (x) (A^T z) (x) (A^T z) and of z times the mean square of Q^T z, for A and Q given."""
    z = _augmented(np.asarray(samples, dtype=np.float64), location)
    along = np.mean((z @ quiet) ** 2, axis=1)
    return np.concatenate([_cubes(z @ core, np.ones(len(z))).ravel(), z.T @ along])


def _augmented(samples: np.ndarray, location: Location) -> np.ndarray:
    return np.hstack([np.ones((len(samples), 1)), location.inside(samples)])


def _cubes(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return CrossMomentTensor(rows, rows, rows, weights=weights, symmetric=False, check=False).to_dense()


def _check_finite(samples: np.ndarray) -> None:
    if not np.all(np.isfinite(samples)):
        raise ValueError("X must be finite; it contains NaN or infinite entries")
    largest = float(np.max(np.abs(samples), initial=0.0))
    if largest > LARGEST:
        raise ValueError(
            f"X must contain numbers whose squares are numbers, below {LARGEST:.0e}; the largest is {largest:.0e}"
        )


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples (n, d), an array or a dask array, or their sums alone; and their central moments."""

    location: Location
    sums: GaussianSums
    data: Any = None  # None if samples cannot be read again

    @classmethod
    def of(cls, data: Any) -> Samples:
        """Sum over samples that can be read again."""
        first = np.asarray(first_block(data), dtype=np.float64)
        _check_finite(first)
        location = Location.of(first)
        return cls(location, sum_over_rows(sums_of_samples, data, location), data)

    @cached_property
    def mean(self) -> np.ndarray:
        """The mean (d,), in the unit of the location."""
        return self.sums.pairs[0, 1:] / self.sums.n

    def shifted(self, offset: np.ndarray) -> np.ndarray:
        """Return the matrix (1 + d, d) that maps augmented samples to samples minus their mean plus an offset."""
        return np.vstack([offset - self.mean, np.eye(offset.size)])

    @cached_property
    def second(self) -> np.ndarray:
        """The covariance (d, d)."""
        around = self.shifted(np.zeros_like(self.mean))
        return around.T @ self.sums.pairs @ around / self.sums.n

    def second_errors(self, offset: np.ndarray) -> list[np.ndarray]:
        """Return draws of the sampling error of the second moment around minus an offset."""
        around = self.shifted(offset)
        return list(around.T @ self.sums.signed @ around / self.sums.n)

    def third(self, offset: np.ndarray, basis: np.ndarray, quiet: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the third moment of shifted samples in a basis (d, k), and the central one contracted with directions.

        The contraction (d,) is with the mean projector on orthonormal directions (d, m).
        """
        around = self.shifted(np.zeros_like(self.mean))
        core, along, k = self.shifted(offset) @ basis, around @ quiet, basis.shape[1]
        if self.data is None:
            cube = DenseTensor(self.sums.triples, symmetric=True)
            inside = np.asarray(cube.compress(core, core, core).to_dense())
            contracted = np.einsum("abc,bc->a", self.sums.triples, along @ along.T / along.shape[1])
        else:
            total = sum_over_rows(third_sums, self.data, self.location, core, along)
            inside, contracted = total[: k**3].reshape(k, k, k), total[k**3 :]
        return inside / self.sums.n, around.T @ contracted / self.sums.n

    def check(self) -> None:
        """Raise if samples do not differ, or differ by numbers whose squares underflow."""
        reach = float(np.sqrt(np.max(np.diag(self.second)))) * self.location.unit
        largest = float(np.max(np.abs(self.location.center + self.location.unit * self.mean)))
        if reach <= 1e-15 * largest or not np.any(self.second):
            raise RankDeficientError(
                "X must contain samples that differ; all of them are the same, and a Gaussian around them has no width"
            )
        if reach < SMALLEST:
            raise ValueError(
                f"X must contain samples whose variances are numbers; they are {reach:.0e} from their mean. Divide X "
                "by that"
            )


@dataclass(frozen=True, eq=False, kw_only=True)
class Gaussians(Components):
    """Means (k, d), weights (k,), and variances (k,), or (k, d) by feature."""

    key: ClassVar[str] = "means"

    means: np.ndarray
    covariances: np.ndarray


@dataclass(frozen=True, eq=False, kw_only=True)
class LocatedMoments(Moments):
    """Moments in the unit of a location, and the samples; these alone determine one Gaussian."""

    samples: Samples
    floor: float  # least variance, in squares of the unit
    by_feature: bool = False  # whether they are freed of one variance per feature

    def parameters(self, fit: Any) -> Gaussians:
        """Return the one Gaussian that has the mean and the variance of the samples, without sampling noise."""
        values = np.linalg.eigvalsh(self.samples.second)[::-1]
        diagnostics = Diagnostics(
            second_moment=values[:2].tolist(),
            second_moment_gap=1.0,
            sampling_noise=0.0,
            relative_error=0.0,
            clipped_mass=0.0,
            converged=True,
        )
        means, variances = np.zeros((1, values.size)), np.array([np.mean(values)])
        return Gaussians(weights=np.ones(1), means=means, covariances=variances, diagnostics=diagnostics)


@dataclass(frozen=True, eq=False, kw_only=True)
class GaussianMoments(LocatedMoments):
    """Moments of samples shifted in a direction in which means are equal, to make the means linearly independent."""

    shared_direction: np.ndarray  # (d,): that direction
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
            means=means - np.outer(means @ self.shared_direction, self.shared_direction),
            covariances=variances,
            diagnostics=core_diagnostics(fit, self.values, self.noise, clipped),
        )


class NoiseSubspace(NamedTuple):
    """The directions in which means of k Gaussians are equal, and what follows from the covariance of samples there."""

    floor: float
    directions: np.ndarray  # (d, d - k + 1)
    variance: float
    shared_direction: np.ndarray  # (d,): one of the directions
    offset: np.ndarray  # (d,): along it, added to samples to make the means linearly independent

    @classmethod
    def of(cls, values: np.ndarray, vectors: np.ndarray, k: int) -> NoiseSubspace:
        """Return them from eigenvalues, smallest first, and eigenvectors of the covariance.

        The direction is the projection of the axis that is nearest to them. Single eigenvectors are arbitrary:
        their eigenvalues are nearly equal.
        """
        n_quiet = values.size - k + 1
        variance = float(np.mean(np.maximum(values[:n_quiet], 0)))
        directions = vectors[:, :n_quiet]
        axis = int(np.argmax(np.sum(directions**2, axis=1)))
        direction = directions @ directions[axis]
        direction = direction / np.linalg.norm(direction)
        return cls(
            LEAST_VARIANCE * float(np.mean(values)),
            directions,
            variance,
            direction,
            np.sqrt(values[-1]) * direction,
        )


class CovarianceSpectrum(NamedTuple):
    """The mean covariance of the Gaussians, and the covariance of samples as if it were the same in all directions."""

    matrix: np.ndarray  # (d, d): mean covariance of the Gaussians, diagonal
    values: np.ndarray  # eigenvalues of the covariance of samples, smallest first, after averaging `matrix`
    vectors: np.ndarray
    by_feature: bool

    @classmethod
    def of(cls, covariance: np.ndarray, k: int, *, by_feature: bool) -> CovarianceSpectrum:
        """Return one variance for all directions, or one per feature if the covariance determines these."""
        values, vectors = np.linalg.eigh(covariance)
        d = values.size
        if not by_feature or (d - k + 1) ** 2 < d + k - 1:  # as many unknowns as equations (Ledermann, 1937)
            return cls(NoiseSubspace.of(values, vectors, k).variance * np.eye(d), values, vectors, False)
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
    # a few dozen suffice if factors are well separated
    for _ in range(100):
        np.fill_diagonal(rest, total - variances)
        values, vectors = np.linalg.eigh(rest)
        leading = vectors[:, total.size - rank :]
        common = np.sum(leading**2 * np.maximum(values[total.size - rank :], 0), axis=1)
        before, variances = variances, np.clip(total - common, LEAST_VARIANCE * np.mean(total), total)
        if np.max(np.abs(variances - before)) < 1e-4 * np.mean(total):
            break
    return variances


def gaussian_moments(samples: Samples, k: int, method: Method, *, by_feature: bool = False) -> LocatedMoments:
    """Return the moments for k Gaussians."""
    samples.check()
    if k == 1:
        floor = LEAST_VARIANCE * float(np.mean(np.diag(samples.second)))
        return LocatedMoments(problem=None, floor=floor, samples=samples)
    widths = CovarianceSpectrum.of(samples.second, k, by_feature=by_feature)
    quiet = NoiseSubspace.of(widths.values, widths.vectors, k)
    offset = quiet.offset
    second = samples.second + np.outer(offset, offset) - widths.matrix
    values, vectors = np.linalg.eigh(second)
    values, basis = values[::-1], vectors[:, ::-1][:, :k]
    check_second_moment(values, k, "n_components")
    size, noise = weakest_direction(second, samples.second_errors(offset), k)
    hidden = hidden_component(size, noise, k)
    core, shift = _corrected(samples, widths, quiet, basis)
    return GaussianMoments(
        problem=core_problem(core, values, orthogonal=method.needs_orthogonal),
        warning_messages=hidden,
        hides_component=bool(hidden),
        by_feature=by_feature,
        shared_direction=quiet.shared_direction,
        offset=offset,
        second=second,
        values=values,
        basis=basis,
        shift=shift,
        variance=quiet.variance,
        noise=noise,
        floor=quiet.floor,
        samples=samples,
    )


def _corrected(
    samples: Samples, widths: CovarianceSpectrum, quiet: NoiseSubspace, basis: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    r"""Return the third moment without the covariances of the Gaussians, and :math:`\sum_i \pi_i \sigma_i^2 \mu_i`.

    With one variance per feature, entries of three different features need no correction, and all others are corrected
    as if the Gaussians had equal covariances.
    """
    core, contracted = samples.third(quiet.offset, basis, quiet.directions)
    if widths.by_feature:
        shift, vector, matrix = quiet.variance * quiet.offset, quiet.offset, basis.T @ (widths.matrix @ basis)
    else:
        variance = np.mean(np.sum(quiet.directions * (samples.second @ quiet.directions), axis=0))
        shift = contracted + variance * quiet.offset
        vector, matrix = shift, basis.T @ basis
    return core - 3 * symmetrize(np.multiply.outer(matrix, basis.T @ vector)), shift
