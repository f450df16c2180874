"""The page of a reproduction: one HTML file with everything in it."""

from __future__ import annotations

import html
from collections.abc import Container, Sequence

from codiag.reports import STYLE, document, folded, svg_image, table
from experiments.chapters import Chapter, summary
from experiments.claims import VERDICTS, Judgement
from experiments.drawing import labels_of, legend_svg, panel_svg
from experiments.reports import Figure, Table

CLAIMS_STYLE = """
.claims { width: 100%; } .claims td:first-child { text-align: right; }
.why { color: var(--soft); margin: .3rem 0 0; }
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
    header = (
        "<h1>Tensor Factorization via Matrix Factorization, judged claim by claim</h1>"
        "<p>Kuleshov, Chaganty &amp; Liang (AISTATS 2015): what the paper says beside what codiag measures. "
        f"{html.escape(summary(judgements))}</p>"
    )
    main = (
        f'{_summary(judgements, shown)}<nav aria-label="Experiments"><h2>Experiments</h2><ul>{links}</ul></nav>'
        f"{''.join(_section(chapter) for chapter in chapters)}{left_out}"
    )
    title = "codiag: the paper, judged claim by claim"
    return document(title, STYLE + CLAIMS_STYLE, "Skip to the verdicts", header, main)


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
        f"<p><code>python -m experiments run {html.escape(experiment.name)}</code>: {html.escape(chapter.extent)}.</p>"
        f"{''.join(_table(part) for part in report.tables)}</section>"
    )


def _figure(figure: Figure) -> str:
    """Lay the panels of a figure out as images of their own, which find their places at any width."""
    legend = "Legend: " + ", ".join(labels_of(figure))
    images = [svg_image(panel_svg(figure, place), _told(figure, place)) for place in range(len(figure.panels))]
    images.append(svg_image(legend_svg(figure), legend))
    return (
        f'<figure><div class="panels">{"".join(images)}</div>'
        f"<figcaption><strong>{html.escape(figure.title)}.</strong> {html.escape(figure.story)}</figcaption></figure>"
    )


def _told(figure: Figure, place: int) -> str:
    panel = figure.panels[place]
    names = ", ".join(dict.fromkeys(series.label for series in panel.series))
    return f"{figure.title}, {panel.title}: {panel.y_label} against {panel.x_label or 'method'}, for {names}"


def _table(part: Table) -> str:
    return folded(part.title, table(part.title, part.headings, part.rows, words=part.headings))
