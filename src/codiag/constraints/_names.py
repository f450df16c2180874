"""Resolve constraints: names and objects, for all modes or for each."""

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


Constraints: TypeAlias = tuple[Constraint | None, ...] | None
"""One constraint for each mode, or None if all modes are free."""


def as_constraints(raw: ConstraintsLike, order: int) -> Constraints:
    """Return one constraint for each of the modes of a tensor; None if all modes are free."""
    given: list[Any] = [raw] * order
    if isinstance(raw, Iterable) and not isinstance(raw, str | Constraint | type):
        given = list(raw)
    if len(given) != order:
        raise ValueError(
            f"constraints must be one for all modes, or a sequence with one for each of the {order} modes; "
            f"got {len(given)}"
        )
    constraints = tuple(_as_constraint(constraint) for constraint in given)
    return None if all(constraint is None for constraint in constraints) else constraints


def check_constraints(constraints: Constraints, shape: Sequence[int], rank: int) -> None:
    """Raise unless factors of these sizes and this rank can satisfy the constraints."""
    for mode, constraint in enumerate(constraints or ()):
        if constraint is not None:
            constraint.check(shape[mode], rank, mode)


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
