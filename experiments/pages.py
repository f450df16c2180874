"""Write what records tell: pictures, Markdown, verdicts for programs, and the page."""

from __future__ import annotations

import json
from pathlib import Path

from codiag._text import write_text
from experiments.chapters import PICTURES, as_data, chapters_of, picture_of, whole_markdown
from experiments.claims import Judgement
from experiments.drawing import draw_figure
from experiments.page import whole_page
from experiments.paper import EXPERIMENTS
from experiments.records import locked


def write_pages(records: Path, folder: Path, archive: Path | None = None) -> list[Judgement]:
    """Write pictures, REPRODUCTION.md, verdicts.json and index.html from all records; return the judgements.

    One process writes at a time, from the records that are there when it begins, and every file appears whole.
    """
    pictures = folder / PICTURES
    pictures.mkdir(parents=True, exist_ok=True)
    lock = pictures / ".lock"
    with lock.open("a+b") as file, locked(file):
        chapters, judgements = chapters_of(records, archive)
        names = {picture_of(figure) for chapter in chapters for figure in chapter.report.figures}
        for path in pictures.glob("*.png"):
            if f"{PICTURES}/{path.name}" not in names:
                path.unlink()
        for chapter in chapters:
            for figure in chapter.report.figures:
                draw_figure(figure, folder / picture_of(figure))
        shown = {chapter.experiment.name for chapter in chapters}
        absent = [(one.title, one.missing() or "not run yet") for one in EXPERIMENTS.values() if one.name not in shown]
        write_text(folder / "REPRODUCTION.md", whole_markdown(chapters, judgements))
        write_text(pictures / "verdicts.json", json.dumps(as_data(judgements), indent=1) + "\n")
        write_text(pictures / "index.html", whole_page(chapters, judgements, absent))
    lock.unlink(missing_ok=True)
    return judgements
