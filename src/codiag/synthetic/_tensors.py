"""Tensors with known components and noise, and the operator norm of symmetric tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from codiag._checks import RNGLike, as_flag, as_generator, as_number
from codiag._text import ReprMixin
from codiag.synthetic._matrices import unit_factor
from codiag.tensors import FactoredTensor, SparseTensor, check_shape, check_symmetric_shape, symmetrize


@dataclass(frozen=True, eq=False, repr=False)
class PlantedTensor(ReprMixin):
    """A noisy tensor, and the components from which it was made."""

    tensor: np.ndarray  # (d_1, ..., d_m)
    weights: np.ndarray  # (k,)
    factors: tuple[np.ndarray, ...]  # unit columns; the same array for all modes of a symmetric tensor


def noisy_tensor(
    shape: Sequence[int], rank: int, *, symmetric: bool = False, noise: float = 0.0, rng: RNGLike = None
) -> PlantedTensor:
    r"""Draw a tensor with factors uniform on the unit sphere and weights N(0, 1), plus Gaussian noise.

    The noise R, symmetrized if the tensor is symmetric, is scaled to :math:`\|R\| = \epsilon \|T\|`.

    Parameters
    ----------
    shape : sequence of int
        Sizes of the modes, at least three.
    rank : int
        Number of components, k.
    symmetric : bool
        Whether all modes have the same factor; they must then have the same size.
    noise : float
        Norm of the noise relative to that of the tensor, :math:`\epsilon`.
    rng : int, sequence of int or numpy.random.Generator, optional
        The same seed gives the same tensor.

    Returns
    -------
    PlantedTensor
        With the noisy ``tensor``, the ``weights`` (k,) and the ``factors``, one of shape (d, k) for each mode, with
        unit columns; the same array for all modes if the tensor is symmetric.

    See Also
    --------
    fluorescence : A tensor with smooth, non-negative factors.

    Examples
    --------
    >>> from codiag.synthetic import noisy_tensor
    >>> planted = noisy_tensor((4, 5, 6), 2, noise=0.1, rng=0)
    >>> planted.tensor.shape, [factor.shape for factor in planted.factors]
    ((4, 5, 6), [(4, 2), (5, 2), (6, 2)])
    """
    sizes = check_shape(shape, "shape")
    as_flag("symmetric", symmetric)
    as_number("noise", noise, zero=True)
    if symmetric:
        check_symmetric_shape(sizes)
    rng = as_generator(rng)
    factors = tuple(unit_factor(size, rank, rng) for size in (sizes[:1] if symmetric else sizes))
    factors = factors * len(sizes) if symmetric else factors
    weights = rng.standard_normal(rank)
    clean = FactoredTensor(weights, factors).to_dense()
    errors = rng.standard_normal(sizes)
    errors = symmetrize(errors) if symmetric else errors
    return PlantedTensor(clean + noise * np.linalg.norm(clean) / np.linalg.norm(errors) * errors, weights, factors)


@dataclass(frozen=True, eq=False, repr=False)
class CountedEvents(ReprMixin):
    """Counts of events, and the components from which these were drawn."""

    tensor: SparseTensor
    weights: np.ndarray  # (k,), of unit columns
    factors: tuple[np.ndarray, ...]  # unit columns


def count_events(
    shape: Sequence[int], rank: int, *, n_events: int = 10_000, concentration: float = 0.3, rng: RNGLike = None
) -> CountedEvents:
    r"""Draw events, such as purchases by user, product and hour, and count them in a sparse tensor.

    Every event belongs to a component, and has an index in each mode that is drawn from a distribution of its
    component. Given their total, the counts are those of Poisson variables whose means are the sum of components.

    Parameters
    ----------
    shape : sequence of int
        Sizes of the modes, at least three.
    rank : int
        Number of components, k.
    n_events : int
        Number of events.
    concentration : float
        Shape of the gamma variables that distributions over indices are proportional to: small ones make events of a
        component concentrate on few indices. Shares of components have five.
    rng : int, sequence of int or numpy.random.Generator, optional
        The same seed gives the same counts.

    Returns
    -------
    CountedEvents
        With the counts, a `codiag.tensors.SparseTensor` ``tensor``, the ``weights`` (k,) and the ``factors``, one of
        shape (d, k) for each mode, with unit columns: their sum is the mean of the counts.

    See Also
    --------
    codiag.losses.Poisson : The loss for counts.
    noisy_tensor : Gaussian noise.

    Examples
    --------
    >>> from codiag.synthetic import count_events
    >>> planted = count_events((50, 40, 24), 3, n_events=1000, rng=0)
    >>> planted.tensor.shape, float(planted.tensor.values.sum())
    ((50, 40, 24), 1000.0)
    """
    sizes = check_shape(shape, "shape")
    as_number("rank", rank, integer=True)
    as_number("n_events", n_events, integer=True)
    as_number("concentration", concentration)
    rng = as_generator(rng)
    shares = rng.dirichlet(np.full(rank, 5.0))
    chances = [_distributions(size, rank, concentration, rng) for size in sizes]
    n_of_component = rng.multinomial(n_events, shares)
    coords = np.stack([
        np.concatenate([rng.choice(chance.shape[0], n, p=chance[:, r]) for r, n in enumerate(n_of_component)])
        for chance in chances
    ])  # fmt: skip
    lengths = [np.linalg.norm(chance, axis=0) for chance in chances]
    weights = n_events * shares * np.prod(lengths, axis=0)
    factors = tuple(chance / length for chance, length in zip(chances, lengths, strict=True))
    return CountedEvents(SparseTensor(coords, np.ones(n_events), sizes), weights, factors)


def _distributions(size: int, rank: int, concentration: float, rng: np.random.Generator) -> np.ndarray:
    """Return distributions over indices, one in each column."""
    drawn = rng.gamma(concentration, size=(size, rank)) + np.finfo(np.float64).tiny
    return np.asarray(drawn / np.sum(drawn, axis=0))
