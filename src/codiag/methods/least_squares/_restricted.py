"""A curvature on the unknowns that constraints leave free."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from codiag._array import Array, array_namespace, identity


class CurvatureLike(Protocol):
    """What a step asks of a curvature."""

    point: Array
    scales: Array
    exact: bool

    def product(self, move: Array) -> Array: ...

    def matrix(self) -> Array: ...

    def preconditioner(self, damping: float) -> Callable[[Array], Array]: ...


class Restricted:
    """A curvature with ridges added, in which unknowns that are not free neither move nor matter.

    Parameters
    ----------
    curvature : Curvature or ObservedCurvature
    free : array of shape (D, k)
        One for unknowns that may move, zero for the others.
    strengths : array of shape (D, 1), optional
        What ridges add to the diagonal.
    tangent : callable, optional
        Projects moves on those that curved sets of factors allow. Then the matrix is not to be had, only products.
    """

    def __init__(
        self,
        curvature: CurvatureLike,
        free: Array,
        strengths: Array | None,
        tangent: Callable[[Array], Array] | None = None,
    ) -> None:
        self._base, self.free, self._strengths, self.tangent = curvature, free, strengths, tangent
        self.point, self.scales, self.exact = curvature.point, curvature.scales, curvature.exact

    def allowed(self, move: Array) -> Array:
        """Return the part of a move that the constraints allow."""
        return self.free * move if self.tangent is None else self.free * self.tangent(self.free * move)

    def product(self, move: Array) -> Array:
        inside = self.allowed(move)
        image = self._base.product(inside)
        if self._strengths is not None:
            image = image + self._strengths * inside
        return self.allowed(image)

    def matrix(self) -> Array:
        xp = array_namespace(self.free)
        free = xp.reshape(self.free, (-1,))
        matrix = free[:, None] * self._base.matrix() * free[None, :]
        diagonal = (1 - self.free) * self.scales
        if self._strengths is not None:
            diagonal = diagonal + self.free * self._strengths
        return matrix + xp.reshape(diagonal, (-1, 1)) * identity(free.shape[0], free)

    def preconditioner(self, damping: float) -> Callable[[Array], Array]:
        inner = self._base.preconditioner(damping)
        return lambda move: self.allowed(inner(self.allowed(move)))
