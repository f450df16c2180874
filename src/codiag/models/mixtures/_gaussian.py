"""Mixtures of spherical Gaussians by moments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import DensityMixin, clone
from sklearn.utils.validation import validate_data

from codiag._checks import UndeterminedError
from codiag.methods import Method
from codiag.models.frame import (
    CORE_METHOD,
    BlockedModel,
    Blocks,
    PartsWithout,
    block_of_rows,
    refuse_parts,
    warn_caller,
)
from codiag.models.mixtures._gaussian_em import GaussianScores, em_sums, em_sums_of_part, from_em_sums, samples_of
from codiag.models.mixtures._gaussian_moments import (
    GaussianMoments,
    Gaussians,
    GaussianSums,
    OneGaussian,
    Samples,
    gaussian_moments,
    moments_from_sums,
)
from codiag.parts import Parts, as_parts, is_matrix
from codiag.result import Factorization

PART_STRIDE = 2**36
"""Distance between the numbers that samples of different parts have: more than a part can hold."""


class SphericalGaussianMixture(GaussianScores, DensityMixin, BlockedModel[OneGaussian | GaussianMoments, Gaussians]):
    r"""A mixture of spherical Gaussians by the method of moments of Hsu & Kakade (2013).

    Means must be linearly independent, k at most the number of features. With :math:`\bar\sigma^2` the mean of the
    smallest eigenvalues of the covariance and :math:`\tilde m = \sum_i \pi_i \sigma_i^2 \mu_i`,

    .. math:: E[x x^\top] - \bar\sigma^2 I = \sum_i \pi_i \mu_i \mu_i^\top, \quad
        E[x^{\otimes 3}] - (\tilde m \otimes I + \dots) = \sum_i \pi_i \mu_i^{\otimes 3}.

    *Needs* an array of shape (n, n_features), Gaussians of one variance in every direction, and no more of them than
    features. *Costs* a few passes over the samples, :math:`O(n d^2)`, then work on a core of k x k x k; a pass,
    :math:`O(n d k)`, for each step of `polish`. *Guarantees* errors that fall like :math:`1 / \sqrt n` where the model
    holds; the same answer from every seed. *Fails* where Gaussians are not spherical, or where means are so close that
    sampling noise hides their second moment, which a warning says.

    Parameters
    ----------
    n_components : int, optional
        Number of Gaussians. None for as many as the second moment shows: one for each eigenvalue that is twice as large
        as sampling noise, or larger; of these numbers, where samples do not come in parts, the one of least `bic`.
    method : Method or str, optional
        How the moment is factorized; by default `codiag.methods.Auto`.
    covariance_type : {"spherical", "diag"}
        What steps of `polish` estimate: one variance for each Gaussian, or one for each of its features. With "diag"
        there are two starts, of which that of greater likelihood after the steps is kept: moments of spherical
        Gaussians, and others. In these the second moment is freed of a variance for each feature (principal factors),
        and entries of the third in which a feature occurs twice of what they would add if all Gaussians had them;
        other entries need no correction. Moments alone are biased then, so that `polish` must be positive.
    polish : int
        Steps of expectation maximization afterwards; zero is the pure method of moments.
    n_blocks : int
        Blocks of samples that are left out in turn for standard errors (jackknife), at least 2, better 20; zero for
        none. The model is estimated as many times more, steps of `polish` included.
    random_state : int, optional
        Seed; the answer does not depend on it where the data determines it.

    Attributes
    ----------
    means_ : array of shape (n_components, n_features)
        Mean of each Gaussian.
    weights_ : array of shape (n_components,)
        Largest first.
    covariances_ : array of shape (n_components,), or (n_components, n_features) with "diag"
        The variance of each Gaussian, in every direction, or along each feature; at least 1e-8 of the mean variance of
        the features, also where samples coincide.
    labels_ : array of shape (n,)
        The most probable Gaussian of each sample; not there where samples came in parts.
    means_standard_errors_, weights_standard_errors_, covariances_standard_errors_ : as the parameters
        Where `n_blocks` asks for them; NaN for weights held at 0 or 1 with and without each block.
    n_components_ : int
        Number of Gaussians.
    diagnostics_ : Diagnostics
        How well the data determines the model.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    MultiviewMixture : Three independent views of each sample.
    HiddenMarkov : Samples that follow each other.
    codiag.tensors.MomentTensor : The moment that is factorized.

    Notes
    -----
    `fit` takes samples in parts, too: a dask array, a bag or a list of delayed parts, a list of arrays, a function that
    returns an iterator over them, or an iterator. Means and moments up to the third are formed where the parts are, in
    one read, and merged in a tree; every step of `polish` is one more read (with `n_blocks`, one more for each block,
    too), so that an iterator needs `polish` zero.
    Parts may be empty, or sorted: where `n_blocks` is set, the samples of every part are dealt to all blocks.
    The answer is that of one array to rounding, and so is that of `partial_fit`, which begins anew after `fit` of one
    array. The third moment takes the cube of the number of features in memory, of which there may be 256.

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
        polish: int = 10,
        n_blocks: int = 0,
        random_state: int | None = None,
    ) -> None:
        super().__init__(n_components, method=method, polish=polish, random_state=random_state)
        self.covariance_type = covariance_type
        self.n_blocks = n_blocks

    def check_parameters(self) -> None:
        """Raise unless parameters are what they must be.

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
        if self.covariance_type == "diag" and self.polish == 0:
            raise ValueError(
                'polish must be positive with covariance_type="diag", since moments alone give one variance for each '
                "Gaussian; got 0"
            )

    def learn(self, data: Any) -> tuple[Warning, ...]:
        """Do the work of `fit`, silently, and return what is to be warned of.

        Parameters
        ----------
        data : array of shape (n, n_features), or parts of it
            As users give it to `fit`.

        Returns
        -------
        tuple of Warning
        """
        if self.covariance_type != "diag" or self.n_components in (None, 1):
            return super().learn(data)
        self.check_parameters()
        if self.n_blocks:  # errors are those of the start that is kept, so that it is chosen before
            plain = clone(self).set_params(n_blocks=0)
            plain.learn(data)
            self._by_feature = plain._by_feature
            return super().learn(data)
        found, refusal = [], None
        for by_feature in (True, False):
            self._by_feature = by_feature
            try:
                told = super().learn(data)
            except UndeterminedError as error:
                refusal = error
            else:
                found.append((self.score(data), told, dict(vars(self))))
        if not found and refusal is not None:
            raise refusal
        _, told, learned = max(found, key=lambda one: one[0])
        self.__dict__.update(learned)
        return told

    def moments(self, data: Any) -> OneGaussian | GaussianMoments:
        """Return the moments of samples, an array of shape (n, n_features), or in parts."""
        parts = as_parts(data, is_matrix)
        if parts is not None:
            return self._of_parts(parts)
        samples = self._as_samples(data, first=True, least=2)
        _check_size(samples.shape[0], samples.shape[1], self.n_asked())
        self._check_blocks(samples.shape[0])
        located = Samples.of(samples)
        if self.n_blocks == 0:
            return gaussian_moments(located, self.n_asked(), self.strategy(), diagonal=self._diagonal())
        blocks = Blocks.of(GaussianSums.empty(samples.shape[1]), samples, self.n_blocks)
        return replace(self._of_blocks(blocks), samples=located)

    def _diagonal(self) -> bool:
        """Return whether moments are to be those of Gaussians with a variance for each feature."""
        return self.covariance_type == "diag" and getattr(self, "_by_feature", True)

    def _n_shown(self, data: Any) -> int:
        """Return the number of Gaussians of least `bic`, after steps of EM, of those that noise does not hide."""
        most = super()._n_shown(data)
        if as_parts(data, is_matrix) is not None:
            return most
        models = [self._with_number(k).set_params(polish=max(self.polish, 10), n_blocks=0) for k in range(1, most + 1)]
        for model in models:
            model.learn(data)
        return 1 + int(np.argmin([model.bic(data) for model in models]))

    def _of_parts(self, parts: Parts) -> OneGaussian | GaussianMoments:
        """Return the moments of parts, in one pass."""
        self._check_reads(parts)
        blocks = parts.reduce(_sums_of_part, self.n_blocks, numbered=True)
        self._check_blocks(blocks.size)
        found = self._of_blocks(blocks)
        self.n_features_in_ = found.center.size
        return replace(found, parts=parts)

    def _of_blocks(self, blocks: Blocks) -> OneGaussian | GaussianMoments:
        """Return the moments of sums over all samples, which alone are kept."""
        sums = blocks.total()
        _check_size(sums.n, sums.mean.size, self.n_asked())
        return replace(self._moments_of(sums), blocks=blocks, seen=Blocks({0: sums}))

    def _as_samples(self, raw: Any, *, first: bool, least: int) -> np.ndarray:
        """Return samples as an array of doubles, at least so many of them."""
        with np.errstate(over="ignore", invalid="ignore"):  # sums of finite numbers may not be finite
            return validate_data(self, raw, reset=first, dtype=np.float64, ensure_min_samples=least)

    def _checked_part(self, raw: Any, *, first: bool) -> np.ndarray:
        """Return a chunk of samples as an array of doubles."""
        refuse_parts(raw)
        if self.covariance_type == "diag":
            raise ValueError(
                'covariance_type must be "spherical" for partial_fit, which has moments alone; got "diag". Call fit'
            )
        return self._as_samples(raw, first=first, least=1)

    def _with_part(self, seen: Blocks | None, part: np.ndarray) -> Blocks:
        """Return the sums with samples added."""
        if seen is None:
            return Blocks.of(GaussianSums.empty(part.shape[1]), part, self.n_blocks)
        self._check_same_blocks(seen)
        return seen.with_part(part)

    def _moments_of(
        self, sums: GaussianSums, like: OneGaussian | GaussianMoments | None = None
    ) -> OneGaussian | GaussianMoments:
        """Return the moments of Gaussians that sums over samples make."""
        near = like.alike if isinstance(like, GaussianMoments) else None
        return moments_from_sums(sums, self.n_asked(), self.strategy(), near, diagonal=self._diagonal())

    def _with_others(
        self, others: OneGaussian | GaussianMoments, whole: OneGaussian | GaussianMoments, block: int, found: Gaussians
    ) -> OneGaussian | GaussianMoments:
        """Return moments without a block, with the samples of the others."""
        if whole.samples is not None:
            kept = whole.samples.given[block_of_rows(len(whole.samples.given), self.n_blocks) != block]
            inside = (kept - others.center) / others.unit
            return replace(others, samples=Samples(kept, inside, others.center, others.unit))
        if whole.parts is not None:
            return replace(others, parts=PartsWithout(whole.parts, samples_of, self.n_blocks, block))
        return others

    def _moments_of_seen(self, seen: Blocks, part: np.ndarray) -> OneGaussian | GaussianMoments:
        """Return the moments after samples were added."""
        return replace(self._of_blocks(seen), seen=seen)

    def parameters(self, fit: Factorization, moments: OneGaussian | GaussianMoments) -> Gaussians:
        """Return means, weights and variances, in the unit of the moments."""
        return moments.parameters(fit)

    def polished(self, components: Gaussians, moments: OneGaussian | GaussianMoments) -> Gaussians:
        """Return the Gaussians after steps of expectation maximization, where samples are at hand, or can be read."""
        at_hand = moments.samples is not None or moments.parts is not None
        if self.covariance_type == "diag":
            variances = np.repeat(components.covariances[:, None], components.means.shape[1], axis=1)
            components = replace(components, covariances=variances)
        return super().polished(components, moments) if at_hand else components

    def em_step(self, components: Gaussians, moments: OneGaussian | GaussianMoments) -> Gaussians:
        """Return the Gaussians after one step of expectation maximization."""
        parameters = components.means, components.covariances, components.weights
        if moments.samples is not None:
            sums = em_sums(moments.samples.inside, *parameters)
        elif moments.parts is not None:
            sums = moments.parts.reduce(em_sums_of_part, moments.center, moments.unit, *parameters)
        means, variances, weights = from_em_sums(sums, moments.floor)
        return replace(components, means=means, weights=weights, covariances=variances)

    def _in_units(self, components: Gaussians, moments: OneGaussian | GaussianMoments) -> Gaussians:
        """Return to the unit of the data."""
        means = components.means * moments.unit + moments.center
        return replace(components, means=means, covariances=components.covariances * moments.unit**2)

    def keep(self, components: Gaussians, moments: OneGaussian | GaussianMoments) -> None:
        """Set learned attributes, and label the samples where they are at hand."""
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


def _sums_of_part(part: Any, n_blocks: int, place: int) -> Blocks:
    samples = samples_of(part)
    return Blocks.of(GaussianSums.empty(samples.shape[1], start=place * PART_STRIDE), samples, n_blocks, place)
