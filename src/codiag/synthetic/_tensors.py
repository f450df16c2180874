"""Tensors with known components and noise, and the operator norm of symmetric tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from codiag._checks import RNGLike, as_flag, as_generator
from codiag._text import ReprMixin
from codiag.synthetic._matrices import check_noise, unit_factor
from codiag.tensors import FactoredTensor, check_shape, check_symmetric_shape, symmetrize


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
    check_noise(noise)
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
