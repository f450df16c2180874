r"""Penalties on components, with a strength that may be chosen by held-out entries, and their sums over modes.

Of a component with factors :math:`a_m` a quadratic penalty on mode m is
:math:`\tfrac12 a_m^\top L a_m \prod_{n \ne m} \|a_n\|^2`, half the squared norm of a rank-one tensor with
:math:`L^{1/2} a_m` in this mode.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self, TypeAlias

from codiag._arrays import Array, array_namespace
from codiag._checks import as_number
from codiag.constraints._base import Constraint


@dataclass(frozen=True, eq=False)
class Penalty(Constraint):
    """A penalty on each component, which excludes no factor."""

    is_hard: ClassVar[bool] = False
    allows_sign_change: ClassVar[bool] = True

    strength: float | str

    def __post_init__(self) -> None:
        if self.strength != "auto":
            as_number("strength", self.strength, zero=True)  # type: ignore[arg-type]

    @property
    def is_open(self) -> bool:
        return self.strength == "auto"

    def with_strength(self, strength: float) -> Self:
        return replace(self, strength=strength) if self.is_open else self

    def project(self, factor: Array) -> Array:
        return factor


Penalties: TypeAlias = Sequence[tuple[int, Constraint]]
"""Modes with a penalty, and their constraints."""


def penalties_of(constraints: Sequence[Constraint | None]) -> Penalties:
    """Return the constraints that have a penalty on components, with their modes."""
    pairs = enumerate(constraints)
    return [(mode, rule) for mode, rule in pairs if rule is not None and rule.penalty_degree > 0]


def lengths_of(factors: Sequence[Array]) -> list[Array]:
    """Return the lengths of the columns of every factor."""
    xp = array_namespace(factors[0])
    return [xp.sqrt(xp.sum(factor**2, axis=-2)) for factor in factors]


def others_of(parts: Sequence[Array], *left_out: int) -> Array:
    """Return the product of what all modes have but some."""
    kept = [part for mode, part in enumerate(parts) if mode not in left_out]
    return math.prod(kept[1:], start=kept[0]) if kept else 0 * parts[0] + 1


def penalty_value(penalties: Penalties, factors: Sequence[Array]) -> float:
    """Return the sum of all penalties."""
    lengths, total = lengths_of(factors), 0.0
    for mode, rule in penalties:
        values = rule.penalty(factors[mode]) * others_of(lengths, mode) ** rule.penalty_degree
        total += float(array_namespace(values).sum(values))
    return total


def penalty_slopes(penalties: Penalties, factors: Sequence[Array]) -> list[Array]:
    """Return the derivatives of quadratic penalties by the factors of all modes."""
    squares = [length**2 for length in lengths_of(factors)]
    slopes = [0 * factor for factor in factors]
    for mode, rule in penalties:
        product = rule.penalty_product(factors[mode])
        inner = array_namespace(product).sum(product * factors[mode], axis=-2)
        for other, factor in enumerate(factors):
            own = product if other == mode else factor * inner
            slopes[other] = slopes[other] + own * others_of(squares, mode, other)
    return slopes


def majorants(penalties: Penalties, factors: Sequence[Array], mode: int) -> Array:
    """Return what penalties on other modes add to the diagonal of the equations of a mode, (rank,).

    Those that grow as the component are replaced by a quadratic function that is nowhere below them.
    """
    lengths = lengths_of(factors)
    total = 0 * lengths[mode]
    for place, rule in penalties:
        if place != mode:
            values = rule.penalty(factors[place]) * others_of(lengths, place, mode) ** rule.penalty_degree
            floor = array_namespace(values).where(lengths[mode] > 0, lengths[mode], 1 + 0 * lengths[mode])
            total = total + rule.penalty_degree * values * floor ** (rule.penalty_degree - 2)
    return total
