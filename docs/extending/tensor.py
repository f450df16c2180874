r"""A kind of tensor of your own, in one file: a tensor that is stored as a Tucker decomposition.

**The storage.** A Tucker decomposition keeps a large tensor as a small core and one basis for each mode,

.. math:: T_{ijk} = \sum_{abc} C_{abc}\, U_{ia} V_{jb} W_{kc},

which is what compression of simulations, videos and spectra produces. Its components can be found from the core and the
bases alone: the entries of T, which may not fit into memory, are never formed.

**Step 1: two methods.** A subclass of `codiag.tensors.Tensor` sets ``shape``, says in ``symmetric`` whether permuting
the modes leaves the tensor as it is, and implements ``project`` and ``permute``. ``project`` contracts every mode after
the second with given directions, so that a stack of matrices is left: here the directions are multiplied by the bases,
the core is projected, and the first two bases are applied to the small result. ``permute`` reorders the modes. These
two are enough: all other operations have a fallback, and `codiag.factorize` works.

**Step 2: what the storage makes cheap.** The fallbacks project the tensor onto all unit vectors where they need every
entry, which costs as much as forming it. So this class also overrides ``compress`` (multiply the modes by matrices:
only the bases change), ``mttkrp`` and ``mttkrps`` (contract all modes but one), ``inner``, ``squared_norm`` and
``squared_distance``, which are reduced to operations of the size of the core, and ``to_dense``.

**Step 3: precision.** The distance of a good fit is a small difference of large numbers, so that
:math:`\|T\|^2 - 2 \langle T, M \rangle + \|M\|^2` would lose half of the digits. ``squared_distance`` avoids that: the
QR decomposition of ``[U, A]``, for the basis and the factor of each mode, gives coordinates in which both tensors are
small, and there they are subtracted entry by entry, in double precision.

**Step 4: array libraries.** `array_namespace` returns the functions of the library that an array belongs to. With these
the class works on NumPy, torch, CuPy and JAX. ``reference`` tells others which library, device and precision that is.

**How it is tested.** One line in ``TENSORS`` of ``tests/tensor_cases.py`` runs every law of tensors on it: projection
is linear, projecting onto unit vectors gives slices, compression commutes with projection, norms and distances agree
with those of the entries, symmetry is kept, and every method finds the same components as in a plain array.

Run this file for the components of a tensor with two billion entries: ``python docs/extending/tensor.py``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from array_api_compat import array_namespace

import codiag
from codiag.tensors import DenseTensor, Tensor, as_tensor


class TuckerTensor(Tensor):
    r"""A tensor :math:`C \times_1 U \times_2 V \times_3 W \dots`, stored as its core and its bases.

    Parameters
    ----------
    core : array or Tensor of shape (r_0, r_1, r_2, ...)
        Small enough to be formed.
    bases : sequence of arrays of shape (d_m, r_m)
        One for each mode; their columns need not be orthogonal.
    symmetric : bool
        Whether permuting the modes leaves the tensor as it is: the core is symmetric, and all bases are equal.

    Examples
    --------
    >>> import numpy as np
    >>> tensor = TuckerTensor(np.ones((1, 1, 1)), [np.ones((size, 1)) for size in (10, 20, 30)])
    >>> tensor, round(tensor.squared_norm(), 6)
    (TuckerTensor(10 x 20 x 30), 6000.0)
    """

    holds_entries = True

    def __init__(self, core: Any, bases: Sequence[Any], *, symmetric: bool = False) -> None:
        self.core, self.symmetric = as_tensor(core, symmetric), symmetric
        xp = array_namespace(self.core.reference)
        self.bases = tuple(xp.astype(basis, self.core.reference.dtype, copy=False) for basis in bases)
        if tuple(basis.shape[1] for basis in self.bases) != self.core.shape:
            raise ValueError(
                f"bases must have as many columns as the modes of the core, {self.core.shape}; got bases of shapes "
                f"{[tuple(basis.shape) for basis in self.bases]}"
            )
        self.shape = tuple(int(basis.shape[0]) for basis in self.bases)
        if symmetric and not _all_equal(self.bases):
            raise ValueError("symmetric=True needs a symmetric core and equal bases; leave symmetric out")

    @property
    def reference(self) -> Any:
        return self.core.reference

    def project(self, *directions: Any) -> Any:
        inside = [direction @ basis for direction, basis in zip(directions, self.bases[2:], strict=True)]
        stack = self.core.project(*inside)
        return self.bases[0] @ stack @ array_namespace(stack).matrix_transpose(self.bases[1])

    def permute(self, axes: Sequence[int]) -> TuckerTensor:
        return TuckerTensor(self.core.permute(axes), [self.bases[mode] for mode in axes], symmetric=self.symmetric)

    def compress(self, *bases: Any) -> TuckerTensor:
        kept = [own if basis is None else basis.T @ own for basis, own in zip(bases, self.bases, strict=True)]
        return TuckerTensor(self.core, kept, symmetric=self.symmetric and _all_equal(kept))

    def mttkrp(self, factors: Sequence[Any], mode: int) -> Any:
        return self.bases[mode] @ self.core.mttkrp(self._inside(factors), mode)

    def mttkrps(self, factors: Sequence[Any]) -> list[Any]:
        products = self.core.mttkrps(self._inside(factors))
        return [basis @ product for basis, product in zip(self.bases, products, strict=True)]

    def to_dense(self) -> Any:
        return self.core.compress(*(basis.T for basis in self.bases)).to_dense()

    def inner(self, weights: Any, factors: Sequence[Any]) -> float:
        core, bases = self._in_double_precision()
        return core.inner(_double(weights), [basis.T @ _double(f) for basis, f in zip(bases, factors, strict=True)])

    def squared_norm(self) -> float:
        core, bases = self._in_double_precision()
        return core.compress(*(_triangle(basis).T for basis in bases)).squared_norm()

    def squared_distance(self, weights: Any, factors: Sequence[Any]) -> float:
        core, bases = self._in_double_precision()
        xp = array_namespace(core.reference)
        # Q^T [U, A] for the orthonormal Q that spans both: the first columns belong to U, the others to A.
        both = [
            _triangle(xp.concat([basis, _double(factor)], axis=1)) for basis, factor in zip(bases, factors, strict=True)
        ]
        own = [triangle[:, :size] for triangle, size in zip(both, core.shape, strict=True)]
        other = [triangle[:, size:] for triangle, size in zip(both, core.shape, strict=True)]
        return core.compress(*(columns.T for columns in own)).squared_distance(_double(weights), other)

    def _inside(self, factors: Sequence[Any]) -> list[Any]:
        """Return factors in the coordinates of the core."""
        return [basis.T @ factor for basis, factor in zip(self.bases, factors, strict=True)]

    def _in_double_precision(self) -> tuple[DenseTensor, list[Any]]:
        entries = _double(self.core.to_dense())
        return DenseTensor.of(entries, symmetric=False), [_double(basis) for basis in self.bases]


def _double(array: Any) -> Any:
    xp = array_namespace(array)
    return xp.astype(array, xp.float64, copy=False)


def _triangle(matrix: Any) -> Any:
    """Return a matrix in orthonormal coordinates of its columns: R of its QR decomposition, where that is smaller."""
    return matrix if matrix.shape[0] <= matrix.shape[1] else array_namespace(matrix).linalg.qr(matrix)[1]


def _all_equal(bases: Sequence[Any]) -> bool:
    first, xp = bases[0], array_namespace(bases[0])
    return all(first is other or (first.shape == other.shape and bool(xp.all(first == other))) for other in bases)


def main() -> float:
    """Factorize a tensor of two billion entries from its Tucker decomposition; return the error of the factors."""
    rng = np.random.default_rng(0)
    shape, rank = (2000, 1250, 800), 5
    truth = [rng.standard_normal((size, rank)) for size in shape]
    pairs = [np.linalg.qr(factor) for factor in truth]
    core = np.einsum("ar,br,cr->abc", *(inside for _, inside in pairs))
    tensor = TuckerTensor(core, [basis for basis, _ in pairs])
    fit = codiag.factorize(tensor, rank, rng=0)
    error = codiag.factor_error(fit, truth)
    print(f"entries of the tensor   {math.prod(shape):.1e}")
    print(f"numbers that are stored {core.size + sum(basis.size for basis in tensor.bases):.1e}")
    print(f"relative error          {fit.relative_error:.1e}")
    print(f"error of the factors    {error:.1e}")
    return error


if __name__ == "__main__":
    main()
