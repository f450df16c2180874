"""What importing costs, and in which direction modules may look."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import codiag

SOURCE = Path(codiag.__file__).parent
HEAVY = ["torch", "dask", "matplotlib", "pandas", "sklearn", "typer", "rich", "pooch"]
# A module may import from its own layer and from those before it.
LAYERS = [
    {"_array", "_reading", "_writing"},
    {"_validation"},
    {"diagonalize", "tensors"},
    {
        "metrics",
        "synthetic",
        "methods",
        "_factorize",
        "_factorization",
        "drop_in",
        "_files",
        "theory",
    },
    {"models", "datasets", "_corpora", "tables"},
    {"plotting"},
    {"experiments"},
    {"cli"},
    {"__main__"},
]
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
APART = {"diagonalize", "tensors"}


def imports():
    """Yield (file, part it belongs to, part it imports) for every import of codiag in codiag."""
    for path in sorted(SOURCE.rglob("*.py")):
        part = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if part == "__init__":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                if name.startswith("codiag."):
                    yield path.name, part, name.split(".")[1]


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
    parts = {path.name.removesuffix(".py") for path in SOURCE.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert parts - {"__init__", "__pycache__", "py.typed"} <= set(RANK)


def test_imports_point_one_way():
    upward = [(file, part, other) for file, part, other in imports() if RANK[other] > RANK[part]]
    across = [(file, part, other) for file, part, other in imports() if {part, other} == APART]
    assert upward == []
    assert across == []
    assert len(list(imports())) > 20  # the walk does see imports


def test_the_library_does_not_print():
    printing = [
        path.name
        for path in SOURCE.rglob("*.py")
        if path.parent.name != "cli"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert printing == []
