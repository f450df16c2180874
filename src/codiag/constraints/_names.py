"""From what users write to one constraint for each mode."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from codiag.constraints._base import Constraint
from codiag.constraints._nonnegative import NonNegative
from codiag.constraints._orthogonal import Orthogonal

ConstraintsLike: TypeAlias = Constraint | str | Sequence[Constraint | str | None] | None
"""A constraint or its name, for all modes, or a sequence with one for each; None for a free mode."""

CONSTRAINTS: dict[str, Constraint] = {"nonnegative": NonNegative(), "orthogonal": Orthogonal()}
"""Constraints by name."""


def as_constraints(raw: ConstraintsLike, shape: Sequence[int], rank: int) -> tuple[Constraint | None, ...] | None:
    """Return one constraint for each mode, checked against its size; None where no mode has any.

    Parameters
    ----------
    raw : Constraint, str, None, or a sequence of these with one for each mode
        One alone holds for all modes.
    shape : sequence of int
        Shape of the tensor.
    rank : int
        Number of components.

    Returns
    -------
    tuple of Constraint or None, or None
        One for each mode, or None where all modes are free.

    See Also
    --------
    CONSTRAINTS : The names that are accepted.
    codiag.factorize : Resolves its argument `constraints` in this way.

    Examples
    --------
    >>> from codiag.constraints import as_constraints
    >>> as_constraints("nonnegative", (3, 4, 5), 2)
    (NonNegative(), NonNegative(), NonNegative())
    """
    given: list[Any] = [raw] * len(shape)
    if isinstance(raw, Iterable) and not isinstance(raw, str | Constraint | type):
        given = list(raw)
    if len(given) != len(shape):
        raise ValueError(
            f"constraints must be one for all modes, or a sequence with one for each of the {len(shape)} modes; "
            f"got {len(given)}"
        )
    found = tuple(_as_constraint(one) for one in given)
    for mode, (constraint, size) in enumerate(zip(found, shape, strict=True)):
        if constraint is not None:
            constraint.check(size, rank, mode)
    return None if all(constraint is None for constraint in found) else found


def _as_constraint(raw: Any) -> Constraint | None:
    if raw is None or isinstance(raw, Constraint):
        return raw
    if isinstance(raw, str) and raw.lower() in CONSTRAINTS:
        return CONSTRAINTS[raw.lower()]
    if isinstance(raw, str):
        raise ValueError(
            f"constraints must be named {', '.join(CONSTRAINTS)}, or be objects of codiag.constraints; got {raw!r}"
        )
    hint = "; did you forget the parentheses?" if isinstance(raw, type) else ""
    raise TypeError(f"constraints must be None, names or objects of codiag.constraints; got {raw!r}{hint}")
