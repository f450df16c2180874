"""Tensors of the paper's experiments, with its three noise models."""

from __future__ import annotations

from typing import Any

import numpy as np

from codiag.synthetic import PlantedTensor, orthonormal_factor, unit_factor
from codiag.tensors import FactoredTensor, symmetrize


def nonorthogonal_model(size: int, rank: int, *, noise: float, seed: Any = None) -> PlantedTensor:
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

    Examples
    --------
    >>> from experiments.simulated import nonorthogonal_model
    >>> planted = nonorthogonal_model(5, 3, noise=0.1, rng=0)
    >>> planted.tensor.shape, bool((planted.weights > 0).all())
    ((5, 5, 5), True)
    """
    rng = np.random.default_rng(seed)
    factors = (unit_factor(size, rank, rng),) * 3
    weights = rng.standard_normal(rank) ** 2
    clean = FactoredTensor(weights, factors).to_dense()
    return PlantedTensor(clean + noise * rng.standard_normal(clean.shape), weights, factors)


def orthogonal_model(size: int, rank: int, *, noise: float, seed: Any = None) -> PlantedTensor:
    r"""Draw a tensor of the authors' orthogonal experiments.

    Factors are the first left singular vectors of a square Gaussian matrix, weights are squared Gaussians. The noise is
    :math:`\epsilon` times another tensor of this kind, always of full rank. Its operator norm, the largest of its
    weights, is not scaled.

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

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.simulated import orthogonal_model
    >>> factor = orthogonal_model(5, 3, noise=0.1, rng=0).factors[0]
    >>> bool(np.allclose(factor.T @ factor, np.eye(3)))
    True
    """
    rng = np.random.default_rng(seed)
    factor = np.linalg.svd(rng.standard_normal((size, size)))[0][:, :rank]
    weights = rng.standard_normal(rank) ** 2
    errors = FactoredTensor(rng.standard_normal(size) ** 2, (orthonormal_factor(size, size, rng),) * 3)
    clean = FactoredTensor(weights, (factor,) * 3).to_dense()
    return PlantedTensor(clean + noise * errors.to_dense(), weights, (factor,) * 3)


def paper_tensor(
    size: int, rank: int, *, orthogonal: bool, noise: float, model: str = "authors", seed: Any = None
) -> PlantedTensor:
    r"""Draw a symmetric tensor of the paper's experiments, with one of its three noise models.

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
        The authors' scripts: `orthogonal_model` or `nonorthogonal_model`. The text: weights N(0, 1), and noise with
        independent Gaussian entries. The theory: the same weights, and symmetric noise of unit operator norm.
    seed : int, sequence of int or numpy.random.Generator, optional
        The same seed gives the same tensor.

    Returns
    -------
    PlantedTensor
        With ``tensor`` of shape (d, d, d).

    Examples
    --------
    >>> from experiments.simulated import paper_tensor
    >>> paper_tensor(5, 3, orthogonal=True, noise=0.01, model="theory", rng=0).tensor.shape
    (5, 5, 5)
    """
    if model == "authors":
        return (orthogonal_model if orthogonal else nonorthogonal_model)(size, rank, noise=noise, seed=seed)
    if model not in ("text", "theory"):
        raise ValueError(f"model must be 'authors', 'text' or 'theory'; got {model!r}")
    rng = np.random.default_rng(seed)
    factor = (orthonormal_factor if orthogonal else unit_factor)(size, rank, rng)
    weights = rng.standard_normal(rank)
    errors = rng.standard_normal((size, size, size)) if model == "text" else unit_noise(size, rng)
    clean = FactoredTensor(weights, (factor,) * 3).to_dense()
    return PlantedTensor(clean + noise * errors, weights, (factor,) * 3)


def unit_noise(size: int, seed: Any = None) -> np.ndarray:
    """Draw a symmetrized Gaussian tensor of operator norm one, as computed by power iterations.

    Parameters
    ----------
    size : int
        Size d of each of the three modes.
    seed : int, sequence of int or numpy.random.Generator, optional
        The same seed gives the same tensor.

    Returns
    -------
    numpy.ndarray of shape (d, d, d)
        A symmetric tensor.

    Examples
    --------
    >>> from experiments.simulated import operator_norm, unit_noise
    >>> round(operator_norm(unit_noise(5, rng=0), rng=1), 6)
    1.0
    """
    rng = np.random.default_rng(seed)
    tensor = symmetrize(rng.standard_normal((size, size, size)))
    return tensor / operator_norm(tensor, rng)


def operator_norm(tensor: np.ndarray, seed: Any = None, *, n_starts: int = 20, n_steps: int = 50) -> float:
    r"""Return the largest :math:`|T(u, u, u)|` over unit vectors u, by power iterations from random starts.

    Parameters
    ----------
    tensor : array of shape (d, d, d)
        A symmetric tensor.
    seed : int, sequence of int or numpy.random.Generator, optional
        Source of the random starts.
    n_starts : int
        Number of random starts; the largest value is returned.
    n_steps : int
        Number of power iterations from each start.

    Returns
    -------
    float
        A lower bound of the operator norm, equal to it if an iteration reaches the global maximum.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.simulated import operator_norm
    >>> tensor = np.zeros((3, 3, 3))
    >>> tensor[0, 0, 0], tensor[1, 1, 1] = 2.0, -5.0
    >>> round(operator_norm(tensor, rng=0), 6)
    5.0
    """
    if not np.any(tensor):
        return 0.0
    rng = np.random.default_rng(seed)
    vectors = previous = _unit_columns(rng.standard_normal((tensor.shape[0], n_starts)))
    for _ in range(n_steps):  # T(u, v, w) is maximal in u for given v and w, and never decreases
        products = np.einsum("abc,bn,cn->an", tensor, vectors, previous, optimize=True)
        vectors, previous = _unit_columns(products), vectors
    return float(np.max(np.abs(np.einsum("abc,an,bn,cn->n", tensor, vectors, vectors, vectors, optimize=True))))


def _unit_columns(columns: np.ndarray) -> np.ndarray:
    return columns / np.linalg.norm(columns, axis=0)
