"""The estimate that a method returns: components, the stages of the computation, and whether it converged."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from codiag._progress import tell
from codiag._text import html_table, text_table
from codiag.losses import Loss
from codiag.problem._budget import Budget
from codiag.tensors import FactoredTensor

logger = logging.getLogger("codiag")


class Stage(NamedTuple):
    """One stage of a factorization.

    Attributes
    ----------
    name : str
        What was done.
    sweeps : int
        Iterations it took.
    objective : float
        Its final value: for a diagonalization, the share of energy off the diagonals; for others, the relative error of
        the tensor or core that was fitted.
    seconds : float
        Wall-clock time.
    flops : float
        Floating-point operations by the formulas of the paper's appendix; zero if it has none.
    in_doubt : bool
        Whether starts ended at different minima, and too few at the lowest one to rule out a lower one: fewer than
        three.

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


class Stages(tuple[Stage, ...]):
    """The stages of a factorization, a tuple that is shown as a table."""

    __slots__ = ()

    def _columns(self) -> dict[str, list[str]]:
        return {
            "stage": [stage.name for stage in self],
            "sweeps": [str(stage.sweeps) for stage in self],
            "objective": [f"{stage.objective:.4g}" for stage in self],
            "seconds": [f"{stage.seconds:.2g}" for stage in self],
        }

    def __repr__(self) -> str:
        return text_table(self._columns()) if self else "()"

    def _repr_html_(self) -> str:
        return html_table("", self._columns())


@dataclass
class Log:
    """The stages so far, the time since the last one, and the work that may be done."""

    budget: Budget = field(default_factory=Budget)
    stages: list[Stage] = field(default_factory=list)
    _since: float = field(default_factory=time.perf_counter)

    def add(self, name: str, sweeps: int, objective: float, flops: float = 0.0, *, in_doubt: bool = False) -> None:
        """Close a stage."""
        now = time.perf_counter()
        self.stages.append(Stage(name, sweeps, objective, now - self._since, flops, in_doubt))
        self._since = now
        counted = "1 sweep" if sweeps == 1 else f"{sweeps} sweeps"
        tell("%s: %s", name, counted)
        logger.info("%s: %s, objective %.3g, %.2f s", name, counted, objective, self.stages[-1].seconds)

    def extend(self, stages: Sequence[Stage]) -> None:
        """Take over the stages of another method."""
        self.stages.extend(stages)
        self._since = time.perf_counter()


class Estimate(NamedTuple):
    """The components that a method estimated.

    Attributes
    ----------
    components : FactoredTensor
        Weights and factors, in any scale and order.
    stages : sequence of Stage
        The stages of the computation.
    converged : bool
        Whether the method reached its tolerance.
    squared_distance : float, optional
        Squared distance of the components from the tensor, if the method has computed it.
    loss : Loss, optional
        The loss of the problem, with numbers that were left open estimated.

    See Also
    --------
    Method.fit : Returns one.
    codiag.Factorization : The result for users, made from it.

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
    loss: Loss | None = None
