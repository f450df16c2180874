"""Nonlinear least squares: damped Gauss-Newton steps on all factors at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from codiag._checks import as_number
from codiag.least_squares import Limits
from codiag.methods._method import Init, Method, check_callback, check_init, has_rows, is_random, start_from
from codiag.problem import Estimate, Problem
from codiag.search import Callback, Search
from codiag.starts import Given, Random, Start


@dataclass(frozen=True, kw_only=True, eq=False)
class NLS(Method):
    r"""Least squares, :math:`\min \|T - \sum_i w_i a_i \otimes b_i \otimes c_i\|^2`, by damped Gauss-Newton steps.

    The steps run on the tensor compressed to the ranges of its components, then on the tensor itself. If the residual
    shows a component that was missed, it replaces the one that contributes least. With constraints or missing
    entries, projected Gauss-Newton steps run on the whole tensor. The search is that of `Auto`, with other starts.

    Parameters
    ----------
    init : "random", method, fit, or (weights, factors)
        Where to start.
    n_starts : int
        Random starts, at most: no further one is taken if the fit is clearly the best.
    tol : float
        Stop when a step is smaller than this, relative to the factors.
    max_iter : int
        Steps from each start, at most, exchange steps not included.
    max_replacements : int
        Exchange steps from each start, at most.
    callback : callable, optional
        Called as ``callback(components, relative_error)`` after every step on the core, or on the whole problem; True
        ends the fit there.

    See Also
    --------
    Auto : Least squares that start from joint diagonalization.
    ALS : One factor at a time.

    Notes
    -----
    **Assumptions.** The tensor can be contracted. Tensors with at most two million entries are kept in memory.

    **Complexity.** Two to three products with the tensor, :math:`O(k \prod_m d_m)` flops, a step on the whole tensor,
    and :math:`O(k^2 \sum_m d_m)` a product with the Gauss-Newton matrix.

    **Guarantees.** A minimum if ``converged`` is true; first-order standard errors are valid there.

    **Limitations.** A single random start ends in a local minimum on hard tensors. If the fit is degenerate,
    ``converged`` is false.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> from codiag.methods import ALS, NLS
    >>> tensor = np.random.default_rng(0).random((4, 5, 6))
    >>> codiag.factorize(tensor, 2, method=NLS(init=ALS(max_iter=20)), rng=0).converged
    True
    """

    supports: ClassVar[frozenset[str]] = frozenset(
        {"complex numbers", "constraints", "missing entries", "partial symmetry"}
    )

    init: Init = "random"
    n_starts: int = 1
    tol: float = 1e-9
    max_iter: int = 300
    max_replacements: int = 8
    callback: Callback | None = None

    def __post_init__(self) -> None:
        check_init(self.init)
        as_number("n_starts", self.n_starts, integer=True)
        as_number("tol", self.tol)
        as_number("max_iter", self.max_iter, integer=True)
        as_number("max_replacements", self.max_replacements, integer=True, zero=True)
        check_callback(self.callback)

    @property
    def has_per_index_options(self) -> bool:
        return has_rows(self.init) or self.callback is not None

    def fit(self, problem: Problem, rng: np.random.Generator) -> Estimate:
        limits = Limits(self.max_iter, self.tol)
        search = Search(self._starts(problem, rng), self.n_starts, self.max_replacements, limits, self.callback)
        return search.run(problem, rng)

    def _starts(self, problem: Problem, rng: np.random.Generator) -> Sequence[Start]:
        if is_random(self.init):
            return (Random(uses_core=True, is_swept=False),)
        start = start_from(self.init, problem, rng)
        return (Given(components=start.components, history=start.history),)
