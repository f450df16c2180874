"""Former names, which work for one minor version, with a warning that has the new name."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

GONE_IN = "0.4"
"""The version in which former names stop working: one minor version after the rename."""


def warn_of_former(old: str, new: str, stacklevel: int = 3) -> None:
    """Warn that a name was renamed, at the line of the caller's caller."""
    warnings.warn(f"{old} is now {new}; the old name goes in {GONE_IN}", DeprecationWarning, stacklevel=stacklevel)


def with_new_keywords(function: str, former: Mapping[str, str], given: dict[str, Any]) -> dict[str, Any]:
    """Return keyword arguments with former names replaced by the new ones, and a warning for each."""
    renamed = {}
    for name, value in given.items():
        new = former.get(name, name)
        if new in renamed or (new != name and new in given):
            raise TypeError(f"{function}() got {new} twice: {name} is its former name")
        if new != name:
            warn_of_former(f"{name} of {function}", new, stacklevel=4)
        renamed[new] = value
    return renamed


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
        warn_of_former(f"{module}.{name}", renamed[name])
        return getattr(import_module(home), new)

    return resolve


class FormerAttributes:
    """Base of classes with renamed attributes: the former names can be read, and be declared by subclasses."""

    former_attributes: ClassVar[Mapping[str, str]] = {}
    """The new name of each attribute that had another one."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Set what a subclass declares by a former name under the new name."""
        super().__init_subclass__(**options)
        for old, new in cls.former_attributes.items():
            if old in vars(cls):
                warn_of_former(f"{old} of {cls.__name__}", new)
                setattr(cls, new, vars(cls)[old])

    if not TYPE_CHECKING:  # for type checkers every attribute would exist

        def __getattr__(self, name: str) -> Any:
            """Resolve former names of attributes, with a DeprecationWarning."""
            if name not in type(self).former_attributes:
                return super().__getattribute__(name)  # raises again, also what a property of this name raised
            new = type(self).former_attributes[name]
            warn_of_former(f"{name} of {type(self).__name__}", new)
            return getattr(self, new)
