"""Sources whose variances change with time, from covariances of stretches of a recording."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from codiag._validation import UndeterminedError
from codiag.diagonalize import Diagonalizer
from codiag.models._recordings import Recordings
from codiag.models._score_steps import Segment, scale_variances, transformed
from codiag.models._second_order import SecondOrder, Stack
from codiag.models._sources import Separation

FLOOR = 0.01
"""Least variance of a source in a block, as a share of its mean variance: silence would weigh without bound."""


@dataclass(frozen=True, eq=False)
class BlockStack(Stack):
    """Covariances of blocks, each times its length over the mean length, after that of all."""

    shares: np.ndarray  # lengths of blocks over their mean

    @classmethod
    def of(cls, blocks: list[np.ndarray]) -> BlockStack:
        """Return the covariances of blocks of samples around zero."""
        n = sum(block.shape[0] for block in blocks)
        covariances = np.stack([block.T @ block for block in blocks]) * (len(blocks) / n)
        shares = np.array([block.shape[0] for block in blocks]) * (len(blocks) / n)
        return cls(np.concatenate([[covariances.mean(axis=0)], covariances]), np.arange(len(blocks) + 1), n, shares)

    def noise(self, diagonals: np.ndarray) -> np.ndarray:
        """Return the variance of the variance of a block, of Gaussian samples, in the mean over blocks."""
        variances: np.ndarray = 2 * np.mean(diagonals[1:] ** 2, axis=0) * self.shares.size / self.n
        return variances


class NSS(SecondOrder[BlockStack]):
    r"""Sources whose variances change: joint diagonalization of covariances of blocks, and a likelihood to polish it.

    Channels :math:`x_t = A s_t + \mu` mix independent sources. The covariances of stretches of time,
    :math:`C_b = A\, \mathrm{diag}(\sigma_{1b}^2, \dots, \sigma_{kb}^2)\, A^\top`, have the mixing in common: it is
    found by whitening and orthogonal joint diagonalization (nonstationary source separation, NSS-JD). Steps of the
    Gaussian likelihood follow, the criterion of Pham and Cardoso, and are kept where they promise the smaller errors.

    **Needs** sources whose variances change differently from block to block; any distribution. **Costs** one pass over
    the data of :math:`2 n d^2` operations, then work on matrices of the size of the components. **Guarantees** the same
    sources from every seed, and of Gaussian sources that are white in every block the least error that is possible in
    large samples. **Fails** where the variances of two sources are proportional, which `unresolved_` says.

    Parameters
    ----------
    n_components : int, optional
        Number of sources; the leading principal components are then unmixed. By default as many as channels, or as
        these are independent.
    n_blocks : int
        Stretches of equal length that every recording is cut into; an epoch is a block by itself.
    polish : int
        Steps of the likelihood at most; zero is joint diagonalization alone.
    diagonalizer : Diagonalizer, optional
        What diagonalizes the covariances; by default `codiag.diagonalize.OrthogonalNewton` to its fixed point.
    random_state : int, optional
        Seed of the start; the answer does not depend on it where the data determines it.

    Attributes
    ----------
    components_ : array of shape (n_components, n_channels)
        The unmixing: sources are ``(X - mean_) @ components_.T``, with unit variance over all, those that explain most
        variance of the channels first.
    mixing_ : array of shape (n_channels, n_components)
        Its pseudo-inverse; the largest entry of each column is positive.
    mixing_standard_errors_ : array of shape (n_channels, n_components)
        Of the entries of the mixing, for independent sources, within the space of the principal components.
    unresolved_ : list of pairs of int
        Sources that the data does not tell apart.
    whitening_ : array of shape (n_components, n_channels)
        What turns channels to principal components of unit variance.
    mean_ : array of shape (n_channels,)
        Mean of each channel.
    explained_variance_ : array of shape (n_components,)
        Squared norms of the columns of the mixing.
    converged_ : bool
        Whether the last iteration reached its tolerance.
    n_iter_ : int
        Sweeps of the diagonalizer and steps of the likelihood.
    n_components_, n_features_in_ : int
        Numbers of sources and of channels.

    See Also
    --------
    SOBI : Sources with different spectra.
    JADE : Sources that are not Gaussian.
    codiag.metrics.minimum_distance : Compare an unmixing with the true one.

    Notes
    -----
    An array of three axes holds epochs, (n_epochs, n_channels, n_times), as MNE has them; a list holds recordings of
    any lengths, (n_samples, n_channels) each.

    References
    ----------
    S. Choi and A. Cichocki, "Blind separation of nonstationary sources in noisy mixtures", Electron. Lett. 36(9), 2000.
    D.-T. Pham and J.-F. Cardoso, "Blind separation of instantaneous mixtures of nonstationary sources", IEEE Trans.
    Signal Process. 49(9), 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.metrics import minimum_distance
    >>> from codiag.models import NSS
    >>> rng = np.random.default_rng(0)
    >>> loud = np.repeat(rng.uniform(0.2, 2, (10, 3)), 1000, axis=0)
    >>> mixing = rng.standard_normal((3, 3))
    >>> model = NSS(n_blocks=10).fit((loud * rng.standard_normal((10_000, 3))) @ mixing.T)
    >>> minimum_distance(model.components_, mixing) < 0.1, model.unresolved_
    (True, [])
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_blocks: int = 20,
        polish: int = 50,
        diagonalizer: Diagonalizer | None = None,
        random_state: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_blocks = n_blocks
        self.polish = polish
        self.diagonalizer = diagonalizer
        self.random_state = random_state

    def check_parameters(self) -> None:
        """Raise unless parameters are what they must be.

        Examples
        --------
        >>> from codiag.models import NSS
        >>> NSS().check_parameters()
        >>> NSS(n_blocks=0).check_parameters()  # refused
        Traceback (most recent call last):
            ...
        ValueError: n_blocks must be at least 2, since one covariance tells no sources apart; got 0
        """
        super().check_parameters()
        if self.n_blocks < 2:
            raise ValueError(
                f"n_blocks must be at least 2, since one covariance tells no sources apart; got {self.n_blocks}"
            )

    def _separated(self, whitened: Recordings) -> Separation:
        blocks = self._blocks(whitened)
        if len(blocks) < 2:
            raise UndeterminedError(
                "X must hold two blocks or more, since one covariance tells no sources apart; got 1"
            )
        stack = BlockStack.of(blocks)
        return self._separated_stack(stack, Recordings(blocks, "list"))

    def _blocks(self, recordings: Recordings) -> list[np.ndarray]:
        """Return epochs as they are, and other recordings cut into stretches."""
        if recordings.form == "epochs":
            return recordings.arrays
        return [part for one in recordings.arrays for part in np.array_split(one, min(self.n_blocks, one.shape[0]))]

    def _scores(self, own: np.ndarray, stack: BlockStack) -> np.ndarray:
        variances = own[1:] / stack.shares[:, None]
        scores = np.zeros(own.shape).T
        scores[:, 1:] = 1 / np.maximum(variances, FLOOR * own[0]).T / stack.shares.size
        return scores

    def _segments(
        self, sources: Recordings | None, filters: np.ndarray, stack: BlockStack, own: np.ndarray
    ) -> Iterator[Segment]:
        if sources is None:
            return
        for place, samples in enumerate(sources.arrays):
            transform, length = transformed(samples)
            factors = filters[:, 0] + filters[:, place + 1] * stack.shares.size
            yield Segment(transform, transform * factors, samples.shape[0], length)

    def _own_variances(self, sources: Recordings | None, stack: BlockStack, own: np.ndarray) -> np.ndarray:
        return np.zeros(own.shape[1]) if sources is None else scale_variances(sources.arrays)
