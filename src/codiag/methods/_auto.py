"""The default method, and all methods by name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from codiag._checks import as_number
from codiag.least_squares import Limits
from codiag.methods._als import ALS
from codiag.methods._joint import NOJD, OJD
from codiag.methods._method import Init, Method, check_callback, check_init, has_rows, is_method, start_from
from codiag.methods._nls import NLS
from codiag.methods._tpm import TPM
from codiag.problem import Estimate, Problem, interior
from codiag.search import Callback, Search
from codiag.starts import Given, Start, default_starts


@dataclass(frozen=True, kw_only=True, eq=False)
class Auto(Method):
    r"""Joint diagonalization of the slices of the compressed tensor, then least squares: the default method.

    One start is almost always enough. The residual shows if it was not: it should look like noise, and each component
    should explain more than any rank-one term of noise. Otherwise random starts are swept together, on a core or on the
    observed entries, the lowest of them longer (a tournament); the last four are minimized. If entries are missing,
    starts come near a minimum by alternating sweeps, or by Gauss-Newton steps where these gain more for their cost.
    From the lowest minimum, components are exchanged: the strongest term of the residual is added, all are refitted,
    and the component that the others make superfluous is removed. Minima that starts have met in common say how likely
    it is that a further start would end lower (Boender and Rinnooy Kan 1987); the search ends below 5 %, and
    ``fit.diagnose().p_missed`` says it. If the significant components leave nothing but noise, the others are
    superfluous: they are added one at a time, as the largest terms of it. Symmetric tensors, and constraints other than
    signs, have exchanges from every start, and random starts one after the other.

    Real data leaves more than noise, and then no residual says that the search may end. So what follows the first local
    minimum may cost as much as 900 alternating sweeps over the stored entries (`max_work`); ``fit.history`` says if it
    ended there.

    If the rank is larger than all modes but one, modes of tensors of higher order are taken together, or the
    rank-one matrices in the span of the slices are found by diagonalizing the equations that they satisfy (De
    Lathauwer 2006, and 2007 with Castaing and Cardoso). If there are too few, or the rank is above 64, all starts
    are random. Symmetric tensors of order four, six and so on are flattened to a matrix of half of the modes, and
    power iterations find the components in its range (Kileel and Pereira 2019): up to d (d + 1) / 2 - d of them at
    order four, for modes of size d. With constraints or missing entries, the same search starts from the fit
    without them and from components that are added one at a time; if all modes are orthogonal, from a
    diagonalization by rotations.

    Parameters
    ----------
    init : fit, (weights, factors) or factors, optional
        The first start.
    starts : sequence of Start, optional
        Generators of starts, of `codiag.extending.Start`, in the order in which they are tried. By default they depend
        on the problem: joint diagonalization first, random ones last.
    max_starts : int
        Starts, at most.
    tol : float
        Least squares stops when a step is smaller than this, relative to the factors.
    max_iter : int
        Steps of least squares from each start, at most, exchange steps not included.
    max_work : float
        Work after the first local minimum, at most, in units of 300 alternating sweeps over the stored entries. Work is
        counted, not measured, so that the same seed gives the same answer on every machine.
    time_limit : float, optional
        Seconds after which the best fit so far is returned; ``history`` says so.
    callback : callable, optional
        Called as ``callback(components, relative_error)`` after every step of least squares on the core; True ends the
        fit there. With it, an interrupt by Ctrl-C returns the best fit so far.

    See Also
    --------
    NLS : Least squares from random starts.
    NOJD : Joint diagonalization alone.
    codiag.choose_rank : How many components to ask for.

    Notes
    -----
    **Assumptions.** The tensor can be contracted. Tensors with at most two million entries are kept in memory.

    **Complexity.** Three passes over a large tensor to check and to compress it, :math:`O(k^4)` flops for a sweep of
    the diagonalization and for a step of least squares on the core, and one pass to polish, or a few if noise is strong
    or ranks are large.

    **Guarantees.** Without noise, exact components if the rank is at most the second largest mode, or there are
    equations enough: 30 components of 20 x 20 x 20, 40 of 20 x 20 x 20 x 20, 150 if that is symmetric, 30 of 8 x 8 x 8
    x 8 x 8; with noise, a minimum of least squares if ``converged`` says so, with the standard errors of first-order
    theory.

    **Limitations.** May miss the lowest minimum if noise hides many components, if the rank is near the largest at
    which components are unique, or if the data do not follow the model.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> from codiag.methods import Auto
    >>> rng = np.random.default_rng(0)
    >>> a, b, c = (rng.standard_normal((8, 5)) for _ in range(3))
    >>> fit = codiag.factorize(np.einsum("ir,jr,kr->ijk", a, b, c), 5, method=Auto(max_starts=1), rng=0)
    >>> codiag.factor_error(fit, (a, b, c)) < 1e-10
    True
    """

    supports: ClassVar[frozenset[str]] = frozenset(
        {"complex numbers", "constraints", "loss", "missing entries", "partial symmetry"}
    )

    init: Init = None
    starts: Sequence[Start] | None = None
    max_starts: int = 24
    tol: float = 1e-9
    max_iter: int = 300
    max_work: float = 3.0
    time_limit: float | None = None
    callback: Callback | None = None

    def __post_init__(self) -> None:
        is_sequence = self.starts is None or isinstance(self.starts, Sequence)
        if not is_sequence or not all(isinstance(start, Start) for start in self.starts or ()):
            raise TypeError(f"starts must be a sequence of codiag.extending.Start() objects; got {self.starts!r}")
        check_init(self.init, ())
        as_number("max_starts", self.max_starts, integer=True)
        as_number("tol", self.tol)
        as_number("max_iter", self.max_iter, integer=True)
        if self.max_work != math.inf:
            as_number("max_work", self.max_work)
        if self.time_limit is not None:
            as_number("time_limit", self.time_limit)
        check_callback(self.callback)

    @property
    def has_per_index_options(self) -> bool:
        return (
            has_rows(self.init)
            or self.callback is not None
            or any(start.factors is not None for start in self.starts or ())
        )

    def fit(self, problem: Problem, rng: np.random.Generator) -> Estimate:
        starts = self.starts
        if self.init is not None:
            start = start_from(self.init, problem, rng)
            first = Given(components=interior(start.components, problem.constraints), history=start.history)
            starts = (first, *(default_starts(problem) if starts is None else starts))
        search = Search(
            starts,
            self.max_starts,
            limits=Limits(self.max_iter, self.tol),
            callback=self.callback,
            max_work=self.max_work,
            time_limit=self.time_limit,
        )
        return search.run(problem, rng)


DEFAULT = Auto()
"""The method if none is given."""

METHODS: dict[str, Method] = {
    "auto": DEFAULT,
    "ojd0": OJD(plug_in=False),
    "ojd1": OJD(plug_in=True),
    "nojd0": NOJD(plug_in=False),
    "nojd1": NOJD(plug_in=True),
    "tpm": TPM(),
    "als": ALS(),
    "nls": NLS(),
}
"""Methods by name."""


def as_method(method: object, init: Init = None) -> Method:
    """Return a method object as it is, or the one that has this name, with a start if one is given."""
    known = _named(method)
    return known if init is None else known.with_init(init)


def is_default(method: Method) -> bool:
    """Return whether a method is the default one, with all of its options as they are by default."""
    return type(method) is type(DEFAULT) and vars(method) == vars(DEFAULT)


def _named(method: object) -> Method:
    if method is None:
        return DEFAULT
    if is_method(method):
        return method  # type: ignore[return-value]
    if isinstance(method, str):
        name = {"ojd": "ojd1", "nojd": "nojd1"}.get(method.lower(), method.lower())
        if name in METHODS:
            return METHODS[name]
        raise ValueError(f"method must be one of {', '.join(METHODS)}, or an object of codiag.methods; got {method!r}")
    hint = "; did you forget the parentheses?" if isinstance(method, type) else ""
    raise TypeError(f"method must be a name or an object of codiag.methods, like NLS(); got {method!r}{hint}")
