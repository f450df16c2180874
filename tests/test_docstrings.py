"""Everything public says what it takes, what it returns, and shows a call that runs."""

from __future__ import annotations

import inspect
import re
from functools import cached_property
from importlib import import_module
from types import FunctionType

import pytest

import codiag

NOTHING = (None, "None", "NoReturn")
PROGRAMS = {"cli", "experiments"}  # run by commands, not called by users
PACKAGES = [name for name in dir(codiag) if inspect.ismodule(getattr(codiag, name)) and name not in PROGRAMS]


def public_objects():
    """Yield (name, object, whether it is a method) for what is in `__all__`, and for the methods of its classes."""
    found = {}
    for package in [*PACKAGES, "drop_in.ajd", ""]:
        module = import_module(f"codiag.{package}".rstrip("."))
        for name in getattr(module, "__all__", ()):
            member = getattr(module, name)
            if callable(member) and getattr(member, "__module__", "").startswith("codiag"):
                found.setdefault(member, f"{module.__name__}.{name}")
    for member, name in found.items():
        yield name, member, False
        if inspect.isclass(member):
            for method in methods(member, found):
                yield f"{name}.{method}", inspect.getattr_static(member, method), True


def methods(owner, public):
    """Return the names of public methods that a class or a private base of it is the first of codiag to define.

    An override is what the class it comes from says it is.
    """
    own = [base for base in owner.__mro__ if base.__module__.startswith("codiag")]
    known = {name for base in own if base in public and base is not owner for name in vars(base)}
    kinds = (property, cached_property, classmethod, staticmethod, FunctionType)
    apart = [base for base in own if base is owner or base not in public]
    first = {name: raw for base in apart for name, raw in vars(base).items() if name not in known}
    return [name for name, raw in first.items() if not name.startswith("_") and isinstance(raw, kinds)]


def sections(text):
    """Return the sections of a numpydoc docstring, by heading."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def documented(section):
    """Return the names that the entries of a section begin with: ``a, b : int``."""
    heads = [line.split(" : ")[0] for line in section.splitlines() if line and not line.startswith(" ")]
    return {name.strip().lstrip("*") for head in heads for name in head.split(",")}


def parameters(function):
    """Return the names of the arguments of a function, or of a class."""
    if inspect.isclass(function) and issubclass(function, Warning):
        return set()
    kept = [name for name in inspect.signature(function).parameters if not name.startswith("_")]
    return set(kept) - {"self", "cls", "args", "kwargs"}


def missing(found, *, is_method):
    """Return what the docstring of a function, a class, a method or a property lacks."""
    if isinstance(found, classmethod | staticmethod):
        found = found.__wrapped__
    text = inspect.getdoc(found) or ""
    there = sections(text)
    lacks = [] if re.match(r"[A-Z`].*[.:]$", text.split("\n\n")[0], re.DOTALL) else ["a first sentence"]
    if isinstance(found, property | cached_property):
        return lacks
    named = documented(there.get("Parameters", ""))
    if inspect.isclass(found):
        named |= documented(there.get("Attributes", ""))
    elif inspect.signature(found).return_annotation not in (None, "None", "NoReturn") and not {
        "Returns",
        "Yields",
    } & set(there):
        lacks.append("Returns")
    lacks += [f"parameter {name}" for name in sorted(parameters(found) - named)]
    if not is_method and ">>> " not in there.get("Examples", ""):
        lacks.append("Examples")
    return lacks


LACKING = {name: lacks for name, found, is_method in public_objects() if (lacks := missing(found, is_method=is_method))}


def test_docstrings_are_complete():
    assert LACKING == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_say_what_is_public(package):
    module = import_module(f"codiag.{package}")
    assert module.__doc__
    assert module.__all__


def documented_function(rows, *, columns=3) -> int:
    """Return a number.

    Parameters
    ----------
    rows : int
    columns : int

    Returns
    -------
    int

    Examples
    --------
    >>> 1 + 1
    2
    """


@pytest.mark.parametrize(
    ("cut", "lacks"),
    [
        ("Return a number.", ["a first sentence"]),
        ("columns : int\n", ["parameter columns"]),
        ("Returns\n-------\nint", ["Returns"]),
        (">>> 1 + 1", ["Examples"]),
    ],
)
def test_what_is_left_out_is_seen(cut, lacks):
    def changed(rows, *, columns=3) -> int: ...

    changed.__doc__ = inspect.getdoc(documented_function)
    assert missing(changed, is_method=False) == []
    assert cut in changed.__doc__
    changed.__doc__ = changed.__doc__.replace(cut, "")
    assert missing(changed, is_method=False) == lacks
