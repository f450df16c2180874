"""The base class of methods, configured objects that solve a problem, and their option `init`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from codiag._arrays import is_complex, like, to_host
from codiag._checks import as_number_array
from codiag.least_squares import merged_modes, random_components
from codiag.problem import Estimate, Problem
from codiag.tensors import FactoredTensor, components_of

COMPLEX = "complex numbers"
"""The feature of problems whose entries are complex."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Method(ABC):
    """A configured way to factorize a tensor; pass it to `codiag.factorize`.

    A subclass implements `fit`, declares in `supports` which features of a problem it takes into account, and says in
    `refusal` what else it cannot do. It has no data.

    Attributes
    ----------
    supports : frozenset of str
        Features of a problem that are taken into account: of "constraints", "observed" (missing entries and weights),
        "partial symmetry" (modes some of which share a factor) and "complex numbers".
    needs_orthogonal : bool
        Whether the factors must be orthogonal, or made so by the problem's second moment.

    See Also
    --------
    codiag.methods.Auto : The default.
    codiag.Problem : What a method solves.
    codiag.factorize : Calls a method.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> from codiag.methods import NLS
    >>> problem = codiag.Problem(np.ones((3, 4, 5)), 1)
    >>> NLS().fit(problem, np.random.default_rng(0)).components.rank
    1
    """

    supports: ClassVar[frozenset[str]] = frozenset()
    needs_orthogonal: ClassVar[bool] = False

    @property
    def has_per_index_options(self) -> bool:
        """Whether an option has one row per index (a given start, a monitor), so that empty slices must be kept.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.methods import ALS, Auto
        >>> factors = [np.ones((size, 1)) for size in (3, 4, 5)]
        >>> Auto().has_per_index_options, ALS(init=(np.ones(1), factors)).has_per_index_options
        (False, True)
        """
        return False

    @abstractmethod
    def fit(self, problem: Problem, rng: np.random.Generator) -> Estimate:
        """Find the components of a problem, silently, with one factor for all modes if it is symmetric.

        Parameters
        ----------
        problem : Problem
            One that `refusal` returns None for.
        rng : numpy.random.Generator
            All random numbers come from it.

        Returns
        -------
        Estimate
            The components, and how they were found.

        See Also
        --------
        Method.refusal : The reason why a method cannot solve a problem.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> from codiag.methods import NLS
        >>> problem = codiag.Problem(np.ones((3, 4, 5)), 1)
        >>> estimate = NLS().fit(problem, np.random.default_rng(0))
        >>> estimate.converged, estimate.components.shape
        (True, (3, 4, 5))
        """

    def refusal(self, problem: Problem) -> str | None:
        """Return the reason why this method cannot solve a problem.

        Parameters
        ----------
        problem : Problem
            The problem that is to be solved.

        Returns
        -------
        str or None
            A sentence with the way out, or None if the method can.

        See Also
        --------
        Method.fit : Solves the problem.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> from codiag.methods import NLS, OJD
        >>> problem = codiag.Problem(np.ones((3, 4, 5)), 1, constraints="nonnegative")
        >>> NLS().refusal(problem) is None, OJD().refusal(problem) is None
        (True, False)
        """
        required = problem.required_features | ({COMPLEX} if problem.numbers_per_entry > 1 else set())
        unsupported = sorted(required - self.supports)
        if not unsupported:
            return None
        name, what = type(self).__name__, " and ".join(unsupported)
        others = "leave method out" if "loss" in unsupported else "use ALS or NLS, or leave method out"
        return f"{name} cannot take {what} into account; {others}"


def fit_or_refuse(method: Method, problem: Problem, rng: np.random.Generator) -> Estimate:
    """Solve a problem, or raise with the reason why this method cannot."""
    reason = method.refusal(problem)
    if reason is not None:
        raise ValueError(reason)
    estimate = method.fit(problem, rng)
    if not hasattr(estimate, "components"):
        raise TypeError(f"{type(method).__name__}.fit must return an Estimate; got {type(estimate).__name__}")
    return estimate


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
        raise ValueError("init must contain factors of shape (d, rank)")
    if weights is not None and any(weights.shape != factor.shape[1:] for factor in factors):
        shapes = ", ".join(str(factor.shape) for factor in factors)
        raise ValueError(f"init must have a weight for every column of its factors; got {weights.shape} and {shapes}")


def is_random(init: Init) -> bool:
    """Return whether a start is drawn at random, which None means too."""
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
    if any(map(is_complex, factors)) and not is_complex(tensor.reference):
        raise TypeError("init must be real, as the tensor is; got complex factors")
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
    given = [to_host(as_number_array(factor, "init")) for factor in factors]
    return None if weights is None else to_host(as_number_array(weights, "init")), given
