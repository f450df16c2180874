"""Arguments that nobody should pass, and everybody does once."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .case import Case

HUGE = {"rank", "n_components", "seed", "random_state", "k"}
"""Arguments that may be absurdly large without asking for endless work."""
SEEDS = {"seed", "random_state"}
PLAIN: list[Any] = [None, "abc", b"abc", [], {}, (), object, 1j, float("nan"), dt.date(2024, 1, 1)]
INTEGERS: list[Any] = [0, -1, -7, 2.5, float("nan"), float("inf"), "3", True, [2], np.array([2, 3]), np.int8(2)]
NUMBERS: list[Any] = [0.0, -1.0, float("nan"), float("inf"), -float("inf"), "0.5", True, 1e300, 1e-300, [0.5], 1j]


def spoil(case: Case, rng: np.random.Generator) -> None:
    """Replace one argument of a case by something else; it may be refused from then on."""
    names = sorted(case.arguments)
    name = names[int(rng.integers(len(names)))]
    before = case.arguments[name]
    after = instead_of(before, name, rng)
    case.arguments = case.arguments | {name: after}
    case.valid, case.spoiled = None, name
    case.nonsense = name not in SEEDS and _has_no_meaning(before, after)


def _has_no_meaning(before: Any, after: Any) -> bool:
    """Tell whether a flag or a number was replaced by what is neither."""
    if not isinstance(before, bool | int | float):
        return False
    return isinstance(after, str | bytes | type | complex | dt.date) or (isinstance(after, float) and after != after)


def instead_of(value: Any, name: str, rng: np.random.Generator) -> Any:
    """Return something that is like a value and should perhaps not be in its place, or nothing like it."""
    if rng.random() < 0.25:
        return PLAIN[int(rng.integers(len(PLAIN)))]
    if isinstance(value, bool | np.bool_):
        return _one_of(["no", 2, None, float("nan"), [True], np.bool_(True)], rng)
    if isinstance(value, int | np.integer):
        return _one_of(INTEGERS + ([10**30] if name in HUGE else []), rng)
    if isinstance(value, float | np.floating):
        return _one_of(NUMBERS, rng)
    if isinstance(value, np.ndarray):
        return _of_array(value, rng)
    if isinstance(value, str | Path) and ("/" in str(value)):
        return _one_of([str(value) + ".missing", str(Path(value).parent), "", 3, None, b"x.npy"], rng)
    if isinstance(value, str):
        return _one_of(["nope", "", value.upper(), 3, None, [value]], rng)
    if isinstance(value, list | tuple) and len(value) > 0:
        return _of_sequence(value, name, rng)
    if isinstance(value, dict) and value:
        return _of_dict(value, name, rng)
    return PLAIN[int(rng.integers(len(PLAIN)))]


def _one_of(choices: Sequence[Any], rng: np.random.Generator) -> Any:
    return choices[int(rng.integers(len(choices)))]


def _of_array(value: np.ndarray, rng: np.random.Generator) -> Any:
    changes: list[Callable[[np.ndarray], Any]] = [
        lambda a: _with_entry(a, np.nan, rng),
        lambda a: _with_entry(a, np.inf, rng),
        lambda a: _with_entry(a, 1e300, rng),
        lambda a: a[:0],
        lambda a: a.astype(complex) + 1j if a.dtype.kind in "fiub" else a.astype(object),
        lambda a: a.astype(str),
        lambda a: a.astype(object),
        lambda a: a.ravel(),
        lambda a: a[None],
        lambda a: a.T,
        lambda a: a[..., None],
        lambda a: np.zeros_like(a),
        lambda a: a.tolist(),
        lambda a: np.ma.masked_array(a, a == a.ravel()[0]) if a.size else a,
        lambda a: a[:-1],
        lambda a: a.astype(np.float16 if a.dtype.kind == "f" else np.float32) if a.dtype.kind in "fiub" else a,
        lambda _: np.array(1.0),
        lambda a: np.zeros(a.shape, dtype=[("x", float)]),
        lambda a: np.zeros(a.shape, dtype="datetime64[s]"),
        lambda a: -a if a.dtype.kind in "fi" else a,
        lambda a: [a, a[:1]],
    ]
    return _one_of(changes, rng)(value) if value.ndim else _one_of(NUMBERS, rng)


def _with_entry(array: np.ndarray, entry: float, rng: np.random.Generator) -> np.ndarray:
    if array.dtype.kind not in "fiub" or array.size == 0:
        return array
    with np.errstate(over="ignore"):
        changed = array.astype(np.float64 if array.dtype.kind != "f" else array.dtype)
        changed.reshape(-1)[int(rng.integers(array.size))] = entry
    return changed


def _of_sequence(value: Sequence[Any], name: str, rng: np.random.Generator) -> Any:
    place = int(rng.integers(len(value)))
    changed = list(value)
    changed[place] = instead_of(value[place], name, rng)
    kinds = [changed, list(value[:-1]), [*value, value[-1]], value[0], tuple(changed)]
    return _one_of(kinds, rng)


def _of_dict(value: dict[Any, Any], name: str, rng: np.random.Generator) -> Any:
    key = sorted(value, key=str)[int(rng.integers(len(value)))]
    less = {other: kept for other, kept in value.items() if other != key}
    return _one_of([less, value | {key: instead_of(value[key], name, rng)}], rng)
