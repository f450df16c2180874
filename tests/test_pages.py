"""The pages of the documentation: their code runs, and gives what they say; every public name has a place in the API."""

from __future__ import annotations

import importlib.util
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
pytestmark = pytest.mark.skipif(not (DOCS / "conf.py").exists(), reason="the pages lie in the repository")
PAGES = sorted(
    path for folder in ("start", "guide", "coming_from", "theory", ".") for path in (DOCS / folder).glob("*.md")
)
ELSEWHERE = {"scale.md"}  # has a test of its own


def load(name):
    """Import a module of docs/."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


snippets = load("snippets") if (DOCS / "snippets.py").exists() else None
WITH_CODE = [path for path in PAGES if path.name not in ELSEWHERE and snippets.snippets(path.read_text())]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_code_runs_and_says_the_truth(page, tmp_path, monkeypatch):
    for package in snippets.needs(page.read_text()):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    assert snippets.run(page) == []
