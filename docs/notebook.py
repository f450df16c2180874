"""The five-minute page as a notebook: ``python docs/notebook.py`` writes it anew from the page."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent / "start" / "five_minutes.md"
SITE = "https://codiag.github.io/codiag/"
CODE = re.compile(r"^```python\n(.*?)^```$(?:\s+^```text\n.*?^```$)?", re.DOTALL | re.MULTILINE)
"""A block of code, and what it prints, which a notebook shows by itself."""


def notebook(text: str) -> dict[str, Any]:
    """Return the notebook of a page: its blocks of code are cells, without outputs, and so is the text between them."""
    parts = CODE.split(text)
    sources = [(kind, part.strip()) for part, kind in zip(parts, ("markdown", "code") * len(parts), strict=False)]
    cells = [_cell(kind, _shown(part) if kind == "code" else _linked(part)) for kind, part in sources if part]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    for place, cell in enumerate(cells):
        cell["id"] = f"cell-{place}"
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def _cell(kind: str, source: str) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "metadata": {}, "source": source.splitlines(keepends=True)}
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def _shown(code: str) -> str:
    """Let a cell that makes a figure end with it, which is how notebooks show one."""
    made = re.findall(r"^(\w+) = .*\.plot\(\)$", code, re.MULTILINE)
    return "\n".join([code, *made[-1:]])


def _linked(text: str) -> str:
    """Make links lead to the site, and leave out pictures, which the cells draw."""
    text = re.sub(r"^!\[.*?\]\(.*?\)\n*", "", text, flags=re.MULTILINE)
    text = re.sub(r"^<!--.*?-->\n*|^.*\{download\}.*\n*", "", text, flags=re.MULTILINE)
    text = re.sub(r"\]\(#([\w-]+)\)", rf"]({SITE}start/five_minutes.html#\1)", text)
    return re.sub(r"\[(.*?)\]\((?!https?:)([^)#]+?)(?:\.md)?\)", _link, text).strip()


def _link(found: re.Match[str]) -> str:
    """Return a link to a page of the site, with the title of that page where the link has no text of its own."""
    place = (PAGE.parent / found[2]).resolve().relative_to(PAGE.parents[1].resolve())
    text = found[1] or (PAGE.parents[1] / place.with_suffix(".md")).read_text().partition("# ")[2].partition("\n")[0]
    return f"[{text}]({SITE}{place.as_posix()}.html)"


def main() -> None:
    """Write the notebook beside the page."""
    text = json.dumps(notebook(PAGE.read_text()), indent=1, ensure_ascii=False)
    PAGE.with_suffix(".ipynb").write_text(text + "\n")


if __name__ == "__main__":
    main()
