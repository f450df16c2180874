"""Several constraints on one factor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from codiag._arrays import Array
from codiag.constraints._base import Constraint

FLAGS: dict[str, Callable[[Any], Any]] = {
    "is_hard": any,
    "is_cone": any,
    "is_manifold": any,
    "is_orthogonal": any,
    "is_fixed": any,
    "has_columns": any,
    "ties_rows": any,
    "supports_gauss_newton": all,
    "allows_sign_change": all,
    "allows_complex": all,
    "is_separable": all,
    "penalty_degree": max,
}
"""How a property of several constraints follows from those of each."""


@dataclass(frozen=True, eq=False, repr=False)
class Combined(Constraint):
    """All of several constraints: one may say which factors are possible, and others add penalties."""

    rules: tuple[Constraint, ...]

    def __post_init__(self) -> None:
        exact = [rule for rule in self.rules if rule.is_hard]
        degrees = {rule.penalty_degree for rule in self.rules} - {0}
        if len(exact) > 1 or len(degrees) > 1:
            raise ValueError(
                "constraints of one mode must be at most one that excludes factors, and penalties of one kind, such as "
                f"[Unimodal(), Smooth(10.0)]; got {list(self.rules)}"
            )
        for name, combined in FLAGS.items():
            object.__setattr__(self, name, combined(getattr(rule, name) for rule in self.rules))

    def __repr__(self) -> str:
        return repr(list(self.rules))

    @property
    def is_open(self) -> bool:
        return any(rule.is_open for rule in self.rules)

    def with_strength(self, strength: float) -> Constraint:
        return replace(self, rules=tuple(rule.with_strength(strength) for rule in self.rules))

    @property
    def ridge(self) -> float:
        return sum(rule.ridge for rule in self.rules)

    @property
    def penalty_bound(self) -> float:
        return sum(rule.penalty_bound for rule in self.rules)

    def scaled(self, factor: float) -> Constraint:
        return replace(self, rules=tuple(rule.scaled(factor) for rule in self.rules))

    def penalty(self, factor: Array) -> Array:
        return sum((rule.penalty(factor) for rule in self.rules[1:]), self.rules[0].penalty(factor))

    def penalty_product(self, move: Array) -> Array:
        return sum((rule.penalty_product(move) for rule in self.rules[1:]), self.rules[0].penalty_product(move))

    def project(self, factor: Array) -> Array:
        return reduce(lambda part, rule: rule.project(part), self.rules, factor)

    def proximal(self, factor: Array, step: Array) -> Array:
        return self.project(reduce(lambda part, rule: rule.proximal(part, step), self.rules, factor))

    def solve(self, gram: Array, product: Array, start: Array) -> Array:
        exact = next((rule for rule in self.rules if rule.is_hard), self.rules[0])
        return exact.solve(gram, product, start)

    def free_variables(self, factor: Array, slope: Array) -> Array:
        return reduce(lambda free, rule: free * rule.free_variables(factor, slope), self.rules, 0 * factor + 1)

    def tangent(self, factor: Array, move: Array) -> Array:
        return reduce(lambda part, rule: rule.tangent(factor, part), self.rules, move)

    def order_of(self, factor: Array) -> list[int] | None:
        return next((order for rule in self.rules if (order := rule.order_of(factor)) is not None), None)

    def restrict(self, rows: np.ndarray) -> Constraint | None:
        kept = tuple(rule for rule in (each.restrict(rows) for each in self.rules) if rule is not None)
        return Combined(kept) if kept else None

    def check(self, size: int, rank: int, mode: int) -> None:
        for rule in self.rules:
            rule.check(size, rank, mode)
