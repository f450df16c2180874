"""The best single component of a tensor, and of many at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codiag._arrays import Array, array_namespace, like, to_host
from codiag.least_squares._components import hadamard_gram, unit_columns, unit_components
from codiag.reduction import hollow_spectrum
from codiag.tensors import FactoredTensor, SparseTensor, Tensor


def split_columns(columns: Array, sizes: Sequence[int]) -> list[Array]:
    """Return, for columns that are flattened rank-one tensors plus noise, their unit factors in every mode.

    Each factor is the leading singular vector of an unfolding, contracted with before the next is sought: where
    singular values are equal, vectors found apart from each other need not belong together.

    Parameters
    ----------
    columns : array of shape (d_0 d_1 ..., r)
    sizes : sequence of ints
        The modes d_0, d_1, ...

    Returns
    -------
    list of arrays of shape (d_m, r)
    """
    xp = array_namespace(columns)
    n = columns.shape[1]
    if len(sizes) == 1:
        return [unit_columns(columns)[0]]
    rest = xp.reshape(xp.matrix_transpose(columns), (n, sizes[0], -1))
    factors = []
    for size in sizes[1:]:
        leading = xp.linalg.eigh(rest @ xp.matrix_transpose(rest))[1][:, :, -1]
        factors.append(xp.matrix_transpose(leading))
        rest = xp.reshape((leading[:, None, :] @ rest)[:, 0, :], (n, size, -1))
    last = xp.matrix_transpose(rest[:, :, 0])
    return [*factors, unit_columns(last)[0]]


def leading_components(tensor: Tensor, n_starts: int = 8, n_sweeps: int = 25) -> FactoredTensor:
    """Return candidates for the best rank-one fit, each improved by itself, from the leading singular vectors.

    Of a symmetric tensor these may all be directions in which it vanishes, so that as many random ones join them.
    """
    xp = array_namespace(tensor.reference)
    if isinstance(tensor, SparseTensor):
        first = hollow_spectrum(tensor, 0, min(n_starts, tensor.shape[0]))[1]
        return improved(tensor, [first, *_beside(tensor, first)], n_sweeps)
    entries = tensor.to_dense()
    side = xp.reshape(entries, (tensor.shape[0], -1))
    first = _leading_vectors(side, n_starts)
    if tensor.symmetric:
        drawn = np.random.default_rng(0).standard_normal((tensor.shape[0], n_starts))
        random = like(drawn / np.linalg.norm(drawn, axis=0), tensor.reference)
        return improved(tensor, [xp.concat([first, random], axis=1)] * tensor.order, n_sweeps)
    rest = split_columns(xp.matrix_transpose(side) @ first, tensor.shape[1:])
    return improved(tensor, [first, *rest], n_sweeps)


def _leading_vectors(side: Array, count: int) -> Array:
    """Return the leading left singular vectors of a matrix, from the smaller of its two Gram matrices."""
    xp, tall = array_namespace(side), side.shape[0] > side.shape[1]
    gram = xp.matrix_transpose(side) @ side if tall else side @ xp.matrix_transpose(side)
    leading = xp.flip(xp.linalg.eigh(gram)[1][:, -min(count, gram.shape[0]) :], axis=1)
    return unit_columns(side @ leading)[0] if tall else leading


def _beside(tensor: SparseTensor, first: Array) -> list[Array]:
    """Return the leading rank-one term of what contractions of the first mode with columns leave, in other modes."""
    rest = tensor.compress(first, *[None] * (tensor.order - 1)).to_dense()
    return split_columns(rest.reshape(first.shape[1], -1).T, tensor.shape[1:])


def improved(tensor: Tensor, factors: Sequence[Array], n_sweeps: int) -> FactoredTensor:
    """Improve every component on its own by power iteration, shifted if symmetric; return it with its best weight."""
    xp = array_namespace(factors[0])
    factors = list(factors)
    for _ in range(n_sweeps):
        if tensor.symmetric:
            image = tensor.mttkrp(factors, 0)
            along = xp.sum(image * factors[0], axis=0)
            image = image + 0.5 * along * factors[0]  # plain iterations may circle
            factors = [unit_columns(image)[0]] * tensor.order
            continue
        for mode in range(tensor.order):
            image = tensor.mttkrp(factors, mode)
            factors[mode] = unit_columns(image)[0]
    weights = xp.sum(tensor.mttkrp(factors, 0) * factors[0], axis=0)
    return FactoredTensor(weights, factors, symmetric=tensor.symmetric)


def best_rank_one(tensor: Tensor) -> FactoredTensor:
    """Return the best rank-one fit to a tensor: the largest of several candidates, each improved by itself.

    Parameters
    ----------
    tensor : Tensor
        What is to be fitted.

    Returns
    -------
    FactoredTensor
        One component.

    See Also
    --------
    minimize : Several components at once.
    codiag.methods.TPM : One component after the other.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.least_squares import best_rank_one
    >>> from codiag.tensors import as_tensor
    >>> round(best_rank_one(as_tensor(np.ones((3, 4, 5)))).squared_norm(), 6)
    60.0
    """
    return distinct_components(tensor, 1)[0]


def distinct_components(tensor: Tensor, count: int) -> list[FactoredTensor]:
    """Return the largest of the candidates, and the next ones that are unlike those before."""
    found = leading_components(tensor)
    order = np.argsort(-np.abs(to_host(found.weights)), kind="stable").tolist()
    likeness = np.abs(to_host(hadamard_gram(found.factors)))
    kept: list[int] = []
    for place in order:
        if len(kept) < count and all(likeness[place, other] < 0.5 for other in kept):
            kept.append(place)
    return [found.columns([place]) for place in kept]


def merged(pair: FactoredTensor, n_sweeps: int = 30) -> tuple[FactoredTensor, float]:
    """Return the best single component in place of two, and the squared distance between them."""
    pair = unit_components(pair)
    xp = array_namespace(pair.weights)
    larger = pair.columns([int(xp.argmax(xp.abs(pair.weights)))])
    one = improved(pair, larger.factors, n_sweeps)
    return one, max(pair.squared_norm() - float(xp.sum(one.weights**2)), 0.0)
