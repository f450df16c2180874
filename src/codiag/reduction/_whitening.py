"""Coordinates in which the factors of a symmetric tensor are orthogonal."""

from __future__ import annotations

from codiag._arrays import Array, array_namespace, asarray_like, to_host, to_namespace
from codiag._checks import RankDeficientError
from codiag.problem import Problem
from codiag.reduction._reduction import Reduction, compressed
from codiag.tensors import DenseTensor

SMALLEST_EIGENVALUE = 1e-8
"""Smallest eigenvalue of a second moment, relative to the largest, that counts as positive: the root of the precision
of float64."""


def whitened(problem: Problem) -> tuple[Reduction, Reduction]:
    """Return the tensor in the range of its second moment, and in coordinates in which the moment is the identity."""
    tensor = problem.tensor
    xp = array_namespace(tensor.reference)
    moment = asarray_like(to_host(problem.second_moment), tensor.reference)
    basis = xp.flip(xp.linalg.eigh((moment + xp.matrix_transpose(moment)) / 2)[1][:, -problem.rank :], axis=1)
    reduction = compressed(problem, tensor, (basis,) * tensor.order)
    inside = to_namespace(xp.matrix_transpose(basis) @ moment @ basis, reduction.core.reference)
    return reduction, _white(reduction.problem, inside)


def _white(problem: Problem, moment: Array) -> Reduction:
    r"""Return a symmetric core in coordinates in which a matrix :math:`\sum_i c_i u_i u_i^\top` is the identity."""
    core = problem.tensor.as_double()
    xp = array_namespace(core.reference)
    values, vectors = xp.linalg.eigh((moment + xp.matrix_transpose(moment)) / 2)
    if not float(xp.min(values)) > SMALLEST_EIGENVALUE * float(xp.max(xp.abs(values))):
        raise RankDeficientError(
            f"second_moment must be positive definite on {core.shape[0]} dimensions; it has eigenvalues from "
            f"{float(xp.min(values)):.2g} to {float(xp.max(values)):.2g}"
        )
    white = core.compress(*[vectors / xp.sqrt(values)] * core.order)
    bases = (vectors * xp.sqrt(values),) * core.order
    whole = problem.with_tensor(DenseTensor.of(white.to_dense(), symmetric=True))
    return Reduction(whole, bases, core.reference)
