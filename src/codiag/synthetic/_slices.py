"""Slices with known components of PARAFAC2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from codiag._checks import RNGLike, as_flag, as_generator, as_number
from codiag._text import ReprMixin


@dataclass(frozen=True, eq=False, repr=False)
class PlantedSlices(ReprMixin):
    """Noisy slices, and the components from which they were made."""

    slices: list[np.ndarray]  # (I_k, n_columns)
    weights: np.ndarray  # (k,)
    factors: tuple[np.ndarray, np.ndarray, np.ndarray]  # A, B, C; unit columns
    projections: list[np.ndarray]  # (I_k, k)


def parafac2_slices(
    sizes: Sequence[int],
    n_columns: int,
    rank: int,
    *,
    correlation: float = 0.5,
    signed: bool = False,
    noise: float = 0.0,
    rng: RNGLike = None,
) -> PlantedSlices:
    r"""Draw slices :math:`X_k = P_k B\, \mathrm{diag}(w \circ a_k)\, C^\top` with random bases, plus Gaussian noise.

    Parameters
    ----------
    sizes : sequence of int
        The numbers of rows of the slices, at least `rank` each.
    n_columns : int
        Number of columns.
    rank : int
        Number of components.
    correlation : float
        Cross product of any two evolving factors of a slice.
    signed : bool
        Whether weights of slices have random signs. Their magnitudes are uniform from 0.5 to 1.5.
    noise : float
        Norm of the noise relative to that of all slices.
    rng : int or numpy.random.Generator, optional
        The same seed gives the same slices.

    Returns
    -------
    PlantedSlices
        With ``slices``, ``weights``, ``factors`` and ``projections``.

    See Also
    --------
    noisy_tensor : A tensor with components of CP.
    codiag.parafac2 : Finds the components.

    Examples
    --------
    >>> from codiag.synthetic import parafac2_slices
    >>> planted = parafac2_slices((5, 6, 7, 8), 4, 2, rng=0)
    >>> [one.shape for one in planted.slices]
    [(5, 4), (6, 4), (7, 4), (8, 4)]
    """
    as_number("rank", rank, integer=True)
    as_flag("signed", signed)
    as_number("noise", noise, zero=True)
    rng = as_generator(rng)
    matrix = np.full((rank, rank), float(correlation)) + (1 - correlation) * np.eye(rank)
    values, vectors = np.linalg.eigh(matrix)
    b, c = (vectors * np.sqrt(values)) @ vectors.T, rng.standard_normal((n_columns, rank))
    a = rng.uniform(0.5, 1.5, (len(sizes), rank))
    a = a * rng.choice([-1.0, 1.0], a.shape) if signed else a
    bases = [np.linalg.qr(rng.standard_normal((size, rank)))[0] for size in sizes]
    clean = [basis @ (b * row) @ c.T for basis, row in zip(bases, a, strict=True)]
    errors = [rng.standard_normal(one.shape) for one in clean]
    scale = noise * float(np.linalg.norm(np.concatenate(clean)) / np.linalg.norm(np.concatenate(errors)))
    slices = [one + scale * error for one, error in zip(clean, errors, strict=True)]
    lengths = np.linalg.norm(a, axis=0), np.linalg.norm(c, axis=0)
    return PlantedSlices(slices, lengths[0] * lengths[1], (a / lengths[0], b, c / lengths[1]), bases)
