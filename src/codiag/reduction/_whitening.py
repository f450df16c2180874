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
    return reduction, whiten(reduction.problem, inside)


def whiten(problem: Problem, moment: Array | None = None) -> Reduction:
    r"""Return a symmetric core in coordinates in which its factors are orthogonal.

    This needs a matrix :math:`\sum_i c_i u_i u_i^\top` with positive :math:`c_i`. By default it is the trace of the
    core over pairs of modes, contracted with the core itself.
    """
    core = problem.tensor.as_double()
    xp = array_namespace(core.reference)
    given = moment is not None
    moment = moment if given else _contraction(core)
    values, vectors = xp.linalg.eigh((moment + xp.matrix_transpose(moment)) / 2)
    if not given and float(xp.sum(values)) < 0:
        values = -values
    if not float(xp.min(values)) > SMALLEST_EIGENVALUE * float(xp.max(xp.abs(values))):
        spectrum = f"eigenvalues from {float(xp.min(values)):.2g} to {float(xp.max(values)):.2g}"
        raise RankDeficientError(
            f"second_moment must be positive definite on {core.shape[0]} dimensions; it has {spectrum}"
            if given
            else "tensor must have orthogonal factors for OJD, but they are not orthogonal, and its contraction, with "
            f"{spectrum}, does not whiten it. Pass codiag.Problem(..., second_moment=...), or use NOJD"
        )
    basis = vectors / xp.sqrt(values)
    white = core.compress(*[basis] * core.order)
    bases = (vectors * xp.sqrt(values),) * core.order
    whole = problem.with_tensor(DenseTensor.of(white.to_dense(), symmetric=True))
    return Reduction(whole, bases, core.reference)


def _contraction(core: DenseTensor) -> Array:
    xp = array_namespace(core.reference)
    entries = core.to_dense()
    while entries.ndim > 3:
        entries = xp.linalg.trace(entries)
    return entries @ xp.linalg.trace(entries) if entries.ndim == 3 else entries
