"""What a call must leave as it was: its arguments, and everything that is global."""

from __future__ import annotations

import hashlib
import locale
import logging
import os
import random
import sys
import warnings
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_info


def global_state() -> dict[str, Any]:
    """Return what calls have in common, in a form that can be compared."""
    kind, keys, *rest = np.random.get_state(legacy=True)  # noqa: NPY002
    return {
        "np.random": (kind, keys.tobytes(), tuple(rest)),
        "random": random.getstate(),
        "np.geterr": np.geterr(),
        "warnings.filters": tuple(warnings.filters),
        "warnings.showwarning": warnings.showwarning,
        "threads": tuple(library["num_threads"] for library in threadpool_info()),
        "os.environ": dict(os.environ),
        "working directory": Path.cwd(),
        "print options": str(np.get_printoptions()),
        "recursion limit": sys.getrecursionlimit(),
        "locale": locale.setlocale(locale.LC_ALL),
        "log level": (logging.getLogger("codiag").level, len(logging.getLogger("codiag").handlers)),
    }


def changed_state(before: dict[str, Any]) -> list[str]:
    """Return the names of what is not as it was."""
    after = global_state()
    return [name for name, value in before.items() if after[name] != value]


def snapshot(value: Any, depth: int = 0) -> Any:
    """Return the contents of an argument, byte by byte, in a form that can be compared."""
    if isinstance(value, np.random.Generator | np.random.RandomState) or depth > 6:
        return None  # drawn from, which is what they are for
    if isinstance(value, np.ndarray):
        contents = repr(value.tolist()) if value.dtype.hasobject else hashlib.sha1(value.tobytes()).hexdigest()
        return ("array", str(value.dtype), value.shape, value.strides, value.flags.writeable, contents)
    if sparse.issparse(value):
        return ("sparse", value.format, value.shape, *(snapshot(part, depth + 1) for part in _parts(value)))
    if isinstance(value, list | tuple):
        return (type(value).__name__, *(snapshot(item, depth + 1) for item in value))
    if isinstance(value, dict):
        return tuple((repr(key), snapshot(item, depth + 1)) for key, item in value.items())
    if isinstance(value, Path) or (isinstance(value, str) and value.startswith("/")):
        return _file(Path(value))
    if hasattr(value, "to_numpy") and hasattr(value, "columns"):
        return ("frame", repr(list(value.columns)), repr(value.to_numpy().tolist()))
    if hasattr(value, "edges") and hasattr(value, "nodes"):
        return ("graph", repr(sorted(value.edges, key=repr)), repr(sorted(value.nodes, key=repr)))
    if type(value).__module__.startswith(("codiag", "tests", "fuzz")) and hasattr(value, "__dict__"):
        kept = {name: item for name, item in vars(value).items() if not _is_computed(value, name)}
        return {name: snapshot(item, depth + 1) for name, item in kept.items()}
    return repr(value) if isinstance(value, int | float | complex | str | bytes | None) else None


KEPT_BY_TENSORS = {"_squared_norm", "_sketch", "_listings", "_symmetric", "_seems_symmetric", "is_validated"}
"""What tensors find out about their entries and keep: neither the entries nor what was declared."""


def _is_computed(value: Any, name: str) -> bool:
    """Tell whether an attribute is kept from the first time it is asked for: it is no change that it is there."""
    return name in KEPT_BY_TENSORS or isinstance(getattr(type(value), name, None), cached_property)


def _parts(matrix: Any) -> list[np.ndarray]:
    named = [
        getattr(matrix, name) for name in ("data", "indices", "indptr", "row", "col", "coords") if hasattr(matrix, name)
    ]
    return [part for part in named if isinstance(part, np.ndarray)]


def _file(path: Path) -> Any:
    try:
        return ("file", hashlib.sha1(path.read_bytes()).hexdigest()) if path.is_file() else ("path", str(path))
    except (OSError, ValueError):
        return ("path", repr(path))


def same(before: Any, after: Any) -> bool:
    """Tell whether an argument is as it was; objects may remember more than before, never anything else."""
    if isinstance(before, dict) and isinstance(after, dict):
        return all(name in after and same(value, after[name]) for name, value in before.items())
    if isinstance(before, tuple) and isinstance(after, tuple):
        return len(before) == len(after) and all(same(one, other) for one, other in zip(before, after, strict=True))
    return bool(before == after)
