"""The five-minute page as a notebook: it is what the page says, and it runs."""

from __future__ import annotations

import ast
import importlib.util
import json
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
NOTEBOOK = DOCS / "start" / "five_minutes.ipynb"
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not NOTEBOOK.exists(), reason="the notebook lies in the repository")]


def written():
    return json.loads(NOTEBOOK.read_text())


def test_it_is_written_from_the_page():
    spec = importlib.util.spec_from_file_location("notebook", DOCS / "notebook.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert written() == module.notebook(module.PAGE.read_text()), "write it anew: python docs/notebook.py"


def test_its_cells_run_in_order_and_one_shows_a_picture(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": "__main__"}
    shown = [_run("".join(cell["source"]), names) for cell in written()["cells"] if cell["cell_type"] == "code"]
    assert len(shown) > 5
    assert [hasattr(value, "_repr_png_") for value in shown].count(True) == 1


def test_it_holds_no_outputs_and_no_links_into_the_repository():
    for cell in written()["cells"]:
        assert not cell.get("outputs")
        assert "](.." not in "".join(cell["source"])


def _run(code, names):
    """Run a cell, and return the value of its last line, which a notebook shows."""
    *before, last = ast.parse(code).body
    exec(compile(ast.Module(before, []), "cell", "exec"), names)
    if isinstance(last, ast.Expr):
        return eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    exec(compile(ast.Module([last], []), "cell", "exec"), names)
    return None
