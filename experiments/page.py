"""The page of a reproduction: one HTML file with everything in it."""

from __future__ import annotations

import html
from collections.abc import Container, Sequence

from experiments.chapters import KINDS, RULES, Chapter, kind_of, probability_of, summary, why
from experiments.claims import Judgement
from experiments.drawing import labels_of, legend_svg, panel_svg
from experiments.markup import STYLE, document, folded, svg_image, table
from experiments.messages import ERRATA, PLACES
from experiments.reports import Figure, Table

CLAIMS_STYLE = """
.claims, .errata { width: 100%; } .claims td:first-child { text-align: right; }
.why { color: var(--soft); margin: .3rem 0 0; }
.message { border-left: 4px solid var(--link); padding: .1rem .8rem; background: var(--card); }
@media (max-width: 48rem) {
  .claims, .claims tbody, .claims tr, .claims td, .errata, .errata tbody, .errata tr, .errata td {
    display: block; width: 100%; }
  .claims thead, .errata thead { position: absolute; left: -999px; }
  .claims tr, .errata tr { border: 1px solid var(--line); border-radius: 6px; background: var(--card); margin: .6rem 0;
    padding: .5rem; }
  .claims td, .claims td:first-child, .errata td { border: 0; padding: .15rem .3rem; text-align: left; }
  .claims td:first-child::before { content: "Claim "; }
  .claims td:nth-child(4)::before { content: "Probability of the verdict: "; }
}
"""
CLASS = dict(zip(KINDS, ("yes", "partly", "no", "open", "open"), strict=True))


def whole_page(chapters: Sequence[Chapter], judgements: Sequence[Judgement], absent: Sequence[tuple[str, str]]) -> str:
    """Return one self-contained HTML page: nothing is fetched, and no script runs."""
    missing = "".join(f"<li>{html.escape(name)}: {html.escape(reason)}</li>" for name, reason in absent)
    shown = {chapter.experiment.name for chapter in chapters}
    left_out = f"<section><h2>Not run</h2><ul>{missing}</ul></section>" if missing else ""
    header = (
        "<h1>Tensor Factorization via Matrix Factorization, judged claim by claim</h1>"
        "<p>Kuleshov, Chaganty &amp; Liang (AISTATS 2015): what the paper says beside what codiag measures. "
        f"{html.escape(summary([kind_of(one) for one in judgements]))}</p>"
    )
    chosen = {name for words, name in PLACES if words.startswith(("Figure", "Table"))}
    first = "".join(_section(chapter) for chapter in chapters if chapter.experiment.name in chosen)
    others = "".join(_section(chapter) for chapter in chapters if chapter.experiment.name not in chosen)
    main = f"{_contents(shown)}{first}{_verdicts(judgements, shown)}{others}{_errata()}{left_out}"
    title = "codiag: the paper, judged claim by claim"
    return document(title, STYLE + CLAIMS_STYLE, "Skip to the figures", header, main)


def _contents(shown: Container[str]) -> str:
    """Return links from the paper's figures and tables to chapters."""
    links = "".join(f'<li><a href="#{name}">{html.escape(words)}</a></li>' for words, name in PLACES if name in shown)
    return (
        '<nav aria-label="Figures and tables of the paper"><h2>The paper\'s figures and tables</h2>'
        f'<ul>{links}<li><a href="#verdicts">Verdicts on all claims</a></li>'
        '<li><a href="#errata">Errors of the paper</a></li></ul></nav>'
    )


def _verdicts(judgements: Sequence[Judgement], shown: Container[str]) -> str:
    kinds = [kind_of(one) for one in judgements]
    counts = "".join(f'<li class="{CLASS[kind]}"><b>{kinds.count(kind)}</b>{kind}</li>' for kind in KINDS)
    rows = "".join(_claim_row(one, linked=one.claim.experiment in shown) for one in judgements)
    names = ("#", "the paper says", "verdict", "probability", "measured, and why")
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    return (
        '<section aria-labelledby="verdicts"><h2 id="verdicts">Verdicts</h2>'
        "<p>A verdict follows a rule written before the runs; "
        f'<a href="{RULES}">experiments/claims.md</a> has all of them, and names what was changed after runs or after '
        "an audit. Its probability is that of the same verdict with other "
        "draws, by a bootstrap over trials or seeds; below 0.9 the claim is undecided.</p>"
        f'<ul class="counts">{counts}</ul><table class="claims"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody>'
        "</table></section>"
    )


def _claim_row(judgement: Judgement, *, linked: bool) -> str:
    claim = judgement.claim
    sentence = html.escape(claim.sentence)
    told = f'<a href="#{claim.experiment}">{sentence}</a>' if linked else sentence
    reason = f'<p class="why">{html.escape(why(judgement))}</p>' if why(judgement) else ""
    return (
        f'<tr id="claim-{claim.number}"><td>{claim.number}</td><td>{told}</td><td>{_badge(judgement)}</td>'
        f"<td>{probability_of(judgement)}</td><td>{html.escape(judgement.measured)}{reason}</td></tr>"
    )


def _badge(judgement: Judgement) -> str:
    return f'<span class="badge {CLASS[kind_of(judgement)]}">{judgement.verdict}</span>'


def _errata() -> str:
    names = ("where", "what it says", "what is right")
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    rows = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in ERRATA)
    return (
        '<section aria-labelledby="errata"><h2 id="errata">Errors of the paper</h2>'
        f'<table class="errata"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></section>'
    )


def _section(chapter: Chapter) -> str:
    experiment, report = chapter.experiment, chapter.report
    says, found = (html.escape(part) for part in chapter.message)
    figures = "".join(_figure(figure) for figure in report.figures)
    tables = [_table(part) for part in report.tables if _is_of_paper(part)]
    details = [_table(part) for part in report.tables if not _is_of_paper(part)]
    notes = "".join(f'<p class="note">{html.escape(note)}</p>' for note in report.notes)
    rules = "".join(
        f'<li><a href="#claim-{j.claim.number}">Claim {j.claim.number}</a>: {_badge(j)}. '
        f"{html.escape(j.claim.sentence)} <em>Rule:</em> {html.escape(j.claim.rule)}.</li>"
        for j in chapter.judgements
    )
    return (
        f'<section id="{experiment.name}" aria-labelledby="{experiment.name}-title">'
        f'<h2 id="{experiment.name}-title">{html.escape(experiment.title)}</h2>'
        f'<p class="message"><strong>The paper says</strong> {says} <strong>We find</strong> {found}</p>'
        f"{''.join(tables)}{figures}<p>{html.escape(experiment.setup)}</p><ul>{rules}</ul>{notes}"
        f"<p><code>python -m experiments run {html.escape(experiment.name)}</code>: {html.escape(chapter.extent)}.</p>"
        f"{''.join(details)}</section>"
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


def _is_of_paper(part: Table) -> bool:
    """Return whether a table is one of the paper's, which stand first in their chapters, and open."""
    return part.title.startswith("Table ")


def _table(part: Table) -> str:
    shown = table(part.title, part.headings, part.rows, words=part.headings)
    return f"<h3>{html.escape(part.title)}</h3>{shown}" if _is_of_paper(part) else folded(part.title, shown)
