"""The tensor power method: power iterations with deflation, for tensors with orthogonal factors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from codiag._arrays import Array, array_namespace, asarray_like, epsilon
from codiag._checks import as_number
from codiag.least_squares import Log, unit_components, with_best_weights
from codiag.methods._method import Method
from codiag.problem import Estimate, Problem
from codiag.reduction import whitened
from codiag.tensors import FactoredTensor, Tensor


@dataclass(frozen=True, kw_only=True, eq=False)
class TPM(Method):
    r"""The robust tensor power method of Anandkumar et al.: power iterations from random starts, then deflation.

    Components are estimated one by one. Each is the best of several random starts after iterations
    :math:`\theta \leftarrow T(\cdot, \theta, \theta) / \|\cdot\|`, and is subtracted from the tensor before the next.
    If the tensor is not symmetric, the iterations alternate between the modes.

    Parameters
    ----------
    n_restarts : int
        Number of random starts for each component.
    tol : float
        Stop when all steps are shorter.
    max_iter : int
        Largest number of iterations for each component.

    See Also
    --------
    OJD : All components at once, with smaller errors.

    Notes
    -----
    **Assumptions.** Orthogonal factors, or a problem with a second moment.

    **Complexity.** :math:`2 L k d^3` flops a step with L restarts.

    **Guarantees.** For symmetric orthogonal tensors and enough starts, the components with errors :math:`O(\epsilon /
    \pi_{\min})`.

    **Limitations.** Fails silently if the factors are not orthogonal; the error of each component affects all that
    follow.

    References
    ----------
    A. Anandkumar, R. Ge, D. Hsu, S. Kakade and M. Telgarsky, "Tensor decompositions for learning latent variable
    models", J. Mach. Learn. Res. 15, 2014.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> q = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 3)))[0]
    >>> tensor = np.einsum("r,ir,jr,kr->ijk", [3.0, 2.0, 1.0], q, q, q)
    >>> codiag.factor_error(codiag.factorize(tensor, 3, method=codiag.methods.TPM(), rng=0), [q] * 3) < 1e-6
    True
    """

    n_restarts: int = 10
    tol: float = 1e-10
    max_iter: int = 500

    needs_orthogonal: ClassVar[bool] = True

    def __post_init__(self) -> None:
        as_number("n_restarts", self.n_restarts, integer=True)
        as_number("tol", self.tol)
        as_number("max_iter", self.max_iter, integer=True)

    def check_supported(self, problem: Problem) -> None:
        smallest = min(problem.tensor.shape)
        if problem.rank > smallest:
            raise ValueError(
                f"rank must be at most {smallest}, the smallest mode, for TPM, whose factors are orthogonal; "
                f"got {problem.rank}"
            )
        super().check_supported(problem)

    def fit(self, problem: Problem, rng: np.random.Generator) -> Estimate:
        log = Log()
        if problem.second_moment is None:
            components, converged = self._deflate(problem.tensor, problem.rank, rng, log)
            return Estimate(components, log.history, converged)
        reduction, white = whitened(problem)
        components, converged = self._deflate(white.core, problem.rank, rng, log)
        factors = unit_components(white.to_tensor(components)).factors
        return Estimate(reduction.to_tensor(with_best_weights(reduction.core, factors)), log.history, converged)

    def _deflate(self, tensor: Tensor, rank: int, rng: np.random.Generator, log: Log) -> tuple[FactoredTensor, bool]:
        """Estimate components one by one, each after subtracting those before."""
        components, n_iter, converged = self._iterate(tensor, None, rng)
        for _ in range(rank - 1):
            component, n_steps, is_stationary = self._iterate(tensor, components, rng)
            components, n_iter = components.joined(component), n_iter + n_steps
            converged = converged and is_stationary
        flops = 2.0 * n_iter * self.n_restarts * math.prod(tensor.shape) * (1 if tensor.symmetric else tensor.order)
        log.add("power iterations", n_iter, math.nan, flops)
        return components, converged

    def _iterate(
        self, tensor: Tensor, subtracted: FactoredTensor | None, rng: np.random.Generator
    ) -> tuple[FactoredTensor, int, bool]:
        """Return the best component of all restarts, the number of steps, and whether its iteration converged."""
        xp = array_namespace(tensor.reference)
        drawn = [rng.standard_normal((size, self.n_restarts)) for size in tensor.shape]
        factors = [asarray_like(columns / np.linalg.norm(columns, axis=0), tensor.reference) for columns in drawn]
        factors = _shared(factors, tensor.symmetric)
        lengths, n_steps = xp.ones_like(factors[0][0, :]), 0
        tol = max(self.tol, 4 * epsilon(tensor.reference))
        while n_steps < self.max_iter and float(xp.max(lengths)) > tol:
            previous, n_steps = factors[0], n_steps + 1
            for mode in range(1 if tensor.symmetric else tensor.order):
                image = _contract(tensor, subtracted, factors, mode)
                norms = xp.linalg.vector_norm(image, axis=0)
                # If the rest of the tensor is zero, the direction does not change, and its weight is zero.
                image = xp.where(norms > 0, image, factors[mode])
                factors[mode] = image / xp.where(norms > 0, norms, xp.ones_like(norms))
                factors = _shared(factors, tensor.symmetric)
            signs = xp.sign(xp.sum(previous * factors[0], axis=0))  # for even orders the sign may change in every step
            lengths = xp.linalg.vector_norm(factors[0] - signs * previous, axis=0)
        weights = xp.sum(_contract(tensor, subtracted, factors, 0) * factors[0], axis=0)
        best = int(xp.argmax(xp.abs(weights)))
        converged = float(lengths[best]) <= max(tol, 1e-6)
        return FactoredTensor(weights, factors, symmetric=tensor.symmetric).columns([best]), n_steps, converged


def _contract(tensor: Tensor, subtracted: FactoredTensor | None, factors: list[Array], mode: int) -> Array:
    """Contract the tensor minus the subtracted components with all factors but one."""
    image = tensor.mttkrp(factors, mode)
    return image if subtracted is None else image - subtracted.mttkrp(factors, mode)


def _shared(factors: list[Array], symmetric: bool) -> list[Array]:
    return factors[:1] * len(factors) if symmetric else factors
