"""Mixtures of spherical Gaussians by moments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar, cast

import numpy as np
from sklearn.base import DensityMixin, clone
from sklearn.utils.validation import validate_data

from codiag._checks import UndeterminedError
from codiag.methods import Method
from codiag.models.base import (
    CORE_METHOD,
    Blocks,
    JackknifeModel,
    PartialFit,
    PartsWithout,
    block_of_rows,
    check_reads,
    refuse_parts,
    warn_caller,
)
from codiag.models.mixtures._gaussian_em import (
    GaussianScores,
    em_sums,
    em_sums_of_part,
    from_em_sums,
    log_likelihood,
    log_likelihood_of_part,
    samples_of,
)
from codiag.models.mixtures._gaussian_moments import (
    GaussianMoments,
    Gaussians,
    GaussianSums,
    LocatedMoments,
    Samples,
    gaussian_moments,
)
from codiag.parts import Parts, as_parts, is_matrix
from codiag.result import Factorization

PART_STRIDE = 2**36
"""Difference between the numbers of the first samples of consecutive parts; larger than any part."""
N_BIC_STEPS = 10
"""Least number of EM steps after which numbers of Gaussians are compared by BIC; chosen by experience."""

MomentsOf = Callable[..., LocatedMoments]
"""From a number of Gaussians, and whether to free moments of one variance per feature, to moments."""


Estimate = tuple[Gaussians, Factorization | None, LocatedMoments]
"""Gaussians, the factorization of their moment, and the moments."""


class SphericalGaussianMixture(GaussianScores, DensityMixin, PartialFit, JackknifeModel[LocatedMoments, Gaussians]):
    r"""A mixture of spherical Gaussians by the method of moments of Hsu & Kakade (2013).

    Means must be linearly independent, k at most the number of features. With :math:`\bar\sigma^2` the mean of the
    smallest eigenvalues of the covariance and :math:`\tilde m = \sum_i \pi_i \sigma_i^2 \mu_i`,

    .. math:: E[x x^\top] - \bar\sigma^2 I = \sum_i \pi_i \mu_i \mu_i^\top, \quad
        E[x^{\otimes 3}] - (\tilde m \otimes I + \dots) = \sum_i \pi_i \mu_i^{\otimes 3}.

    *Needs* an array of shape (n, n_features), Gaussians with the same variance in every direction, and no more of them
    than features. *Costs* a few passes over the samples, :math:`O(n d^2)`, then work on a core of k x k x k; a pass,
    :math:`O(n d k)`, for each step of expectation maximization. *Guarantees* errors proportional to :math:`1 / \sqrt n`
    if the model is right; the same estimate from every seed. *Fails* if Gaussians are not spherical, or if means are so
    close that sampling noise hides their second moment, which a warning says.

    Parameters
    ----------
    n_components : int, optional
        Number of Gaussians. None for at most the number of eigenvalues of the second moment that are at least twice as
        large as sampling noise; up to there, unless samples come in parts, the number of least `bic`.
    method : Method or str, optional
        Method that factorizes the moment; by default `codiag.methods.Auto`.
    covariance_type : {"spherical", "diag"}
        What expectation maximization estimates: one variance per Gaussian, or one per Gaussian and feature. With "diag"
        there are two starts, and the one with the greater likelihood after the steps is kept: moments of spherical
        Gaussians, and moments freed of one variance per feature. The latter come from the second moment by principal
        factors; entries of the third moment in which a feature occurs twice are corrected as if all Gaussians had these
        variances. Moments alone are biased then, so that `max_iter` must be positive.
    max_iter : int
        Number of steps of expectation maximization after the moments; zero is the pure method of moments.
    n_jackknife : int
        Number of blocks of samples that are left out in turn for standard errors (jackknife), at least 2, better 20;
        zero for no standard errors. The model is estimated as many times more, steps of expectation maximization
        included.
    random_state : int, optional
        Seed; the estimate does not depend on it if the data determines the Gaussians.

    Attributes
    ----------
    means_ : array of shape (n_components, n_features)
        Mean of each Gaussian.
    weights_ : array of shape (n_components,)
        Weight of each Gaussian, largest first.
    covariances_ : array of shape (n_components,), or (n_components, n_features) with "diag"
        The variance of each Gaussian, in every direction, or along each feature; at least 1e-8 of the mean variance of
        the features.
    labels_ : array of shape (n,)
        The most probable Gaussian of each sample; not set if samples come in parts.
    means_standard_errors_, weights_standard_errors_, covariances_standard_errors_ : as the parameters
        Only if `n_jackknife` is positive; NaN for weights that are 0 or 1 with and without each block.
    n_components_ : int
        Number of Gaussians.
    diagnostics_ : Diagnostics
        How well the data determines the model.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    MultiviewMixture : Three independent views of each sample.
    HiddenMarkov : Sequences of symbols.
    codiag.tensors.MomentTensor : The moment that is factorized.

    Notes
    -----
    `fit` also takes samples in parts: a dask array, a bag or a list of delayed parts, a list of arrays, a function that
    returns an iterator over them, or an iterator. Means and moments up to the third are formed where the parts are, in
    one pass, and merged in a tree. Every step of expectation maximization is one more pass (with `n_jackknife`, also
    for each block), so that `max_iter` must be zero for an iterator. Parts may be empty, or sorted: the samples of
    every part are assigned to all jackknife blocks. The estimate equals that of one array to rounding, and so does that
    of `partial_fit`, which begins anew after `fit` of one array. The third moment takes the cube of the number of
    features in memory; there may be up to 256.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.models import SphericalGaussianMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(m, 1, (500, 3)) for m in ([8, 0, 0], [0, 8, 0])])
    >>> SphericalGaussianMixture(2, random_state=0).fit(X).means_.round().astype(int).tolist() in (
    ...     [[8, 0, 0], [0, 8, 0]], [[0, 8, 0], [8, 0, 0]])
    True
    """

    default_method: ClassVar[Method] = CORE_METHOD
    optional: ClassVar[frozenset[str]] = frozenset({"n_components"})

    def __init__(
        self,
        n_components: int | None = 2,
        *,
        method: Any = None,
        covariance_type: str = "spherical",
        max_iter: int = 10,
        n_jackknife: int = 0,
        random_state: int | None = None,
    ) -> None:
        super().__init__(n_components, method=method, max_iter=max_iter, random_state=random_state)
        self.covariance_type = covariance_type
        self.n_jackknife = n_jackknife

    def check_parameters(self) -> None:
        """Raise unless parameters are valid.

        Examples
        --------
        >>> from codiag.models import SphericalGaussianMixture
        >>> SphericalGaussianMixture().check_parameters()
        >>> SphericalGaussianMixture(covariance_type="full").check_parameters()  # refused
        Traceback (most recent call last):
            ...
        ValueError: covariance_type must be "spherical" or "diag"; got 'full'
        """
        super().check_parameters()
        if self.covariance_type not in ("spherical", "diag"):
            raise ValueError(f'covariance_type must be "spherical" or "diag"; got {self.covariance_type!r}')
        if self.covariance_type == "diag" and self.max_iter == 0:
            raise ValueError(
                'max_iter must be positive with covariance_type="diag", since moments alone give one variance for each '
                "Gaussian; got 0"
            )

    def learn(self, data: Any) -> tuple[Warning, ...]:
        """Do the work of `fit` without issuing warnings, and return them.

        Parameters
        ----------
        data : array of shape (n, n_features), or parts of it
            As for `fit`.

        Returns
        -------
        tuple of Warning
            The warnings of `fit`.
        """
        self.check_parameters()
        moments_of: MomentsOf = cache(self.moments_by_number(data))
        k = self.n_components
        if k is None:
            k, moments = self._detectable(moments_of)
            k = k if moments.samples is None else self._number_of_least_bic(moments_of, k, moments.samples)
        return self._set(*self._best_start(moments_of, k))

    def _number_of_least_bic(self, moments_of: MomentsOf, most: int, samples: Samples) -> int:
        """Return the number of Gaussians, from 1 to `most`, with the least BIC after steps of EM."""
        trial = clone(self).set_params(max_iter=max(self.max_iter, N_BIC_STEPS))
        criteria = []
        for k in range(1, most + 1):
            components, _, moments = trial._best_start(moments_of, k)
            n_parameters = components.means.size + components.covariances.size + k - 1
            criteria.append(n_parameters * np.log(len(samples.given)) - 2 * _log_likelihood(components, moments))
        return 1 + int(np.argmin(criteria))

    def _best_start(self, moments_of: MomentsOf, k: int) -> Estimate:
        """Return an estimate of k Gaussians; with one variance per feature, the more likely result of two starts."""
        estimates: list[Estimate] = []
        for by_feature in (True, False) if self.covariance_type == "diag" and k > 1 else (False,):
            try:
                moments = moments_of(k, by_feature)
            except UndeterminedError:
                if by_feature or estimates:
                    continue
                raise
            estimates.append((*self._components_of(moments), moments))
        if len(estimates) == 1:
            return estimates[0]
        return max(estimates, key=lambda estimate: _log_likelihood(estimate[0], estimate[2]))

    def moments_by_number(self, data: Any) -> MomentsOf:
        """Return a function from a number of Gaussians to moments of samples (n, n_features), in memory or in parts."""
        parts = as_parts(data, is_matrix)
        if parts is not None:
            check_reads(parts, self.max_iter)
            blocks = parts.reduce(_sums_of_part, self.n_jackknife, numbered=True)
            self._check_blocks(blocks.size)
            self.n_features_in_ = blocks.total().mean.size
            return self._from_sums(blocks, parts=parts)
        given = self._as_samples(data, first=True, least=2)
        self._check_blocks(given.shape[0])
        if self.n_jackknife:
            return self._from_sums(Blocks.of(GaussianSums.empty(given.shape[1]), given, self.n_jackknife), given)
        samples = Samples.of(given)

        def moments_of(k: int, by_feature: bool | None = None) -> LocatedMoments:
            _check_size(len(given), given.shape[1], k)
            return gaussian_moments(samples, k, self.strategy(), by_feature=self._by_feature(by_feature))

        return moments_of

    def _from_sums(self, blocks: Blocks, given: np.ndarray | None = None, parts: Parts | None = None) -> MomentsOf:
        """Return a function from a number of Gaussians to moments, from sums over samples."""
        sums = blocks.total()
        central = sums.finish()
        samples = None if given is None else central.located(given)

        def moments_of(k: int, by_feature: bool | None = None) -> LocatedMoments:
            _check_size(sums.n, sums.mean.size, k)
            moments = gaussian_moments(central, k, self.strategy(), by_feature=self._by_feature(by_feature))
            return replace(moments, blocks=blocks, seen=Blocks({0: sums}), samples=samples, parts=parts)

        return moments_of

    def _by_feature(self, chosen: bool | None) -> bool:
        """Return whether moments are freed of one variance per feature; by default if covariances are."""
        return self.covariance_type == "diag" if chosen is None else chosen

    def _as_samples(self, raw: Any, *, first: bool, least: int) -> np.ndarray:
        """Return samples as an array of doubles, with at least `least` rows."""
        with np.errstate(over="ignore", invalid="ignore"):  # sums of finite numbers may overflow
            return validate_data(self, raw, reset=first, dtype=np.float64, ensure_min_samples=least)

    def _with_chunk(self, seen: Blocks | None, raw: Any) -> Blocks:
        """Return the sums with samples added."""
        refuse_parts(raw)
        self._given_number()
        if self.covariance_type == "diag":
            raise ValueError(
                'covariance_type must be "spherical" for partial_fit, which has moments alone; got "diag". Call fit'
            )
        samples = self._as_samples(raw, first=seen is None, least=1)
        if seen is None:
            return Blocks.of(GaussianSums.empty(samples.shape[1]), samples, self.n_jackknife)
        return seen.with_part(samples, self.n_jackknife)

    def _estimate_seen(self, seen: Blocks) -> tuple[Warning, ...]:
        """Estimate the model from sums alone."""
        sums, k = seen.total(), self._given_number()
        _check_size(sums.n, sums.mean.size, k)  # before a message about samples that do not differ
        return self.estimate(replace(self._from_sums(seen)(k), seen=seen))

    def _without_block(
        self, block: int, others: GaussianSums, moments: LocatedMoments, components: Gaussians
    ) -> LocatedMoments:
        """Return moments without a block, with the samples of the other blocks."""
        central, k, method = others.finish(), components.weights.size, self.strategy()
        near = moments.alike if isinstance(moments, GaussianMoments) else None
        rest = gaussian_moments(central, k, method, by_feature=moments.by_feature, near=near)
        if moments.samples is not None:
            given = moments.samples.given
            rows = block_of_rows(len(given), self.n_jackknife) != block
            return replace(rest, samples=central.located(given[rows]))
        if moments.parts is not None:
            return replace(rest, parts=PartsWithout(moments.parts, samples_of, self.n_jackknife, block))
        return rest

    def parameters(self, fit: Factorization, moments: LocatedMoments) -> Gaussians:
        """Return means, weights and variances, in the unit of the moments."""
        return moments.parameters(fit)

    def polished(self, components: Gaussians, moments: LocatedMoments) -> Gaussians:
        """Return the Gaussians in the unit of the data, after steps of EM if samples can be read."""
        if self.covariance_type == "diag":
            variances = np.repeat(components.covariances[:, None], components.means.shape[1], axis=1)
            components = replace(components, covariances=variances)
        if moments.samples is not None or moments.parts is not None:
            components = super().polished(components, moments)
        means = components.means * moments.unit + moments.center
        return replace(components, means=means, covariances=components.covariances * moments.unit**2)

    def em_step(self, components: Gaussians, moments: LocatedMoments) -> Gaussians:
        """Return the Gaussians after one step of expectation maximization, in the unit of the moments."""
        model = components.means, components.covariances, components.weights
        if moments.samples is not None:
            sums = em_sums(moments.samples.inside, *model)
        else:
            sums = cast("Parts", moments.parts).reduce(em_sums_of_part, moments.center, moments.unit, *model)
        means, variances, weights = from_em_sums(sums, moments.floor)
        return replace(components, means=means, weights=weights, covariances=variances)

    def keep(self, components: Gaussians, moments: LocatedMoments) -> None:
        """Set learned attributes, and the labels of samples in memory."""
        super().keep(components, moments)
        if moments.samples is not None:
            self.labels_ = np.argmax(self._log_joint(moments.samples.given), axis=1)
        elif hasattr(self, "labels_"):  # of an earlier fit
            del self.labels_

    def fit_predict(self, X: Any, y: object = None) -> np.ndarray:  # noqa: N803
        """Fit and return the most probable Gaussian of each sample.

        Parameters
        ----------
        X : array of shape (n, n_features), or parts of it, as in `fit`
            The samples.
        y : ignored
            Not used; there for the interface of scikit-learn.

        Returns
        -------
        array of shape (n,)
            The Gaussians.

        See Also
        --------
        SphericalGaussianMixture.predict : For new samples.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import SphericalGaussianMixture
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(mean, 1, (500, 3)) for mean in ([8, 0, 0], [0, 8, 0])])
        >>> SphericalGaussianMixture(2, random_state=0).fit_predict(X).shape
        (1000,)
        """
        if isinstance(X, Iterator):
            raise ValueError("X must be data that can be read again for fit_predict; got an iterator. Give a list")
        warn_caller(self.learn(X))
        return self.labels_ if hasattr(self, "labels_") else self.predict(X)


def _check_size(n: int, d: int, k: int) -> None:
    if k > d:
        raise ValueError(
            f"n_components must be at most {d}, the number of features, since means are to be linearly independent; "
            f"got {k}"
        )
    if k > n:
        raise UndeterminedError(f"n_components must be at most {n}, the number of samples; got {k}")


def _log_likelihood(components: Gaussians, moments: LocatedMoments) -> float:
    """Return the log-likelihood of the samples."""
    model = components.means, components.covariances, components.weights
    if moments.samples is not None:
        return float(log_likelihood(moments.samples.given, *model).values[0])
    return float(cast("Parts", moments.parts).reduce(log_likelihood_of_part, *model).values[0])


def _sums_of_part(part: Any, n_jackknife: int, place: int) -> Blocks:
    samples = samples_of(part)
    return Blocks.of(GaussianSums.empty(samples.shape[1], start=place * PART_STRIDE), samples, n_jackknife, place)
