"""Tensors with planted components."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from codiag._checks import Seed, as_flag, as_generator, as_number
from codiag.synthetic._factors import check_orthonormal, orthonormal_factor, unit_factor
from codiag.synthetic._norms import unit_noise
from codiag.tensors import FactoredTensor, check_shape, check_symmetric_shape, symmetrize


@dataclass(frozen=True, eq=False)
class PlantedTensor:
    """A noisy tensor, and the components it was made from.

    Attributes
    ----------
    tensor : numpy.ndarray of shape (d_1, ..., d_m)
        The noisy tensor.
    weights : numpy.ndarray of shape (k,)
        The weights of the components.
    factors : tuple of numpy.ndarray of shape (d_i, k)
        Unit columns; one and the same array for every mode where the tensor is symmetric.

    See Also
    --------
    noisy_tensor : Draws one.
    paper_tensor : Draws one of the paper's.
    codiag.factor_error : Compares a fit with it.

    Examples
    --------
    >>> import codiag
    >>> from codiag.synthetic import noisy_tensor
    >>> planted = noisy_tensor((5, 6, 7), 3, noise=1e-3, seed=0)
    >>> codiag.factor_error(codiag.factorize(planted.tensor, 3, seed=0), planted) < 0.01
    True
    """

    tensor: np.ndarray
    weights: np.ndarray
    factors: tuple[np.ndarray, ...]


def noisy_tensor(
    shape: Sequence[int], rank: int, *, symmetric: bool = False, noise: float = 0.0, seed: Seed = None
) -> PlantedTensor:
    r"""Draw a tensor with factors uniform on the unit sphere and weights N(0, 1), plus Gaussian noise.

    The noise R, symmetrized where the tensor is symmetric, is scaled to :math:`\|R\| = \epsilon \|T\|`.

    Parameters
    ----------
    shape : sequence of int
        Sizes of the modes, three or more of them.
    rank : int
        Number of components, k.
    symmetric : bool
        Whether all modes share one factor; they must then have one size.
    noise : float
        Norm of the noise relative to that of the tensor, :math:`\epsilon`.
    seed : int, sequence of int or numpy.random.Generator, optional
        The same seed gives the same tensor.

    Returns
    -------
    PlantedTensor
        The tensor, and the weights and factors it was made from.

    See Also
    --------
    paper_tensor : The tensors of the paper's experiments.
    fluorescence : Smooth factors that are not negative.

    Examples
    --------
    >>> from codiag.synthetic import noisy_tensor
    >>> planted = noisy_tensor((4, 5, 6), 2, noise=0.1, seed=0)
    >>> planted.tensor.shape, [factor.shape for factor in planted.factors]
    ((4, 5, 6), [(4, 2), (5, 2), (6, 2)])
    """
    sizes = check_shape(shape, "shape")
    as_flag("symmetric", symmetric)
    as_number("noise", noise, zero=True)
    if symmetric:
        check_symmetric_shape(sizes)
    rng = as_generator(seed)
    factors = tuple(unit_factor(size, rank, rng) for size in (sizes[:1] if symmetric else sizes))
    factors = factors * len(sizes) if symmetric else factors
    weights = rng.standard_normal(rank)
    clean = FactoredTensor(weights, factors).to_dense()
    errors = rng.standard_normal(sizes)
    errors = symmetrize(errors) if symmetric else errors
    return PlantedTensor(clean + noise * np.linalg.norm(clean) / np.linalg.norm(errors) * errors, weights, factors)


def nonorthogonal_model(size: int, rank: int, *, noise: float, seed: Seed = None) -> PlantedTensor:
    r"""Draw a tensor of the authors' non-orthogonal experiments.

    Factors are uniform on the unit sphere, weights are squared Gaussians. The noise is :math:`\epsilon` times
    independent Gaussian entries, not symmetrized: factorize the tensor with ``symmetric=True``.

    Parameters
    ----------
    size : int
        Size d of each of the three modes.
    rank : int
        Number of components, k.
    noise : float
        Standard deviation :math:`\epsilon` of the noise in each entry.
    seed : int, sequence of int or numpy.random.Generator, optional
        The same seed gives the same tensor.

    Returns
    -------
    PlantedTensor
        With ``tensor`` of shape (d, d, d).

    See Also
    --------
    orthogonal_model : The orthogonal experiments.
    paper_tensor : All noise models by name.

    Examples
    --------
    >>> from codiag.synthetic import nonorthogonal_model
    >>> planted = nonorthogonal_model(5, 3, noise=0.1, seed=0)
    >>> planted.tensor.shape, bool((planted.weights > 0).all())
    ((5, 5, 5), True)
    """
    as_number("noise", noise, zero=True)
    rng = as_generator(seed)
    factors = (unit_factor(size, rank, rng),) * 3
    weights = rng.standard_normal(rank) ** 2
    clean = FactoredTensor(weights, factors).to_dense()
    return PlantedTensor(clean + noise * rng.standard_normal(clean.shape), weights, factors)


def orthogonal_model(size: int, rank: int, *, noise: float, seed: Seed = None) -> PlantedTensor:
    r"""Draw a tensor of the authors' orthogonal experiments.

    Factors are the first left singular vectors of a square Gaussian matrix, weights are squared Gaussians. The noise is
    :math:`\epsilon` times another tensor of this kind, of full rank whatever the rank asked for: its weights are
    squared Gaussians too, and its operator norm, the largest of them, is not scaled.

    Parameters
    ----------
    size : int
        Size d of each of the three modes.
    rank : int
        Number of components, k, at most d.
    noise : float
        The factor :math:`\epsilon` of the noise.
    seed : int, sequence of int or numpy.random.Generator, optional
        The same seed gives the same tensor.

    Returns
    -------
    PlantedTensor
        With ``tensor`` of shape (d, d, d).

    See Also
    --------
    nonorthogonal_model : The non-orthogonal experiments.
    paper_tensor : All noise models by name.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.synthetic import orthogonal_model
    >>> factor = orthogonal_model(5, 3, noise=0.1, seed=0).factors[0]
    >>> bool(np.allclose(factor.T @ factor, np.eye(3)))
    True
    """
    as_number("noise", noise, zero=True)
    rng = as_generator(seed)
    check_orthonormal(size, rank)
    factor = np.linalg.svd(rng.standard_normal((size, size)))[0][:, :rank]
    weights = rng.standard_normal(rank) ** 2
    errors = FactoredTensor(rng.standard_normal(size) ** 2, (orthonormal_factor(size, size, rng),) * 3)
    clean = FactoredTensor(weights, (factor,) * 3).to_dense()
    return PlantedTensor(clean + noise * errors.to_dense(), weights, (factor,) * 3)


def paper_tensor(
    size: int, rank: int, *, orthogonal: bool, noise: float, model: str = "authors", seed: Seed = None
) -> PlantedTensor:
    r"""Draw a symmetric tensor of the paper's experiments, under one of its three noise models.

    Parameters
    ----------
    size : int
        Size d of each of the three modes.
    rank : int
        Number of components, k.
    orthogonal : bool
        Whether factors are orthonormal, or uniform on the unit sphere.
    noise : float
        The factor :math:`\epsilon` of the noise.
    model : "authors", "text" or "theory"
        The authors' scripts: `orthogonal_model` or `nonorthogonal_model`. The text: weights N(0, 1), and a tensor of
        independent Gaussian entries. The theory: the same weights, and symmetric noise of unit operator norm.
    seed : int, sequence of int or numpy.random.Generator, optional
        The same seed gives the same tensor.

    Returns
    -------
    PlantedTensor
        With ``tensor`` of shape (d, d, d).

    See Also
    --------
    orthogonal_model : The authors' orthogonal experiments.
    nonorthogonal_model : The authors' non-orthogonal experiments.
    noisy_tensor : Tensors of any shape.

    Examples
    --------
    >>> from codiag.synthetic import paper_tensor
    >>> paper_tensor(5, 3, orthogonal=True, noise=0.01, model="theory", seed=0).tensor.shape
    (5, 5, 5)
    """
    as_flag("orthogonal", orthogonal)
    as_number("noise", noise, zero=True)
    if model == "authors":
        return (orthogonal_model if orthogonal else nonorthogonal_model)(size, rank, noise=noise, seed=seed)
    if model not in ("text", "theory"):
        raise ValueError(f"model must be 'authors', 'text' or 'theory'; got {model!r}")
    rng = as_generator(seed)
    factor = (orthonormal_factor if orthogonal else unit_factor)(size, rank, rng)
    weights = rng.standard_normal(rank)
    errors = rng.standard_normal((size, size, size)) if model == "text" else unit_noise(size, rng)
    clean = FactoredTensor(weights, (factor,) * 3).to_dense()
    return PlantedTensor(clean + noise * errors, weights, (factor,) * 3)
