"""What is said about the package in several places is the same in all of them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import codiag

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def text(place):
    path = ROOT / place
    if not path.exists():
        pytest.skip(f"{place} lies in the repository")
    return path.read_text()


@pytest.mark.parametrize("place", ["CITATION.cff", "recipe/recipe.yaml"])
def test_the_version_is_that_of_the_package(place):
    assert re.search(r'^ *version: "?([\d.]+)"?$', text(place), re.MULTILINE)[1] == codiag.__version__


def test_the_change_log_begins_with_this_version_or_with_what_comes_next():
    first = re.search(r"^## (\S+)", text("CHANGELOG.md"), re.MULTILINE)[1]
    assert first in ("Unreleased", codiag.__version__)


def test_the_recipe_needs_what_the_package_needs():
    parts = re.search(r"  run:\n(.*?)  run_constraints:.*?\n(.*?)\n\n", text("recipe/recipe.yaml"), re.DOTALL)
    run, constraints = parts.groups()
    needed = dict(re.findall(r"- ([\w-]+) >=([\w.]+)", run))
    assert needed == dict(one.split(">=") for one in PROJECT["dependencies"])
    names = {"torch": "pytorch", "matplotlib": "matplotlib-base", "dask[array,distributed]": "dask"}
    extras = [one.split(">=") for group in PROJECT["optional-dependencies"].values() for one in group]
    assert dict(re.findall(r"- ([\w-]+) >=([\w.]+)", constraints)) == {names.get(a, a): b for a, b in extras}


def test_lowest_versions_are_those_of_a_browser():
    """Pyodide 0.28 has SciPy 1.14.1, scikit-learn 1.7.0 and Python 3.13; the wheel is pure, so that it runs there."""
    lowest = {
        name: tuple(map(int, version.split(".")))
        for name, version in (one.split(">=") for one in PROJECT["dependencies"])
    }
    assert lowest["scipy"] <= (1, 14, 1)
    assert lowest["scikit-learn"] <= (1, 7, 0)
    assert lowest["numpy"] <= (2, 0, 2)
    package = Path(codiag.__file__).parent
    assert {path.suffix for path in package.rglob("*") if path.is_file()} <= {
        ".py",
        ".pyc",
        ".typed",
        ".json",
        ".html",
        ".css",
        ".js",
    }


def test_every_python_that_is_promised_is_tried():
    promised = {name.rpartition(" ")[2] for name in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", name)}
    assert min(promised, key=lambda one: int(one[2:])) == PROJECT["requires-python"].removeprefix(">=")
    tried = re.search(r"python: \[(.*?)\]", text(".github/workflows/tests.yml"))[1]
    assert set(re.findall(r"[\d.]+", tried)) == promised


def test_links_say_where_the_project_is():
    repository = PROJECT["urls"]["Repository"]
    for place in ("SECURITY.md", "CODE_OF_CONDUCT.md", "CITATION.cff", "recipe/recipe.yaml"):
        assert set(re.findall(r"https://github\.com/[\w-]+/[\w-]+", text(place))) == {repository}
