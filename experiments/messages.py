"""What every chapter says in two sentences, where the paper's figures and tables are, and the paper's errors."""

from __future__ import annotations

import re
from pathlib import Path

PLACES: tuple[tuple[str, str], ...] = (
    ("Figure 1: random and plug-in projections", "projections"),
    ("Figure 2, top, and supplementary figure: orthogonal tensors", "orthogonal"),
    ("Figure 2, bottom, and supplementary figure: non-orthogonal tensors", "nonorthogonal"),
    ("Figure 3: communities", "communities"),
    ("Table 1 and the theorems", "bounds"),
    ("Table 2: crowds", "crowd"),
    ("Supplementary figure: asymmetric tensors", "asymmetric"),
    ("Supplementary figure: flops", "flops"),
    ("Section 3: running time of Algorithm 1", "growth"),
    ("Sections 5 and 7: incoherence", "incoherence"),
    ("Section 5 and its proofs: norm of the inverse factors", "norms"),
    ("Section 6: tensors of higher order", "orders"),
    ("Section 7: convergence", "convergence"),
    ("Section 7: starts on crowd data", "starts"),
    ("Section 8: single topic model", "topic"),
    ("The authors' scripts", "drivers"),
    ("The authors' README", "readme"),
)
"""Figures, tables and sections of the paper, and the chapter about each."""
_FOLDER = Path(__file__).parent
_VERDICTS = {"holds": "yes", "holds in part": "partly", "does not hold": "no"}


def _chapters() -> dict[str, str]:
    parts = re.split(r"^## (\w+)\n", (_FOLDER / "findings.md").read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def _message(chapter: str) -> tuple[str, str]:
    found = re.search(r"^The paper says (.+)\n\nWe find (.+)$", chapter, re.MULTILINE)
    if found is None:
        raise ValueError(
            f"a chapter of findings.md must say what the paper says and what we find; got {chapter[:80]!r}"
        )
    return found[1], found[2]


def _reasons() -> dict[int, dict[str, str]]:
    reasons: dict[int, dict[str, str]] = {}
    for chapter in _chapters().values():
        for number, verdict, words in re.findall(r"^- (\d+), ([a-z ]+): (.+)$", chapter, re.MULTILINE):
            reasons.setdefault(int(number), {})[_VERDICTS[verdict]] = words
    return reasons


def _errata() -> list[list[str]]:
    rows = re.findall(r"^\| (.+) \| (.+) \| (.+) \|$", (_FOLDER / "errata.md").read_text(), re.MULTILINE)
    return [list(row) for row in rows[1:]]


FINDINGS = {name: _message(chapter) for name, chapter in _chapters().items()}
"""For each chapter: what the paper says, then what we find and why."""
REASONS = _reasons()
"""Why claims came out as they did: by the number of the claim, then by yes, partly or no."""
ERRATA = _errata()
"""Where, what the paper says, and what is right."""
