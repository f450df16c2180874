"""A tensor with the weights of its entries: what all problems about it share, computed once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from codiag._arrays import Array
from codiag.problem._symmetry import Symmetry, groups_of, n_independent_entries
from codiag.tensors import Tensor
from codiag.tensors.entries import Entries


@dataclass(frozen=True, eq=False)
class ObservedTensor:
    """A tensor, the weights of its entries, and which modes share a factor.

    Attributes
    ----------
    tensor : Tensor
    weights : array of the shape of the tensor, or None
        None if all entries count equally.
    symmetric : bool or tuple of int
        Whether all modes share a factor, or which of them do.
    """

    tensor: Tensor
    weights: Array | None
    symmetric: Symmetry

    @cached_property
    def entries(self) -> Entries | None:
        """The observed entries; None if all are observed and have weight one."""
        return self.tensor.observed_entries(self.weights)

    @cached_property
    def groups(self) -> list[tuple[int, ...]]:
        """The modes that share each factor."""
        return groups_of(self.symmetric, self.tensor.order)

    @cached_property
    def squared_norm(self) -> float:
        """Weighted sum of squares of the observed entries."""
        return self.tensor.squared_norm() if self.entries is None else self.entries.squared_norm()

    @cached_property
    def n_observed(self) -> int:
        """Number of observed entries."""
        return math.prod(self.tensor.shape) if self.entries is None else self.entries.size

    @cached_property
    def n_independent(self) -> int:
        """Number of observed entries that no permutation of shared modes makes equal."""
        if self.entries is not None:
            return self.entries.n_independent(self.groups)
        return n_independent_entries(self.tensor.shape, self.groups)

    @cached_property
    def mean_weight(self) -> float:
        """Mean weight of the observed entries."""
        return 1.0 if self.entries is None else self.entries.mean_weight()
