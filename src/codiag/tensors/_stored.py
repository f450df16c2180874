"""Tensors whose entries are stored, so that all is asked of them by `read`, in one pass for several sums."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from codiag._arrays import Array, array_namespace
from codiag.tensors._base import Tensor
from codiag.tensors._sketch import FirstLook, first_look
from codiag.tensors._sums import Core, Products, SquaredDistance, SquaredNorm, asymmetry, symmetry_probes

if TYPE_CHECKING:
    from codiag.tensors._dense import DenseTensor


class StoredTensor(Tensor):
    """A tensor that implements `read`, on which the other sums stand."""

    holds_entries = True

    def compress(self, *bases: Array | None) -> DenseTensor:
        core: DenseTensor = self.read(Core(bases))[0]
        return core

    def mttkrp(self, factors: Sequence[Array], mode: int) -> Array:
        return self.read(Products(factors, [mode]))[0][0]

    def mttkrps(self, factors: Sequence[Array]) -> list[Array]:
        products: list[Array] = self.read(Products(factors))[0]
        return products

    def squared_distance(self, weights: Array, factors: Sequence[Array]) -> float:
        return float(self.read(SquaredDistance(weights, factors))[0])


class ArrayTensor(StoredTensor):
    """A tensor that holds all of its entries, in memory or in chunks, and finds out whether it is symmetric."""

    _symmetric: bool | None
    _seems_symmetric: bool
    _squared_norm: float | None = None

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        """Whether permuting the modes leaves the tensor as it is: as declared, or by a first look at its entries."""
        if self._symmetric is None:
            self.look()
        return bool(self._symmetric)

    def look(self, width: int = 0) -> FirstLook:
        undecided = self._symmetric is None
        if self._look is None or self._look.width < width or undecided:
            self._look = first_look(self, width, one_mode=self._seems_symmetric, probe=undecided)
            self._squared_norm = self._look.squared_norm
            if undecided:
                self._symmetric = self._look.asymmetry is not None and self._look.asymmetry < self._rounding()
                self._seems_symmetric = self._symmetric
        return self._look

    def asymmetry(self) -> float:
        """Measure how far the tensor is from symmetric, along random vectors, which see any difference.

        Returns
        -------
        float
            The share of the tensor that permuting its modes changes: 0 if symmetric, about 1 for pure noise.

        See Also
        --------
        DenseTensor.symmetrized : The symmetric part.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.tensors import DenseTensor, symmetrize
        >>> noise = np.random.default_rng(0).standard_normal((9, 9, 9))
        >>> DenseTensor(noise).asymmetry() > 0.5, DenseTensor(symmetrize(noise)).asymmetry() < 1e-12
        (True, True)
        """
        if len(set(self.shape)) > 1:
            return math.inf
        if self._look is not None and self._look.asymmetry is not None:
            return self._look.asymmetry
        return asymmetry(*self.read(*symmetry_probes(self), SquaredNorm()))

    def _rounding(self) -> float:
        return 1e-10 if self.reference.dtype == array_namespace(self.reference).float64 else 1e-4
