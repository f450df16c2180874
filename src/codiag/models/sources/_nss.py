"""Sources whose variances change with time, from covariances of stretches of a recording."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from codiag._checks import UndeterminedError
from codiag.diagonalize import Diagonalizer
from codiag.models.sources._base import Separation, Whitening
from codiag.models.sources._likelihood import Segment, scale_variances, transformed
from codiag.models.sources._recordings import Recordings, rank_advice, samples_of_part
from codiag.models.sources._second_order import SecondOrder, Stack
from codiag.parts import Parts, as_parts, is_matrix

FLOOR = 0.01
"""Least variance of a source in a block, as a share of its mean variance: silence would weigh without bound."""
LEAST = 4
"""Samples of a block for every component, at least: eigenvalues of a covariance of so few are between a quarter and
nine quarters of the true ones (Marchenko and Pastur), and with no more samples than components it is singular."""

MOST = 2**24
"""Numbers in the covariances of blocks of a stream, at most: in more, neighbors share a block."""
FEW = 64
"""Blocks of a stream, at least, that are kept however many channels there are."""


@dataclass(frozen=True, eq=False)
class BlockStack(Stack):
    """Covariances of blocks, each times its length over the mean length, after that of all."""

    shares: np.ndarray  # lengths of blocks over their mean

    @classmethod
    def of(cls, products: np.ndarray, counts: np.ndarray, n_channels: int) -> BlockStack:
        """Return the covariances of blocks, from products around zero and numbers of samples."""
        n = int(counts.sum())
        if counts.size < 2:
            advice = rank_advice(n, n_channels)
            raise UndeterminedError(
                f"X must hold two blocks or more, since one covariance tells no sources apart; got 1, of {n} samples. "
                f"A block has {LEAST} samples for every component, at least: epochs, parts and recordings that are "
                f"shorter share one with their neighbors{advice and f'. {advice}'}"
            )
        covariances = products * (counts.size / n)
        places = np.arange(counts.size + 1)
        return cls(np.concatenate([[covariances.mean(axis=0)], covariances]), places, n, counts * (counts.size / n))

    def noise(self, diagonals: np.ndarray) -> np.ndarray:
        """Return the variance of the variance of a block, of Gaussian samples, in the mean over blocks."""
        variances: np.ndarray = 2 * np.mean(diagonals[1:] ** 2, axis=0) * self.shares.size / self.n
        return variances


@dataclass(eq=False)
class BlockSums:
    """Numbers, means and products of the samples of blocks, which add up by being listed.

    The last block is open while it has fewer samples than a block needs: what follows is added to it.
    """

    least: int  # samples that a block needs
    counts: np.ndarray  # (n_blocks,)
    means: np.ndarray  # (n_blocks, d)
    products: np.ndarray  # (n_blocks, d, d), around the means

    @classmethod
    def over(cls, samples: np.ndarray, n_blocks: int, least: int) -> Self:
        """Return the sums over samples that follow each other, (n, d)."""
        blocks = _cut(samples, n_blocks, least)
        means = [block.mean(axis=0) for block in blocks]
        centered = [block - mean for block, mean in zip(blocks, means, strict=True)]
        counts = np.array([len(block) for block in blocks])
        return cls(least, counts, np.stack(means), np.stack([block.T @ block for block in centered]))

    @property
    def n_channels(self) -> int:
        """How many channels there are."""
        return self.means.shape[1]

    def merge(self, other: Self) -> Self:
        """Add sums over samples that follow to these, and return these."""
        if other.n_channels != self.n_channels:
            raise ValueError(
                f"X must have as many channels in every part; got {self.n_channels}, then {other.n_channels}"
            )
        border = self.counts.size
        for name in ("counts", "means", "products"):
            setattr(self, name, np.concatenate([getattr(self, name), getattr(other, name)]))
        self.least = max(self.least, other.least)
        starts = border - 1 + _starts(self.counts[border - 1 :], self.least)
        return self._group(np.concatenate([np.arange(border - 1), starts]))._lengthen()

    def merged(self, other: Self) -> Self:
        """Return these sums and others that follow, of which none is changed."""
        return copy.copy(self).merge(other)

    def closed(self) -> Self:
        """Return these sums with a last block that is too short added to the one before it."""
        last = self.counts.size - 1
        return copy.copy(self)._group(np.arange(last)) if last and self.counts[last] < self.least else self

    def finish(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean of all samples, and products around it block by block."""
        mean = self.counts @ self.means / self.counts.sum()
        offsets = self.means - mean
        return mean, self.products + self.counts[:, None, None] * offsets[:, :, None] * offsets[:, None, :]

    def _lengthen(self) -> Self:
        """Let neighbors share blocks, which then need more samples, where there are so many that they fill memory."""
        most = max(MOST // self.n_channels**2, FEW)
        if self.counts.size <= most:
            return self
        starts = np.arange(self.counts.size)
        while starts.size > most // 2:
            self.least *= 2
            starts = _starts(self.counts, self.least)
        return self._group(starts)

    def _group(self, starts: np.ndarray) -> Self:
        """Make one block of those from each of the given places on, and return these."""
        if starts.size == self.counts.size:
            return self
        counts = np.add.reduceat(self.counts, starts)
        means = np.add.reduceat(self.counts[:, None] * self.means, starts) / counts[:, None]
        offsets = self.means - np.repeat(means, np.diff([*starts, self.counts.size]), axis=0)
        around = self.products + self.counts[:, None, None] * offsets[:, :, None] * offsets[:, None, :]
        self.counts, self.means, self.products = counts, means, np.add.reduceat(around, starts)
        return self


def _starts(counts: np.ndarray, least: int) -> np.ndarray:
    """Return where blocks begin that are made of neighbors until they have samples enough."""
    starts, size = [0], 0
    for place, count in enumerate(counts):
        if size >= least:
            starts.append(place)
            size = 0
        size += int(count)
    return np.array(starts)


class NSS(SecondOrder[BlockStack, BlockSums]):
    r"""Sources whose variances change: joint diagonalization of covariances of blocks, and a likelihood to polish it.

    Channels :math:`x_t = A s_t + \mu` mix independent sources. The covariances of stretches of time,
    :math:`C_b = A\, \mathrm{diag}(\sigma_{1b}^2, \dots, \sigma_{kb}^2)\, A^\top`, have the mixing in common: it is
    found by whitening and orthogonal joint diagonalization (nonstationary source separation, NSS-JD). Steps of the
    Gaussian likelihood follow, the criterion of Pham and Cardoso, and are kept for the pairs of sources where they
    promise errors that are clearly smaller.

    **Needs** sources whose variances change differently from block to block; any distribution. **Costs** one pass over
    the data of :math:`2 n d^2` operations, then work on matrices of the size of the components. **Guarantees** the same
    sources from every seed, and of Gaussian sources that are white in every block at most an eighth more than the least
    error that is possible in large samples. **Fails** where the variances of two sources are proportional, which
    `unresolved_` says.

    Parameters
    ----------
    n_components : int, optional
        Number of sources; the leading principal components are then unmixed. By default as many as channels, or as
        these are independent, whatever unit each of them has.
    n_blocks : int
        Stretches of equal length that every recording is cut into, fewer where they would have less than four samples
        for every component; an epoch is a block by itself. What is shorter than that shares a block with what follows.
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
    are, 128 MiB at most, beyond which blocks get longer, and standard errors then take sources to be white Gaussians in
    every block.

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
        sums: BlockSums = parts.reduce(_sums_of_part, self.n_blocks, self.n_components)
        return sums

    def _sums_over(self, samples: np.ndarray, before: BlockSums | None) -> BlockSums:
        return BlockSums.over(samples, self.n_blocks, _least(samples.shape[1], self.n_components))

    def _separated_sums(self, sums: BlockSums) -> tuple[Separation, Whitening]:
        sums = sums.closed()
        mean, products = sums.finish()
        n = int(sums.counts.sum())
        whitening = Whitening.of(mean, products.sum(axis=0) / n, self.n_components, n)
        stack = BlockStack.of(whitening.of_products(products), sums.counts, sums.n_channels)
        return self._separated_stack(stack, None), whitening

    def _separated(self, whitened: Recordings) -> Separation:
        blocks = self._blocks(whitened)
        products = np.stack([block.T @ block for block in blocks])
        stack = BlockStack.of(products, np.array([len(block) for block in blocks]), self.n_features_in_)
        return self._separated_stack(stack, Recordings(blocks, "list"))

    def _blocks(self, recordings: Recordings) -> list[np.ndarray]:
        """Return the blocks of recordings; one of them alone makes two, however short it is."""
        least = _least(self.n_features_in_, self.n_components)
        arrays, n_blocks = recordings.arrays, 1 if recordings.form == "epochs" else self.n_blocks
        if len(arrays) == 1 and n_blocks > 1:
            return _cut(arrays[0], n_blocks, min(least, max(1, arrays[0].shape[0] // 2)))
        return _joined([_cut(one, n_blocks, least) for one in arrays], least)

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
                yield Segment.filtered(np.sqrt(np.maximum(energy, 0))[None], factor, int(np.rint(count)), 1)
            return
        for samples, factor in zip(sources.arrays, factors.T, strict=True):
            transform, length = transformed(samples)
            yield Segment.filtered(transform, factor, samples.shape[0], length)

    def _own_variances(self, sources: Recordings | None, stack: BlockStack, own: np.ndarray) -> np.ndarray:
        if sources is not None:
            return scale_variances(sources.arrays)
        squares: np.ndarray = own[1:] ** 2 / stack.shares[:, None]
        return squares.mean(axis=0) / (2 * stack.n)


def _least(n_channels: int, n_components: int | None) -> int:
    """Return how many samples a block needs."""
    return LEAST * min(n_channels, n_components or n_channels)


def _cut(samples: np.ndarray, n_blocks: int, least: int) -> list[np.ndarray]:
    """Return a recording cut into stretches of equal length, which is at least the given one where there are two."""
    return np.array_split(samples, min(n_blocks, max(1, samples.shape[0] // least)))


def _joined(parts: list[list[np.ndarray]], least: int) -> list[np.ndarray]:
    """Return the blocks of parts that follow each other, with those that are too short joined as `BlockSums` does."""
    groups: list[list[np.ndarray]] = []
    for block in itertools.chain.from_iterable(parts):
        if groups and sum(map(len, groups[-1])) < least:
            groups[-1].append(block)
        else:
            groups.append([block])
    if len(groups) > 1 and sum(map(len, groups[-1])) < least:
        last = groups.pop()
        groups[-1] += last
    return [np.concatenate(group) if len(group) > 1 else group[0] for group in groups]


def _sums_of_part(part: Any, n_blocks: int, n_components: int | None) -> BlockSums:
    samples = samples_of_part(part)
    return BlockSums.over(samples, n_blocks, _least(samples.shape[1], n_components))
