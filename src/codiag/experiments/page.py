"""The page of a reproduction: one HTML file with everything in it."""

from __future__ import annotations

import base64
import html
from collections.abc import Container, Sequence

from codiag.experiments.chapters import Chapter, summary
from codiag.experiments.claims import VERDICTS, Judgement
from codiag.experiments.drawing import labels_of, legend_svg, panel_svg
from codiag.experiments.reports import Figure, Table

STYLE = """
:root { color-scheme: light dark; --ink: #1d2a35; --soft: #55646f; --line: #cfd7dd; --paper: #ffffff; --card: #f6f8f9;
  --link: #00687a; --yes: #1a7f37; --partly: #8a5a00; --no: #b3261e; --open: #55646f; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --soft: #a7b4bf; --line: #3a4652; --paper: #12181e; --card: #1a222a; --link: #62cbd9;
    --yes: #57c274; --partly: #e0ab4a; --no: #ff8a80; --open: #a7b4bf; }
}
* { box-sizing: border-box; }
html { scroll-behavior: smooth; } @media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
body { margin: 0 auto; max-width: 72rem; padding: 1rem; font: 1rem/1.55 system-ui, sans-serif; color: var(--ink);
  background: var(--paper); overflow-wrap: break-word; }
h1 { font-size: 1.6rem; line-height: 1.25; } h2 { font-size: 1.3rem; } h3 { font-size: 1.05rem; }
a { color: var(--link); }
a:focus-visible, summary:focus-visible, [tabindex]:focus-visible { outline: 3px solid var(--link);
  outline-offset: 2px; }
.skip { position: absolute; left: -999px; } .skip:focus { left: 1rem; top: .5rem; background: var(--paper); }
nav ul { display: flex; flex-wrap: wrap; gap: .4rem 1rem; padding: 0; list-style: none; }
section { border-top: 1px solid var(--line); margin-top: 2rem; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .6rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
.scroll { overflow-x: auto; } .scroll td, .scroll th { white-space: nowrap; }
.claims { width: 100%; } .claims td:first-child { text-align: right; }
.badge { font-weight: 700; white-space: nowrap; }
.yes { color: var(--yes); } .partly { color: var(--partly); } .no { color: var(--no); } .open { color: var(--open); }
.why { color: var(--soft); margin: .3rem 0 0; }
.counts { display: flex; flex-wrap: wrap; gap: .5rem 1.5rem; padding: 0; list-style: none; }
.counts b { font-size: 1.5rem; margin-right: .3rem; }
figure { margin: 1rem 0; }
.panels { display: grid; gap: .75rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, 20rem), 1fr)); }
.panels img { width: 100%; max-width: 30rem; height: auto; background: #fff; border-radius: 4px; display: block; }
figcaption, .note { color: var(--soft); font-size: .92rem; }
details { margin: .75rem 0; } summary { cursor: pointer; }
@media (max-width: 48rem) {
  .claims, .claims tbody, .claims tr, .claims td { display: block; width: 100%; }
  .claims thead { position: absolute; left: -999px; }
  .claims tr { border: 1px solid var(--line); border-radius: 6px; background: var(--card); margin: .6rem 0;
    padding: .5rem; }
  .claims td, .claims td:first-child { border: 0; padding: .15rem .3rem; text-align: left; }
  .claims td:first-child::before { content: "Claim "; }
}
"""
CLASS = {words: word for word, words in VERDICTS.items()}


def whole_page(chapters: Sequence[Chapter], judgements: Sequence[Judgement], absent: Sequence[tuple[str, str]]) -> str:
    """Return one self-contained HTML page: nothing is fetched, and no script runs."""
    links = "".join(f'<li><a href="#{c.experiment.name}">{html.escape(c.experiment.title)}</a></li>' for c in chapters)
    missing = "".join(f"<li>{html.escape(name)}: {html.escape(reason)}</li>" for name, reason in absent)
    shown = {chapter.experiment.name for chapter in chapters}
    left_out = f"<section><h2>Not run</h2><ul>{missing}</ul></section>" if missing else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>codiag: the paper, judged claim by claim</title><style>{STYLE}</style></head><body>"
        '<a class="skip" href="#main">Skip to the verdicts</a>'
        "<header><h1>Tensor Factorization via Matrix Factorization, judged claim by claim</h1>"
        "<p>Kuleshov, Chaganty &amp; Liang (AISTATS 2015): what the paper says beside what codiag measures. "
        f'{html.escape(summary(judgements))}</p></header><main id="main">{_summary(judgements, shown)}'
        f'<nav aria-label="Experiments"><h2>Experiments</h2><ul>{links}</ul></nav>'
        f"{''.join(_section(chapter) for chapter in chapters)}{left_out}</main></body></html>"
    )


def _summary(judgements: Sequence[Judgement], shown: Container[str]) -> str:
    counts = "".join(
        f'<li class="{css}"><b>{sum(one.verdict == words for one in judgements)}</b>{words}</li>'
        for css, words in VERDICTS.items()
    )
    rows = "".join(_claim_row(one, linked=one.claim.experiment in shown) for one in judgements)
    head = "".join(f'<th scope="col">{name}</th>' for name in ("#", "the paper says", "verdict", "measured, and why"))
    return (
        '<section aria-labelledby="verdicts"><h2 id="verdicts">Verdicts</h2>'
        f'<ul class="counts">{counts}</ul><table class="claims"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody>'
        "</table></section>"
    )


def _claim_row(judgement: Judgement, *, linked: bool) -> str:
    claim = judgement.claim
    sentence = html.escape(claim.sentence)
    told = f'<a href="#{claim.experiment}">{sentence}</a>' if linked else sentence
    why = f'<p class="why">{html.escape(judgement.reason)}</p>' if judgement.reason else ""
    return (
        f'<tr id="claim-{claim.number}"><td>{claim.number}</td><td>{told}</td>'
        f'<td><span class="badge {CLASS[judgement.verdict]}">{judgement.verdict}</span></td>'
        f"<td>{html.escape(judgement.measured)}{why}</td></tr>"
    )


def _section(chapter: Chapter) -> str:
    experiment, report = chapter.experiment, chapter.report
    figures = "".join(_figure(figure) for figure in report.figures)
    notes = "".join(f'<p class="note">{html.escape(note)}</p>' for note in report.notes)
    rules = "".join(
        f'<li><a href="#claim-{j.claim.number}">Claim {j.claim.number}</a>: <span class="badge {CLASS[j.verdict]}">'
        f"{j.verdict}</span>. {html.escape(j.claim.sentence)} <em>Rule:</em> {html.escape(j.claim.rule)}.</li>"
        for j in chapter.judgements
    )
    return (
        f'<section id="{experiment.name}" aria-labelledby="{experiment.name}-title">'
        f'<h2 id="{experiment.name}-title">{html.escape(experiment.title)}</h2>'
        f"<p>{html.escape(experiment.setup)}</p><ul>{rules}</ul>{figures}{notes}"
        f"<p><code>codiag reproduce {html.escape(experiment.name)}</code>: {html.escape(chapter.extent)}.</p>"
        f"{''.join(_table(table) for table in report.tables)}</section>"
    )


def _figure(figure: Figure) -> str:
    """Lay the panels of a figure out as images of their own, which find their places at any width."""
    legend = "Legend: " + ", ".join(labels_of(figure))
    images = [_image(panel_svg(figure, place), _told(figure, place)) for place in range(len(figure.panels))]
    images.append(_image(legend_svg(figure), legend))
    return (
        f'<figure><div class="panels">{"".join(images)}</div>'
        f"<figcaption><strong>{html.escape(figure.title)}.</strong> {html.escape(figure.story)}</figcaption></figure>"
    )


def _told(figure: Figure, place: int) -> str:
    panel = figure.panels[place]
    names = ", ".join(dict.fromkeys(series.label for series in panel.series))
    return f"{figure.title}, {panel.title}: {panel.y_label} against {panel.x_label or 'method'}, for {names}"


def _image(svg: str, text: str) -> str:
    data = base64.b64encode(svg.encode()).decode()
    return f'<img src="data:image/svg+xml;base64,{data}" alt="{html.escape(text)}" loading="lazy">'


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{html.escape(heading)}</th>' for heading in table.headings)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows)
    label = f'role="region" aria-label="{html.escape(table.title)}" tabindex="0"'
    return (
        f"<details><summary>{html.escape(table.title)}</summary>"
        f'<div class="scroll" {label}><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        "</details>"
    )
