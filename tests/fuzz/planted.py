"""Faults put there on purpose: a fuzzer that does not report each of these finds nothing."""

from __future__ import annotations

import os
import random
import tempfile
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import codiag

from .arrays import Held
from .case import Case, Registry
from .fits import about_a_fit
from .invariants import about_fit, finite

REGISTRY = Registry()
covers = REGISTRY.covers


def _tensor(rng: np.random.Generator) -> np.ndarray:
    return np.einsum("ai,bi,ci->abc", *[rng.standard_normal((size, 2)) for size in (3, 4, 5)])


def _fit_case(rng: np.random.Generator, name: str, spoil: Any, claims: str = "best") -> Case:
    """Return a fit of which something is made false before it is looked at."""
    tensor = _tensor(rng) + 0.1 * rng.standard_normal((3, 4, 5))

    def fit(tensor: np.ndarray, rank: int) -> Any:
        return spoil(codiag.factorize(tensor, rank, seed=0))

    check = about_fit(Held(tensor, tensor, "planted"), 2, claims, 0)
    return Case(name, fit, {"tensor": tensor, "rank": 2}, True, (check,), spoilable=False)


def _call_case(name: str, function: Any, *, valid: bool | None = True, **arguments: Any) -> Case:
    return Case(name, function, arguments, valid, (finite,), spoilable=False)


@covers("wrong relative_error")
def wrong_error(rng: np.random.Generator) -> Case:
    return _fit_case(rng, "wrong relative_error", lambda fit: replace(fit, relative_error=0.9 * fit.relative_error))


@covers("not unit")
def not_unit(rng: np.random.Generator) -> Case:
    spoil = lambda fit: replace(fit, factors=(2 * fit.factors[0], *fit.factors[1:]))  # noqa: E731
    return _fit_case(rng, "not unit", spoil)


@covers("not sorted")
def not_sorted(rng: np.random.Generator) -> Case:
    spoil = lambda fit: replace(fit, weights=fit.weights[::-1], factors=tuple(f[:, ::-1] for f in fit.factors))  # noqa: E731
    return _fit_case(rng, "not sorted", spoil)


@covers("double precision")
def double_precision(rng: np.random.Generator) -> Case:
    return _fit_case(rng, "double precision", lambda fit: replace(fit, weights=fit.weights.astype(np.float32)))


@covers("not a minimum")
def not_a_minimum(rng: np.random.Generator) -> Case:
    def fit(tensor: np.ndarray, rank: int) -> Any:
        found = codiag.factorize(tensor, rank, method=codiag.methods.ALS(max_sweeps=1), seed=3)
        return replace(found, converged=True)

    tensor = _tensor(rng)
    check = about_fit(Held(tensor, tensor, "planted"), 2, "minimum", 0)
    return Case("not a minimum", fit, {"tensor": tensor, "rank": 2}, True, (check,), spoilable=False)


@covers("a saddle")
def a_saddle(rng: np.random.Generator) -> Case:
    """Half-way between two equal components every direction but one leads upwards."""
    tensor = np.zeros((2, 2, 2))
    tensor[0, 0, 0] = tensor[1, 1, 1] = 1
    column = np.full((2, 1), 0.5**0.5)

    def fit(tensor: np.ndarray) -> Any:
        weight = np.array([float(np.einsum("abc,a,b,c", tensor, *[column[:, 0]] * 3))])
        error = float(np.linalg.norm(tensor - weight * np.einsum("ai,bi,ci->abc", column, column, column)) / 2**0.5)
        return codiag.Factorization(weight, (column, column.copy(), column.copy()), error, 2**0.5, True)

    check = about_fit(Held(tensor, tensor, "planted"), 1, "best", 0)
    return Case("a saddle", fit, {"tensor": tensor}, True, (check,), spoilable=False)


@dataclass(frozen=True, eq=False, repr=False)
class Flattered(codiag.Factorization):
    """A fit that says of every component that it is well determined."""

    def diagnose(self) -> Any:
        return replace(super().diagnose(), verdicts=("well",) * self.rank)


@dataclass(frozen=True, eq=False, repr=False)
class Sharing(codiag.Factorization):
    """A fit that hands out its own arrays."""

    def to_tensorly(self) -> Any:
        return self.weights, list(self.factors)


def _told_case(name: str, kind: type, rng: np.random.Generator) -> Case:
    columns = [np.linalg.qr(rng.standard_normal((4, 1)))[0] for _ in range(3)]
    near = [columns[0] + 1e-2 * rng.standard_normal((4, 1)), *columns[1:]]
    factors = [
        np.hstack([one, -other if mode == 0 else other])
        for mode, (one, other) in enumerate(zip(columns, near, strict=True))
    ]
    factors = tuple(factor / np.linalg.norm(factor, axis=0) for factor in factors)

    def told(weights: np.ndarray) -> Any:
        return kind(weights, factors, 0.1, 1.0, True)

    return Case(name, told, {"weights": np.array([10.0, 9.9])}, True, (about_a_fit,), spoilable=False)


@covers("good of what cancels")
def good_of_what_cancels(rng: np.random.Generator) -> Case:
    return _told_case("good of what cancels", Flattered, rng)


@covers("shared memory")
def shared_memory(rng: np.random.Generator) -> Case:
    return _told_case("shared memory", Sharing, rng)


@covers("changed input")
def changed_input(rng: np.random.Generator) -> Case:
    def change(array: np.ndarray) -> float:
        array[0] = 0
        return 1.0

    return _call_case("changed input", change, array=rng.random(5))


@covers("changed state")
def changed_state(rng: np.random.Generator) -> Case:
    def change(what: int) -> None:
        changes = [
            lambda: np.random.seed(0),  # noqa: NPY002
            random.random,
            lambda: os.environ.update(CODIAG_PLANTED=str(random.random())),
            lambda: np.seterr(all="raise"),
        ]
        changes[what]()

    return _call_case("changed state", change, what=int(rng.integers(4)))


@covers("printed")
def printed(rng: np.random.Generator) -> Case:
    return _call_case("printed", lambda text: print(text), text="hello")


@covers("warned")
def warned(rng: np.random.Generator) -> Case:
    return _call_case("warned", lambda text: warnings.warn(text, RuntimeWarning, stacklevel=1), text="hello")


@covers("nan")
def nan(rng: np.random.Generator) -> Case:
    return _call_case("nan", lambda size: np.full(size, np.nan), size=3)


@covers("endless loop")
def endless(rng: np.random.Generator) -> Case:
    def loop(start: int) -> None:
        while True:
            start += 1

    return _call_case("endless loop", loop, start=1)


@covers("endless in C")
def endless_in_c(rng: np.random.Generator) -> Case:
    return _call_case("endless in C", lambda end: sum(range(end)), end=10**13)


@covers("gone")
def gone(rng: np.random.Generator) -> Case:
    return _call_case("gone", lambda status: os._exit(status), status=3)


@covers("gone once")
def gone_once(rng: np.random.Generator) -> Case:
    """End the first worker and not the next, as a machine does that stands still for a moment: no fault."""

    def leave(status: int) -> float:
        mark = Path(tempfile.gettempdir(), f"codiag-fuzz-{os.getppid()}")  # both workers have the same parent
        if mark.exists():
            mark.unlink()
            return 1.0
        mark.touch()
        os._exit(status)

    return _call_case("gone once", leave, status=3)


@covers("memory")
def memory(rng: np.random.Generator) -> Case:
    return _call_case("memory", lambda size: np.ones(size), size=19 * 2**27)


def _in_codiag(error: Exception) -> Any:
    """Return a call that ends, inside codiag, with this exception."""

    def call(truth: np.ndarray) -> Any:
        def fail(*_: Any) -> Any:
            raise error

        with mock.patch("scipy.optimize.linear_sum_assignment", fail):
            return codiag.match_components(truth, truth)

    return call


@covers("KeyError")
def key_error(rng: np.random.Generator) -> Case:
    return _call_case("KeyError", _in_codiag(KeyError("truth")), valid=None, truth=np.eye(3))


@covers("LinAlgError")
def linear_algebra(rng: np.random.Generator) -> Case:
    return _call_case("LinAlgError", _in_codiag(np.linalg.LinAlgError("singular")), valid=None, truth=np.eye(3))


@covers("refusal from elsewhere")
def from_elsewhere(rng: np.random.Generator) -> Case:
    return _call_case("refusal from elsewhere", _in_codiag(ValueError("truth")), valid=None, truth=np.eye(3))


@covers("refusal without a name")
def without_a_name(rng: np.random.Generator) -> Case:
    def refuse(number: float) -> None:
        codiag.methods.NLS(tol=number)

    return _call_case("refusal without a name", refuse, valid=None, number=-1.0)


@covers("nonsense")
def nonsense(rng: np.random.Generator) -> Case:
    case = _call_case("nonsense", lambda flag: 1.0 if flag else 0.0, flag="no")
    case.spoiled, case.nonsense = "flag", True
    return case


@covers("valid refused")
def valid_refused(rng: np.random.Generator) -> Case:
    return _call_case("valid refused", codiag.factor_error, estimate=np.eye(3), truth=np.eye(4))
