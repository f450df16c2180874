"""Sources whose variances change with time, from covariances of stretches of a recording."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from codiag._parts import Parts, as_parts, is_matrix
from codiag._validation import UndeterminedError
from codiag.diagonalize import Diagonalizer
from codiag.models._gaussian_em import samples_of
from codiag.models._recordings import Recordings
from codiag.models._score_steps import Segment, scale_variances, transformed
from codiag.models._second_order import SecondOrder, Stack
from codiag.models._sources import Separation, Whitening

FLOOR = 0.01
"""Least variance of a source in a block, as a share of its mean variance: silence would weigh without bound."""


@dataclass(frozen=True, eq=False)
class BlockStack(Stack):
    """Covariances of blocks, each times its length over the mean length, after that of all."""

    shares: np.ndarray  # lengths of blocks over their mean

    @classmethod
    def of(cls, products: np.ndarray, counts: np.ndarray) -> BlockStack:
        """Return the covariances of blocks, from products around zero and numbers of samples."""
        if counts.size < 2:
            raise UndeterminedError(
                "X must hold two blocks or more, since one covariance tells no sources apart; got 1. An epoch is a "
                "block, and so is a sample where there are fewer than n_blocks"
            )
        n = int(counts.sum())
        covariances = products * (counts.size / n)
        places = np.arange(counts.size + 1)
        return cls(np.concatenate([[covariances.mean(axis=0)], covariances]), places, n, counts * (counts.size / n))

    def noise(self, diagonals: np.ndarray) -> np.ndarray:
        """Return the variance of the variance of a block, of Gaussian samples, in the mean over blocks."""
        variances: np.ndarray = 2 * np.mean(diagonals[1:] ** 2, axis=0) * self.shares.size / self.n
        return variances


@dataclass(eq=False)
class BlockSums:
    """Numbers, means and products of the samples of blocks, which add up by being listed."""

    counts: np.ndarray  # (n_blocks,)
    means: np.ndarray  # (n_blocks, d)
    products: np.ndarray  # (n_blocks, d, d), around the means

    @classmethod
    def over(cls, blocks: list[np.ndarray]) -> Self:
        """Return the sums over blocks of samples."""
        means = [block.mean(axis=0) for block in blocks]
        centered = [block - mean for block, mean in zip(blocks, means, strict=True)]
        counts = np.array([len(block) for block in blocks])
        return cls(counts, np.stack(means), np.stack([block.T @ block for block in centered]))

    @property
    def n_channels(self) -> int:
        """How many channels there are."""
        return self.means.shape[1]

    def merge(self, other: Self) -> Self:
        """Add other sums to these, and return these."""
        if other.n_channels != self.n_channels:
            raise ValueError(
                f"X must have as many channels in every part; got {self.n_channels}, then {other.n_channels}"
            )
        for name, mine in vars(self).items():
            setattr(self, name, np.concatenate([mine, getattr(other, name)]))
        return self

    def merged(self, other: Self) -> Self:
        """Return these sums and others, of which none is changed."""
        return copy.copy(self).merge(other)

    def finish(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean of all samples, and products around it block by block."""
        mean = self.counts @ self.means / self.counts.sum()
        offsets = self.means - mean
        return mean, self.products + self.counts[:, None, None] * offsets[:, :, None] * offsets[:, None, :]


class NSS(SecondOrder[BlockStack, BlockSums]):
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
        these are independent, whatever unit each of them has.
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
        What turns channels to principal components of unit variance: where all are kept, those of channels divided by
        their standard deviations.
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
    any lengths, (n_samples, n_channels) each. The parts of an iterator, those that a function without arguments yields
    and those given to `partial_fit` are recordings, too, which need not be held together: covariances of their blocks
    are, and standard errors then take sources to be white Gaussians in every block.

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

    def _parts_of(self, data: Any) -> Parts | None:
        """Return what can only be read part by part; all else is at hand."""
        return as_parts(data, is_matrix) if isinstance(data, Iterator) or callable(data) else None

    def _sums_of_parts(self, parts: Parts) -> BlockSums:
        sums: BlockSums = parts.reduce(_sums_of_part, self.n_blocks)
        return sums

    def _sums_over(self, samples: np.ndarray, before: BlockSums | None) -> BlockSums:
        return BlockSums.over(_cut(samples, self.n_blocks))

    def _separated_sums(self, sums: BlockSums) -> tuple[Separation, Whitening]:
        mean, products = sums.finish()
        n = int(sums.counts.sum())
        whitening = Whitening.of(mean, products.sum(axis=0) / n, self.n_components, n)
        stack = BlockStack.of(whitening.rows @ products @ whitening.rows.T, sums.counts)
        return self._separated_stack(stack, None), whitening

    def _separated(self, whitened: Recordings) -> Separation:
        epochs = whitened.form == "epochs"
        blocks = whitened.arrays if epochs else [part for one in whitened.arrays for part in _cut(one, self.n_blocks)]
        products = np.stack([block.T @ block for block in blocks])
        stack = BlockStack.of(products, np.array([len(block) for block in blocks]))
        return self._separated_stack(stack, Recordings(blocks, "list"))

    def _scores(self, own: np.ndarray, stack: BlockStack) -> np.ndarray:
        variances = own[1:] / stack.shares[:, None]
        scores = np.zeros(own.shape).T
        scores[:, 1:] = 1 / np.maximum(variances, FLOOR * own[0]).T / stack.shares.size
        return scores

    def _segments(
        self, sources: Recordings | None, filters: np.ndarray, stack: BlockStack, own: np.ndarray
    ) -> Iterator[Segment]:
        factors = filters[:, :1] + filters[:, 1:] * stack.shares.size
        if sources is None:  # white Gaussians, whose spectrum has one value
            counts = stack.shares * (stack.n / stack.shares.size)
            for count, energy, factor in zip(counts, own[1:] * (stack.n / stack.shares.size), factors.T, strict=True):
                yield Segment.filtered(np.sqrt(energy)[None], factor, int(np.rint(count)), 1)
            return
        for samples, factor in zip(sources.arrays, factors.T, strict=True):
            transform, length = transformed(samples)
            yield Segment.filtered(transform, factor, samples.shape[0], length)

    def _own_variances(self, sources: Recordings | None, stack: BlockStack, own: np.ndarray) -> np.ndarray:
        if sources is not None:
            return scale_variances(sources.arrays)
        squares: np.ndarray = own[1:] ** 2 / stack.shares[:, None]
        return squares.mean(axis=0) / (2 * stack.n)


def _cut(samples: np.ndarray, n_blocks: int) -> list[np.ndarray]:
    """Return a recording cut into stretches of equal length."""
    return np.array_split(samples, min(n_blocks, samples.shape[0]))


def _sums_of_part(part: Any, n_blocks: int) -> BlockSums:
    return BlockSums.over(_cut(samples_of(part), n_blocks))
