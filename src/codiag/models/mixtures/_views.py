"""Mixtures by moments of three views of the same samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.special import logsumexp, softmax
from sklearn.utils.validation import check_is_fitted

from codiag._checks import as_real_array
from codiag.models.base import (
    Components,
    CrossProblem,
    Diagnostics,
    MappedProblem,
    MomentModel,
    Moments,
    ViewMoments,
    as_dense,
    hidden_component,
    optional,
    positive_integer,
    random_groups,
    random_signs,
    scaled,
    view_problem,
    weakest_direction,
)
from codiag.models.mixtures._gaussian_em import log_densities
from codiag.models.mixtures._gaussian_moments import LEAST_VARIANCE
from codiag.result import Factorization


@dataclass(frozen=True, eq=False, kw_only=True)
class MixtureMoments(Moments):
    """Moments of three views, each divided by a unit."""

    route: CrossProblem | MappedProblem
    units: list[float]
    correlation: float  # last singular value of the moment of two views
    noise: float

    @property
    def views(self) -> Any:
        """The views (n, d) in their units."""
        return self.route.moments.raw.views


@dataclass(frozen=True, eq=False, kw_only=True)
class Views(Components):
    """Means (k, d) of every view, weights (k,), and the variances (3,) of the views."""

    shared: ClassVar[frozenset[str]] = frozenset({"variances"})
    key: ClassVar[str] = "means"

    means: list[np.ndarray]
    variances: np.ndarray


class MultiviewMixture(MomentModel[MixtureMoments, Views]):
    r"""A mixture with three views of each sample that are independent given the component.

    The cross moment of the views, :math:`\sum_h \pi_h A_h \otimes B_h \otimes C_h`, is factorized without symmetrizing
    or whitening it.

    Parameters
    ----------
    n_components : int, optional
        Number of components. None for the number of singular values of the moment of two views that are at least twice
        as large as sampling noise.
    method : Method or str, optional
        Method that factorizes the moment; by default `codiag.methods.Auto`. Methods for orthogonal factors (``OJD``,
        ``TPM``) take the classical way: two views are mapped to the third, and the second moment whitens.
    max_iter : int
        Number of steps of expectation maximization after the moments. They assume that the noise of every view is white
        and Gaussian; zero is the pure method of moments, which makes no assumption on the noise.
    random_state : int, optional
        Seed; the estimate does not depend on it if the data determines the components.

    Attributes
    ----------
    means_ : list of three arrays of shape (n_components, n_features)
        The mean of every view, given the component.
    weights_ : array of shape (n_components,)
        Weight of each component, largest first.
    variances_ : array of shape (3,)
        The variance of the noise in every view, averaged over features; at least 1e-8 of the mean square of the view.
    n_components_ : int
        Number of components.
    diagnostics_ : Diagnostics
        How well the data determines the model: ``relative_error``, ``converged``, ``core_errors``,
        ``weakest_correlation`` (the singular value of the last component in the second moment of two views),
        ``sampling_noise`` and ``weights_sum`` (before normalization; far from one if views are not independent).

    See Also
    --------
    SphericalGaussianMixture : One view, with Gaussian noise.
    DawidSkene : Views that are votes.
    codiag.tensors.CrossMomentTensor : The moment that is factorized.

    Notes
    -----
    **Assumptions.** Three views, arrays or sparse matrices with one row per sample, of which at least two have as many
    features as there are components, and means that are linearly independent in each of these two.

    **Complexity.** A few passes over the views; the moment is never formed.

    **Guarantees.** Errors proportional to one over the root of the number of samples, whatever the distribution of the
    noise; the same estimate from every seed.

    **Limitations.** Fails if views depend on each other given the component, in which case ``weights_sum`` in
    `diagnostics_` is far from one, and if sampling noise hides components, which a warning says.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.models import MultiviewMixture
    >>> rng = np.random.default_rng(0)
    >>> h = rng.integers(0, 2, 4000)
    >>> views = [np.array([[4.0, 0, 1], [0, 4, 1]])[h] + rng.normal(size=(4000, 3)) for _ in range(3)]
    >>> MultiviewMixture(2, random_state=0).fit(views).weights_.round(1).tolist()
    [0.5, 0.5]
    """

    parameter_rules = MomentModel.parameter_rules | {"n_components": optional(positive_integer)}
    unbounded: ClassVar[frozenset[str]] = frozenset({"means_", "variances_"})

    def moments_function(self, data: Any) -> Callable[[int], MixtureMoments]:
        """Return a function from a number of components to moments of three views, arrays or sparse matrices (n, d)."""
        views = _as_views(data)
        smallest = sorted(view.shape[1] for view in views)[1]
        units = [_unit(view, f"X[{number}]") for number, view in enumerate(views)]
        moments_of = self._moments_of([view / unit for view, unit in zip(views, units, strict=True)], units)

        def checked(k: int) -> MixtureMoments:
            for limit, what in ((smallest, "the second smallest view"), (views[0].shape[0], "the number of samples")):
                if k > limit:
                    raise ValueError(f"n_components must be at most {limit}, {what}; got {k}")
            return moments_of(k)

        return checked

    def _moments_of(self, views: list[Any], units: list[float]) -> Callable[[int], MixtureMoments]:
        """Return a function from a number of components to moments of views that were divided by their units."""
        moments = ViewMoments(views)
        pairs, errors = _pairs_and_errors(moments)

        def moments_of(k: int) -> MixtureMoments:
            size, noise = weakest_direction(pairs, errors, k)
            if not size > 1e-15:
                raise ValueError(
                    f"n_components={k} is more than the data determines: the views have fewer than {k} components in "
                    "common; use fewer, or give more data"
                )
            hidden, route = hidden_component(size, noise, k), view_problem(moments, k, self._resolved_method())
            return MixtureMoments(
                problem=route.problem,
                warning_messages=hidden,
                hides_component=bool(hidden),
                route=route,
                units=units,
                correlation=size,
                noise=noise,
            )

        return moments_of

    def parameters(self, fit: Factorization, moments: MixtureMoments) -> Views:
        """Return means, weights and variances, in the units of the moments."""
        raw, means = moments.route.parameters(fit)
        diagnostics = Diagnostics.of(
            fit, weakest_correlation=moments.correlation, sampling_noise=moments.noise, weights_sum=float(raw.sum())
        )
        if fit.rank == 1:  # one component has the mean of all samples
            means = [moments.route.moments.mean(mode)[None] for mode in range(3)]
        weights = raw / raw.sum()
        variances = _view_variances(moments.views, means, weights)
        return Views(weights=weights, means=means, variances=variances, diagnostics=diagnostics)

    def em_step(self, components: Views, moments: MixtureMoments) -> Views:
        """Return the mixture after one step of EM, which assumes white Gaussian noise in every view."""
        joint = _joint(moments.views, components.means, components.weights, components.variances)
        levels = logsumexp(joint, axis=1)
        shares = np.exp(joint - levels[:, None])
        mass = shares.sum(axis=0) + 1e-10
        means, variances = [], []
        for view in moments.views:
            mean = np.asarray((view.T @ shares) / mass).T
            size = _mean_square(view)
            variance = size - float(mass @ np.sum(mean**2, axis=1)) / (shares.shape[0] * mean.shape[1])
            means.append(mean)
            variances.append(max(variance, LEAST_VARIANCE * size))
        diagnostics = components.diagnostics.extended(log_likelihood=float(levels.sum()))
        return replace(
            components, means=means, weights=mass / mass.sum(), variances=np.array(variances), diagnostics=diagnostics
        )

    def _refine(self, components: Views, moments: MixtureMoments) -> Views:
        """Return the mixture in the units of the data, after steps of EM."""
        components = super()._refine(components, moments)
        means = [mean * unit for mean, unit in zip(components.means, moments.units, strict=True)]
        return replace(components, means=means, variances=components.variances * np.square(moments.units))

    def _leave_groups_out(self, data: Any, n_groups: int) -> Iterator[tuple[int, list[Any]]]:
        views = _as_views(data)
        owners = random_groups(views[0].shape[0], n_groups)
        for group in range(n_groups):
            rows = np.flatnonzero(owners != group)
            yield owners.size - rows.size, [view[rows] for view in views]

    def predict_proba(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return the probability of each component for each sample, assuming white Gaussian noise.

        Parameters
        ----------
        X : sequence of three arrays or sparse matrices of shape (n, d)
            Views of the same samples, as in `fit`.

        Returns
        -------
        array of shape (n, n_components)
            The probabilities, with rows of sum one.

        See Also
        --------
        MultiviewMixture.predict : The most probable component.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import MultiviewMixture
        >>> rng = np.random.default_rng(0)
        >>> h = rng.integers(0, 2, 2000)
        >>> views = [np.array([[4.0, 0, 1], [0, 4, 1]])[h] + rng.normal(size=(2000, 3)) for _ in range(3)]
        >>> model = MultiviewMixture(2, random_state=0).fit(views)
        >>> model.predict_proba(views).shape
        (2000, 2)
        """
        check_is_fitted(self)
        views = _as_views(X)
        expected, got = [mean.shape[1] for mean in self.means_], [view.shape[1] for view in views]
        if got != expected:
            raise ValueError(f"X must have views of {expected} features, as in fit; got {got}")
        return softmax(_joint(views, self.means_, self.weights_, self.variances_), axis=1)

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return the most probable component of each sample.

        Parameters
        ----------
        X : sequence of three arrays or sparse matrices of shape (n, d)
            Views of the same samples, as in `fit`.

        Returns
        -------
        array of shape (n,)
            The components.

        See Also
        --------
        MultiviewMixture.predict_proba : The probability of each component.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import MultiviewMixture
        >>> rng = np.random.default_rng(0)
        >>> h = rng.integers(0, 2, 2000)
        >>> views = [np.array([[4.0, 0, 1], [0, 4, 1]])[h] + rng.normal(size=(2000, 3)) for _ in range(3)]
        >>> model = MultiviewMixture(2, random_state=0).fit(views)
        >>> model.predict(views).shape
        (2000,)
        """
        return np.argmax(self.predict_proba(X), axis=1)


def _as_views(raw: Any) -> list[Any]:
    """Return three views of the same samples as matrices of doubles, dense or sparse."""
    if sparse.issparse(raw) or not isinstance(raw, Iterable) or isinstance(raw, str | bytes | Mapping):
        raise TypeError(f"X must be three views of the same samples, a sequence of arrays; got {type(raw).__name__}")
    parts = list(raw)
    if len(parts) != 3:
        raise ValueError(f"X must be three views of the same samples; got {len(parts)}")
    views = [_as_view(part, f"X[{number}]") for number, part in enumerate(parts)]
    lengths = [view.shape[0] for view in views]
    if len(set(lengths)) > 1:
        raise ValueError(f"views must have one row per sample, the same number each; got {lengths}")
    return views


def _as_view(raw: Any, name: str) -> Any:
    if sparse.issparse(raw):
        if raw.dtype.kind not in "biuf":
            raise TypeError(f"{name} must contain real numbers; got {raw.dtype}")
        view = sparse.csr_array(raw, dtype=np.float64)
    else:
        view = np.asarray(as_real_array(raw, name, "use real and imaginary parts as separate columns"), np.float64)
    if view.ndim != 2 or 0 in view.shape:
        raise ValueError(f"{name} must have shape (n, d), one row per sample; got {view.shape}")
    entries = view.data if sparse.issparse(view) else view
    if not np.all(np.isfinite(entries)):
        raise ValueError(f"{name} must be finite; it contains NaN or infinite entries")
    return view


def _unit(view: Any, name: str) -> float:
    """Return the power of two nearest to the largest entry; in this unit moments neither overflow nor underflow."""
    largest = float(abs(view).max())
    if not 1e-151 < largest < 1e152:
        reason = "it is zero everywhere" if largest == 0 else f"its largest is {largest:.0e}; divide it by that"
        raise ValueError(f"{name} must have entries between 1e-151 and 1e152 in size: {reason}")
    return float(2.0 ** np.round(np.log2(largest)))


def _pairs_and_errors(moments: ViewMoments) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the second moment of the two largest views, and draws of its sampling error."""
    _, left, right = sorted(range(3), key=lambda mode: moments.shape[mode])
    first, second = moments.raw.views[left], moments.raw.views[right]
    n = first.shape[0]
    errors = [as_dense(first.T @ scaled(second, signs)) / n for signs in random_signs(n)]
    return moments.pairs(left, right), errors


def _view_variances(views: Any, means: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
    """Return the mean square of each view per feature, minus that of the means."""
    variances, sizes = [], []
    for view, mean in zip(views, means, strict=True):
        sizes.append(_mean_square(view))
        variances.append(sizes[-1] - float(weights @ np.sum(mean**2, axis=1)) / mean.shape[1])
    return np.maximum(variances, np.maximum(1e-3 * np.mean(np.abs(variances)), LEAST_VARIANCE * np.array(sizes)))


def _joint(views: Any, means: list[np.ndarray], weights: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Return the logarithms of the joint densities of samples and components (n, k)."""
    joint = np.log(weights)
    for view, mean, variance in zip(views, means, variances, strict=True):
        joint = joint + log_densities(as_dense(view), mean, np.full(weights.size, variance))
    return np.asarray(joint)


def _mean_square(view: Any) -> float:
    squares = view.power(2) if sparse.issparse(view) else view**2
    return float(squares.sum()) / (view.shape[0] * view.shape[1])
