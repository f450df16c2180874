"""What importing costs, and in which direction modules may look."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import codiag

SOURCE = Path(codiag.__file__).parent
HEAVY = [
    "torch",
    "jax",
    "dask",
    "distributed",
    "xarray",
    "zarr",
    "h5py",
    "matplotlib",
    "pandas",
    "sklearn",
    "typer",
    "rich",
    "pooch",
]
# A module may import from its own layer and from those before it. A part of a package may have a layer of its own.
LAYERS = [
    {"_array", "_chunked_files", "_keywords", "_named", "_parts", "_scattered", "_reading", "_threads", "_writing"},
    {"_html", "_frames", "_text_rows"},
    {"_validation"},
    {"_parallel"},
    {"diagonalize", "tensors"},
    {"constraints"},
    {"_missing", "_entries", "_chunked_entries", "_symmetry", "_labels"},
    {"_labelled"},
    {"_problem", "_estimate"},
    {"methods._directions", "methods._reduction"},
    {"methods._listed_range"},
    {"methods.least_squares"},
    {"methods"},
    {"_factorization", "_fit_files", "_exports", "_summary"},
    {"theory", "metrics"},
    {"_result", "_factorize", "_each", "_transform"},
    {"selection"},
    {""},  # codiag itself: what it exports
    {"models", "drop_in", "synthetic", "datasets", "_corpora", "_files", "_gold_files", "_graph_files"},
    {"_vote_files"},
    {"tables"},
    {"plotting"},
    {"reports"},
    {"experiments"},
    {"cli"},
    {"__main__"},
]
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
APART = [{"diagonalize", "tensors"}, *({"_factorization", name} for name in RANK if name.startswith("methods"))]
LAZY = {  # what is computed where it is asked for
    ("_factorization", "theory"),
    ("_factorization", "_transform"),
    ("_factorization", "plotting"),
    ("_factorize", "selection"),
    ("_fit_files", "theory"),
    ("selection", "plotting"),
}
PROGRAMS = {"cli", "experiments"}  # run by commands: their modules are no engine


class Import(NamedTuple):
    file: str
    part: str
    other: str
    lazy: bool  # inside a function, or for the checker of types alone


def module_of(path):
    """Return the name of a module after ``codiag.``; that of codiag itself is empty."""
    return ".".join(part for part in path.relative_to(SOURCE).with_suffix("").parts if part != "__init__")


def part_of(module):
    """Return the part of codiag with a layer that a module belongs to."""
    while module not in RANK and module:
        module = module.rpartition(".")[0]
    return module


def imports():
    """Yield every import of codiag in codiag."""
    for path in sorted(SOURCE.rglob("*.py")):
        yield from imports_in(ast.parse(path.read_text()), path.name, part_of(module_of(path)))


def imports_in(node, file, part, lazy=False):
    """Yield the imports of codiag below a node of a syntax tree."""
    for child in ast.iter_child_nodes(node):
        targets = []
        if isinstance(child, ast.ImportFrom) and child.module:  # a name may be a module, too
            targets = [f"{child.module}.{alias.name}" for alias in child.names]
        elif isinstance(child, ast.Import):
            targets = [alias.name for alias in child.names]
        for target in targets:
            if target == "codiag" or target.startswith("codiag."):
                yield Import(file, part, part_of(target.removeprefix("codiag").removeprefix(".")), lazy)
        later = isinstance(child, ast.FunctionDef) or (
            isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING"
        )
        yield from imports_in(child, file, part, lazy or later)


@pytest.mark.parametrize("module", ["codiag", "codiag.diagonalize", "codiag.synthetic", "codiag.metrics"])
def test_import_loads_nothing_heavy(module):
    code = f"import sys, {module}; print([name for name in {HEAVY} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert loaded == "[]"


def test_parts_are_there_once_named():
    code = "import codiag; print(codiag.models.DawidSkene.__name__, codiag.datasets.available('text'))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["DawidSkene", "['kos']"]
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = codiag.nothing


def test_every_part_has_a_layer():
    parts = {module_of(path).partition(".")[0] for path in SOURCE.rglob("*.py")}
    assert parts - set(RANK) == set()


def test_everything_public_is_listed_and_there():
    public = {path.stem for path in SOURCE.iterdir() if path.stem[0] != "_" and (path.suffix == ".py" or path.is_dir())}
    assert set(dir(codiag)) == public | set(codiag.__all__)
    for name in dir(codiag):
        found = getattr(codiag, name)
        assert all(hasattr(found, inner) for inner in getattr(found, "__all__", ()))


def test_engine_modules_are_private():
    modules = [module_of(path).split(".") for path in SOURCE.rglob("*.py") if path.name != "__init__.py"]
    assert {".".join(names) for names in modules if names[-1][0] != "_" and names[0] not in PROGRAMS} == {"tables"}


def test_no_module_is_named_like_a_function():
    packages = [codiag, *(getattr(codiag, name) for name in dir(codiag) if inspect.ismodule(getattr(codiag, name)))]
    exported = [getattr(package, name) for package in packages for name in getattr(package, "__all__", ())]
    functions = {found.__name__ for found in exported if inspect.isfunction(found)}
    modules = [module_of(path).split(".") for path in SOURCE.rglob("*.py")]
    parts = {part for names in modules for part in names if names[0] not in PROGRAMS}
    assert len(functions) > 20
    assert functions & parts == set()


def test_imports_point_one_way():
    found = set(imports())
    upward = {one for one in found if RANK[one.other] > RANK[one.part]}
    across = {one for one in found if {one.part, one.other} in APART}
    assert {one for one in upward | across if not one.lazy} == set()
    assert {(one.part, one.other) for one in upward | across if one.lazy} == LAZY
    assert len(found) > 100  # the walk does see imports


def test_imports_in_functions_are_lazy_and_others_are_not():
    code = """
from codiag.methods import least_squares
if TYPE_CHECKING:
    import codiag.theory
class Result:
    from codiag import tables
    def diagnose(self):
        if self:
            from codiag.theory._diagnosis import diagnose
"""
    assert list(imports_in(ast.parse(code), "file", "part")) == [
        Import("file", "part", "methods.least_squares", False),
        Import("file", "part", "theory", True),
        Import("file", "part", "tables", False),
        Import("file", "part", "theory", True),
    ]


def named(words):
    """Return the files of codiag, outside the command line, that use one of these names."""
    return {
        module_of(path)
        for path in SOURCE.rglob("*.py")
        if path.parent.name != "cli"
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.Attribute) and node.attr in words) or (isinstance(node, ast.Name) and node.id in words)
    }


def test_the_library_does_not_print():
    assert named({"print"}) == set()
