"""Everything public says what it takes and returns, shows a call that runs, and names only what there is."""

from __future__ import annotations

import inspect
import re
from functools import cached_property
from importlib import import_module
from itertools import pairwise
from types import FunctionType

import pytest

import codiag

validate = pytest.importorskip("numpydoc.validate").validate

PROGRAMS = {"cli", "experiments"}  # run by commands, not called by users
PACKAGES = [name for name in dir(codiag) if inspect.ismodule(getattr(codiag, name)) and name not in PROGRAMS]
MODULES = [f"codiag.{package}" for package in [*PACKAGES, "drop_in.ajd"]] + ["codiag"]
EXCUSED = {
    "ES01",  # a summary may say all there is to say
    "PR01",  # fields of a result are attributes: `undocumented` asks for parameters or attributes
    "SS05",  # takes plural nouns for verbs
}
EXCUSED_OF_METHODS = EXCUSED | {"SA01"}  # the neighbors of a method are those of its class
ENGINE = "codiag.extending.LeastSquares."  # its methods are for those who read its code
LONGEST_TYPE = 60
QUOTED = re.compile(r"(?<![`:\w])`([^`\n]+)`(?![`_])")


def public_objects():
    """Yield (name, object, whether it is a method) for what is in `__all__`, and for the methods of its classes."""
    found = {}
    for path in MODULES:
        module = import_module(path)
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


def function_of(found):
    """Return what has the docstring and the signature of a method or a property."""
    if isinstance(found, classmethod | staticmethod):
        return found.__wrapped__
    if isinstance(found, property):
        return found.fget
    return found.func if isinstance(found, cached_property) else found


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
    return set(kept) - {"self", "cls"}


def undocumented(found):
    """Return the arguments of a function or a class that its docstring leaves out."""
    there = sections(inspect.getdoc(found) or "")
    named = documented(there.get("Parameters", ""))
    if inspect.isclass(found):
        named |= documented(there.get("Attributes", ""))
    return [f"parameter {name}" for name in sorted(parameters(found) - named)]


def undescribed(found):
    """Return the attributes of a class that have a type and no description."""
    lines = sections(inspect.getdoc(found) or "").get("Attributes", "").rstrip().splitlines()
    bare = [
        line
        for line, after in pairwise([*lines, ""])
        if line and not line.startswith(" ") and not after.startswith(" ")
    ]
    return [f"description of {line}" for line in bare]


def lacks(name, found, *, is_method):
    """Return what numpydoc finds wrong with a docstring, and the arguments that it leaves out."""
    excused = EXCUSED_OF_METHODS if is_method else EXCUSED
    wrong = [f"{code}: {text}" for code, text in validate(name)["errors"] if code not in excused]
    if isinstance(found, property | cached_property):
        return wrong
    return wrong + undocumented(function_of(found)) + undescribed(function_of(found))


OBJECTS = {name: (found, is_method) for name, found, is_method in public_objects() if not name.startswith(ENGINE)}


@pytest.mark.parametrize("module", MODULES)
def test_docstrings_are_complete(module):
    own = {name: row for name, row in OBJECTS.items() if name.startswith(module) and of_module(name) == module}
    found = {name: lacks(name, member, is_method=is_method) for name, (member, is_method) in own.items()}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def of_module(name):
    """Return the longest of the public modules that a name is in."""
    return max((module for module in MODULES if name.startswith(f"{module}.")), key=len)


@pytest.mark.parametrize("module", MODULES)
def test_modules_say_what_is_in_them(module):
    module = import_module(module)
    unnamed = [name for name in module.__all__ if name != "__version__" and f"`{name}`" not in module.__doc__]
    assert unnamed == []


def is_there(reference, name, found):
    """Tell whether a name in backticks is one that the reader of a docstring can look up."""
    module = import_module(of_module(name))
    owner = getattr(module, name.removeprefix(f"{module.__name__}.").split(".")[0])
    here = inspect.getdoc(function_of(found)) or ""
    known = set(dir(owner)) if inspect.isclass(owner) else set()
    for text in (inspect.getdoc(owner) or "", here):
        there = sections(text)
        known |= set().union(*(documented(there.get(title, "")) for title in ("Parameters", "Attributes", "Returns")))
    first, *rest = reference.split(".")
    if reference in known:
        return True
    if first == "codiag":
        return resolves(codiag, rest)
    return any(hasattr(place, first) and resolves(place, [first, *rest]) for place in (module, codiag))


def resolves(place, names):
    """Tell whether attributes lead on from an object: modules, classes, fields of dataclasses."""
    for name in names:
        if not hasattr(place, name):
            return name in getattr(place, "__dataclass_fields__", {})
        place = getattr(place, name)
    return True


def references(text):
    """Return the names in single backticks, and those that a section See Also lists."""
    plain = re.sub(r":math:`[^`]+`", "", text)
    return [*QUOTED.findall(plain), *documented(sections(text).get("See Also", ""))]


@pytest.mark.parametrize("module", MODULES)
def test_names_in_docstrings_are_there(module):
    own = {name: row for name, row in OBJECTS.items() if of_module(name) == module}
    texts = {name: inspect.getdoc(function_of(found)) or "" for name, (found, _) in own.items()}
    dangling = {
        name: [reference for reference in references(text) if not is_there(reference, name, own[name][0])]
        for name, text in texts.items()
    }
    assert {name: names for name, names in dangling.items() if names} == {}


@pytest.mark.parametrize("module", MODULES)
def test_names_in_docstrings_of_modules_are_there(module):
    found = import_module(module)
    assert [name for name in references(found.__doc__) if not resolves_in(found, name)] == []


def resolves_in(module, reference):
    names = reference.removeprefix("codiag.").split(".")
    return resolves(module, names) or resolves(codiag, names)


def test_signatures_are_readable():
    for name, (found, _) in OBJECTS.items():
        if isinstance(found, property | cached_property) or (inspect.isclass(found) and issubclass(found, Warning)):
            continue
        for argument in inspect.signature(function_of(found)).parameters.values():
            shown = argument.annotation if isinstance(argument.annotation, str) else repr(argument.annotation)
            assert len(shown) <= LONGEST_TYPE, f"{name}({argument.name}: {shown})"
            assert "ForwardRef" not in shown, f"{name}({argument.name}: {shown})"
            assert " at 0x" not in repr(argument.default), f"{name}({argument})"


def documented_function(rows, *, columns=3) -> int:
    """Return a number.

    Parameters
    ----------
    rows : int
        How many there are.
    columns : int
        The same of `rows` that stand.

    Returns
    -------
    int
        The number.

    See Also
    --------
    codiag.factorize : Another function.

    Examples
    --------
    >>> 1 + 1
    2
    """


@pytest.mark.parametrize(
    ("cut", "code"),
    [
        ("Return a number.", "SS0"),
        ("columns : int\n    The same of `rows` that stand.\n", "parameter columns"),
        ("Returns\n-------\nint\n    The number.", "RT01"),
        ("    The number.\n", "RT03"),
        ("See Also\n--------\ncodiag.factorize : Another function.", "SA01"),
        ("Examples\n--------\n>>> 1 + 1\n2", "EX01"),
    ],
)
def test_what_is_left_out_is_seen(cut, code, monkeypatch):
    text = f"{inspect.getdoc(documented_function)}\n"
    assert cut in text

    def changed(rows, *, columns=3) -> int:
        return rows + columns

    changed.__module__, changed.__doc__ = "codiag", text
    monkeypatch.setattr(codiag, "changed", changed, raising=False)
    assert lacks("codiag.changed", changed, is_method=False) == []
    changed.__doc__ = text.replace(cut, "")
    assert any(wrong.startswith(code) for wrong in lacks("codiag.changed", changed, is_method=False))


@pytest.mark.parametrize(
    ("reference", "there"), [("rows", True), ("codiag.factorize", True), ("codiag.fatcorize", False)]
)
def test_names_that_are_not_there_are_seen(reference, there, monkeypatch):
    monkeypatch.setattr(codiag, "documented_function", documented_function, raising=False)
    assert is_there(reference, "codiag.documented_function", documented_function) is there
