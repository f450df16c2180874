"""Tensors with known components and noise, and the operator norm of symmetric tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from codiag._checks import Seed, as_finite, as_flag, as_generator, as_number
from codiag._text import Described
from codiag.synthetic._matrices import check_noise, check_orthonormal, orthonormal_factor, unit_columns, unit_factor
from codiag.tensors import FactoredTensor, check_shape, check_symmetric_shape, symmetrize


@dataclass(frozen=True, eq=False, repr=False)
class PlantedTensor(Described):
    """A noisy tensor, and the components from which it was made."""

    tensor: np.ndarray  # (d_1, ..., d_m)
    weights: np.ndarray  # (k,)
    factors: tuple[np.ndarray, ...]  # unit columns; the same array for all modes of a symmetric tensor


def noisy_tensor(
    shape: Sequence[int], rank: int, *, symmetric: bool = False, noise: float = 0.0, seed: Seed = None
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
    seed : int, sequence of int or numpy.random.Generator, optional
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
    >>> planted = noisy_tensor((4, 5, 6), 2, noise=0.1, seed=0)
    >>> planted.tensor.shape, [factor.shape for factor in planted.factors]
    ((4, 5, 6), [(4, 2), (5, 2), (6, 2)])
    """
    sizes = check_shape(shape, "shape")
    as_flag("symmetric", symmetric)
    check_noise(noise)
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
    check_noise(noise)
    rng = as_generator(seed)
    factors = (unit_factor(size, rank, rng),) * 3
    weights = rng.standard_normal(rank) ** 2
    clean = FactoredTensor(weights, factors).to_dense()
    return PlantedTensor(clean + noise * rng.standard_normal(clean.shape), weights, factors)


def orthogonal_model(size: int, rank: int, *, noise: float, seed: Seed = None) -> PlantedTensor:
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
    check_noise(noise)
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
    check_noise(noise)
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


def unit_noise(size: int, seed: Seed = None) -> np.ndarray:
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

    See Also
    --------
    operator_norm : The operator norm.

    Examples
    --------
    >>> from codiag.synthetic import operator_norm, unit_noise
    >>> round(operator_norm(unit_noise(5, seed=0), seed=1), 6)
    1.0
    """
    as_number("size", size, integer=True)
    rng = as_generator(seed)
    tensor = symmetrize(rng.standard_normal((size, size, size)))
    return tensor / operator_norm(tensor, rng)


def operator_norm(tensor: np.ndarray, seed: Seed = None, *, n_starts: int = 20, n_steps: int = 50) -> float:
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

    See Also
    --------
    unit_noise : Symmetric noise of operator norm one.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.synthetic import operator_norm
    >>> tensor = np.zeros((3, 3, 3))
    >>> tensor[0, 0, 0], tensor[1, 1, 1] = 2.0, -5.0
    >>> round(operator_norm(tensor, seed=0), 6)
    5.0
    """
    tensor = as_finite("tensor", tensor, (None, None, None))
    check_symmetric_shape(tensor.shape, "tensor")
    gap = max(float(np.abs(tensor - tensor.transpose(order)).max()) for order in ((1, 0, 2), (1, 2, 0)))
    if gap > 1e-6 * np.abs(tensor).max():
        raise ValueError(
            f"tensor must be symmetric; permuting its modes changes entries by up to {gap:.3g}. "
            "Pass codiag.tensors.symmetrize(tensor)"
        )
    as_number("n_starts", n_starts, integer=True)
    as_number("n_steps", n_steps, integer=True)
    if not np.any(tensor):
        return 0.0
    rng = as_generator(seed)
    vectors = previous = unit_columns(rng.standard_normal((tensor.shape[0], n_starts)))
    for _ in range(n_steps):  # T(u, v, w) is maximal in u for given v and w, and never decreases
        products = np.einsum("abc,bn,cn->an", tensor, vectors, previous, optimize=True)
        vectors, previous = unit_columns(products), vectors
    return float(np.max(np.abs(np.einsum("abc,an,bn,cn->n", tensor, vectors, vectors, vectors, optimize=True))))
