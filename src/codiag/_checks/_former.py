"""Names that were renamed: they keep working for one minor version, and say what to write instead."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

GONE_IN = "0.4"
"""The version in which former names stop working."""


def former_names(module: str, renamed: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for a module that resolves former names, each with a DeprecationWarning.

    Parameters
    ----------
    module : str
        The module that had the names.
    renamed : mapping of str to str
        The full new name of each, such as ``"codiag.io.read_votes"``.

    Returns
    -------
    callable
        To be assigned to ``__getattr__`` in that module.
    """

    def resolve(name: str) -> Any:
        if name not in renamed:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home, _, new = renamed[name].rpartition(".")
        warnings.warn(
            f"{module}.{name} is now {renamed[name]}; the old name goes in {GONE_IN}", DeprecationWarning, stacklevel=2
        )
        return getattr(import_module(home), new)

    return resolve
