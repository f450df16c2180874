"""Arrays of all kinds, in all layouts and storages, with the entries they have known; and arguments that are wrong."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from codiag.tensors import DenseTensor, FactoredTensor, SparseTensor

from .case import Case
from .invariants import Held
from .reference import composed

SEEDS = st.integers(0, 2**31 - 1)
RNGS = SEEDS.map(np.random.default_rng)
FLAGS = st.booleans()
sizes = st.integers


def one_of(*options: Any) -> st.SearchStrategy[Any]:
    """Draw one of several things; the first is the simplest."""
    return st.sampled_from(options)


def shapes() -> st.SearchStrategy[tuple[int, ...]]:
    """Draw a shape of order three to five with few entries; some modes of size one."""
    return one_of((7, 3), (7, 3), (7, 3), (4, 4), (3, 5)).flatmap(lambda own: st.tuples(*[sizes(1, own[0])] * own[1]))


def ranks(shape: Sequence[int]) -> st.SearchStrategy[int]:
    """Draw a rank, mostly a small one, not above what is enough for every tensor of the shape."""
    return one_of(1, 1, 2, 2, 2, 3, 3, 4, 5).map(lambda rank: min(rank, int(np.prod(sorted(shape)[:-1]))))


def low_rank(rng: np.random.Generator, shape: Sequence[int], rank: int | None = None) -> np.ndarray:
    """Return a sum of a few components."""
    k = rank or int(rng.integers(1, 5))
    return composed(rng.uniform(0.5, 2, k), [rng.standard_normal((size, k)) for size in shape])


def _ties(rng: np.random.Generator, shape: Sequence[int]) -> np.ndarray:
    entries = np.zeros(shape)
    for place in range(min(*shape, int(rng.integers(1, 5)))):
        entries[(place,) * len(shape)] = rng.choice([1.0, 1.0, 2.0])
    return entries


def _spikes(rng: np.random.Generator, shape: Sequence[int]) -> np.ndarray:
    entries = np.zeros(shape)
    for _ in range(int(rng.integers(1, 5))):
        entries[tuple(int(rng.integers(size)) for size in shape)] = rng.choice([1.0, 1.0, -1.0, 3.0])
    return entries


def _noisy(rng: np.random.Generator, shape: Sequence[int]) -> np.ndarray:
    clean, errors = low_rank(rng, shape), rng.standard_normal(shape)
    return clean + rng.choice([1e-6, 1e-3, 1e-1, 1.0]) * errors * np.linalg.norm(clean) / np.linalg.norm(errors)


def _border(rng: np.random.Generator, shape: Sequence[int]) -> np.ndarray:
    first, second = ([rng.standard_normal((size, 1)) for size in shape] for _ in range(2))
    terms = [composed(np.ones(1), [*first[:m], second[m], *first[m + 1 :]]) for m in range(len(shape))]
    return sum(terms) + rng.choice([0.0, 1e-3]) * rng.standard_normal(shape)


KINDS: dict[str, Callable[[np.random.Generator, Sequence[int]], np.ndarray]] = {
    "low rank": low_rank,
    "noisy": _noisy,
    "gaussian": lambda rng, shape: rng.standard_normal(shape),
    "zero-one": lambda rng, shape: (rng.random(shape) < rng.choice([0.1, 0.3, 0.5])).astype(float),
    "ties": _ties,
    "spikes": _spikes,
    "integers": lambda rng, shape: rng.integers(-3, 4, shape).astype(float),
    "constant": lambda rng, shape: np.full(shape, rng.choice([1.0, -2.0, 0.1])),
    "border rank": _border,
}
WHOLE = {"zero-one", "ties", "spikes", "integers"}
LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "as it is": lambda array: array,
    "Fortran": np.asfortranarray,
    "negative strides": lambda array: np.ascontiguousarray(array[..., ::-1])[..., ::-1],
    "read-only": lambda array: np.frombuffer(array.tobytes(), array.dtype).reshape(array.shape),
}


@st.composite
def arrays(draw: Any, *, extreme: bool = True) -> Held:
    """Draw a NumPy array that is not all zero, of some precision, scale and layout."""
    kind = draw(st.sampled_from(tuple(KINDS)))
    entries = KINDS[kind](draw(RNGS), draw(shapes()))
    if not np.any(entries):
        entries = entries + 1
    whole = ("int64", "uint8", "bool") if kind in WHOLE else ()
    dtype = draw(one_of("float64", "float64", "float64", "float32", *whole))
    if dtype in ("uint8", "bool"):
        entries = np.abs(entries) if dtype == "uint8" else (entries != 0).astype(float)
    span = 36 if dtype == "float32" else 300
    scaled = extreme and dtype.startswith("float") and draw(one_of(*[False] * 7, True))
    scale = 10.0 ** draw(sizes(-span, span)) if scaled else 1.0
    array = (entries * scale).astype(dtype)
    precision = "float32" if dtype == "float32" else "float64"
    layout = LAYOUTS[draw(st.sampled_from(tuple(LAYOUTS)))]
    return Held(layout(array), array.astype(np.float64) / scale, precision, scale)


@st.composite
def stored(draw: Any) -> Held:
    """Draw entries in some storage of codiag."""
    storage, precision, rng = (
        draw(one_of("dense", "sparse", "factored")),
        draw(one_of("float64", "float32")),
        draw(RNGS),
    )
    if storage == "factored":
        factors = [rng.standard_normal((size, 2)).astype(precision) for size in draw(shapes())]
        weights = rng.uniform(-2, 2, 2).astype(precision)
        return Held(FactoredTensor(weights, factors), composed(weights, factors), precision, entrywise=False)
    held = draw(arrays(extreme=False))
    if storage == "dense":
        return replace(held, data=DenseTensor(held.data))
    places = np.nonzero(held.data)
    sparse = SparseTensor(np.array(places), held.data[places], held.dense.shape)
    return replace(held, data=sparse, entrywise=False)


def tensors() -> st.SearchStrategy[Held]:
    """Draw an array or another storage."""
    return st.one_of(arrays(), arrays(), stored())


PLAIN: list[Any] = [None, "abc", b"abc", [], {}, (), object, 1j, float("nan"), dt.date(2024, 1, 1)]
INTEGERS: list[Any] = [0, -1, -7, 2.5, float("nan"), float("inf"), "3", True, [2], np.array([2, 3]), np.int8(2)]
NUMBERS: list[Any] = [0.0, -1.0, float("nan"), float("inf"), -float("inf"), "0.5", True, 1e300, 1e-300, [0.5], 1j]
HUGE = {"rank", "n_components", "rng", "random_state"}  # may be so without asking for endless work
ARRAYS: list[Callable[[np.ndarray], Any]] = [
    lambda a: _with_entry(a, np.nan),
    lambda a: _with_entry(a, np.inf),
    lambda a: _with_entry(a, 1e300),
    lambda a: a[:0],
    lambda a: a.astype(complex) + 1j if a.dtype.kind in "fiub" else a.astype(object),
    lambda a: a.ravel(),
    lambda a: a.T,
    lambda a: np.zeros_like(a),
    lambda a: a.tolist(),
    lambda a: np.ma.masked_array(a, a == a.ravel()[0]) if a.size else a,
    lambda a: np.clip(a, -6e4, 6e4).astype(np.float16) if a.dtype.kind == "f" else a.astype(object),
    lambda a: np.zeros(a.shape, dtype="datetime64[s]"),
    lambda a: [a, a[:1]],
]


def _with_entry(array: np.ndarray, entry: float) -> np.ndarray:
    if array.dtype.kind not in "fiub" or array.size == 0:
        return array
    with np.errstate(over="ignore"):
        changed = array.astype(np.float64 if array.dtype.kind != "f" else array.dtype)
        changed.reshape(-1)[array.size // 2] = entry
    return changed


@st.composite
def broken(draw: Any, cases: st.SearchStrategy[Case]) -> Case:
    """Draw a call, and replace one of its arguments by something else; it may be refused from then on."""
    case = draw(cases)
    name = draw(st.sampled_from(sorted(case.arguments)))
    before = case.arguments[name]
    after = draw(instead_of(before, name))
    meaningless = isinstance(after, str | bytes | type | complex | dt.date) or (
        isinstance(after, float) and after != after
    )
    nonsense = isinstance(before, bool | int | float) and name not in ("rng", "random_state") and meaningless
    return replace(case, arguments=case.arguments | {name: after}, valid=None, broken=name, nonsense=nonsense)


@st.composite
def instead_of(draw: Any, value: Any, name: str) -> Any:
    """Draw something that is like a value and should perhaps not be in its place, or nothing like it."""
    options = PLAIN
    if isinstance(value, bool | np.bool_):
        options = ["no", 2, None, float("nan"), [True], np.bool_(True)]
    elif isinstance(value, int | np.integer):
        options = INTEGERS + ([10**30] if name in HUGE else [])
    elif isinstance(value, float | np.floating):
        options = NUMBERS
    elif isinstance(value, np.ndarray) and value.ndim:
        return draw(st.sampled_from(ARRAYS))(value)
    elif isinstance(value, Path):
        options = [value.with_name("missing.npz"), value.parent, "", 3, None]
    elif isinstance(value, str):
        options = ["nope", "", value.upper(), 3, None, [value]]
    elif isinstance(value, list | tuple) and len(value) > 0:
        changed = list(value)
        place = draw(sizes(0, len(value) - 1))
        changed[place] = draw(instead_of(value[place], name))
        options = [changed, list(value[:-1]), [*value, value[-1]], value[0], tuple(changed)]
    return draw(st.sampled_from([*options, *PLAIN[:3]] if options is not PLAIN else PLAIN))
