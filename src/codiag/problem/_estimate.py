"""What a method hands back: components, how they were found, and whether it came to an end."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from codiag.tensors import FactoredTensor

logger = logging.getLogger("codiag")


class Stage(NamedTuple):
    """One step on the way to a factorization.

    Attributes
    ----------
    name : str
        What was done.
    sweeps : int
        Iterations it took.
    objective : float
        What the stage lowers: the share of energy off the diagonals for a diagonalization, the relative error of what
        it worked on for the rest.
    seconds : float
        Wall-clock time.
    flops : float
        Operations, counted by the formulas of the paper's appendix where it has one, else zero.
    in_doubt : bool
        Whether starts ended at different minima, and too few at the lowest one to rule out a lower one: fewer than two,
        or fewer than three if its residual is not noise.

    See Also
    --------
    codiag.Factorization : Keeps them in ``stages``.
    Estimate : What they end in.

    Examples
    --------
    >>> from codiag.extending import Stage
    >>> Stage("polish", 3, 0.01, 0.2).sweeps
    3
    """

    name: str
    sweeps: int
    objective: float
    seconds: float
    flops: float = 0.0
    in_doubt: bool = False


@dataclass
class Log:
    """The stages so far, and the time since the last one."""

    stages: list[Stage] = field(default_factory=list)
    _since: float = field(default_factory=time.perf_counter)

    def add(self, name: str, sweeps: int, objective: float, flops: float = 0.0, *, in_doubt: bool = False) -> None:
        """Close a stage."""
        now = time.perf_counter()
        self.stages.append(Stage(name, sweeps, objective, now - self._since, flops, in_doubt))
        self._since = now
        counted = "1 sweep" if sweeps == 1 else f"{sweeps} sweeps"
        logger.info("%s: %s, objective %.3g, %.2f s", name, counted, objective, self.stages[-1].seconds)

    def extend(self, stages: Sequence[Stage]) -> None:
        """Take over the stages of another method."""
        self.stages.extend(stages)
        self._since = time.perf_counter()


class Estimate(NamedTuple):
    """What a method found.

    Attributes
    ----------
    components : FactoredTensor
        Weights and factors, in any scale and order.
    stages : sequence of Stage
        How they were found.
    converged : bool
        Whether the method reached its tolerance.
    squared_distance : float, optional
        Squared distance of the components from the tensor, where the method knows it, so that it need not be computed
        again.

    See Also
    --------
    Method.fit : Returns one.
    codiag.Factorization : What users get of it.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.extending import Estimate
    >>> from codiag.tensors import FactoredTensor
    >>> Estimate(FactoredTensor(np.ones(2), [np.eye(4, 2)] * 3), (), True).converged
    True
    """

    components: FactoredTensor
    stages: Sequence[Stage]
    converged: bool
    squared_distance: float | None = None
