"""The estimate that a method returns: components, the stages of the computation, and whether it converged."""

from collections.abc import Sequence
from typing import NamedTuple

from codiag._text import html_table, text_table
from codiag.losses import Loss
from codiag.tensors import FactoredTensor


class LogEntry(NamedTuple):
    """One stage of a fit: a start, a minimization.

    Attributes
    ----------
    name : str
        What was done.
    n_iter : int
        Iterations it took.
    objective : float
        Its final value: for a diagonalization, the share of energy off the diagonals; for others, the relative error of
        the tensor or core that was fitted.
    seconds : float
        Wall-clock time.
    flops : float
        Floating-point operations by the formulas of the paper's appendix; zero if it has none.
    p_missed : float
        The chance that a lower minimum was missed.

    See Also
    --------
    codiag.Factorization : Keeps them in ``history``.
    Estimate : What they end in.

    Examples
    --------
    >>> from codiag.extending import LogEntry
    >>> LogEntry("polish", 3, 0.01, 0.2).n_iter
    3
    """

    name: str
    n_iter: int
    objective: float
    seconds: float
    flops: float = 0.0
    p_missed: float = 0.0


class History(tuple[LogEntry, ...]):
    """The stages of a fit, a tuple that is shown as a table."""

    __slots__ = ()

    def _columns(self) -> dict[str, list[str]]:
        return {
            "stage": [stage.name for stage in self],
            "iterations": [str(stage.n_iter) for stage in self],
            "objective": [f"{stage.objective:.4g}" for stage in self],
            "seconds": [f"{stage.seconds:.2g}" for stage in self],
        }

    def __repr__(self) -> str:
        return text_table(self._columns()) if self else "()"

    def _repr_html_(self) -> str:
        return html_table("", self._columns())


class Estimate(NamedTuple):
    """The components that a method estimated.

    Attributes
    ----------
    components : FactoredTensor
        Weights and factors, in any scale and order.
    history : sequence of LogEntry
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
    history: Sequence[LogEntry]
    converged: bool
    squared_distance: float | None = None
    loss: Loss | None = None
