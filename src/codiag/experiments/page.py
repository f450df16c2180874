"""The pages of a reproduction: Markdown to read, and one HTML file with everything in it."""

from __future__ import annotations

import base64
import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from codiag.experiments.reports import Report, markdown
from codiag.experiments.runs import Experiment

HOLDS = {"yes": "holds", "no": "does not hold", "partly": "holds in part", "open": "not tested"}
STYLE = """
:root { color-scheme: light dark; --ink: #22303c; --soft: #5b6b78; --line: #c9d1d8; --paper: #ffffff; --ours: #00798c; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --soft: #a7b4bf; --line: #3a4652; --paper: #12181e; --ours: #4fc3d1; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 64rem; padding: 1rem; font: 1rem/1.55 system-ui, sans-serif; color: var(--ink);
  background: var(--paper); }
a { color: var(--ours); }
a:focus-visible, [tabindex]:focus-visible { outline: 3px solid var(--ours); outline-offset: 2px; }
.skip { position: absolute; left: -999px; } .skip:focus { left: 1rem; }
nav ul { display: flex; flex-wrap: wrap; gap: .4rem 1rem; padding: 0; list-style: none; }
section { border-top: 1px solid var(--line); margin-top: 2rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: left; white-space: nowrap; }
figure { margin: 1rem 0; } img { max-width: 100%; height: auto; background: #fff; border-radius: 4px; }
figcaption, .note { color: var(--soft); font-size: .9rem; }
"""


@dataclass(frozen=True)
class Chapter:
    """One experiment that was run: how, what it shows, and its picture."""

    experiment: Experiment
    report: Report
    command: str
    n_trials: int
    n_planned: int
    figure: Path


def chapter_markdown(chapter: Chapter, figure: str) -> str:
    """Return a chapter to read as text, with the figure at this address."""
    experiment, report = chapter.experiment, chapter.report
    findings = markdown(
        ["the paper says", "measured", "verdict"],
        [[finding.claim, finding.measured, HOLDS[finding.holds]] for finding in report.findings],
    )
    parts = [
        f"## {experiment.title}",
        f"`{chapter.command}`: {_extent(chapter)}. Seeds are derived from the places on the axes.",
        f"**The paper:** {experiment.claim}",
        f"**Noise:** {experiment.noise}.",
        findings,
        f"![{experiment.title}]({figure})",
        markdown(report.headings, report.rows),
        *report.notes,
    ]
    return "\n\n".join(parts) + "\n"


def whole_markdown(chapters: Sequence[Chapter], absent: Sequence[tuple[str, str]], folder: Path) -> str:
    """Return all chapters as one text, with figures where they lie under a folder."""
    verdicts = [finding.holds for chapter in chapters for finding in chapter.report.findings]
    plural = {"yes": "hold", "partly": "hold in part", "no": "do not", "open": "were not tested"}
    told = ", ".join(f"{verdicts.count(word)} {words}" for word, words in plural.items() if word in verdicts)
    parts = [
        "# The paper, reproduced",
        "Kuleshov, Chaganty & Liang, *Tensor Factorization via Matrix Factorization*, AISTATS 2015: every experiment, "
        "run by codiag, with what the paper says beside what was measured. Of the claims "
        f"{told}. Written by `codiag reproduce`; `make reproduce` makes such a page in HTML.",
        markdown(
            ["experiment", "claim", "verdict"],
            [[c.experiment.name, f.claim, HOLDS[f.holds]] for c in chapters for f in c.report.findings],
        ),
        *(chapter_markdown(chapter, chapter.figure.relative_to(folder).as_posix()) for chapter in chapters),
        *(f"## {name}\n\nNot run: {reason}." for name, reason in absent),
    ]
    return "\n\n".join(parts)


def whole_page(chapters: Sequence[Chapter], absent: Sequence[tuple[str, str]]) -> str:
    """Return one self-contained HTML page: nothing is fetched, and no script runs."""
    links = "".join(f'<li><a href="#{c.experiment.name}">{html.escape(c.experiment.title)}</a></li>' for c in chapters)
    sections = "".join(_section(chapter) for chapter in chapters)
    missing = "".join(f"<li>{html.escape(name)}: {html.escape(reason)}</li>" for name, reason in absent)
    left_out = f"<section><h2>Not run</h2><ul>{missing}</ul></section>" if missing else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>codiag: the paper, reproduced</title><style>{STYLE}</style></head><body>"
        '<a class="skip" href="#main">Skip to the experiments</a>'
        "<header><h1>Tensor Factorization via Matrix Factorization, reproduced</h1>"
        "<p>Every experiment of Kuleshov, Chaganty &amp; Liang (AISTATS 2015), run by codiag.</p>"
        f'<nav aria-label="Experiments"><ul>{links}</ul></nav></header><main id="main">'
        f"{_summary(chapters)}{sections}{left_out}</main></body></html>"
    )


def _summary(chapters: Sequence[Chapter]) -> str:
    rows = [
        [chapter.experiment.title, finding.claim, HOLDS[finding.holds]]
        for chapter in chapters
        for finding in chapter.report.findings
    ]
    return f"<section><h2>What holds</h2>{_table(['experiment', 'claim', 'verdict'], rows, 'All findings')}</section>"


def _section(chapter: Chapter) -> str:
    experiment, report = chapter.experiment, chapter.report
    picture = base64.b64encode(chapter.figure.read_bytes()).decode()
    caption = f"{experiment.title}: " + "; ".join(panel.title for panel in report.panels)
    findings = [[finding.claim, finding.measured, HOLDS[finding.holds]] for finding in report.findings]
    notes = "".join(f'<p class="note">{html.escape(note)}</p>' for note in report.notes)
    return (
        f'<section id="{experiment.name}" aria-labelledby="{experiment.name}-title">'
        f'<h2 id="{experiment.name}-title">{html.escape(experiment.title)}</h2>'
        f"<p><strong>The paper:</strong> {html.escape(experiment.claim)}</p>"
        f"<p><strong>Noise:</strong> {html.escape(experiment.noise)}.</p>"
        f"<p><code>{html.escape(chapter.command)}</code>: {html.escape(_extent(chapter))}.</p>"
        f"{_table(['the paper says', 'measured', 'verdict'], findings, 'Findings')}"
        f'<figure><img src="data:image/png;base64,{picture}" alt="{html.escape(caption)}">'
        f"<figcaption>{html.escape(caption)}</figcaption></figure>"
        f"{_table(report.headings, report.rows, 'Measurements')}{notes}</section>"
    )


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], name: str) -> str:
    head = "".join(f'<th scope="col">{html.escape(heading)}</th>' for heading in headings)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    label = f'role="region" aria-label="{html.escape(name)}" tabindex="0"'
    return f'<div class="scroll" {label}><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _extent(chapter: Chapter) -> str:
    if chapter.n_trials == chapter.n_planned:
        return f"all {chapter.n_planned} runs"
    share = math.floor(100 * chapter.n_trials / chapter.n_planned)
    return f"{chapter.n_trials} of {chapter.n_planned} runs ({share} %), the first trials of every place first"
