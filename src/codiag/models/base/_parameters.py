"""What parameters of models may be, declared as data: a rule is a check of an argument by its name and value."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from codiag._checks import as_number, check_rng
from codiag.methods import as_method

Rule = Callable[[str, Any], object]
"""Raises unless the value of the argument of this name is valid."""

positive_integer: Rule = partial(as_number, integer=True)
integer_or_zero: Rule = partial(as_number, integer=True, zero=True)
number_or_zero: Rule = partial(as_number, zero=True)


def dirichlet_sum(name: str, value: float) -> None:
    """Raise unless moments can be corrected for a Dirichlet distribution with this sum of parameters."""
    as_number(name, value, zero=True)
    if value > 1e6:  # third moments are differences of terms of the order of its square
        raise ValueError(
            f"{name} must be at most 1e+06: beyond that all samples have nearly the same shares, and rounding "
            f"dominates moments that are corrected for them; got {value:g}"
        )


def optional(rule: Rule) -> Rule:
    """Return a rule that also allows None, by which the model chooses a value."""
    return lambda name, value: None if value is None else rule(name, value)


def word_or(words: tuple[str, ...], others: str, rule: Rule | None = None) -> Rule:
    """Return a rule that allows some words, and others that a rule allows."""

    def check(name: str, value: Any) -> None:
        if isinstance(value, str) and value not in words:
            raise ValueError(f"{name} must be {', '.join(map(repr, words))} or {others}; got {value!r}")
        if not isinstance(value, str) and rule is not None:
            rule(name, value)

    return check


USUAL: dict[str, Rule] = {
    "n_components": positive_integer,
    "method": lambda _name, value: as_method(value),
    "max_iter": integer_or_zero,
    "tol": number_or_zero,
    "random_state": check_rng,
}
"""Rules of the parameters that most models have."""
