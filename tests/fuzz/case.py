"""What an input is, and the registry of the generators that draw inputs."""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

Check = Callable[[Any, dict[str, Any]], Iterable[tuple[str, str]]]
"""Looks at a result and the arguments that gave it, and yields (kind, one line) for whatever is false."""


class Finding(NamedTuple):
    """Something that must not be."""

    kind: str
    function: str
    line: str
    place: str = ""  # the line of codiag it comes from, where there is one


@dataclass
class Case:
    """One input: a call of a public function, and what must be true of its result.

    Attributes
    ----------
    function : str
        The public name that is called, ``"codiag.factorize"``.
    call : callable
        Called with the arguments by their names.
    arguments : dict
        Must be the same, byte by byte, after the call.
    valid : bool or None
        True where a refusal is a finding; None where codiag may refuse, naming an argument.
    checks : sequence of Check
        Run on the result of valid inputs; of others, only whether it is finite.
    named : tuple of str
        Words, beside the names of the arguments, by which a refusal may name one of them.
    refusals : tuple of types
        Kinds of exceptions that a refusal may be.
    advice : bool
        Whether a `UserWarning` is part of what the function promises.
    prints : bool
        Whether it may write to the terminal.
    outputs : tuple of str
        Arguments that name what is to be written.
    infinite : bool
        Whether its result may be infinite.
    spoilable : bool
        Whether a share of its inputs gets one argument of a wrong kind or value.
    """

    function: str
    call: Callable[..., Any]
    arguments: dict[str, Any]
    valid: bool | None = True
    checks: tuple[Check, ...] = ()
    named: tuple[str, ...] = ()
    refusals: tuple[type, ...] = (ValueError, TypeError)
    advice: bool = False
    prints: bool = False
    outputs: tuple[str, ...] = ()
    infinite: bool = False
    spoilable: bool = True
    note: str = ""  # what else to show of it
    spoiled: str = ""  # the name of the argument that was replaced
    nonsense: bool = False  # by something that can have no meaning there


@dataclass(frozen=True)
class Generator:
    """A function from a random generator to a case, and the public names it stands for."""

    area: str
    names: tuple[str, ...]
    weight: float
    make: Callable[[np.random.Generator], Case]


@dataclass
class Registry:
    """All generators, in the order of their names, so that an index means the same input everywhere."""

    generators: list[Generator] = field(default_factory=list)

    def covers(self, *names: str, weight: float = 1.0) -> Callable[[Callable], Callable]:
        """Register the decorated function as a generator for these public names."""

        def register(make: Callable[[np.random.Generator], Case]) -> Callable[[np.random.Generator], Case]:
            area = make.__module__.split(".")[-1]
            self.generators.append(Generator(area, names, weight, make))
            return make

        return register

    def chosen(self, rng: np.random.Generator) -> Generator:
        """Return one of the generators, in proportion to their weights."""
        weights = np.array([generator.weight for generator in self.generators])
        return self.generators[int(rng.choice(weights.size, p=weights / weights.sum()))]


REGISTRY = Registry()
covers = REGISTRY.covers


LAZY = ("sklearn.feature_extraction.text", "sklearn.decomposition", "sklearn.mixture", "codiag.cli", "typer.testing")
"""Modules that codiag imports where it needs them: some draw random numbers on the way, which is not codiag's doing."""


def load_generators(module: str | None = None) -> Registry:
    """Import all areas and return their registry, or that of a module with generators of its own."""
    if module is not None:
        return importlib.import_module(module).REGISTRY
    for lazy in LAZY:
        importlib.import_module(lazy)
    areas = importlib.import_module(f"{__package__}.areas")
    for found in sorted(pkgutil.iter_modules(areas.__path__), key=lambda one: one.name):
        importlib.import_module(f"{areas.__name__}.{found.name}")
    return REGISTRY


SPOILED = 0.25
"""Share of the inputs that get an argument they should not have."""


def make_case(seed: int, index: int, registry: Registry = REGISTRY) -> tuple[Generator, Case]:
    """Return the input with this number, and its generator: the same for the same seed and number."""
    from .spoil import spoil

    rng = np.random.default_rng([seed, index])
    generator = registry.chosen(rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case = generator.make(rng)
        if case.spoilable and case.arguments and rng.random() < SPOILED:
            spoil(case, rng)
    return generator, case
