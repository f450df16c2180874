"""The symmetrized outer product of a matrix and a vector, which shifts third moments by lower ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from array_api_compat import array_namespace, device, is_array_api_obj

from codiag._arrays import Array, all_equal, blocks, double, identity, squares
from codiag._checks import as_real_array
from codiag.tensors._base import Tensor, check_shape


class SymmetricOuterTensor(Tensor):
    r"""The symmetric tensor :math:`M_{ij} v_k + M_{ik} v_j + M_{jk} v_i` of a symmetric matrix and a vector.

    Third moments of many models are a sum of components once such a tensor is subtracted.

    Parameters
    ----------
    matrix : array of shape (d, d), or operator
        Symmetric, which is not checked. An operator has a shape and multiplies arrays of shape (d,) and (d, n) by
        ``@``: a SciPy sparse matrix, say.
    vector : array of shape (d,)
        The vector v.

    See Also
    --------
    SumTensor : Adds it to other tensors.
    codiag.models.SphericalGaussianMixture : Subtracts it from the third moment of samples.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.tensors import SymmetricOuterTensor
    >>> tensor = SymmetricOuterTensor(np.eye(2), np.array([1.0, 0.0]))
    >>> tensor.to_dense().tolist()
    [[[3.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]]
    >>> tensor.squared_norm()
    12.0
    """

    symmetric = True

    def __init__(self, matrix: Any, vector: Array) -> None:
        self.matrix = matrix if _is_operator(matrix) else as_real_array(matrix, "matrix", "use its real part")
        self.vector = as_real_array(vector, "vector", "use its real part")
        if self.vector.ndim != 1:
            raise ValueError(f"vector must have one axis; got {tuple(self.vector.shape)}")
        self.shape = check_shape((self.vector.shape[0],) * 3)
        if tuple(self.matrix.shape) != self.shape[:2]:
            raise ValueError(f"matrix must have shape {self.shape[:2]}, as the vector; got {tuple(self.matrix.shape)}")

    @property
    def reference(self) -> Array:
        return self.vector[:0]

    def project(self, *directions: Array) -> Array:
        xp = array_namespace(self.reference)
        (rows,) = directions
        images = xp.matrix_transpose(self.matrix @ xp.matrix_transpose(rows))
        outer = images[:, :, None] * self.vector[None, None, :]
        full = self.matrix @ identity(self.shape[0], self.reference)
        return (rows @ self.vector)[:, None, None] * full[None, ...] + outer + xp.matrix_transpose(outer)

    def permute(self, axes: Sequence[int]) -> SymmetricOuterTensor:
        return self

    def compress(self, *bases: Array | None) -> Tensor:
        """Return a tensor of the same kind for one basis of all modes, and a dense one for others."""
        xp = array_namespace(self.reference)
        if bases[0] is not None and all_equal(bases):
            inside = xp.matrix_transpose(bases[0])
            return SymmetricOuterTensor(inside @ (self.matrix @ bases[0]), inside @ self.vector)
        first, second, third = (identity(self.shape[0], self.reference) if basis is None else basis for basis in bases)
        vectors = [xp.matrix_transpose(basis) @ self.vector for basis in (first, second, third)]
        images = [self.matrix @ second, self.matrix @ third]
        core = (xp.matrix_transpose(first) @ images[0])[:, :, None] * vectors[2]
        core = core + (xp.matrix_transpose(first) @ images[1])[:, None, :] * vectors[1][None, :, None]
        core = core + (xp.matrix_transpose(second) @ images[1])[None, :, :] * vectors[0][:, None, None]
        return self._compressed(core, bases)

    def mttkrp(self, factors: Sequence[Array], mode: int) -> Array:
        xp = array_namespace(self.reference)
        first, second = (factor for other, factor in enumerate(factors) if other != mode)
        image = self.matrix @ first
        own = image * (self.vector @ second) + (self.matrix @ second) * (self.vector @ first)
        return own + self.vector[:, None] * xp.sum(image * second, axis=0)

    def squared_norm(self) -> float:
        r"""Return :math:`3 \|M\|^2 \|v\|^2 + 6 \|M v\|^2`."""
        image = self.matrix @ self.vector if _is_operator(self.matrix) else double(self.matrix) @ double(self.vector)
        return 3 * self._squared_norm_of_matrix() * squares(self.vector) + 6 * squares(image)

    def _squared_norm_of_matrix(self) -> float:
        if not _is_operator(self.matrix):
            return squares(self.matrix)
        xp, size = array_namespace(self.reference), self.shape[0]
        places, total = xp.arange(size, device=device(self.reference)), 0.0
        for part in blocks(size, size):
            units = xp.astype(places[:, None] == places[None, part], self.reference.dtype)
            total += squares(self.matrix @ units)
        return total


def _is_operator(matrix: Any) -> bool:
    """Tell whether an object that is no array has a shape and multiplies arrays."""
    return hasattr(matrix, "shape") and hasattr(matrix, "__matmul__") and not is_array_api_obj(matrix)
