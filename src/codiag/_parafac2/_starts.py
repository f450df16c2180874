"""Starts of PARAFAC2 in the space of the leading right singular vectors, and the signs of the slices' weights."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from codiag._parafac2._model import Factors, Rules, polar_factors
from codiag._parafac2._stack import Stack
from codiag._parafac2._steps import minimize
from codiag.diagonalize import UWEDGE

ALL_PATTERNS = 6
"""Largest rank for which all patterns of signs of a slice are tried; above it one or two signs are flipped."""


def cross_products(stack: Stack, variance: float, sizes: np.ndarray) -> np.ndarray:
    """Return the cross products of the slices, less those that noise has on average."""
    parts = [np.swapaxes(view, 1, 2) @ view for view in stack.by_group(stack.matrix)]
    return np.concatenate(parts) - variance * sizes[:, None, None] * np.eye(stack.matrix.shape[1])


def positive_starts(stack: Stack, products: np.ndarray, rng: np.random.Generator) -> Iterator[tuple[str, Factors]]:
    """Yield names and factors for positive weights: joint diagonalization, singular vectors, then random ones."""
    n, rank = stack.n_slices, products.shape[1]
    if n > 1 and np.any(products):
        yield "joint diagonalization", _diagonalized(products, rng)
    yield "singular vectors", Factors(np.ones((n, rank)), np.eye(rank), np.eye(rank))
    while True:
        yield "random", Factors(rng.uniform(0.5, 1.5, (n, rank)), np.eye(rank), rng.standard_normal((rank, rank)))


def signed_starts(stack: Stack, rank: int, rng: np.random.Generator) -> Iterator[tuple[str, Factors]]:
    """Yield starts for weights of any signs: the best four of sixteen random ones, after a few steps from each.

    With the right signs of most slices the steps find the rest, from almost any C and B. A round chooses the signs of
    every slice that are best for given B and C, and takes two steps.
    """
    while True:
        drawn = [_random_signed(stack, rank, rng) for _ in range(16)]
        for _, factors in sorted(drawn, key=lambda one: one[0])[:4]:
            yield "random, with signs", factors


def _random_signed(stack: Stack, rank: int, rng: np.random.Generator) -> tuple[float, Factors]:
    c = np.linalg.qr(rng.standard_normal((rank, rank)))[0]
    b = rng.standard_normal((rank, rank))
    factors = Factors(np.ones((stack.n_slices, rank)), b / np.linalg.norm(b, axis=0), c)
    return signed_rounds(stack, factors, 3)


def signed_rounds(stack: Stack, factors: Factors, most: int) -> tuple[float, Factors]:
    """Return the objective and the factors after some rounds, as long as these lower it."""
    value = np.inf
    for _ in range(most):
        point = minimize(stack, _with_best_signs(stack, factors), Rules(), tol=1e-5, max_iter=2).point
        factors = point.factors
        if point.value > (1 - 1e-3) * value:
            break
        value = point.value
    return point.value, factors


def _diagonalized(products: np.ndarray, rng: np.random.Generator) -> Factors:
    r"""Return factors from cross products, which are :math:`D_k \Phi D_k` in the coordinates of C."""
    if products.shape[1] == 1:
        c = np.ones((1, 1))
    else:
        inverse = np.asarray(UWEDGE(fallback=False)(products, rng=rng).inverse)
        c, products = np.linalg.pinv(inverse), inverse @ products @ inverse.T
    diagonals = np.einsum("krr->kr", products)
    a = np.sqrt(np.maximum(diagonals, 1e-4 * np.mean(np.abs(diagonals), axis=0) + 1e-300))
    return Factors(a, _root(_correlations(products, a)), c)


def _correlations(products: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Return the correlations of the evolving factors that suit the cross products best for given weights."""
    outer = a[:, :, None] * a[:, None, :]
    found = np.sum(products * outer, axis=0) / np.sum(outer**2, axis=0)
    np.fill_diagonal(found, 1.0)
    return np.asarray(found)


def _root(correlations: np.ndarray) -> np.ndarray:
    sizes, vectors = np.linalg.eigh(correlations)
    root = (vectors * np.sqrt(np.maximum(sizes, 1e-2))) @ vectors.T
    return np.asarray(root / np.linalg.norm(root, axis=0))


def _with_best_signs(stack: Stack, factors: Factors) -> Factors:
    """Return factors in which slices have the signs that suit them best, their weights refitted; B and C stay."""
    best_a, best = _refitted(stack, factors, factors.a)
    sizes = np.sqrt(factors.a**2 + 1e-4 * np.mean(factors.a**2, axis=0))
    signs = np.where(factors.a < 0, -1.0, 1.0)
    for pattern in _patterns(factors.rank):
        a, values = _refitted(stack, factors, sizes * signs * pattern)
        lower = values < best
        best_a, best = np.where(lower[:, None], a, best_a), np.where(lower, values, best)
    return Factors(best_a, factors.b, factors.c)


def refitted_weights(stack: Stack, factors: Factors, *, is_positive: bool) -> Factors:
    """Return factors with weights of all slices of a stack, for B and C that were found on some of them."""
    equal = np.tile(np.mean(np.abs(factors.a), axis=0), (stack.n_slices, 1))
    begun = Factors(equal, factors.b, factors.c)
    if not is_positive:
        return _with_best_signs(stack, begun)
    for _ in range(5):
        begun = Factors(np.maximum(_refitted(stack, begun, begun.a)[0], 0.02 * equal), factors.b, factors.c)
    return begun


def n_patterns(rank: int) -> int:
    return int(2 ** (rank - 1) if rank <= ALL_PATTERNS else rank * (rank + 1) // 2)


def _patterns(rank: int) -> list[np.ndarray]:
    if rank <= ALL_PATTERNS:
        return [np.array((1.0, *rest)) for rest in product((1.0, -1.0), repeat=rank - 1)][1:]
    singles = [1 - 2 * one for one in np.eye(rank)]
    return [*singles, *(singles[i] * singles[j] for i in range(rank) for j in range(i))]


def _refitted(stack: Stack, factors: Factors, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return weights after some alternating steps, and the squared distances of the slices."""
    scores = stack.times(factors.c)
    gram = (factors.b.T @ factors.b) * (factors.c.T @ factors.c)
    inverse = np.linalg.pinv(gram, hermitian=True)
    values = np.zeros(len(a))
    for _ in range(3):
        bases = polar_factors(stack, scores, Factors(a, factors.b, factors.c))
        pairs = zip(bases, stack.by_group(scores), strict=True)
        right = np.concatenate([np.einsum("nir,nir->nr", basis @ factors.b, view) for basis, view in pairs])
        a = right @ inverse
        values = -np.einsum("nr,nr->n", a, right)
    return a, values
