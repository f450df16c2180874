"""Blind source separation: recordings of channels, their whitening, and the base class of the estimators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from codiag._arrays import adjoint, conjugate, largest_signs, squared_magnitudes
from codiag._checks import ConvergenceWarning, UndeterminedError
from codiag.diagonalize import Diagonalizer, check_method
from codiag.models.base import Model
from codiag.models.mixtures import as_rows

MAX_SAMPLE = 1e100
"""Largest absolute value of samples; fourth powers are summed, and single ones must not overflow."""
MAX_PIECE = 2**13
"""Largest number of samples that are transformed together; correlations across the ends of pieces are left out."""
UNRESOLVED = 0.3
"""Standard error of the share of one source in another above which the two are reported in `unresolved_`, as in
`codiag.Diagonalization.unresolved`."""
ROUNDING = 1e-13
"""Standard deviation of a channel, relative to the largest, up to which it is rounding noise."""
FORMS = "(n_samples, n_channels), (n_epochs, n_channels, n_times), a list of arrays of the former shape, or of MNE"
"""Accepted forms of recordings, for error messages."""
CHECKS: dict[str, Any] = {"dtype": np.float64, "ensure_all_finite": False}
"""How arrays are checked by scikit-learn."""
GAPS = "Leave these samples out, and give the stretches between them as a list of recordings"
"""Advice for missing samples, for error messages."""


@dataclass(frozen=True, eq=False)
class Recordings:
    """Recordings of the same channels, (n_samples, n_channels) each, and the form in which they were given."""

    arrays: list[np.ndarray]
    form: str  # "array", "list" or "epochs"

    @property
    def n_samples(self) -> int:
        """Number of samples of all recordings."""
        return sum(array.shape[0] for array in self.arrays)

    def mapped(self, function: Callable[[np.ndarray], np.ndarray]) -> Any:
        """Return the results of a function of samples, in the form of the recordings."""
        results = [function(array) for array in self.arrays]
        if self.form == "array":
            return results[0]
        return results if self.form == "list" else np.stack([array.T for array in results])

    def pieces(self) -> Iterator[np.ndarray]:
        """Yield the recordings in pieces of nearly equal lengths, short enough for a transform in the cache."""
        for array in self.arrays:
            yield from np.array_split(array, -(-array.shape[0] // MAX_PIECE))

    def leading(self, n_samples: int) -> Recordings:
        """Return the first `n_samples` samples of all recordings together, or all if there are fewer."""
        ends = np.cumsum([0] + [len(array) for array in self.arrays])
        first = [array[: n_samples - end] for array, end in zip(self.arrays, ends, strict=False) if end < n_samples]
        return Recordings(first, "list")

    def centered(self) -> tuple[np.ndarray, Recordings]:
        """Return the mean over all samples, and the recordings without it."""
        with np.errstate(over="ignore", invalid="ignore"):
            mean = np.sum([array.mean(axis=0) * (len(array) / self.n_samples) for array in self.arrays], axis=0)
            largest = max(float(np.max(np.abs(array - mean))) for array in self.arrays)
        _check_size(largest)
        if largest < 1e-60:
            raise UndeterminedError(
                f"X must contain samples that differ; the largest distance from their mean is {largest:.0e}"
            )
        return mean, Recordings([array - mean for array in self.arrays], self.form)


def from_mne(raw: Any) -> Any:
    """Return the samples of objects of MNE: of continuous ones, (n_samples, n_channels), and of epochs, as they are.

    Whatever has a method `get_data` counts, such as Raw, Epochs and Evoked; other data is returned unchanged.
    """
    read = getattr(raw, "get_data", None)
    if not callable(read) or hasattr(raw, "__array__"):
        return raw
    data = np.asarray(read())
    return data.T if data.ndim == 2 else data


def check_orientation(data: Any) -> None:
    """Raise before anything is computed if recordings have more channels than samples."""
    arrays = data if isinstance(data, list | tuple) else [data]
    shapes = [tuple(getattr(array, "shape", ())) for array in arrays]
    if not shapes or any(len(shape) != len(shapes[0]) for shape in shapes) or len(shapes[0]) not in (2, 3):
        return  # not recordings, or parts of unknown sizes: what follows says so
    n_channels = shapes[0][1]
    n_samples = sum(shape[0] if len(shape) == 2 else shape[0] * shape[2] for shape in shapes)
    if isinstance(n_samples, int | np.integer) and 1 < n_samples < n_channels:
        raise UndeterminedError(rank_advice(int(n_samples), n_channels))


def as_recordings(estimator: Any, raw: Any, *, first: bool, least: int = 2) -> Recordings:
    """Return recordings in double precision; `first` if they set the number of channels of the estimator.

    An array of shape (n_samples, n_channels) is one recording, an array of shape (n_epochs, n_channels, n_times) holds
    one recording per epoch, and a list of arrays of two axes holds recordings of any lengths.
    """
    raw = from_mne(raw)
    form = _form_of(estimator, raw)
    if form == "array":
        return Recordings([as_samples(estimator, raw, first, least)], "array")
    if form == "list":
        arrays = [as_samples(estimator, array, first and not number, 1) for number, array in enumerate(raw)]
    else:
        cube = _in_double(partial(check_array, allow_nd=True, **CHECKS, input_name="X"), raw, estimator.takes_complex)
        if 0 in cube.shape:
            raise ValueError(f"X must contain epochs, channels and times, at least one each; got shape {cube.shape}")
        arrays = [as_samples(estimator, epoch.T, first and not number, 1) for number, epoch in enumerate(cube)]
    recordings = Recordings(arrays, form)
    if recordings.n_samples < least:
        raise ValueError(f"X must contain at least {least} samples in all recordings; got {recordings.n_samples}")
    return recordings


def _form_of(estimator: Any, raw: Any) -> str:
    """Return the form of recordings."""
    if isinstance(raw, Iterator) or (callable(raw) and not hasattr(raw, "__array__")):
        raise TypeError(
            f"X must be in memory for {type(estimator).__name__}, {FORMS}, since samples are read more than once; got "
            f"{type(raw).__name__}. Concatenate the parts"
        )
    _check_mask(raw)
    if raw is None or (isinstance(raw, str | bytes | Mapping | set) and not hasattr(raw, "ndim")):
        raise TypeError(f"X must be {FORMS}; got {type(raw).__name__}")
    if isinstance(raw, list | tuple):
        axes = [_n_axes(item) for item in raw]
        if axes and all(getattr(item, "ndim", 0) == 2 for item in raw):
            return "list"
        if max(axes, default=0) > 1:
            raise ValueError(f"X must be {FORMS}; got a list whose first items have {axes[:3]} axes")
        return "array"
    n_axes = getattr(raw, "ndim", 2)
    if n_axes > 3:
        raise ValueError(f"X must be {FORMS}; got an array of {n_axes} axes")
    return "epochs" if n_axes == 3 else "array"


def _n_axes(item: Any) -> int:
    """Return the number of axes of an array, or the depth of nested lists along their first items."""
    if isinstance(item, list | tuple):
        return 1 + (_n_axes(item[0]) if item else 0)
    return int(getattr(item, "ndim", 0))


def _check_mask(raw: Any) -> None:
    n_masked = int(np.sum(np.ma.getmaskarray(raw))) if np.ma.isMaskedArray(raw) else 0
    if n_masked:
        raise ValueError(f"X must contain all samples; {n_masked} entries are masked. {GAPS}")


def _check_size(largest: float) -> None:
    if not largest < MAX_SAMPLE:
        raise ValueError(f"X must contain numbers whose fourth powers are numbers; some are {largest:.0e}. Divide it")


def rank_advice(n_samples: int, n_channels: int) -> str:
    """Return advice to transpose if there are no more samples than channels, else an empty string."""
    if n_samples > n_channels:
        return ""
    return (
        f"X has {n_samples} samples of {n_channels} channels, and covariances of so few are singular. If its rows are "
        "channels, transpose it: rows are samples, (n_samples, n_channels), and epochs (n_epochs, n_channels, n_times)"
    )


def samples_of_part(part: Any, *, allow_complex: bool = False) -> np.ndarray:
    """Return the samples of a part of a stream, (n_samples, n_channels); the parts of a bag are lists of arrays."""
    for array in part if isinstance(part, list | tuple) else [part]:
        _check_mask(array)
    samples = _in_double(partial(check_array, **CHECKS, input_name="X"), as_rows(part), allow_complex)
    return summable(_finite(samples))


def summable(samples: np.ndarray) -> np.ndarray:
    """Return samples; raise if their fourth powers overflow."""
    _check_size(float(np.max(np.abs(samples))))
    return samples


def as_samples(estimator: Any, raw: Any, first: bool, least: int) -> np.ndarray:
    """Return samples of one recording, (n_samples, n_channels)."""
    _check_mask(raw)
    check = partial(validate_data, estimator, reset=first, ensure_min_samples=least, **CHECKS)
    return _finite(_in_double(lambda array: check(X=array), raw, estimator.takes_complex))


def _in_double(check: Callable[[Any], np.ndarray], raw: Any, allow_complex: bool) -> np.ndarray:
    """Return an array that was checked, in double precision; checks are for real arrays, and refuse complex ones."""
    if not _is_complex(raw):
        return check(raw)
    if not allow_complex:
        raise ValueError("Complex data not supported: X must be real. codiag.models.SOBI takes complex recordings")
    try:
        entries = np.asarray(raw)
    except ValueError as error:
        raise ValueError("X must have as many channels in every sample; its rows have different lengths") from error
    return check(entries.real) + 1j * check(entries.imag)


def _is_complex(raw: Any) -> bool:
    """Return whether an array, or the first row of nested lists, has complex numbers."""
    if isinstance(raw, list | tuple):
        return any(isinstance(number, complex) for number in (raw[0] if raw and _n_axes(raw) == 2 else raw))
    known = getattr(getattr(raw, "dtype", None), "kind", None)
    return (np.asarray(raw).dtype.kind if known is None else known) == "c"


def _finite(samples: np.ndarray) -> np.ndarray:
    """Return samples; raise if some are not finite."""
    finite = np.isfinite(samples)
    if not finite.all():
        sample, channel = np.argwhere(~finite)[0]
        kind = "NaN" if np.any(np.isnan(samples)) else "infinity"
        raise ValueError(
            f"X must contain finite numbers. Input X contains {kind}: {np.sum(~finite)} of {samples.size} entries, the "
            f"first in sample {sample}, channel {channel}. {GAPS}"
        )
    return samples


@dataclass(frozen=True, eq=False, kw_only=True)
class Separation:
    """A separation of whitened recordings, with its standard errors."""

    unmixing: np.ndarray  # (k, k): sources are its product with whitened samples
    converged: bool
    n_steps: int
    variances: np.ndarray  # (k, k): of the share of source i in column j of the mixing, in units of their columns
    resolved: np.ndarray  # (k, k): share of the gap between two sources that sampling noise does not explain
    attributes: dict[str, np.ndarray] = field(default_factory=dict)  # further learned attributes, one row per source

    @property
    def pair_variances(self) -> np.ndarray:
        """The sums of the variances of the shares of two sources in each other, (k, k), zero on the diagonal."""
        shares = self.variances - np.diag(np.diag(self.variances))
        return shares + shares.T


@dataclass(frozen=True, eq=False)
class Whitening:
    """Principal components of unit variance."""

    mean: np.ndarray  # (d,)
    rows: np.ndarray  # (k, d): whitened samples are their product with centered ones
    columns: np.ndarray  # (d, k): their pseudo-inverse
    n: int  # samples they are of

    @classmethod
    def of(cls, mean: np.ndarray, covariance: np.ndarray, k: int | None, n: int) -> Whitening:
        """Return the k leading principal components, by default as many as there are independent channels.

        By default channels are first divided by their standard deviations: their units may differ by large factors, as
        those of electric and magnetic sensors do, and all components together span the same space in any unit.
        """
        sizes = np.sqrt(np.maximum(np.diag(covariance).real, 0))
        varying = sizes > np.maximum(ROUNDING * np.max(sizes), 64 * np.finfo(float).eps * np.abs(mean))
        if not np.any(varying):
            raise UndeterminedError(
                "X must contain samples that differ, by more than rounding does; they are all the same"
            )
        units = np.where(varying, sizes, 1) if k is None else np.full(sizes.size, np.max(sizes))
        values, vectors = np.linalg.eigh(np.where(np.outer(varying, varying), covariance, 0) / np.outer(units, units))
        values, vectors = values[::-1], vectors[:, ::-1]
        rank = int(np.sum(values > values[0] * 10 * max(n, values.size) * np.finfo(float).eps))
        if k is not None and k > rank:
            limit = "channels" if rank == values.size else "independent channels, which recordings have"
            raise UndeterminedError(f"n_components must be at most {rank}, the number of {limit}; got {k}")
        k = rank if k is None else k
        vectors, roots = vectors[:, :k], np.sqrt(values[:k])
        vectors = vectors * conjugate(largest_signs(vectors))
        return cls(mean, adjoint(vectors / roots) / units, (vectors * roots) * units[:, None], n)

    def of_products(self, products: np.ndarray) -> np.ndarray:
        """Return Hermitian products of channels, (n, d, d), as products of components, (n, k, k), exactly Hermitian."""
        inside = self.rows @ products @ adjoint(self.rows)
        return np.asarray(inside + adjoint(inside)) / 2


class BlindSources(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Model):
    """Base of estimators of sources that are mixed linearly by an unknown matrix."""

    optional: ClassVar[frozenset[str]] = frozenset({"n_components"})
    takes_complex: ClassVar[bool] = False

    def __init__(
        self, n_components: int | None, *, max_iter: int, diagonalizer: Diagonalizer | None, random_state: Any
    ) -> None:
        self.n_components = n_components
        self.max_iter = max_iter
        self.diagonalizer = diagonalizer
        self.random_state = random_state

    def learn(self, data: Any) -> tuple[Warning, ...]:
        """Do the work of `fit` without issuing warnings, and return them.

        Parameters
        ----------
        data : array of shape (n_samples, n_channels) or (n_epochs, n_channels, n_times), list of recordings, MNE object
            As for `fit`.

        Returns
        -------
        tuple of Warning
            The warnings of `fit`.

        Examples
        --------
        >>> from codiag.models import JADE
        >>> from codiag.synthetic import mixed_signals
        >>> channels = mixed_signals(2000, ["uniform", "laplace"], seed=0).channels
        >>> JADE().learn(channels)
        ()
        """
        self.check_parameters()
        data = from_mne(data)
        check_orientation(data)
        recordings = as_recordings(self, data, first=True)
        mean, centered = recordings.centered()
        covariance = sum(array.T @ conjugate(array) for array in centered.arrays) / centered.n_samples
        whitening = Whitening.of(mean, covariance, self.n_components, centered.n_samples)
        whitened = Recordings([array @ whitening.rows.T for array in centered.arrays], centered.form)
        return self._keep(self._separated(whitened), whitening)

    def check_parameters(self) -> None:
        """Raise unless parameters are valid."""
        super().check_parameters()
        if self.diagonalizer is not None and not check_method(self.diagonalizer).symmetric:
            raise ValueError(
                "diagonalizer must be one for symmetric matrices, like OrthogonalNewton() or UWEDGE(); got "
                f"{self.diagonalizer!r}"
            )

    def _separated(self, whitened: Recordings) -> Separation:
        """Return the separation of recordings of uncorrelated channels with unit variance."""
        raise NotImplementedError(f"{type(self).__name__} must implement _separated(whitened)")

    def _keep(self, separation: Separation, whitening: Whitening) -> tuple[Warning, ...]:
        """Set learned attributes, sources sorted by the variance they explain, and return the warnings."""
        mixing = whitening.columns @ np.linalg.inv(separation.unmixing)
        strength = np.sum(squared_magnitudes(mixing), axis=0)
        order = np.argsort(-strength, kind="stable")
        signs = largest_signs(mixing[:, order])
        variances = separation.variances[np.ix_(order, order)]
        self.mean_, self.whitening_ = whitening.mean, whitening.rows
        self.mixing_ = mixing[:, order] * conjugate(signs)
        self.components_ = (separation.unmixing @ whitening.rows)[order] * signs[:, None]
        self.explained_variance_ = strength[order]
        self.n_components_ = order.size
        self.mixing_standard_errors_ = np.sqrt(squared_magnitudes(self.mixing_) @ variances)
        self.unresolved_ = _unresolved(variances, separation.resolved[np.ix_(order, order)])
        self.converged_, self.n_iter_ = separation.converged, separation.n_steps
        for name, values in separation.attributes.items():
            setattr(self, name, values[order])
        advice = rank_advice(whitening.n, whitening.mean.size)
        complaints: tuple[Warning, ...] = (UserWarning(advice),) if advice else ()
        if separation.converged:
            return complaints
        text = f"{type(self).__name__} did not converge in {separation.n_steps} steps; the best iterate is kept"
        text += self._reason_not_converged(whitening.n)
        return (*complaints, ConvergenceWarning(text))

    def _reason_not_converged(self, n_samples: int) -> str:
        """Return what learned attributes say about the reason, as a further sentence, or nothing."""
        return ""

    def transform(self, X: Any) -> Any:  # noqa: N803
        """Return the sources of recordings; those of the recordings of `fit` have unit variance.

        Parameters
        ----------
        X : array of shape (n_samples, n_channels) or (n_epochs, n_channels, n_times), list of recordings, MNE object
            The recordings. ``Raw`` of MNE is an array of shape (n_samples, n_channels) here.

        Returns
        -------
        array of shape (n_samples, n_components) or (n_epochs, n_components, n_times), or list of arrays
            The sources, in the layout of the recordings.

        See Also
        --------
        SOBI.inverse_transform : From sources to recordings.

        Examples
        --------
        >>> from codiag.models import SOBI
        >>> from codiag.synthetic import mixed_signals
        >>> channels = mixed_signals(2000, ["sinusoid", "autoregressive"], seed=0).channels
        >>> model = SOBI(lags=20).fit(channels)
        >>> model.transform(channels).std(axis=0).round(6).tolist()
        [1.0, 1.0]
        """
        check_is_fitted(self)
        recordings = as_recordings(self, X, first=False, least=1)
        return recordings.mapped(lambda samples: (samples - self.mean_) @ self.components_.T)

    def inverse_transform(self, X: Any) -> Any:  # noqa: N803
        """Return the recordings that are mixtures of given sources.

        Parameters
        ----------
        X : array of shape (n_samples, n_components) or (n_epochs, n_components, n_times), or list of arrays
            Sources; those set to zero are removed from the recordings.

        Returns
        -------
        array of shape (n_samples, n_channels) or (n_epochs, n_channels, n_times), or list of arrays
            The recordings, in the layout of the sources.

        See Also
        --------
        SOBI.transform : The sources of recordings.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import SOBI
        >>> from codiag.synthetic import mixed_signals
        >>> channels = mixed_signals(2000, ["sinusoid", "autoregressive"], seed=0).channels
        >>> model = SOBI(lags=20).fit(channels)
        >>> sources = model.transform(channels)
        >>> np.allclose(model.inverse_transform(sources), channels)
        True
        """
        check_is_fitted(self)
        if isinstance(X, list | tuple) and X and all(getattr(array, "ndim", 0) == 2 for array in X):
            return [self.inverse_transform(array) for array in X]
        sources = _in_double(
            partial(check_array, allow_nd=True, dtype=np.float64, input_name="X"), X, self.takes_complex
        )
        axis = 1 if sources.ndim == 2 else -2
        if sources.ndim not in (2, 3) or sources.shape[axis] != self.n_components_:
            raise ValueError(
                f"X must have shape (n_samples, {self.n_components_}) or (n_epochs, {self.n_components_}, n_times), "
                f"the sources; got {sources.shape}"
            )
        if sources.ndim == 2:
            return sources @ self.mixing_.T + self.mean_
        return self.mixing_ @ sources + self.mean_[:, None]

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags


def _unresolved(variances: np.ndarray, resolved: np.ndarray) -> list[tuple[int, int]]:
    """Return the pairs of sources whose shares in each other have large standard errors.

    Variances are computed from gaps between sources as estimated, and corrected for the sampling noise in these gaps.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = np.sqrt(variances / resolved)
    uncertain = ~(errors < UNRESOLVED)
    return [(int(i), int(j)) for i, j in np.argwhere(np.triu(uncertain | uncertain.T, 1))]
