"""What a start is: a generator of components from which least squares begins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from codiag._arrays import Array
from codiag.least_squares import Log
from codiag.problem import Problem
from codiag.tensors import FactoredTensor


@dataclass(frozen=True, kw_only=True, eq=False)
class Start(ABC):
    """A generator of starts for least squares; pass a sequence of them to `codiag.methods.Auto`.

    A subclass implements `generate`. The search takes one start after the other, minimizes from it, and stops once a
    further start would hardly end lower; so the best start comes first.

    Attributes
    ----------
    uses_core : bool
        Whether `generate` is given the problem on the compressed core of a complete, free tensor, and not on the whole
        tensor.

    See Also
    --------
    codiag.methods.Auto : Takes starts.
    codiag.extending.Method : A method of its own.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> from codiag.extending import Start, best_rank_one
    >>> class OneAtATime(Start):
    ...     def generate(self, problem, rng, log):
    ...         terms = best_rank_one(problem.tensor)
    ...         for _ in range(problem.rank - 1):
    ...             terms = terms.joined(best_rank_one(problem.tensor - terms))
    ...         yield terms
    >>> planted = codiag.synthetic.noisy_tensor((6, 5, 4), 2, rng=0)
    >>> method = codiag.methods.Auto(starts=[OneAtATime()])
    >>> codiag.factorize(planted.tensor, 2, method=method, rng=0).relative_error < 1e-8
    True
    """

    uses_core: bool = False

    @property
    def factors(self) -> Sequence[Array] | None:
        """Factors whose ranges the core of a large tensor must include; None if there are none.

        Examples
        --------
        >>> from codiag.starts import Random
        >>> Random().factors is None
        True
        """
        return None

    @abstractmethod
    def generate(self, problem: Problem, rng: np.random.Generator, log: Log) -> Iterator[FactoredTensor]:
        """Yield components to start from, the most promising first; none if this start does not apply.

        Parameters
        ----------
        problem : Problem
            What is to be solved, on the core or on the whole tensor.
        rng : numpy.random.Generator
            All random numbers come from it.
        log : Log
            Takes note of what was done, with ``log.add(name, n_iter, objective)``.

        Yields
        ------
        FactoredTensor
            Components of the rank of the problem, which need not satisfy its constraints.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> from codiag.least_squares import Log
        >>> from codiag.starts import Random
        >>> problem = codiag.Problem(np.random.default_rng(0).random((3, 4, 5)), 2)
        >>> next(Random().generate(problem, np.random.default_rng(0), Log())).rank
        2
        """
