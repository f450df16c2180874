"""Where least squares may start from: at random, from a method, or from components that are given."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from codiag._arrays import like, to_host
from codiag._checks import as_real_array
from codiag.least_squares import merged_modes, random_components
from codiag.methods._method import Method, fit_or_refuse
from codiag.problem import Estimate, Problem
from codiag.starts import filled
from codiag.tensors import FactoredTensor, components_of

Init: TypeAlias = Any
"""Where to start: "random", a method, a fit, or a pair (weights, factors)."""


def check_init(init: Init, names: tuple[str, ...] = ("random",)) -> None:
    """Raise unless a start is of a kind that `start_from` takes, or has one of these names."""
    if isinstance(init, str) and init not in names:
        raise ValueError(f"init must be one of {', '.join(names)}, a method, a fit or a pair; got {init!r}")
    if init is None or isinstance(init, str | Method):
        return
    weights, factors = _components(init)
    for array in factors if weights is None else [weights, *factors]:
        if not np.all(np.isfinite(array)) or not np.any(array):
            raise ValueError("init must be finite and not zero, or there is no way to go from it")
    if any(factor.ndim != 2 for factor in factors):
        raise ValueError("init must hold factors of shape (d, rank)")
    if weights is not None and any(weights.shape != factor.shape[1:] for factor in factors):
        shapes = ", ".join(str(factor.shape) for factor in factors)
        raise ValueError(f"init must have a weight for every column of its factors; got {weights.shape} and {shapes}")


def is_random(init: Init) -> bool:
    """Tell whether a start is drawn at random; None, the former default of `NLS`, stands for that too."""
    return init is None or (isinstance(init, str) and init == "random")


def is_sized(init: Init) -> bool:
    """Tell whether a start has a row for every index of the tensor."""
    return init.sized if isinstance(init, Method) else not isinstance(init, str | None)


def complete(problem: Problem) -> Problem:
    """Return the problem itself, or one without constraints and with what is missing filled in, for a start."""
    return problem.on(filled(problem)) if problem.asks else problem


def start_from(init: Init, problem: Problem, rng: np.random.Generator) -> Estimate:
    """Return the start that `init` describes, in the library and on the device of the tensor.

    A method that cannot take constraints or missing entries into account starts without them.
    """
    tensor, rank = problem.tensor, problem.rank
    if is_random(init):
        return Estimate(random_components(complete(problem).tensor, rank, rng), (), False)
    if isinstance(init, Method):
        return fit_or_refuse(init, problem if problem.asks <= init.honors else complete(problem), rng)
    weights, factors = _components(init)
    shapes = [factor.shape for factor in factors]
    if shapes != [(size, rank) for size in tensor.shape]:
        raise ValueError(f"init must have factors of shapes {[(size, rank) for size in tensor.shape]}; got {shapes}")
    given = [like(factor, tensor.reference) for factor in factors]
    sizes = like(np.ones(rank) if weights is None else weights, tensor.reference)
    components = FactoredTensor(sizes, given, symmetric=False)
    return Estimate(merged_modes(components) if problem.symmetric is True else components, (), False)


def _components(init: Init) -> tuple[np.ndarray | None, list[np.ndarray]]:
    """Return the weights and factors of a start on the host."""
    try:
        weights, factors = components_of(init) or init
        factors = list(factors)
    except (TypeError, ValueError):
        hint = "; did you forget the parentheses?" if isinstance(init, type) else ""
        wanted = "'random', a method, a fit or a pair (weights, factors)"
        raise TypeError(f"init must be {wanted}; got {init!r}{hint}") from None
    given = [to_host(as_real_array(factor, "init", "use its real part")) for factor in factors]
    return None if weights is None else to_host(as_real_array(weights, "init", "use its real part")), given
