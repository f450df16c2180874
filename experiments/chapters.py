"""What records tell: verdicts on all claims, and a chapter for every experiment that was run."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.claims import Judgement, judge
from experiments.messages import ERRATA, FINDINGS, PLACES
from experiments.paper import CLAIMS, EXPERIMENTS
from experiments.reports import Figure, Report, markdown, sections
from experiments.runs import Experiment, read

PAPER = "Kuleshov, Chaganty & Liang, *Tensor Factorization via Matrix Factorization*, AISTATS 2015"
RULES = "https://github.com/codiag/codiag/blob/main/experiments/claims.md"
PICTURES = "reproduction"
"""The folder of pictures, beside the text."""
KINDS = ("holds", "holds in part", "does not hold", "undecided", "open")


@dataclass(frozen=True)
class Chapter:
    """One experiment that has records: what it shows, how much of it was run, and what it says of claims."""

    experiment: Experiment
    report: Report
    n_records: int
    n_planned: int
    judgements: Sequence[Judgement]

    @property
    def extent(self) -> str:
        """How much was run, in words."""
        if self.n_records == self.n_planned:
            return f"all {self.n_planned:,} trials"
        return f"{self.n_records:,} of {self.n_planned:,} trials"

    @property
    def message(self) -> tuple[str, str]:
        """What the paper says, and what we find and why."""
        return FINDINGS[self.experiment.name]


def picture_of(figure: Figure) -> str:
    """Return the file of a figure, which says what it shows, below the folder of the text."""
    name = figure.file or re.sub(r"[^a-z0-9]+", "-", figure.title.lower()).strip("-")
    return f"{PICTURES}/{name}.png"


def chapters_of(folder: Path, archive: Path | None = None) -> tuple[list[Chapter], list[Judgement]]:
    """Return a chapter for every experiment with records, and the judgements of all claims in order."""
    chapters: list[Chapter] = []
    judgements: dict[int, Judgement] = {}
    for experiment in EXPERIMENTS.values():
        records = read(experiment, folder, archive)
        own = {n: judge(claim, records) for n, claim in CLAIMS.items() if claim.experiment == experiment.name}
        judgements |= own
        if records:
            planned = len(experiment.cells(False))
            with np.errstate(all="ignore"):  # places may still be empty
                report = experiment.report(records)
            report = replace(report, figures=[figure for figure in report.figures if figure.panels])
            chapters.append(Chapter(experiment, report, len(records), planned, list(own.values())))
    return chapters, [judgements[number] for number in sorted(judgements)]


def kind_of(judgement: Judgement) -> str:
    """Return the verdict without the number of trials."""
    return next(kind for kind in reversed(KINDS) if judgement.verdict.startswith(kind))


def summary(verdicts: Sequence[str]) -> str:
    """Return in one sentence how many claims were confirmed, from the kinds of their verdicts."""
    counts = [verdicts.count(kind) for kind in KINDS]
    kinds = ("confirmed", "confirmed in part", "not confirmed", "undecided", "still open")
    found = [f"{n} {'is' if n == 1 else 'are'} {kind}" for n, kind in zip(counts, kinds, strict=True) if n]
    return f"Of the paper's {len(verdicts)} claims, {', '.join(found[:-1])}, and {found[-1]}."


def as_data(judgements: Sequence[Judgement]) -> dict[str, Any]:
    """Return the verdicts for programs: what tests and other documents are held against."""
    rows = [
        {
            "number": one.claim.number,
            "claim": one.claim.sentence,
            "experiment": one.claim.experiment,
            "verdict": kind_of(one),
            "likely": one.likely or one.verdict,
            "probability": one.probability if math.isfinite(one.probability) else None,
            "trials": one.fewest,
            "measured": one.measured,
        }
        for one in judgements
    ]
    return {"summary": summary([kind_of(one) for one in judgements]), "claims": rows}


def probability_of(judgement: Judgement) -> str:
    """Return the probability of a verdict in words."""
    if not math.isfinite(judgement.probability):
        return "-"
    return "nothing is random" if judgement.claim.enough == 1 else f"{judgement.probability:.2f}"


def why(judgement: Judgement) -> str:
    """Return the reason of a verdict; for one that is undecided, what it would be and how many trials would decide."""
    if not judgement.needed:
        return judgement.reason
    return f"Likely: {judgement.likely}; {judgement.needed}. {judgement.reason}".strip()


def whole_markdown(chapters: Sequence[Chapter], judgements: Sequence[Judgement]) -> str:
    """Return everything as one text: the table of claims, the reasons, the errata, then a chapter an experiment."""
    shown = {chapter.experiment.name for chapter in chapters}
    kinds = [kind_of(one) for one in judgements]
    parts = [
        "# The paper, judged claim by claim",
        f"{PAPER}: what it says beside what codiag measures. {summary(kinds)} A verdict follows a rule that was "
        f"written down before the runs ([experiments/claims.md]({RULES}), which names what was changed after runs or "
        "after an audit), from records that are part of the repository (`experiments/results`). Its probability is "
        "that of the same verdict with other draws, by a bootstrap over trials or seeds; below 0.9 a claim is "
        "undecided. Written by `python -m experiments verdicts`.",
        markdown(["the paper's", "is in the chapter"], [[name, _link(to)] for name, to in PLACES if to in shown]),
        "## Verdicts",
        markdown(
            ["#", "claim", "measured", "verdict", "probability"],
            [[str(j.claim.number), j.claim.sentence, j.measured, j.verdict, probability_of(j)] for j in judgements],
        ),
        *_reasons(judgements),
        "## Errors of the paper",
        markdown(["where", "what it says", "what is right"], ERRATA),
        "## Rules",
        markdown(
            ["#", "set-up", "rule", "fewest trials at a place"],
            [[str(j.claim.number), j.claim.setup, j.claim.rule, _fewest(j)] for j in judgements],
        ),
        *(_chapter_markdown(chapter) for chapter in chapters),
    ]
    return "\n\n".join(parts) + "\n"


def _link(name: str) -> str:
    title = EXPERIMENTS[name].title
    return f"[{title}](#{re.sub(r'[^a-z0-9 -]', '', title.lower()).replace(' ', '-')})"


def _fewest(judgement: Judgement) -> str:
    return str(judgement.fewest) if judgement.claim.enough > 1 else "nothing is random"


def _reasons(judgements: Sequence[Judgement]) -> list[str]:
    lines = [f"- **{one.claim.number}, {one.verdict}.** {why(one)}" for one in judgements if why(one)]
    return ["## Why", "\n".join(lines)] if lines else []


def _chapter_markdown(chapter: Chapter) -> str:
    says, found = chapter.message
    parts = [
        f"## {chapter.experiment.title}",
        f"**The paper says** {says} **We find** {found}",
        chapter.experiment.setup,
        f"`python -m experiments run {chapter.experiment.name}`: {chapter.extent}.",
        *sections(chapter.report, [picture_of(figure) for figure in chapter.report.figures]),
    ]
    return "\n\n".join(parts)
