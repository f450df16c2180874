"""The operator norm of symmetric tensors, and noise that is scaled by it."""

from __future__ import annotations

import numpy as np

from codiag._checks import Seed, as_finite, as_generator, as_number
from codiag.synthetic._factors import unit_columns
from codiag.tensors import check_symmetric_shape, symmetrize


def unit_noise(size: int, seed: Seed = None) -> np.ndarray:
    """Draw a symmetrized Gaussian tensor of operator norm one, as far as power iterations find that norm.

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
    operator_norm : The norm that is one.
    codiag.theory.project_noise : Projects it to matrices.

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
    r"""Return the largest :math:`|T(u, u, u)|` over unit vectors that power iterations find.

    Parameters
    ----------
    tensor : array of shape (d, d, d)
        Symmetric.
    seed : int, sequence of int or numpy.random.Generator, optional
        Of the starts.
    n_starts : int
        Number of random starts, the best of which counts.
    n_steps : int
        Power iterations from each start.

    Returns
    -------
    float
        A lower bound of the operator norm, which it equals where a start leads to the maximum.

    See Also
    --------
    unit_noise : Noise that has norm one.

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
    gap = max(float(np.abs(tensor - tensor.transpose(turn)).max()) for turn in ((1, 0, 2), (1, 2, 0)))
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
    sides = unit_columns(rng.standard_normal((tensor.shape[0], n_starts)))
    other = sides
    for _ in range(n_steps):  # each step is the best of one side, given the other two: it never falls
        sides, other = unit_columns(np.einsum("abc,bn,cn->an", tensor, sides, other, optimize=True)), sides
    return float(np.max(np.abs(np.einsum("abc,an,bn,cn->n", tensor, sides, sides, sides, optimize=True))))
