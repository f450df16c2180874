"""What the pages of the site need beyond Sphinx: figures drawn by their own code, and links that lead out of docs/."""

from __future__ import annotations

import ast
import contextlib
import os
import re
from pathlib import Path
from typing import Any

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

    Of a module of Python its docstring is put in.
    """
    page = Path(app.env.doc2path(docname))
    if page.suffix != ".md":
        return

    def included(found: re.Match[str]) -> str:
        path = (page.parent / found[1]).resolve()
        app.env.note_dependency(str(path))
        if path.suffix == ".py":
            return f"```{{eval-rst}}\n{ast.get_docstring(ast.parse(path.read_text()))}\n```"
        return moved(path.read_text(), path.parent, page.parent, app.config.repository)

    source[0] = INCLUDE.sub(included, moved(source[0], page.parent, page.parent, app.config.repository))


def moved(text: str, origin: Path, folder: Path, repository: str) -> str:
    """Return text whose links start from a folder of the site, not from the one that it was written for."""

    def link(found: re.Match[str]) -> str:
        image, words, path, anchor = found.groups(default="")
        target = (origin / path).resolve()
        if not target.is_relative_to(ROOT) or not target.exists():
            return found[0]
        place = target.relative_to(ROOT).as_posix()
        if not image and place in ON_SITE:
            target = HERE / ON_SITE[place]
        elif not image and re.fullmatch(r"docs/extending/\w+\.py", place):
            target = target.with_suffix(".md")
        elif not image and place.startswith("examples/"):
            target = HERE / "gallery" / Path(place).relative_to("examples").with_suffix(".rst")
        elif not image and not place.startswith("docs/"):
            return f"[{words}]({repository}/blob/main/{place}{anchor})"
        return f"{image}[{words}]({Path(os.path.relpath(target, folder)).as_posix()}{anchor})"

    return LINK.sub(link, text)
