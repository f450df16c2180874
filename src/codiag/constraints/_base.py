"""The base class of constraints on the factor of a mode, and the constraints that users name, for all modes."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from codiag._arrays import Array, array_namespace, identity

NEARLY_SINGULAR = 1e-12
"""Share of the trace of a row's equations that is added to their diagonal, so that rows with too few observed entries
have a solution; small against rounding of the data."""

GRADIENT_STEPS = 50
"""Projected gradient steps for one factor in one sweep; the next sweep continues from their end."""


@dataclass(frozen=True, eq=False)
class Constraint(ABC):
    """What is known about the factor of one mode; pass it to `codiag.factorize` as ``constraints=``.

    A subclass implements `project`, and may override `solve` where the set allows a better algorithm.

    See Also
    --------
    codiag.constraints.NonNegative : Entries that are not negative.
    codiag.constraints.Orthogonal : Orthonormal columns.
    codiag.constraints.Fixed : A factor that is known.
    codiag.constraints.Ridge : Small entries rather than large ones.
    codiag.factorize : Takes constraints, one for all modes or one for each.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.constraints import NonNegative
    >>> NonNegative().project(np.array([[1.0, -2.0]])).tolist()
    [[1.0, 0.0]]
    """

    is_fixed: ClassVar[bool] = False
    """Whether the columns of the factor are known, up to their lengths."""
    is_orthogonal: ClassVar[bool] = False
    """Whether the columns are orthogonal."""
    is_manifold: ClassVar[bool] = False
    """Whether the set of factors is a curved surface, so that `tangent` removes a part of a move."""
    is_hard: ClassVar[bool] = True
    """Whether some factors are excluded; a penalty alone excludes none."""
    supports_gauss_newton: ClassVar[bool] = False
    """Whether `free_variables` and `tangent` describe the set well enough for Gauss-Newton steps."""
    allows_sign_change: ClassVar[bool] = False
    """Whether changing the sign of a column keeps the factor in the set."""
    is_cone: ClassVar[bool] = False
    """Whether columns may have one sign only, so that the projection of a column of the other sign is zero."""
    allows_complex: ClassVar[bool] = False
    """Whether it says something about complex factors, and steps on these respect it."""
    is_separable: ClassVar[bool] = False
    """Whether each row satisfies it or not by itself, so that it applies to the coefficients of new samples, too."""

    has_columns: ClassVar[bool] = False
    """Whether each column has a constraint of its own, so that their number is given."""
    ties_rows: ClassVar[bool] = False
    """Whether rows follow from their neighbors, so that those without entries are known, too."""
    penalty_degree: ClassVar[int] = 0
    """How a penalty on components grows with their sizes in the other modes: 2 if it is quadratic, 1 if it grows as the
    component, 0 if there is none."""

    @property
    def is_open(self) -> bool:
        """Whether the strength of a penalty is to be chosen by held-out entries.

        Examples
        --------
        >>> from codiag.constraints import Smooth
        >>> Smooth("auto").is_open, Smooth(1.0).is_open
        (True, False)
        """
        return False

    def with_strength(self, strength: float) -> Constraint:
        """Return the constraint with a strength in the place of "auto".

        Parameters
        ----------
        strength : float
            Of its penalty.

        Returns
        -------
        Constraint
            This one if its strength is known.

        Examples
        --------
        >>> from codiag.constraints import Smooth
        >>> Smooth("auto").with_strength(1.0)
        Smooth(strength=1.0, order=2)
        """
        return self

    def penalty(self, factor: Array) -> Array:
        """Return the penalty on each column, for columns of length one in all other modes.

        Parameters
        ----------
        factor : array of shape (d, rank)
            Any factor.

        Returns
        -------
        array of shape (rank,)
            Zeros if there is no penalty.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.constraints import NonNegative, Smooth
        >>> column = np.array([[0.0], [1.0], [0.0]])
        >>> NonNegative().penalty(column).tolist(), Smooth(3.0).penalty(column).tolist()
        ([0.0], [6.0])
        """
        product = self.penalty_product(factor)
        return array_namespace(factor).sum(factor * product, axis=-2) / 2

    def penalty_product(self, move: Array) -> Array:
        """Return the second derivative of a quadratic penalty, times a move of the factor.

        Parameters
        ----------
        move : array of shape (d, rank), or a stack of them
            Added to the factor.

        Returns
        -------
        array of the shape of the move
            The change of the slope.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.constraints import Smooth
        >>> Smooth(3.0).penalty_product(np.array([[0.0], [1.0], [0.0]])).ravel().tolist()
        [-6.0, 12.0, -6.0]
        """
        return 0 * move

    @property
    def penalty_bound(self) -> float:
        """The largest eigenvalue of the second derivative of a quadratic penalty, at most.

        Examples
        --------
        >>> from codiag.constraints import Smooth
        >>> Smooth(3.0).penalty_bound
        48.0
        """
        return 0.0

    @property
    def ridge(self) -> float:
        """What multiplies half the sum of squares of the factor in the objective.

        Examples
        --------
        >>> from codiag.constraints import NonNegative, Ridge
        >>> NonNegative().ridge, Ridge(0.5).ridge
        (0.0, 0.5)
        """
        return 0.0

    def scaled(self, factor: float) -> Constraint:
        """Return the constraint with penalties multiplied by a factor, for a tensor in other units.

        Parameters
        ----------
        factor : float
            Multiplies `ridge`.

        Returns
        -------
        Constraint
            This one if it has no penalty.

        Examples
        --------
        >>> from codiag.constraints import NonNegative, Ridge
        >>> NonNegative().scaled(2.0), Ridge(0.5).scaled(2.0)
        (NonNegative(), Ridge(strength=1.0))
        """
        return self

    @abstractmethod
    def project(self, factor: Array) -> Array:
        """Return the nearest factor that satisfies the constraint.

        Parameters
        ----------
        factor : array of shape (d, rank)
            Any factor.

        Returns
        -------
        array of shape (d, rank)
            The nearest factor in the set, in the Frobenius norm.

        See Also
        --------
        Constraint.solve : Minimize a quadratic function over the same set.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.constraints import NonNegative
        >>> NonNegative().project(np.array([[1.0, -2.0], [-3.0, 4.0]])).tolist()
        [[1.0, 0.0], [0.0, 4.0]]
        """

    def proximal(self, factor: Array, step: Array) -> Array:
        """Return the nearest factor, of which a penalty that is not quadratic, times a step, is part of the distance.

        Parameters
        ----------
        factor : array of shape (d, rank)
            Any factor.
        step : array of shape (rank,)
            What multiplies the penalty on each column.

        Returns
        -------
        array of shape (d, rank)
            That of `project` if there is no such penalty.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.constraints import L1
        >>> L1(2.0).proximal(np.array([[3.0], [-0.5]]), np.array([0.5])).ravel().tolist()
        [2.0, -0.0]
        """
        return self.project(factor)

    def solve(self, gram: Array, product: Array, start: Array) -> Array:
        r"""Minimize :math:`\tfrac12 \mathrm{tr}(F G F^\top) - \langle F, P \rangle` over the factors that satisfy it.

        By default by accelerated projected gradient steps, which end at the minimum over a convex set.

        Parameters
        ----------
        gram : array of shape (rank, rank), or (d, rank, rank)
            Positive semidefinite; one for every row where entries are missing or weighted.
        product : array of shape (d, rank)
            The matrix P of the linear term.
        start : array of shape (d, rank)
            Where iterations start.

        Returns
        -------
        array of shape (d, rank)
            The minimizer.

        See Also
        --------
        Constraint.project : The nearest factor in the set.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.constraints import NonNegative
        >>> gram, product = np.eye(2), np.array([[1.0, -2.0], [-3.0, 4.0]])
        >>> NonNegative().solve(gram, product, np.zeros((2, 2))).round(6).tolist()
        [[1.0, 0.0], [0.0, 4.0]]
        """
        return self.solve_penalized(gram, product, start, 0 * product[0, :])

    def solve_penalized(self, gram: Array, product: Array, start: Array, sizes: Array) -> Array:
        """Minimize the same function plus the penalty, by accelerated proximal gradient steps.

        Parameters
        ----------
        gram, product, start : arrays
            As `solve` takes them.
        sizes : array of shape (rank,)
            Lengths of the components in all other modes.

        Returns
        -------
        array of shape (d, rank)
            The minimizer, over a convex set.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.constraints import L1
        >>> product = np.array([[3.0, 0.5], [-1.5, 2.0]])
        >>> L1(1.0).solve_penalized(np.eye(2), product, 0 * product, np.ones(2)).round(6).tolist()
        [[2.0, 0.0], [-0.5, 1.0]]
        """
        xp = array_namespace(product)
        # One step for all rows, even where each has a Gram matrix of its own: a constraint may tie rows together.
        size = xp.max(xp.linalg.matrix_norm(gram, ord=2)) + xp.max(sizes**2) * self.penalty_bound
        step = 1 / xp.where(size > 0, size, xp.ones_like(size))
        factor = ahead = self.project(start)
        for n in range(GRADIENT_STEPS):
            slope = times_gram(ahead, gram) + sizes**2 * self.penalty_product(ahead) - product
            before, factor = factor, self.proximal(ahead - step * slope, step * sizes)
            ahead = factor + n / (n + 3) * (factor - before)
        return factor

    def free_variables(self, factor: Array, slope: Array) -> Array:
        """Return the free variables: which entries may move against a slope without leaving the set.

        Parameters
        ----------
        factor, slope : arrays of shape (d, rank)
            A factor that satisfies the constraint, and the derivative of the objective.

        Returns
        -------
        array of shape (d, rank)
            One for entries that may move, zero for the others.

        See Also
        --------
        Constraint.tangent : The part of a move that stays in a curved set.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.constraints import NonNegative
        >>> factor, slope = np.array([[0.0, 0.0, 2.0]]), np.array([[1.0, -1.0, 1.0]])
        >>> np.asarray(NonNegative().free_variables(factor, slope), dtype=int).tolist()
        [[0, 1, 1]]
        """
        return array_namespace(factor).ones_like(factor)

    def tangent(self, factor: Array, move: Array) -> Array:
        """Return the part of a move that leaves the set to second order only; all of it where the set is not curved.

        Parameters
        ----------
        factor, move : arrays of shape (d, rank)
            A factor that satisfies the constraint, and where it is to go from there.

        Returns
        -------
        array of shape (d, rank)
            The part of the move that is tangent to the set.

        See Also
        --------
        Constraint.free_variables : Which entries may move.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.constraints import Orthogonal
        >>> Orthogonal().tangent(np.eye(2), np.array([[1.0, 2.0], [4.0, 1.0]])).tolist()
        [[1.0, -1.0], [1.0, 1.0]]
        """
        return move

    def order_of(self, factor: Array) -> list[int] | None:
        """Return the order in which columns are constrained, if each has a constraint of its own.

        Parameters
        ----------
        factor : array of shape (d, rank)
            Columns in any order.

        Returns
        -------
        list of int, or None
            Which of them is the first, and so on.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.constraints import Prior
        >>> Prior(np.eye(3, 2), 1.0).order_of(np.eye(3, 2)[:, ::-1])
        [1, 0]
        """
        return None

    def restrict(self, rows: np.ndarray) -> Constraint | None:
        """Return the constraint of some rows of the factor.

        Parameters
        ----------
        rows : numpy array of int
            Indices of the rows.

        Returns
        -------
        Constraint or None
            By default the same constraint; None where it says nothing about rows without the others.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.constraints import NonNegative, Orthogonal
        >>> rows = np.array([0, 2])
        >>> NonNegative().restrict(rows), Orthogonal().restrict(rows)
        (NonNegative(), None)
        """
        return self

    def check(self, size: int, rank: int, mode: int) -> None:  # noqa: B027
        """Raise unless a factor of this shape can satisfy the constraint.

        Parameters
        ----------
        size, rank : int
            Shape of the factor.
        mode : int
            Whose factor it is, for the message.

        Examples
        --------
        >>> from codiag.constraints import Orthogonal
        >>> Orthogonal().check(5, 3, mode=0)
        >>> Orthogonal().check(3, 5, mode=0)  # refused
        Traceback (most recent call last):
            ...
        ValueError: constraints[0]: rank must be at most 3, the size of the mode, for orthogonal columns; got 5
        """


def times_gram(factor: Array, gram: Array) -> Array:
    """Return every row of a factor multiplied by the Gram matrix, or by that of its own."""
    return factor @ gram if gram.ndim == 2 else (factor[:, None, :] @ gram)[:, 0, :]


def solve_rows(gram: Array, product: Array) -> Array:
    """Solve the equations of all rows of a factor, or of each its own."""
    xp = array_namespace(gram)
    size = xp.linalg.trace(gram)[..., None, None] * NEARLY_SINGULAR + 1e-300
    matrix = gram + size * identity(gram.shape[-1], gram)
    if gram.ndim == 2:
        return xp.matrix_transpose(xp.linalg.solve(matrix, xp.matrix_transpose(product)))
    return xp.linalg.solve(matrix, product[:, :, None])[:, :, 0]


ConstraintsLike: TypeAlias = Constraint | str | Sequence[Any] | Mapping[Any, Any] | None
"""A constraint or its name, for all modes, or a sequence with one for each; None for a free mode, and a tuple or list
of several for a mode."""

Constraints: TypeAlias = tuple[Constraint | None, ...] | None
"""One constraint for each mode, or None if all modes are free."""


def as_constraints(raw: ConstraintsLike, order: int, names: Sequence[str] = ()) -> Constraints:
    """Return one constraint for each of the modes of a tensor; None if all modes are free."""
    given: list[Any] = [raw] * order
    if isinstance(raw, Mapping):
        given = _of_mapping(raw, order, names)
    elif isinstance(raw, Iterable) and not isinstance(raw, str | Constraint | type):
        given = list(raw)
    if len(given) != order:
        raise ValueError(
            f"constraints must be one for all modes, or a sequence with one for each of the {order} modes; "
            f"got {len(given)}"
        )
    constraints = tuple(_as_constraint(constraint) for constraint in given)
    return None if all(constraint is None for constraint in constraints) else constraints


def _of_mapping(raw: Mapping[Any, Any], order: int, names: Sequence[str]) -> list[Any]:
    """Return constraints of all modes from those of some, by numbers or names of the modes; the others are free."""
    given: list[Any] = [None] * order
    for key, constraint in raw.items():
        mode = list(names).index(key) if key in names else key
        if isinstance(mode, bool) or not isinstance(mode, int | np.integer) or not -order <= mode < order:
            known = f", or names {', '.join(names)}," if names else ""
            raise ValueError(
                f"constraints, if it is a dict, must have numbers of modes from 0 to {order - 1}{known} as keys; "
                f"got {key!r}"
            )
        given[mode] = constraint
    return given


def check_constraints(constraints: Constraints, shape: Sequence[int], rank: int) -> None:
    """Raise unless factors of these sizes and this rank can satisfy the constraints."""
    for mode, constraint in enumerate(constraints or ()):
        if constraint is not None:
            constraint.check(shape[mode], rank, mode)


def _as_constraint(raw: Any) -> Constraint | None:
    from codiag.constraints import CONSTRAINTS, Combined  # the classes derive from the one of this module

    if isinstance(raw, tuple | list) and raw:
        return Combined(tuple(rule for rule in map(_as_constraint, raw) if rule is not None))
    if raw is None or isinstance(raw, Constraint):
        return raw
    name = re.sub("[-_ ]", "", raw).lower() if isinstance(raw, str) else ""  # "non-negative" is "nonnegative"
    if name in CONSTRAINTS:
        return CONSTRAINTS[name]
    if isinstance(raw, str):
        raise ValueError(
            f"constraints must be named {', '.join(CONSTRAINTS)}, or be objects of codiag.constraints; got {raw!r}"
        )
    hint = "; did you forget the parentheses?" if isinstance(raw, type) else ""
    raise TypeError(f"constraints must be None, names or objects of codiag.constraints; got {raw!r}{hint}")
