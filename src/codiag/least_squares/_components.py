"""Algebra of components: Gram matrices, unit columns, and the weights that fit best."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from codiag._arrays import Array, adjoint, array_namespace, asarray_like, conjugate, normal_draws, signs_of
from codiag.tensors import FactoredTensor, Tensor


def hadamard_gram(factors: Sequence[Array], leave_out: Sequence[int] = ()) -> Array:
    """Return the entrywise product of the Gram matrices of the factors, but for some."""
    return product_without([adjoint(factor) @ factor for factor in factors], leave_out)


def product_without(grams: Sequence[Array], leave_out: Sequence[int] = ()) -> Array:
    """Return the entrywise product of Gram matrices, one a mode, but for some."""
    kept = [gram for mode, gram in enumerate(grams) if mode not in leave_out]
    return math.prod(kept[1:], start=kept[0])


def solve_semidefinite(gram: Array, target: Array) -> Array:
    """Return the least-norm solution of G x = b for a positive semidefinite G that may be singular."""
    xp = array_namespace(gram)
    values, vectors = xp.linalg.eigh(gram)
    cut = values[-1] * gram.shape[0] * xp.finfo(gram.dtype).eps
    kept = values > cut
    inverse = xp.where(kept, 1 / xp.where(kept, values, xp.ones_like(values)), xp.zeros_like(values))
    inside = adjoint(vectors) @ target
    return vectors @ (inside * (inverse if inside.ndim == 1 else inverse[:, None]))


def unit_columns(columns: Array) -> tuple[Array, Array]:
    """Return columns of unit length, and their lengths; columns of zeros stay."""
    xp = array_namespace(columns)
    lengths = xp.linalg.vector_norm(columns, axis=0)
    return columns / xp.where(lengths > 0, lengths, xp.ones_like(lengths)), lengths


def unit_components(components: FactoredTensor) -> FactoredTensor:
    """Return the same tensor with unit columns, their lengths in the weights; columns of zeros stay.

    Parameters
    ----------
    components : FactoredTensor
        Weights and factors, of any lengths.

    Returns
    -------
    FactoredTensor
        With factors of unit columns.

    See Also
    --------
    with_best_weights : Weights that fit a tensor.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.least_squares import unit_components
    >>> from codiag.tensors import FactoredTensor
    >>> unit_components(FactoredTensor(np.ones(1), [np.full((4, 1), 0.5 * k) for k in (1, 2, 3)])).weights.tolist()
    [6.0]
    """
    pairs = [unit_columns(factor) for factor in components.factors]
    weights = components.weights
    for _, lengths in pairs:
        weights = weights * lengths
    return components.changed(lambda _, mode: pairs[mode][0], weights)


def with_best_weights(tensor: Tensor, factors: Sequence[Array]) -> FactoredTensor:
    """Return the components with these unit factors whose weights fit the tensor best.

    Parameters
    ----------
    tensor : Tensor
        What is to be fitted.
    factors : sequence of arrays of shape (d_m, r)
        One for each mode, with unit columns.

    Returns
    -------
    FactoredTensor
        The factors, with weights by least squares.

    See Also
    --------
    unit_components : Components with unit columns.
    minimize : Fits the factors too.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.least_squares import with_best_weights
    >>> from codiag.tensors import as_tensor
    >>> with_best_weights(as_tensor(np.ones((4, 4, 4))), [np.full((4, 1), 0.5)] * 3).weights.tolist()
    [8.0]
    """
    xp = array_namespace(factors[0])
    others = [conjugate(factor) for factor in factors]
    products = xp.sum(tensor.mttkrp(others, 0) * others[0], axis=0)
    weights = solve_semidefinite(hadamard_gram(factors), products)
    return FactoredTensor(weights, factors, symmetric=None if tensor.symmetric else False)


def merged_modes(components: FactoredTensor, modes: Sequence[int] | None = None) -> FactoredTensor:
    """Return components with one factor for all modes, or for some: the mean of theirs, once their signs agree."""
    xp = array_namespace(components.weights)
    unit = unit_components(components)
    if unit.symmetric:
        return unit
    modes = range(unit.order) if modes is None else modes
    first, weights = unit.factors[modes[0]], unit.weights
    total = first
    for factor in (unit.factors[mode] for mode in modes[1:]):
        signs = signs_of(xp.sum(conjugate(first) * factor, axis=0))
        total, weights = total + factor * conjugate(signs), weights * signs
    if len(modes) == unit.order:
        return unit_components(FactoredTensor(weights, [total / unit.order] * unit.order, symmetric=True))
    mean = total / len(modes)
    factors = [mean if mode in modes else factor for mode, factor in enumerate(unit.factors)]
    return unit_components(FactoredTensor(weights, factors, symmetric=False))


def random_components(tensor: Tensor, rank: int, rng: np.random.Generator) -> FactoredTensor:
    """Return random unit factors, with the weights that fit best."""
    shapes = tensor.shape[:1] if tensor.symmetric else tensor.shape
    drawn = [normal_draws(rng, (size, rank), tensor.reference) for size in shapes]
    factors = [asarray_like(columns / np.linalg.norm(columns, axis=0), tensor.reference) for columns in drawn]
    return with_best_weights(tensor, factors * (tensor.order if tensor.symmetric else 1))
