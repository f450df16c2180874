"""A tensor of which only the shape is left: results refer to one if they do not keep the data."""

from __future__ import annotations

from collections.abc import Sequence

from codiag._arrays import Array
from codiag.tensors._base import Tensor


class AbsentTensor(Tensor):
    """A tensor whose entries were left out: its shape, its symmetry and the kind of its numbers.

    Parameters
    ----------
    shape : sequence of int
        Sizes of the modes.
    reference : array
        Of the library and the precision of the entries.
    symmetric : bool
        Whether all modes share a factor.
    """

    is_absent = True

    def __init__(self, shape: Sequence[int], reference: Array, *, symmetric: bool) -> None:
        self.shape, self.symmetric, self._reference = tuple(shape), symmetric, reference

    @property
    def reference(self) -> Array:
        return self._reference

    @property
    def n_stored(self) -> int:
        return 0

    def project(self, *directions: Array) -> Array:
        raise ValueError(
            "the data of this fit were left out, by drop_data() or since the tensor is large; factorize it again"
        )

    def permute(self, axes: Sequence[int]) -> AbsentTensor:
        return AbsentTensor([self.shape[mode] for mode in axes], self._reference, symmetric=self.symmetric)
