"""Starts that are given: components of the user, and factors that are fixed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from codiag._arrays import Array, adjoint, array_namespace, asarray_like, conjugate
from codiag.least_squares import Log, hadamard_gram, solve_semidefinite, split_columns
from codiag.problem import LogEntry, Problem
from codiag.starts._start import Start
from codiag.tensors import Core, FactoredTensor, Tensor, array_in_double_precision, khatri_rao


@dataclass(frozen=True, kw_only=True, eq=False)
class Given(Start):
    """Components that are given.

    Attributes
    ----------
    components : FactoredTensor
    history : sequence of Stage
        How they were found.
    """

    components: FactoredTensor
    history: Sequence[LogEntry] = ()

    @property
    def factors(self) -> Sequence[Array]:
        return self.components.factors

    def generate(self, problem: Problem, rng: np.random.Generator, log: Log) -> Iterator[FactoredTensor]:
        log.extend(self.history)
        yield self.components


class FixedFactors(Start):
    r"""The factors that constraints fix, and those of the other modes by linear least squares.

    With Z the columnwise Kronecker product of the fixed factors, the unfolding is nearly :math:`Z Y^\top`, and every
    column of the least-squares Y is nearly a tensor of rank one.
    """

    def generate(self, problem: Problem, rng: np.random.Generator, log: Log) -> Iterator[FactoredTensor]:
        tensor = problem.complete().tensor
        xp = array_namespace(tensor.reference)
        fixed = {
            mode: constraint.project(asarray_like(np.zeros((tensor.shape[mode], problem.rank)), tensor.reference))
            for mode, constraint in enumerate(problem.constraints or ())
            if constraint is not None and constraint.is_fixed
        }
        others = [mode for mode in range(tensor.order) if mode not in fixed]
        factors: dict[int, Array] = dict(fixed)
        if others:
            columns = solve_semidefinite(hadamard_gram(list(fixed.values())), _products(tensor, fixed))
            columns = xp.matrix_transpose(columns)
            split = [columns] if len(others) == 1 else split_columns(columns, [tensor.shape[mode] for mode in others])
            factors |= dict(zip(others, split, strict=True))
        weights = asarray_like(np.ones(problem.rank), tensor.reference)
        yield FactoredTensor(weights, [factors[mode] for mode in range(tensor.order)], symmetric=False)


def _products(tensor: Tensor, fixed: dict[int, Array]) -> Array:
    """Return Z^H times the unfolding, (k, d_m d_n ...): in one pass over a tensor that is not stored as an array."""
    xp = array_namespace(tensor.reference)
    others = [mode for mode in range(tensor.order) if mode not in fixed]
    factors = list(fixed.values())
    entries = array_in_double_precision(tensor)
    if entries is not None:
        side = xp.reshape(xp.permute_dims(entries, (*fixed, *others)), (khatri_rao(factors).shape[0], -1))
        return adjoint(khatri_rao(factors)) @ side
    rank, order = factors[0].shape[1], tensor.order
    turned = {mode: conjugate(factor) for mode, factor in fixed.items()}
    bases = [tuple(turned[m][:, i : i + 1] if m in fixed else None for m in range(order)) for i in range(rank)]
    return xp.stack([xp.reshape(core.to_dense(), (-1,)) for core in tensor.read(*map(Core, bases))])
