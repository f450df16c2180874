"""What importing costs, which packages there are, and in which direction they may look."""

from __future__ import annotations

import ast
import functools
import inspect
import pickle
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import codiag

SOURCE = Path(codiag.__file__).parent
GUIDE = Path(__file__).parents[2] / "CONTRIBUTING.md"
HEAVY = [
    "torch",
    "jax",
    "dask",
    "distributed",
    "xarray",
    "zarr",
    "h5py",
    "matplotlib",
    "narwhals",
    "pandas",
    "sklearn",
    "typer",
    "rich",
    "pooch",
]
ENTRIES = {"_factorize", "_factorize_each"}
ROOT = {"__init__", "__main__", *ENTRIES}
LAZY = {  # imported inside functions, because the result of a fit offers what is built above it
    ("_factorize", "selection"),
    ("_parafac2", "plotting"),
    ("result", "plotting"),
    ("result", "selection"),
    ("result", "diagnosis"),
    ("result", "inference"),
    ("selection", "plotting"),
}
MOST_FILES = 20
PROGRAMS = {"cli"}  # run by commands: their modules have plain names


def packages():
    """Return the packages in their order, as CONTRIBUTING.md lists them."""
    block = GUIDE.read_text().split("<!-- packages -->")[1].split("```")[1]
    names = [name for line in block.splitlines()[1:] for name in line.split("#")[0].split()]
    assert len(names) == len(set(names))
    return names


class Import(NamedTuple):
    module: str  # that imports, after "codiag."; empty for codiag itself
    target: str  # the module that is imported
    lazy: bool  # inside a function, or for type checkers alone


def module_of(path):
    """Return the name of a module after ``codiag.``; that of codiag itself is empty."""
    return ".".join(part for part in path.relative_to(SOURCE).with_suffix("").parts if part != "__init__")


MODULES = {module_of(path): path for path in SOURCE.rglob("*.py")}
PACKAGES = {name for name, path in MODULES.items() if path.name == "__init__.py"}


def package_of(module):
    """Return the package, at the first level, that a module belongs to."""
    return module.partition(".")[0]


@functools.cache
def imports():
    """Return every import of codiag in codiag."""
    return [one for module, path in MODULES.items() for one in imports_in(ast.parse(path.read_text()), module)]


def imports_in(node, module, lazy=False):
    """Yield the imports of codiag below a node of a syntax tree."""
    for child in ast.iter_child_nodes(node):
        names = []
        if isinstance(child, ast.ImportFrom) and child.module:  # a name may be a module, too
            names = [f"{child.module}.{alias.name}" for alias in child.names]
        elif isinstance(child, ast.Import):
            names = [alias.name for alias in child.names]
        for name in names:
            if name == "codiag" or name.startswith("codiag."):
                target = name.removeprefix("codiag").removeprefix(".")
                while target not in MODULES:
                    target = target.rpartition(".")[0]
                yield Import(module, target, lazy)
        later = isinstance(child, ast.FunctionDef) or (
            isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING"
        )
        yield from imports_in(child, module, lazy or later)


SLOW_PARTS = ["scipy.stats", "scipy.optimize", "scipy.interpolate", "scipy.signal", "scipy.spatial"]
NUMERICAL = ["scipy", "array_api_compat", "threadpoolctl", "codiag.tensors", "codiag.models", "codiag.io"]


STATEMENTS = {  # each after those before it, so that the commands come early
    "import codiag; dir(codiag); codiag.__version__": [*HEAVY, *NUMERICAL, "numpy"],
    "import codiag.cli": [*(name for name in HEAVY if name not in ("typer", "rich")), *NUMERICAL],
    "from codiag import factorize, joint_diagonalize, choose_rank": [*HEAVY, *SLOW_PARTS],
    "import codiag.diagonalize, codiag.metrics": [*HEAVY, *SLOW_PARTS],
    "import codiag.synthetic": HEAVY,
    "import codiag.plotting, codiag.reports": ["matplotlib", "jinja2"],
}
IN_ONE_INTERPRETER = """
import sys
for statement, unwanted in STATEMENTS.items():
    before = set(sys.modules)
    exec(statement)
    print(statement, [name for name in unwanted if name in sys.modules and name not in before])
"""


def test_imports_load_nothing_heavy():
    code = f"STATEMENTS = {STATEMENTS!r}{IN_ONE_INTERPRETER}"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == [f"{statement} []" for statement in STATEMENTS]


def test_names_are_there_once_used():
    """The names that type checkers see are those that are imported when used, and all of them are listed."""
    tree = ast.parse(Path(codiag.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name: node.module for node in block.body for alias in node.names}
    assert seen.keys() | {"__version__"} == set(codiag.__all__)
    assert {name: f"codiag.{home}" for name, home in codiag._HOMES.items()} == seen
    assert set(codiag.__all__) <= set(dir(codiag))
    names = {}
    exec("from codiag import *", names)
    assert pickle.loads(pickle.dumps(names["factorize"])) is codiag.factorize


def test_parts_are_there_once_named():
    assert codiag.models.DawidSkene.__name__ == "DawidSkene"
    with pytest.raises(AttributeError, match="nothing"):
        _ = codiag.nothing


def test_everything_public_is_there():
    for name in dir(codiag):
        member = getattr(codiag, name)
        assert all(hasattr(member, inner) for inner in getattr(member, "__all__", ()))


def test_packages_list_what_is_public_alone():
    for name in ("reports", "inference", "diagnosis", "models", "drop_in", "tensors", "synthetic"):
        package = getattr(codiag, name)
        listed = {each for each in dir(package) if not inspect.ismodule(getattr(package, each))}
        assert listed == set(package.__all__)


@pytest.mark.skipif(not GUIDE.exists(), reason="the guide for contributors is not part of this distribution")
class TestPackages:
    """What CONTRIBUTING.md says of packages."""

    def test_the_list_names_every_package(self):
        assert {package_of(module) for module in MODULES} - {"", "__main__"} == set(packages())

    def test_imports_point_to_packages_before(self):
        rank = {package: place for place, package in enumerate(packages())} | {
            "": len(packages()),
            "__main__": len(packages()),
        }
        upward = [
            one
            for one in imports()
            if package_of(one.target) != package_of(one.module)
            and rank[package_of(one.target)] > rank[package_of(one.module)]
            and one.target  # codiag itself may be imported by whoever needs what users see
        ]
        assert [one for one in upward if not one.lazy] == []
        assert {(package_of(one.module), package_of(one.target)) for one in upward} == LAZY


def test_private_modules_are_imported_in_their_package_only():
    crossing = {
        (one.module, one.target)
        for one in imports()
        if package_of(one.module) != package_of(one.target)
        and one.target not in PACKAGES
        and one.target.rpartition(".")[2][0] == "_"
    }
    assert {pair for pair in crossing if pair[0] not in {"", *ENTRIES}} == set()
    assert {target for module, target in crossing if module in {"", *ENTRIES}} <= ENTRIES  # one of them uses the other


def test_nobody_else_imports_private_modules():
    """Tests, benchmarks and experiments import only names of the packages, too."""
    top = Path(__file__).parents[2]
    crossing = set()
    for folder in ("tests", "benchmarks", "experiments", "examples", "docs"):
        for path in (top / folder).rglob("*.py"):
            found = imports_in(ast.parse(path.read_text()), folder)
            crossing |= {
                (path.relative_to(top).as_posix(), one.target)
                for one in found
                if one.target not in PACKAGES and one.target.rpartition(".")[2][0] == "_"
            }
    assert crossing == set()


def test_the_root_holds_entries_only():
    assert {path.stem for path in SOURCE.glob("*.py")} == ROOT


def test_packages_are_small():
    counts = {folder: len(list(folder.glob("*.py"))) for folder in {path.parent for path in MODULES.values()}}
    assert max(counts.values()) <= MOST_FILES


def test_engine_modules_are_private():
    plain = {name for name in MODULES if name not in PACKAGES and name.rpartition(".")[2][0] != "_"}
    assert {package_of(name) for name in plain} <= PROGRAMS


def test_no_function_is_hidden_by_a_module_of_its_package():
    packages = [codiag, *(getattr(codiag, name) for name in dir(codiag) if inspect.ismodule(getattr(codiag, name)))]
    functions = {
        f"{package.__name__}.{name}".removeprefix("codiag.")
        for package in packages
        for name in getattr(package, "__all__", ())
        if inspect.isfunction(getattr(package, name))
    }
    assert len(functions) > 20
    assert functions & set(MODULES) == set()


def test_imports_in_functions_are_lazy_and_others_are_not():
    code = """
from codiag import least_squares
if TYPE_CHECKING:
    import codiag.diagnosis
class Result:
    from codiag.tensors._base import Tensor
    def diagnose(self):
        if self:
            from codiag.diagnosis import diagnose
"""
    assert list(imports_in(ast.parse(code), "here")) == [
        Import("here", "least_squares", False),
        Import("here", "diagnosis", True),
        Import("here", "tensors._base", False),
        Import("here", "diagnosis", True),
    ]


def named(words):
    """Return the files of codiag, outside the command line, that use one of these names."""
    return {
        name
        for name, path in MODULES.items()
        if package_of(name) != "cli"
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.Attribute) and node.attr in words) or (isinstance(node, ast.Name) and node.id in words)
    }


def test_the_library_does_not_print():
    assert named({"print"}) == {"drop_in._parafac2", "drop_in._request"}  # as TensorLy does if verbose
