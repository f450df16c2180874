"""What the pages of the site need beyond Sphinx.

Figures that are drawn by their own code, links that lead out of docs/, links to edit a page, and ``llms.txt``.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import os
import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from site_results import FOLDER as CHAPTERS
from site_results import RESULTS, anchors
from snippets import run

HERE = Path(__file__).parent
ROOT = HERE.parent
FIGURES = HERE / "_figures"
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")
INCLUDE = re.compile(r"^<!-- include: (\S+) -->$", re.MULTILINE)
ON_SITE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/RESULTS.md": "benchmarks.md",
    "docs/extending/README.md": "extending/index.md",
    "examples": "gallery/index.rst",
}
"""Where files of the repository are on the site."""
WIDE = ("REPRODUCTION",)
"""Pages with wide tables, which take the room of the contents on the right; so do the measurements."""


def draw_figures(app: Any) -> None:
    """Run the code of every page that saves figures, in a folder of its own: ``_figures/guide/rank/choice.png``."""
    import matplotlib as mpl

    mpl.use("agg")
    for page in sorted(HERE.rglob("*.md")):
        text = page.read_text()
        folder = FIGURES / page.relative_to(HERE).with_suffix("")
        names = re.findall(r"savefig\(\"(.*?)\"", text)
        drawn = [folder / name for name in names]
        if not names or all(path.exists() and path.stat().st_mtime > page.stat().st_mtime for path in drawn):
            continue
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.chdir(folder):
            faults = run(page)
        if faults:
            raise RuntimeError("\n".join(faults))


def follow_links_out(app: Any, docname: str, source: list[str]) -> None:
    """Put in the files that a page includes, and lead links to files of the repository where these are on the site.

    Of a module of Python its docstring is put in; the title of a file is left out where the page has its own.
    """
    page = Path(app.env.doc2path(docname))
    if page.suffix != ".md":
        return

    def included(found: re.Match[str]) -> str:
        path = (page.parent / found[1]).resolve()
        app.env.note_dependency(str(path))
        if path.suffix == ".py":
            return f"```{{eval-rst}}\n{ast.get_docstring(ast.parse(path.read_text()))}\n```"
        text = re.sub(r"\A# .*\n", "", path.read_text()) if source[0].startswith("# ") else path.read_text()
        return moved(text, path.parent, page.parent, app.config.repository)

    origin = RESULTS.parent if page.parent == CHAPTERS else page.parent
    if page.parent == CHAPTERS or docname in WIDE:
        source[0] = f"---\nhtml_theme.sidebar_secondary.remove: true\n---\n\n{source[0]}"
    source[0] = INCLUDE.sub(included, moved(source[0], origin, page.parent, app.config.repository))


def moved(text: str, origin: Path, folder: Path, repository: str) -> str:
    """Return text whose links start from a folder of the site, not from the one that it was written for."""

    def link(found: re.Match[str]) -> str:
        image, words, path, anchor = found.groups(default="")
        target = (origin / path).resolve()
        if not target.is_relative_to(ROOT) or not target.exists():
            return found[0]
        place = target.relative_to(ROOT).as_posix()
        if not image and place in ("benchmarks/RESULTS.md", "docs/benchmarks.md") and anchor[1:] in _measurements():
            target = CHAPTERS / f"{_measurements()[anchor[1:]]}.md"
        elif not image and place in ON_SITE:
            target = HERE / ON_SITE[place]
        elif not image and re.fullmatch(r"docs/extending/\w+\.py", place):
            target = target.with_suffix(".md")
        elif not image and place.startswith("examples/"):
            target = HERE / "gallery" / Path(place).relative_to("examples").with_suffix(".rst")
        elif not image and not place.startswith("docs/"):
            return f"[{words}]({repository}/blob/main/{place}{anchor})"
        return f"{image}[{words}]({Path(os.path.relpath(target, folder)).as_posix()}{anchor})"

    return LINK.sub(link, text)


@cache
def _measurements() -> dict[str, str]:
    return anchors(RESULTS.read_text())


def set_edit_address(app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Tell the template which file of the repository a page is made of, if it is made of one."""
    place = source_of(pagename)
    context["edit_address"] = f"{app.config.repository}/edit/main/{place}" if place else ""


def source_of(pagename: str) -> str | None:
    """Return the file of the repository that a page is made of: Markdown, a script, or the module of a public name."""
    folder, _, name = pagename.partition("/")
    if name.startswith("generated/codiag."):
        return _module_of(name.removeprefix("generated/"))
    if folder == "benchmarks" and name:
        return None
    if folder == "gallery":
        return f"examples/{name}.py" if (ROOT / "examples" / f"{name}.py").exists() else None
    place = {on_site.rpartition(".")[0]: path for path, on_site in ON_SITE.items()}.get(pagename, f"docs/{pagename}.md")
    if pagename == "index" or not (ROOT / place).is_file():
        place = f"docs/{pagename}.md"
    return place if (ROOT / place).is_file() else None


def _module_of(name: str) -> str | None:
    module, _, own = name.rpartition(".")
    found = inspect.unwrap(getattr(import_module(module), own))
    path = inspect.getsourcefile(found) if inspect.isclass(found) or inspect.isfunction(found) else None
    return Path(path).resolve().relative_to(ROOT).as_posix() if path and Path(path).is_relative_to(ROOT) else None


OVERVIEW = ("start", "applications", "guide", "coming_from", "theory", "api", "extending")
"""Folders of pages that ``llms.txt`` lists."""


def write_overview(app: Any, failure: Exception | None) -> None:
    """Write ``llms.txt``, a list of all pages with their titles for programs that read them: https://llmstxt.org."""
    if failure is not None or app.builder.name != "html":
        return
    lines = ["# codiag", "", f"> {' '.join(app.config.summary.split())}", ""]
    for folder in OVERVIEW:
        pages = sorted(name for name in app.env.found_docs if re.fullmatch(rf"{folder}/(?!index$)[^/]+", name))
        titles = [f"- [{app.env.titles[name].astext()}]({app.config.html_baseurl}{name}.html)" for name in pages]
        lines += [f"## {app.env.titles[f'{folder}/index'].astext()}", "", *titles, ""]
    (Path(app.outdir) / "llms.txt").write_text("\n".join(lines))
