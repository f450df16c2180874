"""Faults put there on purpose: each is patched in, and properties that do not find it find nothing."""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import codiag
from codiag.methods import ALS, NLS

from .areas import AREAS
from .case import Case
from .invariants import Held, about_fit, about_itself
from .strategies import broken

FITS, MATCHES = AREAS["factorize"][0], AREAS["matching"][0]


class Fault(NamedTuple):
    """The kind of finding it is, what is wrong, called with the real function and its arguments, and where."""

    kind: str
    wrong: Callable[..., Any]
    target: str = "codiag.factorize"
    calls: st.SearchStrategy[Case] = FITS


def _result(kind: str, spoil: Callable[[Any], Any]) -> Fault:
    """Return a fault in the result of `factorize`."""
    return Fault(kind, lambda real, *given, **options: spoil(real(*given, **options)))


def _beside(kind: str, act: Callable[[Any], Any]) -> Fault:
    """Return a fault beside the work of `factorize`."""

    def wrong(real: Any, tensor: Any, **options: Any) -> Any:
        act(tensor)
        return real(tensor, **options)

    return Fault(kind, wrong)


def _raised(kind: str, error: Exception) -> Fault:
    """Return an exception inside a library that codiag calls."""

    def wrong(*_: Any, **__: Any) -> Any:
        raise error

    return Fault(kind, wrong, "scipy.optimize.linear_sum_assignment", broken(MATCHES))


def _overwrite(tensor: Any) -> None:
    if isinstance(tensor, np.ndarray) and tensor.flags.writeable:
        tensor[...] = 0


def _endless(_: Any) -> None:
    while True:
        pass


def _unsorted(fit: Any) -> Any:
    return replace(fit, weights=fit.weights[::-1], factors=tuple(factor[:, ::-1] for factor in fit.factors))


def _one_sweep(real: Any, tensor: Any, **options: Any) -> Any:
    return replace(real(tensor, **options | {"method": ALS(max_iter=1)}), converged=True)


def _saddle(tensor: np.ndarray) -> Any:
    """Return the point half-way between two equal components: every direction but one leads upwards."""
    columns = [np.full((2, 1), 0.5**0.5) for _ in range(3)]
    weight = np.array([float(np.einsum("abc,ai,bi,ci->", tensor, *columns))])
    error = float(np.linalg.norm(tensor - weight * np.einsum("ai,bi,ci->abc", *columns)) / 2**0.5)
    return codiag.Factorization(weight, tuple(columns), error, True, _norm=2**0.5)


def _at_saddle() -> Case:
    tensor = np.zeros((2, 2, 2))
    tensor[0, 0, 0] = tensor[1, 1, 1] = 1
    return Case("saddle", _saddle, {"tensor": tensor}, True, (about_fit(Held(tensor, tensor), 1, "best", 0),))


def _cancelling() -> Case:
    """Return a fit of rank two to a tensor of rank three that is a limit of tensors of rank two."""
    tensor = np.zeros((2, 2, 2))
    tensor[0, 0, 1] = tensor[0, 1, 0] = tensor[1, 0, 0] = 1
    return Case("degenerate", codiag.factorize, {"tensor": tensor, "rank": 2, "rng": 0}, True, (about_itself,))


def _called_determined(found: Any) -> Any:
    """Return an assessment that calls all components determined."""
    return replace(found, components={**found.components, "verdict": np.full(len(found.verdicts), "determined")})


def _unnamed() -> Case:
    return Case("unnamed", lambda number: NLS(tol=number), {"number": -1.0}, None)


def _refuse(*_: Any, **__: Any) -> Any:
    raise ValueError("tensor must be another")


FAULTS = {
    "wrong relative_error": _result(
        "relative_error", lambda fit: replace(fit, relative_error=0.9 * fit.relative_error)
    ),
    "not unit": _result("unit columns", lambda fit: replace(fit, factors=(2 * fit.factors[0], *fit.factors[1:]))),
    "not sorted": _result("order", _unsorted),
    "another precision": _result("dtype", lambda fit: replace(fit, weights=fit.weights.astype(np.float16))),
    "nan": _result("not finite", lambda fit: replace(fit, weights=fit.weights * np.nan)),
    "not a minimum": Fault("not converged", _one_sweep),
    "a saddle": Fault("saddle", _refuse, calls=st.builds(_at_saddle)),
    "good of what cancels": Fault(
        "diagnosis",
        lambda real, fit: _called_determined(real(fit)),
        "codiag.Factorization.diagnose",
        st.builds(_cancelling),
    ),
    "shared memory": Fault("copies", lambda _, fit: (fit.weights, list(fit.factors)), "codiag.io.to_tensorly"),
    "changed input": _beside("input changed", _overwrite),
    "changed random state of NumPy": _beside("state changed", lambda _: np.random.random()),  # noqa: NPY002
    "changed random state": _beside("state changed", lambda _: random.random()),
    "changed environment": _beside("state changed", lambda _: os.environ.update(CODIAG_PLANTED=str(random.random()))),
    "changed errstate": _beside("state changed", lambda _: np.seterr(all="raise")),
    "printed": _beside("printed", lambda _: print("hello")),
    "warned": _beside("warning", lambda _: warnings.warn("hello", RuntimeWarning, stacklevel=1)),
    "endless loop": _beside("endless", _endless),
    "memory": _beside("refused valid", lambda _: np.ones(19 * 2**27)),
    "valid refused": Fault("refused valid", _refuse),
    "nonsense": Fault("nonsense accepted", lambda real, tensor, **_: real(tensor, 1, rng=0), calls=broken(FITS)),
    "KeyError": _raised("wrong exception", KeyError("truth")),
    "LinAlgError": _raised("wrong exception", np.linalg.LinAlgError("singular")),
    "refusal from elsewhere": _raised("not codiag's refusal", ValueError("truth")),
    "refusal without a name": Fault("names no argument", _refuse, calls=st.builds(_unnamed)),
}
DEADLY = {
    "gone": _beside("", lambda _: os._exit(3)),
    "endless in C": _beside("", lambda _: sum(range(10**13))),
}
"""Faults that end the process, which is how they are found."""
