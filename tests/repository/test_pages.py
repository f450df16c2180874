"""The pages of the documentation: their code runs and gives what they say, and every public name has its place."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

import codiag

DOCS = Path(__file__).parents[2] / "docs"
if not (DOCS / "conf.py").exists():
    pytest.skip("the pages lie in the repository", allow_module_level=True)
sys.path.append(str(DOCS))
from snippets import alike, needs, run, says, snippets  # noqa: E402

pytestmark = pytest.mark.slow

ELSEWHERE = {"scale.md"}  # tests/repository/test_scale_page.py
FOLDERS = (".", "start", "applications", "guide", "coming_from", "theory")
PAGES = sorted(path for folder in FOLDERS for path in DOCS.glob(f"{folder}/*.md"))
README = DOCS.parent / "README.md"
SCRIPTS = sorted([*DOCS.glob("extending/*.py"), *DOCS.parent.glob("examples/*/*.py")])
WITH_CODE = [path for path in PAGES if path.name not in ELSEWHERE and snippets(path.read_text())]
PROGRAMS = {"cli", "experiments"}  # run by commands, not called by users
PACKAGES = [name for name in dir(codiag) if inspect.ismodule(getattr(codiag, name)) and name not in PROGRAMS]
MODULES = ["codiag", *(f"codiag.{name}" for name in [*PACKAGES, "drop_in.ajd", "drop_in.crowdkit"])]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_code_runs_and_says_the_truth(page, tmp_path, monkeypatch):
    for package in needs(page.read_text()):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    assert run(page) == []
    if plt := sys.modules.get("matplotlib.pyplot"):
        plt.close("all")


def test_a_page_that_is_wrong_is_seen(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 2\nx + 1  # 4\nprint(x)\n```\n\n```text\n3\n```\n")
    assert len(run(page)) == 2
    page.write_text(page.read_text().replace("# 4", "# 3").replace("3\n```", "2\n```"))
    assert run(page) == []


@pytest.mark.parametrize(
    ("comment", "value", "right"),
    [
        ("0.25: a quarter", 0.254, True),
        ("0.25", 0.27, False),
        ("1e-3", 1.4e-3, True),
        ("(2, 3): its shape", [[0] * 3] * 2, True),
        ("(2, 3)", [0], False),
        ("[[1, 2], [3, 4]]", [[1, 2], [3, 5]], False),
        ("{'a': 1}", {"a": 1}, True),
        ("'a'", "b", False),
        ("True", False, False),
        ("words alone are not judged", 0, True),
    ],
)
def test_values_in_comments_are_judged(comment, value, right):
    assert says(comment, value) is right


def test_texts_agree_but_for_last_digits():
    assert alike("error 0.12 in 3 steps", "error  0.13\nin 3 steps")
    assert not alike("error 0.12 in 3 steps", "error 0.15 in 3 steps")
    assert not alike("error 0.12", "errors 0.12")
    assert alike("359 standard errors", "358 standard errors")
    assert not alike("359 standard errors", "357 standard errors")
    assert not alike("rank 4", "rank 5")


def listed_names():
    """Yield every name that the pages of the API list, in full."""
    for page in sorted((DOCS / "api").glob("*.md")):
        for block in re.findall(r"```\{eval-rst\}\n(.*?)```", page.read_text(), re.DOTALL):
            module = re.search(r"currentmodule:: (\S+)", block)
            if module is not None:
                for name in re.findall(r"^(?:   |\.\. autodata:: )(\w+)$", block, re.MULTILINE):
                    yield f"{module[1]}.{name}"


def public_names(module):
    """Return what users may import from a module; none from a package without ``__all__``."""
    return [*getattr(import_module(module), "__all__", ()), *(PACKAGES if module == "codiag" else ())]


def resolved(name):
    module, own = name.rsplit(".", 1)
    return getattr(import_module(module), own)


def test_the_api_lists_every_public_name():
    """Once, by whichever of its names: `codiag.metrics.factor_error` is `codiag.factor_error`."""
    places = {id(resolved(name)) for name in listed_names()}
    public = [f"{module}.{name}" for module in MODULES for name in public_names(module) if name[0] != "_"]
    assert len(public) > 100
    assert [name for name in public if id(resolved(name)) not in places and not inspect.ismodule(resolved(name))] == []


def test_the_api_lists_public_names_only():
    listed = [name.rsplit(".", 1) for name in listed_names()]
    assert [f"{module}.{name}" for module, name in listed if name not in public_names(module)] == []


@pytest.mark.parametrize("path", [README, *PAGES, *SCRIPTS], ids=lambda path: path.relative_to(DOCS.parent).as_posix())
def test_pages_and_examples_import_public_names_only(path):
    code = [path.read_text()] if path.suffix == ".py" else [snippet.code for snippet in snippets(path.read_text())]
    imports = [node for text in code for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    ours = [node for node in imports if (node.module or "").partition(".")[0] == "codiag"]
    names = [(node.module, alias.name) for node in ours for alias in node.names]
    assert [name for name in names if name[1] not in public_names(name[0])] == []


def test_links_of_the_chart_lead_somewhere():
    chart = (DOCS / "start" / "which_method.svg").read_text()
    links = re.findall(r'href="\.\./([\w/.]+)\.html', chart)
    assert len(links) > 5
    listed = set(listed_names())
    for link in links:
        generated = link.removeprefix("api/generated/")
        assert generated in listed if generated != link else (DOCS / f"{link}.md").exists(), link
