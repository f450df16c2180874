"""The base class of methods, configured objects that solve a problem, and their option `init`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np

from codiag._arrays import asarray_like, is_complex, to_host
from codiag._checks import as_number_array
from codiag.least_squares import merged_modes, random_components
from codiag.problem import Estimate, Problem
from codiag.tensors import FactoredTensor, components_of

Init: TypeAlias = Any
"""Where to start: "random", a method, a fit, or a pair (weights, factors)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Method(ABC):
    """A configured way to factorize a tensor; pass it to `codiag.factorize`.

    A subclass implements `fit`, declares in `supports` which features of a problem it takes into account, and says in
    `check_supported` what else it cannot do. It has no data.

    Attributes
    ----------
    supports : frozenset of str
        Features of a problem that are taken into account: of "constraints", "missing entries" (and weights),
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
        """Whether an option has one row per index (a given start, a callback), so that empty slices must be kept.

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
            One that `check_supported` accepts.
        rng : numpy.random.Generator
            All random numbers come from it.

        Returns
        -------
        Estimate
            The components, and how they were found.

        See Also
        --------
        Method.check_supported : Raises if a method cannot solve a problem.

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

    def with_init(self, init: Init) -> Method:
        """Return this method with a given first start.

        Parameters
        ----------
        init : fit, (weights, factors) or factors
            The start.

        Returns
        -------
        Method
            Of the same kind, with its option `init` set.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.methods import ALS
        >>> ALS().with_init([np.ones((size, 1)) for size in (3, 4, 5)]).has_per_index_options
        True
        """
        if "init" not in {option.name for option in fields(self)}:
            raise ValueError(f"init must be left out for {type(self).__name__}, which needs no start; use ALS or NLS")
        changed: Method = replace(self, init=init)  # type: ignore[call-arg]
        return changed

    def check_supported(self, problem: Problem) -> None:
        """Raise if this method cannot solve a problem, with a sentence that names the way out.

        Parameters
        ----------
        problem : Problem
            The problem that is to be solved.

        Raises
        ------
        ValueError
            If it cannot.

        See Also
        --------
        Method.fit : Solves the problem.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> from codiag.methods import NLS
        >>> NLS().check_supported(codiag.Problem(np.ones((3, 4, 5)), 1, constraints="nonnegative"))
        """
        required = problem.required_features | ({"complex numbers"} if problem.numbers_per_entry > 1 else set())
        unsupported = sorted(required - self.supports)
        if unsupported:
            name, what = type(self).__name__, " and ".join(unsupported)
            others = "leave method out" if "loss" in unsupported else "use ALS or NLS, or leave method out"
            raise ValueError(f"{name} cannot take {what} into account; {others}")


def checked_fit(method: Method, problem: Problem, rng: np.random.Generator) -> Estimate:
    """Solve a problem, or raise if this method cannot."""
    method.check_supported(problem)
    estimate = method.fit(problem, rng)
    if not hasattr(estimate, "components"):
        raise TypeError(f"{type(method).__name__}.fit must return an Estimate; got {type(estimate).__name__}")
    return estimate


def check_init(init: Init, names: tuple[str, ...] = ("random",)) -> None:
    """Raise unless `start_from` takes a start, or it has one of these names."""
    if isinstance(init, str) and init not in names:
        named = f"one of {', '.join(names)}, " if names else ""
        raise ValueError(
            f"init must be {named}a method, a fit or a pair (weights, factors); got {init!r}. Leave it out for the "
            "usual starts; method=codiag.methods.ALS(init='svd') is TensorLy's"
        )
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
    return not isinstance(init, type) and hasattr(init, "fit") and hasattr(init, "check_supported")


def has_rows(init: Init) -> bool:
    """Return whether a start has a row for every index of the tensor."""
    return init.has_per_index_options if is_method(init) else not isinstance(init, str | None)


def check_callback(callback: object) -> None:
    """Raise unless a callback, if any, can be called."""
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be None or a function of components and their relative error; got {callback!r}")


def start_from(init: Init, problem: Problem, rng: np.random.Generator) -> Estimate:
    """Return the start that `init` describes, in the library and on the device of the tensor.

    A method that cannot take constraints or missing entries into account starts without them.
    """
    tensor, rank = problem.tensor, problem.rank
    if is_random(init):
        return Estimate(random_components(problem.complete().tensor, rank, rng), (), False)
    if is_method(init):
        return checked_fit(init, problem if problem.required_features <= init.supports else problem.complete(), rng)
    weights, factors = _components(init)
    shapes = [factor.shape for factor in factors]
    if shapes != [(size, rank) for size in tensor.shape]:
        raise ValueError(f"init must have factors of shapes {[(size, rank) for size in tensor.shape]}; got {shapes}")
    if any(map(is_complex, factors)) and not is_complex(tensor.reference):
        raise TypeError("init must be real, as the tensor is; got complex factors")
    given = [asarray_like(factor, tensor.reference) for factor in factors]
    sizes = asarray_like(np.ones(rank) if weights is None else weights, tensor.reference)
    components = FactoredTensor(sizes, given, symmetric=False)
    return Estimate(merged_modes(components) if problem.symmetric is True else components, (), False)


def _components(init: Init) -> tuple[np.ndarray | None, list[np.ndarray]]:
    """Return the weights and factors of a start on the host."""
    try:
        is_factors = isinstance(init, list | tuple) and len(init) > 2
        weights, factors = (None, init) if is_factors else components_of(init) or init
        factors = list(factors)
    except (TypeError, ValueError):
        hint = "; did you forget the parentheses?" if isinstance(init, type) else ""
        wanted = "'random', a method, a fit or a pair (weights, factors)"
        raise TypeError(f"init must be {wanted}; got {init!r}{hint}") from None
    given = [to_host(as_number_array(factor, "init")) for factor in factors]
    return None if weights is None else to_host(as_number_array(weights, "init")), given
