"""The option `init` of methods: at random, from a method, or from components that are given."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from codiag._arrays import like, to_host
from codiag._checks import as_real_array
from codiag.least_squares import merged_modes, random_components
from codiag.methods._method import fit_or_refuse
from codiag.problem import Estimate, Problem
from codiag.tensors import FactoredTensor, components_of

Init: TypeAlias = Any
"""Where to start: "random", a method, a fit, or a pair (weights, factors)."""


def check_init(init: Init, names: tuple[str, ...] = ("random",)) -> None:
    """Raise unless `start_from` takes a start, or it has one of these names."""
    if isinstance(init, str) and init not in names:
        raise ValueError(f"init must be one of {', '.join(names)}, a method, a fit or a pair; got {init!r}")
    if init is None or isinstance(init, str) or is_method(init):
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
    """Return whether a start is drawn at random; None, the former default of `NLS`, means that too."""
    return init is None or (isinstance(init, str) and init == "random")


def is_method(init: object) -> bool:
    """Return whether a start is an object with the interface of `Method`."""
    return not isinstance(init, type) and hasattr(init, "fit") and hasattr(init, "refusal")


def has_rows(init: Init) -> bool:
    """Return whether a start has a row for every index of the tensor."""
    return init.has_per_index_options if is_method(init) else not isinstance(init, str | None)


def check_monitor(monitor: object) -> None:
    """Raise unless a monitor, if any, can be called."""
    if monitor is not None and not callable(monitor):
        raise TypeError(f"monitor must be None or a function of components and their relative error; got {monitor!r}")


def start_from(init: Init, problem: Problem, rng: np.random.Generator) -> Estimate:
    """Return the start that `init` describes, in the library and on the device of the tensor.

    A method that cannot take constraints or missing entries into account starts without them.
    """
    tensor, rank = problem.tensor, problem.rank
    if is_random(init):
        return Estimate(random_components(problem.complete().tensor, rank, rng), (), False)
    if is_method(init):
        return fit_or_refuse(init, problem if problem.required_features <= init.supports else problem.complete(), rng)
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
