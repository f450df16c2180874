"""The measurements, benchmarks/RESULTS.md, as one page for each chapter: docs/benchmarks/, written with the site.

Scripts of ``benchmarks/`` add sections to the one file. Here each goes to the first chapter whose words are in its
title, or to the last.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils.nodes import make_id

HERE = Path(__file__).parent
RESULTS = HERE.parent / "benchmarks" / "RESULTS.md"
FOLDER = HERE / "benchmarks"
CHAPTERS = {
    "compatibility": ("Tests of other libraries", "tests of"),
    "losses": ("Counts and other losses", "^losses|poisson|huber|bernoulli"),
    "crowds": ("Crowds and juries", "vote|worker|jury|juries|copies|copy|crowd|majority|one default"),
    "errors": ("Error bars", "standard errors|error bars|weights|intervals|not white"),
    "rank": ("Choosing the rank", "choice of the rank|choosing the rank|ranks of|bad entries"),
    "diagonalization": ("Joint diagonalization", "^speed|^joint"),
    "models": (
        "Topics, mixtures, chains, communities and blind sources",
        "topic|mixture|chains|memberships|schools|graph|sobi|jade|blind|connectivity",
    ),
    "missing": ("Missing entries and constraints", "missing|constrain|observed entries|il-2"),
    "scale": (
        "Time, memory and size",
        "growth|reads|cost|zarr|sparse|million|accelerator|^import|memory|^scale|gpu|device",
    ),
    "hard": (
        "Many optima, strong noise, data that fits no model",
        "many optima|many components|no model|real tensors|overcomplete|small tensors|do not fit|than the data|"
        "recordings|dependent",
    ),
    "components": (
        "Components, beside other libraries",
        "limit|orthogonal|local optima|orders|parafac2|coupled|profiles",
    ),
    "others": ("Other measurements", ""),
}
"""Names of pages: their titles, and the words of sections that belong to them."""
SECTION = re.compile(r"(?m)^(?=## )")


def chapter_of(title: str) -> str:
    """Return the chapter that a section belongs to, by its title."""
    return next(name for name, (_, words) in CHAPTERS.items() if re.search(words, title, re.IGNORECASE))


def chapters(text: str) -> dict[str, list[str]]:
    """Return the sections of every chapter that has some, in their order; sections without a title get one."""
    titled = re.sub(r"(?m)^<!-- (?!end of )(.+?) -->\n(?!#)", lambda mark: f"## {mark[1].capitalize()}\n", text)
    found: dict[str, list[str]] = {name: [] for name in CHAPTERS}
    for section in SECTION.split(re.sub(r"(?m)^<!--.*?-->\n?", "", titled))[1:]:
        found[chapter_of(title_of(section))].append(section.strip())
    return {name: sections for name, sections in found.items() if sections}


def title_of(section: str) -> str:
    """Return the title of a section, which is its first line."""
    return section.partition("\n")[0].removeprefix("## ")


def anchors(text: str) -> dict[str, str]:
    """Return the chapter of every heading, by its anchor."""
    return {
        make_id(heading): name
        for name, sections in chapters(text).items()
        for section in sections
        for heading in re.findall(r"(?m)^##+ (.+)$", section)
    }


def write_chapters(app: Any) -> None:
    """Write a page for each chapter, where it has changed, and remove pages of chapters that are gone."""
    FOLDER.mkdir(exist_ok=True)
    found = chapters(RESULTS.read_text())
    for name, sections in found.items():
        contents = "\n".join(f"- [{title_of(one)}](#{make_id(title_of(one))})" for one in sections)
        page = "\n\n".join([f"# {CHAPTERS[name][0]}", contents, *sections]) + "\n"
        path = FOLDER / f"{name}.md"
        if not path.exists() or path.read_text() != page:
            path.write_text(page)
    for path in FOLDER.glob("*.md"):
        if path.stem not in found:
            path.unlink()
