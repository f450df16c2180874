"""Moments of three views of the same samples, and the parameters of their common components."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from codiag._checks import RankDeficientError
from codiag.diagonalize import TwoSided
from codiag.methods import Method, as_method
from codiag.models.base._second_moment import core_problem
from codiag.problem import Problem
from codiag.result import Factorization, solve
from codiag.tensors import CrossMomentTensor, DenseTensor, Tensor, symmetrize

Means = tuple[np.ndarray, list[np.ndarray]]
"""Weights (k,), and the means (k, d) of every view."""


class ViewMoments:
    r"""First, second and third moments of three views, :math:`\sum_h \pi_h A_h \otimes B_h \otimes C_h`.

    If `alpha_0` is positive, samples mix components with shares from a Dirichlet distribution with this sum of
    parameters, and moments are corrected for that: :math:`(\alpha_0 + 1) E[a b^\top] - \alpha_0 E[a] E[b]^\top` equals
    :math:`\sum_h \pi_h A_h B_h^\top`.
    """

    def __init__(self, views: Sequence[Any], sample_weight: np.ndarray | None = None, alpha_0: float = 0.0) -> None:
        weights = None if sample_weight is None else sample_weight / np.sum(sample_weight)
        # without correction for mixed samples
        self.raw: Any = CrossMomentTensor(*views, weights=weights, symmetric=False, check=False)
        self.alpha_0 = alpha_0
        self.shape = self.raw.shape

    def mean(self, mode: int) -> np.ndarray:
        """Return the mean of a view, (d,)."""
        return np.asarray(self.raw.views[mode].T @ self.raw.weights)

    def pairs(self, left: int, right: int) -> np.ndarray:
        """Return the second moment of two views."""
        product = self.products(left, right)
        if self.alpha_0 == 0:
            return product
        means = np.outer(self.mean(left), self.mean(right))
        return (self.alpha_0 + 1) * product - self.alpha_0 * means

    @cached_property
    def third(self) -> Tensor:
        """The third moment; dense if samples mix components."""
        if self.alpha_0 == 0:
            return self.raw
        alpha_0, means = self.alpha_0, [self.mean(mode) for mode in range(3)]
        third = (alpha_0 + 1) * (alpha_0 + 2) / 2 * np.asarray(self.raw.to_dense())
        third += alpha_0**2 * np.einsum("a,b,c->abc", *means)
        for pair, mode, subscripts in (((0, 1), 2, "ab,c"), ((0, 2), 1, "ac,b"), ((1, 2), 0, "bc,a")):
            products = np.einsum(f"{subscripts}->abc", self.products(*pair), means[mode])
            third -= alpha_0 * (alpha_0 + 1) / 2 * products
        return DenseTensor(third)

    def products(self, left: int, right: int) -> np.ndarray:
        """Return the mean of products of two views."""
        weights = self.raw.weights / np.sum(self.raw.weights)
        return as_dense(self.raw.views[left].T @ scaled(self.raw.views[right], weights))


@dataclass(frozen=True, eq=False)
class CrossProblem:
    """The problem of the third moment of three views."""

    moments: ViewMoments
    problem: Problem

    @classmethod
    def of(cls, moments: ViewMoments, k: int) -> CrossProblem:
        """Return the problem for k components."""
        return cls(moments, Problem(moments.third, k, symmetric=False))

    def parameters(self, fit: Factorization) -> Means:
        """Return weights and means from the factors."""
        units = [np.asarray(factor) for factor in fit.factors]
        return multiview_parameters(self.moments, units, np.asarray(fit.weights))


@dataclass(frozen=True, eq=False)
class MappedProblem:
    r"""The problem of the symmetric moment with two views mapped to the third, with whitening.

    The map of a is :math:`\tilde a = E[c b^\top] E[a b^\top]^+ a`; methods that need orthogonal factors take this way.
    """

    moments: ViewMoments
    problem: Problem
    values: np.ndarray  # eigenvalues of the second moment, largest first
    basis: np.ndarray  # (d, k): its leading eigenvectors

    @classmethod
    def of(cls, moments: ViewMoments, k: int) -> MappedProblem:
        """Return the problem for k components in the range of the second moment."""
        size = moments.pairs(2, 1).shape[0]
        if k > size:
            raise ValueError(
                f"n_components must be at most {size}, the size of the last view, for a method that needs orthogonal "
                f"factors; got {k}. Leave method out, or give the smallest view first"
            )
        maps = [
            moments.pairs(2, 1) @ _pseudo_inverse(moments.pairs(0, 1), k),
            moments.pairs(2, 0) @ _pseudo_inverse(moments.pairs(1, 0), k),
        ]
        second = maps[0] @ moments.pairs(0, 1) @ maps[1].T
        values, vectors = np.linalg.eigh((second + second.T) / 2)
        order = np.argsort(-np.abs(values))  # as singular values: noise can change the sign of weak ones
        values, basis = np.abs(values[order]), vectors[:, order[:k]]
        core = moments.third.compress(maps[0].T @ basis, maps[1].T @ basis, basis).to_dense()
        return cls(moments, core_problem(symmetrize(core), values, orthogonal=True), values, basis)

    def parameters(self, fit: Factorization) -> Means:
        """Return weights and means from the factors."""
        inside = np.asarray(fit.factors[0])
        inverse = np.linalg.pinv(inside)
        sizes = np.einsum("ia,a,ia->i", inverse, self.values[: fit.rank], inverse)
        squares = np.maximum(sizes, 1e-12 * self.values[0])
        lengths = np.asarray(fit.weights) / squares
        weights = squares / lengths**2
        last = self.basis @ (inside * lengths)
        others = [self.moments.pairs(mode, 2) @ np.linalg.pinv(last.T) / weights for mode in range(2)]
        return weights, [columns.T for columns in (*others, last)]


def view_problem(moments: ViewMoments, k: int, method: Method) -> CrossProblem | MappedProblem:
    """Return the problem of k components of three views in a form that the method can solve."""
    return MappedProblem.of(moments, k) if method.needs_orthogonal else CrossProblem.of(moments, k)


def start_from_views(moments: ViewMoments, k: int, method: Any, rng: int | None, *, max_sweeps: int = 100) -> Means:
    """Return weights and means of three views of k features, to start expectation maximization from.

    By default from joint diagonalization, which need not converge here: EM refines it better than least squares.
    """
    if method is not None:
        strategy = as_method(method)
        route = view_problem(moments, k, strategy)
        return route.parameters(solve(route.problem, strategy, rng))
    joint = TwoSided(rank=k, max_sweeps=max_sweeps)(np.moveaxis(np.asarray(moments.third.to_dense()), 2, 0), rng=rng)
    return multiview_parameters(moments, [joint.factor, joint.right_factor, joint.diagonals], np.ones(k))


def multiview_parameters(moments: ViewMoments, units: list[np.ndarray], sizes: np.ndarray) -> Means:
    r"""Return weights (k,) and means (k, d) of every view, from unit factors and their sizes.

    For the two largest views b and c, :math:`E[b c^\top] = \sum_h \pi_h B_h C_h^\top` and the means
    :math:`E[b] = \sum_h \pi_h B_h` determine :math:`\pi`; the first view follows from the sizes.
    """
    first, second, third = sorted(range(3), key=lambda mode: moments.shape[mode])
    inverse = {mode: np.linalg.pinv(units[mode]) for mode in (second, third)}
    masses = {mode: inverse[mode] @ moments.mean(mode) for mode in (second, third)}
    cross = np.diag(inverse[second] @ moments.pairs(second, third) @ inverse[third].T)
    if not np.all(np.abs(cross) > 1e-300):
        raise RankDeficientError(
            "X must have components that are correlated between views; some have no correlation at all"
        )
    weights = np.maximum(masses[second] * masses[third] / cross, 1e-9)
    lengths = {second: masses[second] / weights, third: masses[third] / weights, first: sizes / cross}
    return weights, [(units[mode] * lengths[mode]).T for mode in range(3)]


def scaled(view: Any, sample_weight: np.ndarray) -> Any:
    """Return a view, dense or sparse, with every sample multiplied by its weight."""
    if sparse.issparse(view):
        return view.multiply(sample_weight[:, None]).tocsr()
    return view * sample_weight[:, None]


def as_dense(view: Any) -> np.ndarray:
    """Return a view as an array."""
    return np.asarray(view.toarray() if sparse.issparse(view) else view)


def _pseudo_inverse(matrix: np.ndarray, k: int) -> np.ndarray:
    """Return the pseudo-inverse of the nearest matrix of rank k."""
    left, sizes, right = np.linalg.svd(matrix, full_matrices=False)
    return (right[:k].T / np.maximum(sizes[:k], 1e-15 * sizes[0] + 1e-300)) @ left[:, :k].T
