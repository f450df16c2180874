"""The base class of methods: configured objects that solve a problem."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from codiag._checks import FormerAttributes
from codiag.problem import Estimate, Problem


@dataclass(frozen=True, kw_only=True, eq=False)
class Method(FormerAttributes, ABC):
    """A configured way to factorize a tensor; pass it to `codiag.factorize`.

    A subclass implements `fit`, declares in `supports` which features of a problem it takes into account, and says in
    `refusal` what else it cannot do. It holds no data.

    Attributes
    ----------
    supports : frozenset of str
        Features of a problem that are taken into account: of "constraints", "observed" (missing entries and weights)
        and "partial symmetry" (modes some of which share a factor).
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

    former_attributes: ClassVar[Mapping[str, str]] = {"honors": "supports", "sized": "has_per_index_options"}

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
        unsupported = sorted(problem.required_features - self.supports)
        if not unsupported:
            return None
        name, what = type(self).__name__, " and ".join(unsupported)
        return f"{name} cannot take {what} into account; use ALS or NLS, or leave method out"


def fit_or_refuse(method: Method, problem: Problem, rng: np.random.Generator) -> Estimate:
    """Solve a problem, or raise with the reason why this method cannot."""
    reason = method.refusal(problem)
    if reason is not None:
        raise ValueError(reason)
    estimate = method.fit(problem, rng)
    if not hasattr(estimate, "components"):
        raise TypeError(f"{type(method).__name__}.fit must return an Estimate; got {type(estimate).__name__}")
    return estimate
