"""Penalties on components, with a strength that may be chosen by held-out entries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from codiag._arrays import Array
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
