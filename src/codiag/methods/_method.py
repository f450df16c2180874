"""What every method is: configured beforehand, and asked to solve a problem."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from codiag.problem import Estimate, Problem


@dataclass(frozen=True, kw_only=True, eq=False)
class Method(ABC):
    """A configured way to factorize a tensor; pass it to `codiag.factorize`.

    A subclass implements `fit`, declares in `honors` what a problem may ask for that it takes into account, and says
    in `refusal` what else it cannot do. It is never asked what class it is, and holds no data.

    Attributes
    ----------
    honors : frozenset of str
        What a problem may ask for: of "constraints", "observed" and "partial symmetry", modes some of which share a
        factor.
    needs_orthogonal : bool
        Whether the factors must be orthogonal, or made so by the problem's second moment.

    See Also
    --------
    Auto : The default.
    METHODS : Methods by name.
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

    honors: ClassVar[frozenset[str]] = frozenset()
    needs_orthogonal: ClassVar[bool] = False

    @property
    def sized(self) -> bool:
        """Whether an option belongs to every index of the tensor, so that none may be left out.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.methods import ALS, Auto
        >>> factors = [np.ones((size, 1)) for size in (3, 4, 5)]
        >>> Auto().sized, ALS(init=(np.ones(1), factors)).sized
        (False, True)
        """
        return False

    @abstractmethod
    def fit(self, problem: Problem, rng: np.random.Generator) -> Estimate:
        """Find the components of a problem, silently, with one factor for all modes where it is symmetric.

        Parameters
        ----------
        problem : Problem
            One that `refusal` has nothing against.
        rng : numpy.random.Generator
            All random numbers come from it.

        Returns
        -------
        Estimate
            The components, and how they were found.

        See Also
        --------
        Method.refusal : Tells beforehand what a method cannot do.

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
        """Tell why this method cannot solve a problem.

        Parameters
        ----------
        problem : Problem
            The problem that is to be solved.

        Returns
        -------
        str or None
            A sentence with the way out, or None where the method can.

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
        beyond = sorted(problem.asks - self.honors)
        if not beyond:
            return None
        name, what = type(self).__name__, " and ".join(beyond)
        return f"{name} cannot take {what} into account; use ALS or NLS, or leave method out"


def fit_or_refuse(method: Method, problem: Problem, rng: np.random.Generator) -> Estimate:
    """Solve a problem, or raise with the reason why this method cannot."""
    reason = method.refusal(problem)
    if reason is not None:
        raise ValueError(reason)
    estimate = method.fit(problem, rng)
    if not isinstance(estimate, Estimate):
        raise TypeError(f"{type(method).__name__}.fit must return an Estimate; got {type(estimate).__name__}")
    return estimate
