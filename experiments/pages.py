"""Write what a folder of records tells: figures, tables, Markdown and the page."""

from __future__ import annotations

from pathlib import Path

from codiag._text import write_text
from experiments.chapters import Chapter, chapters_of, whole_markdown
from experiments.claims import Judgement
from experiments.drawing import draw_figure
from experiments.page import whole_page
from experiments.paper import EXPERIMENTS
from experiments.records import as_csv, locked
from experiments.runs import read


def write_pages(folder: Path) -> list[Judgement]:
    """Write figures, CSV files, REPRODUCTION.md and index.html from all records in a folder; return the judgements.

    One process writes at a time, from the records that are there when it begins, and every file appears whole.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".pages").open("a+b") as file, locked(file):
        chapters, judgements = chapters_of(folder)
        for chapter in chapters:
            _write_chapter(chapter, folder)
        shown = {chapter.experiment.name for chapter in chapters}
        absent = [(one.title, one.missing() or "not run yet") for one in EXPERIMENTS.values() if one.name not in shown]
        write_text(folder / "REPRODUCTION.md", whole_markdown(chapters, judgements))
        write_text(folder / "index.html", whole_page(chapters, judgements, absent))
    return judgements


def _write_chapter(chapter: Chapter, folder: Path) -> None:
    own = folder / chapter.experiment.name
    own.mkdir(exist_ok=True)
    for place, figure in enumerate(chapter.report.figures):
        draw_figure(figure, folder / chapter.figure_name(place))
    write_text(own / "records.csv", as_csv(read(chapter.experiment, folder)))
