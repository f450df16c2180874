r"""A method of your own, in one file: deflation, one component at a time.

**The idea.** Find the best single component of the tensor, subtract it, and go on with what is left. For orthogonal
factors every step is right: the best approximation of :math:`\sum_i w_i\, a_i \otimes b_i \otimes c_i` by one component
is the component with the largest weight.

**Step 1: what a method is.** A subclass of `codiag.extending.Method` is a frozen dataclass that has options and no
data. It implements ``fit(problem, rng)``. The problem says what is asked: ``tensor``, ``rank``, ``symmetric``, and
perhaps ``constraints``, ``observed`` and ``second_moment``. The method returns an `Estimate`: components of any scale
and order, the stages that led to them, and whether it reached its tolerance. It neither warns nor prints;
`codiag.factorize` brings the components into their final form and warns where they did not converge.

**Step 2: declare.** ``needs_orthogonal = True`` says that the factors must be orthogonal. Models then know that they
must supply a second moment :math:`M = \sum_i c_i u_i u_i^\top`, and ``fit`` must use it: in the coordinates
:math:`W^\top u` with :math:`W^\top M W = I` the factors are orthogonal. ``supports`` stays empty, so that constraints
and missing entries are refused in one sentence that names the way out. ``check_supported`` adds what else this method
cannot do. Options are checked once, when the object is made, by messages that name them.

**Step 3: work with tensors.** ``tensor - components`` is a tensor again, formed only where it is contracted, whatever
the storage of the first. So the problem of one component of what is left is ``Problem(tensor - found, 1)``, and any
method of the library can solve it.

**Where it can be used.** Wherever a method is an argument: ``codiag.factorize(tensor, rank, method=Deflation())``, in
the estimators of `codiag.models`, and as a start of another method, ``codiag.methods.NLS(init=Deflation())``.

**How it is tested.** One line in ``METHODS`` of ``tests/cases.py`` runs every contract of methods on it: noiseless
components are found for all orders, storage, scale and the order of modes do not matter, the same seed gives the same
answer, single precision stays, wrong options are refused by name, a rank that is too large gets a sentence.

Run this file to see where deflation is right, and where not: ``python docs/extending/method.py``.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace

import codiag
from codiag.extending import Estimate, LogEntry, Method
from codiag.methods import NLS
from codiag.synthetic import orthonormal_factor, unit_factor
from codiag.tensors import FactoredTensor, Tensor

ROUNDING = 1e-14
"""Share of the squared norm of a tensor below which nothing but rounding is left of it, in double precision."""


@dataclass(frozen=True, kw_only=True)
class Deflation(Method):
    r"""Components one by one: the best single component of what those before it have left.

    Parameters
    ----------
    rank_one : Method
        What finds a single component.

    Notes
    -----
    **Assumptions.** Orthogonal factors, or a second moment in the problem that makes them so, and a rank of at most the
    smallest mode.

    **Complexity.** One fit of rank one for every component, each a few passes over the tensor.

    **Guarantees.** Exact components of orthogonal tensors without noise.

    **Limitations.** Fails on factors that are not orthogonal, without a sign of it: the best single component then is a
    mixture of several. Under noise, every component inherits the errors of those before it.

    Examples
    --------
    >>> import numpy as np
    >>> fit = codiag.factorize(np.einsum("r,ir,jr,kr->ijk", [3, 2], *[np.eye(4, 2)] * 3), 2, method=Deflation())
    >>> fit.weights.round(6).tolist()
    [3.0, 2.0]
    """

    needs_orthogonal: ClassVar[bool] = True

    rank_one: Method = field(default_factory=lambda: NLS(n_starts=5))

    def __post_init__(self) -> None:
        if not isinstance(self.rank_one, Method):
            raise TypeError(f"rank_one must be an object of codiag.methods, like NLS(); got {self.rank_one!r}")

    def check_supported(self, problem: codiag.Problem) -> None:
        smallest = min(problem.tensor.shape)
        if problem.rank > smallest:
            raise ValueError(
                f"rank must be at most {smallest}, the smallest mode, for Deflation, whose factors are orthogonal; "
                f"got {problem.rank}. Use NOJD, or leave method out"
            )
        super().check_supported(problem)

    def fit(self, problem: codiag.Problem, rng: np.random.Generator) -> Estimate:
        if problem.second_moment is None:
            return self._deflate(problem.tensor, problem.rank, rng)
        into, back = _whitening(problem)
        found = self._deflate(problem.tensor.compress(*[into] * problem.tensor.order), problem.rank, rng)
        # In the new coordinates a component w v (x) v (x) v has a unit vector v; the size of back @ v goes with it.
        return found._replace(components=found.components.changed(lambda factor, _: back @ factor))

    def _deflate(self, tensor: Tensor, rank: int, rng: np.random.Generator) -> Estimate:
        start, total = time.perf_counter(), tensor.squared_norm()
        found = self.rank_one.fit(codiag.Problem(tensor, 1), rng)
        components, converged, n_sweeps = found.components, found.converged, _sweeps(found)
        left = _distance(tensor, components)
        while components.rank < rank:
            if left <= ROUNDING * total:  # the tensor has a lower rank: the others have no weight
                components = components.joined(components.columns([0]) * 0.0)
                continue
            found = self.rank_one.fit(codiag.Problem(tensor - components, 1), rng)
            components = components.joined(found.components)
            converged, n_sweeps = converged and found.converged, n_sweeps + _sweeps(found)
            left = _distance(tensor, components)
        stage = LogEntry("deflation", n_sweeps, math.sqrt(left / total), time.perf_counter() - start)
        return Estimate(components, [stage], converged)


def _sweeps(found: Estimate) -> int:
    return sum(stage.n_iter for stage in found.history)


def _distance(tensor: Tensor, components: FactoredTensor) -> float:
    return tensor.squared_distance(components.weights, components.factors)


def _whitening(problem: codiag.Problem) -> tuple[Any, Any]:
    """Return W with W^T M W = I for the second moment M, and its inverse on the range of M."""
    xp = array_namespace(problem.second_moment)
    values, vectors = xp.linalg.eigh(problem.second_moment)
    values, vectors = values[-problem.rank :], vectors[:, -problem.rank :]
    if not float(values[0]) > 1e-8 * float(values[-1]):
        raise ValueError(f"second_moment must have rank {problem.rank}, the number of components, and be positive")
    return vectors / xp.sqrt(values), vectors * xp.sqrt(values)


def main() -> dict[str, float]:
    """Factorize tensors with orthogonal and with other factors, as they are and whitened; return the errors."""
    orthogonal, general = orthonormal_factor(10, 5, rng=0), unit_factor(10, 5, rng=0)
    problems = {
        "orthogonal factors": codiag.Problem(_cube(orthogonal), 5),
        "other factors": codiag.Problem(_cube(general), 5),
        "other factors, second moment given": codiag.Problem(
            _cube(general), 5, symmetric=True, second_moment=general @ general.T
        ),
    }
    errors = {}
    for name, problem in problems.items():
        fit = codiag.factorize(problem, method=Deflation(), rng=0)
        truth = orthogonal if name.startswith("orthogonal") else general
        errors[name] = codiag.factor_error(fit, [truth] * 3)
        print(f"{name:36s}relative error {fit.relative_error:.1e}, error of the factors {errors[name]:.1e}")
    return errors


def _cube(factor: np.ndarray) -> np.ndarray:
    return np.einsum("r,ir,jr,kr->ijk", np.linspace(2, 1, factor.shape[1]), factor, factor, factor)


if __name__ == "__main__":
    main()
