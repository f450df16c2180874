"""Sources with different spectra, from covariances of a recording with itself some samples later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from codiag._checks import UndeterminedError, as_number
from codiag.diagonalize import Diagonalizer
from codiag.models.base import merged
from codiag.models.sources._base import Recordings, Separation, Whitening
from codiag.models.sources._lagged_sums import N_LEADING, LaggedSums, sums_of_part
from codiag.models.sources._likelihood import (
    Segment,
    cosine_response,
    inverse_spectra,
    joined_parts,
    scale_variances,
    separate_parts,
    transformed,
)
from codiag.models.sources._second_order import SecondOrder, Stack
from codiag.parts import Parts, as_parts, is_matrix

SPECTRAL_FLOOR = 0.1
"""White noise added to the spectrum of a source before it is inverted, relative to its variance. In simulations,
autoregressive sources lose nothing, and lines in the spectrum, such as sinusoids, do not dominate the filter."""
N_FREQUENCIES = 4096
"""Length of the transform at which spectra of autoregressive models are evaluated."""


class SOBI(SecondOrder[Stack, LaggedSums]):
    r"""Sources with different spectra: joint diagonalization of lagged covariances, then maximum likelihood.

    Channels :math:`x_t = A s_t + \mu` mix independent sources. Their covariances at lag l,
    :math:`C_l = A\, \mathrm{diag}(r_1(l), \dots, r_k(l))\, A^\top`, have the mixing in common: it is found by whitening
    and orthogonal joint diagonalization (second-order blind identification, SOBI). Steps of a Gaussian likelihood
    follow, in which every source has the spectrum of an autoregression fitted to it. They are kept for the pairs of
    sources for which they predict clearly smaller errors.

    Complex recordings, such as radio signals, have complex sources and :math:`C_l = A\, \mathrm{diag}(r(l))\, A^H` with
    complex autocovariances. Their Hermitian and their skew parts are diagonalized by a unitary matrix, so that sources
    at opposite frequencies are separated, too.

    **Needs** sources whose autocorrelations differ; their distributions may be Gaussian. **Costs** about
    :math:`4 n d^2` operations for covariances of all lags together, by Fourier transforms, then work on matrices of the
    size of the components. **Guarantees** the same sources from every seed. For Gaussian autoregressions of no more
    lags than are used, errors in large samples are at most an eighth above the least possible. **Fails** if two sources
    have the same spectrum; they are then listed in `unresolved_`.

    Parameters
    ----------
    n_components : int, optional
        Number of sources; as many leading principal components are unmixed. By default the number of linearly
        independent channels, whatever their units.
    lags : int or sequence of int
        Lags in samples: 1, 2, ... up to this number, but at most half of the longest recording; or a list of lags.
    max_iter : int
        Largest number of steps of the likelihood, which use the consecutive lags from one on; zero is joint
        diagonalization alone.
    diagonalizer : Diagonalizer, optional
        Diagonalizer of the covariances; by default `codiag.diagonalize.OrthogonalNewton` until its fixed point. One
        that is not orthogonal, such as `codiag.diagonalize.UWEDGE`, gives lag zero no more weight than other lags.
    random_state : int, optional
        Seed of the start; the estimate does not depend on it if the data determines the sources.

    Attributes
    ----------
    components_ : array of shape (n_components, n_channels)
        The unmixing: sources are ``(X - mean_) @ components_.T``, with unit variance, sorted by the variance of the
        channels that they explain, largest first.
    mixing_ : array of shape (n_channels, n_components)
        Its pseudo-inverse; the largest entry of each column is positive, or real and positive if it is complex.
    mixing_standard_errors_ : array of shape (n_channels, n_components)
        Standard errors of the mixing, for independent stationary sources, within the space of the principal components.
        If it is complex, roots of mean squared magnitudes of errors, for phases of columns that fit best.
    unresolved_ : list of pairs of int
        Pairs of sources that the data does not separate.
    whitening_ : array of shape (n_components, n_channels)
        From channels to principal components of unit variance; if all are kept, those of channels divided by their
        standard deviations.
    mean_ : array of shape (n_channels,)
        Mean of each channel.
    explained_variance_ : array of shape (n_components,)
        Squared norms of the columns of the mixing.
    converged_ : bool
        Whether the last iteration reached its tolerance.
    n_iter_ : int
        Number of sweeps of the diagonalizer plus steps of the likelihood.
    n_components_, n_features_in_ : int
        Numbers of sources and of channels.

    See Also
    --------
    JADE : Sources that are not Gaussian.
    NSS : Sources whose variances change.
    codiag.metrics.minimum_distance : Compare an unmixing with the true one.

    Notes
    -----
    An array of three axes is one of epochs, (n_epochs, n_channels, n_times), as in MNE; a list has recordings of any
    lengths, (n_samples, n_channels) each. No products are formed across the border of two epochs or recordings. The
    chunks of a dask array, the parts of an iterator and those given to `partial_fit` are consecutive: the estimate is
    that of one array, to rounding, except for standard errors, which then assume Gaussian autoregressions.

    References
    ----------
    A. Belouchrani, K. Abed-Meraim, J.-F. Cardoso and E. Moulines, "A blind source separation technique using
    second-order statistics", IEEE Trans. Signal Process. 45(2), 1997.
    D.-T. Pham and P. Garat, "Blind separation of mixture of independent sources through a quasi-maximum likelihood
    approach", IEEE Trans. Signal Process. 45(7), 1997.

    Examples
    --------
    >>> from codiag.metrics import minimum_distance
    >>> from codiag.models import SOBI
    >>> from codiag.synthetic import mixed_signals
    >>> mixed = mixed_signals(10_000, ["sinusoid", "autoregressive", "square", "bursts"], seed=0)
    >>> model = SOBI(lags=20).fit(mixed.channels)
    >>> minimum_distance(model.components_, mixed.mixing) < 0.1, model.unresolved_
    (True, [])
    """

    takes_complex: ClassVar[bool] = True

    def __init__(
        self,
        n_components: int | None = None,
        *,
        lags: int | Sequence[int] = 50,
        max_iter: int = 50,
        diagonalizer: Diagonalizer | None = None,
        random_state: int | None = None,
    ) -> None:
        super().__init__(n_components, max_iter=max_iter, diagonalizer=diagonalizer, random_state=random_state)
        self.lags = lags

    def _parts_of(self, data: Any) -> Parts | None:
        """Return data in consecutive parts, or None if it is in memory."""
        in_memory = isinstance(data, list | tuple) or getattr(data, "ndim", 2) == 3
        return None if in_memory else as_parts(data, is_matrix)

    def _sums_of_parts(self, parts: Parts) -> LaggedSums:
        sums: LaggedSums = parts.reduce(sums_of_part, self._max_lag())
        return sums

    def _sums_over(self, samples: np.ndarray, before: LaggedSums | None) -> LaggedSums:
        if before is not None and before.pairs.size != self._max_lag() + 1:
            raise ValueError(f"lags must be as they were, up to {before.pairs.size - 1}; got {self.lags}. Begin anew")
        return LaggedSums.over(samples, self._max_lag(), open=True)

    def _separated_sums(self, sums: LaggedSums) -> tuple[Separation, Whitening]:
        n, mean, covariances = sums.finish()
        whitening = Whitening.of(mean, covariances[0], self.n_components, n)
        leading = Recordings([(sums.head[:N_LEADING] - mean) @ whitening.rows.T], "list")
        stack = self._lag_stack(whitening.of_products(covariances), n, n)
        return self._separated_stack(stack, None, leading), whitening

    def _separated(self, whitened: Recordings) -> Separation:
        longest = max(array.shape[0] for array in whitened.arrays)
        max_lag = int(self._used_lags(longest)[-1])
        sums = merged([LaggedSums.over(array, max_lag) for array in whitened.arrays])
        stack = self._lag_stack(sums.finish().matrices, whitened.n_samples, longest)
        return self._separated_stack(stack, whitened, whitened.leading(N_LEADING))

    def _used_lags(self, longest: int) -> np.ndarray:
        """Return the lags in ascending order, below the length of the longest recording."""
        if longest < 2:
            raise UndeterminedError("X must contain samples that follow each other; every recording is a single one")
        if isinstance(self.lags, int | np.integer):
            return np.arange(1, min(self.lags, max(1, longest // 2)) + 1)
        lags = np.unique(np.asarray(self.lags))
        if lags[-1] >= longest:
            raise UndeterminedError(
                f"lags must be below {longest}, the number of samples of the longest recording; got {lags[-1]}"
            )
        return lags

    def _max_lag(self) -> int:
        """Return the largest lag before the number of samples is known."""
        return int(self.lags if isinstance(self.lags, int | np.integer) else max(self.lags))

    def _lag_stack(self, matrices: np.ndarray, n: int, longest: int) -> Stack:
        """Return covariances of whitened channels up to the largest lag, to diagonalize at lag zero and used lags."""
        lags = self._used_lags(longest)
        n_lags, used = int(lags[-1]), np.concatenate([[0], lags])
        if not np.iscomplexobj(matrices):
            return Stack(matrices[: n_lags + 1], used, n)
        middle = matrices.shape[0] // 2 + 1  # the imaginary parts begin there, at lag one
        both = np.concatenate([matrices[: n_lags + 1], matrices[middle : middle + n_lags]])
        return Stack(both, np.concatenate([used, n_lags + lags]), n)

    def check_parameters(self) -> None:
        """Raise unless parameters are valid.

        Examples
        --------
        >>> from codiag.models import SOBI
        >>> SOBI().check_parameters()
        >>> SOBI(lags=0).check_parameters()  # refused
        Traceback (most recent call last):
            ...
        ValueError: lags must be positive; got 0
        """
        super().check_parameters()
        lags: Any = self.lags
        if not (isinstance(lags, list | tuple | range) or getattr(lags, "ndim", 0) == 1):
            lags = [lags]
        if len(lags) == 0:
            raise ValueError("lags must contain one lag or more; got none")
        for lag in lags:
            as_number("lags", lag, integer=True)

    def _scores(self, autocovariances: np.ndarray, stack: Stack) -> np.ndarray:
        """Return the coefficients of the lags in the inverse filter of every source, (k, n_lags)."""
        order = stack.n_consecutive
        values = joined_parts(autocovariances.T, stack.is_complex)
        filters = np.zeros_like(values)
        filters[:, : order + 1] = inverse_spectra(values[:, : order + 1], SPECTRAL_FLOOR)
        return separate_parts(filters)

    def _segments(
        self, sources: Recordings | None, filters: np.ndarray, stack: Stack, own: np.ndarray
    ) -> Iterator[Segment]:
        """Yield Fourier transforms of sources, or of autoregressive models of them, and of their filtered versions."""
        filters = joined_parts(filters, stack.is_complex)
        if sources is None:
            transform = np.sqrt(stack.n) * _model_spectra(own, stack)  # the squares are n times the density
            yield Segment.filtered(transform, cosine_response(filters, N_FREQUENCIES), stack.n, N_FREQUENCIES)
            return
        responses: dict[int, np.ndarray] = {}
        for samples in sources.pieces():
            transform, length = transformed(samples)
            if length not in responses:
                responses = {length: cosine_response(filters, length)}
            yield Segment.filtered(transform, responses[length], samples.shape[0], length)

    def _own_variances(self, sources: Recordings | None, stack: Stack, own: np.ndarray) -> np.ndarray:
        if sources is not None:
            return scale_variances(sources.arrays)
        spectra = np.abs(_model_spectra(own, stack)) ** 2
        weights = np.full(spectra.shape[0], 2.0 if not stack.is_complex else 0.5)
        if not stack.is_complex:
            weights[[0, -1]] = 1.0
        variances: np.ndarray = (weights @ spectra**2) / N_FREQUENCIES / (2 * stack.n)
        return variances


def _model_spectra(own: np.ndarray, stack: Stack) -> np.ndarray:
    """Return roots of the spectral densities of autoregressions with these autocovariances, (n_freq, k)."""
    return 1 / np.sqrt(cosine_response(inverse_spectra(joined_parts(own.T, stack.is_complex), 1e-6), N_FREQUENCIES))
