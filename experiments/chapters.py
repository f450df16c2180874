"""What a folder of records tells: verdicts on all claims, and a chapter for every experiment that was run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from experiments.claims import VERDICTS, Judgement, judge
from experiments.paper import CLAIMS, EXPERIMENTS
from experiments.reports import Report, markdown, sections
from experiments.runs import Experiment, read

PAPER = "Kuleshov, Chaganty & Liang, *Tensor Factorization via Matrix Factorization*, AISTATS 2015"


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

    def figure_name(self, place: int) -> str:
        """Return the file of a figure, below the folder of the page."""
        return f"{self.experiment.name}/figure-{place + 1}.png"


def chapters_of(folder: Path) -> tuple[list[Chapter], list[Judgement]]:
    """Return a chapter for every experiment with records in a folder, and the judgements of all claims in order."""
    chapters: list[Chapter] = []
    judgements: dict[int, Judgement] = {}
    for experiment in EXPERIMENTS.values():
        records = read(experiment, folder)
        own = {n: judge(claim, records) for n, claim in CLAIMS.items() if claim.experiment == experiment.name}
        judgements |= own
        if records:
            planned = len(experiment.cells(False))
            with np.errstate(all="ignore"):  # places may still be empty
                report = experiment.report(records)
            report = replace(report, figures=[figure for figure in report.figures if figure.panels])
            chapters.append(Chapter(experiment, report, len(records), planned, list(own.values())))
    return chapters, [judgements[number] for number in sorted(judgements)]


def summary(judgements: Sequence[Judgement]) -> str:
    """Return in one sentence how many claims hold."""
    counts = [sum(one.verdict == word for one in judgements) for word in VERDICTS.values()]
    single = ("holds", "holds in part", "does not hold", "is open")
    plural = ("hold", "hold in part", "do not hold", "are open")
    told = [f"{n} {one if n == 1 else many}" for n, one, many in zip(counts, single, plural, strict=True)]
    return f"Of the paper's {len(judgements)} claims {', '.join(told[:-1])} and {told[-1]}."


def whole_markdown(chapters: Sequence[Chapter], judgements: Sequence[Judgement]) -> str:
    """Return everything as one text: the table of claims, the reasons, then a chapter an experiment."""
    rows = [[str(one.claim.number), one.claim.sentence, one.measured, one.verdict] for one in judgements]
    parts = [
        "# The paper, judged claim by claim",
        f"{PAPER}: what it says beside what codiag measures. {summary(judgements)} A verdict follows a rule that was "
        "written down before the runs; a claim is open while a place that counts has too few trials. Written by "
        "`python -m experiments run`.",
        markdown(["#", "claim", "measured", "verdict"], rows),
        *_reasons(judgements),
        "## Rules",
        markdown(
            ["#", "set-up", "rule", "fewest trials at a place"],
            [[str(j.claim.number), j.claim.setup, j.claim.rule, _fewest(j)] for j in judgements],
        ),
        *(_chapter_markdown(chapter) for chapter in chapters),
    ]
    return "\n\n".join(parts) + "\n"


def _fewest(judgement: Judgement) -> str:
    return str(judgement.fewest) if judgement.claim.enough > 1 else "nothing is random"


def _reasons(judgements: Sequence[Judgement]) -> list[str]:
    told = [one for one in judgements if one.reason]
    if not told:
        return []
    lines = [f"- **{one.claim.number}, {one.verdict}.** {one.reason}" for one in told]
    return ["## Why", "\n".join(lines)]


def _chapter_markdown(chapter: Chapter) -> str:
    parts = [
        f"## {chapter.experiment.title}",
        chapter.experiment.setup,
        f"`python -m experiments run {chapter.experiment.name}`: {chapter.extent}.",
        *sections(chapter.report, [chapter.figure_name(place) for place in range(len(chapter.report.figures))]),
    ]
    return "\n\n".join(parts)
