"""Names and messages use the field's words: none of our former private ones is left in the package."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import codiag

PACKAGE = Path(codiag.__file__).parent
REPOSITORY = Path(__file__).parents[2]
FILES = sorted(path for path in PACKAGE.rglob("*.py") if "drop_in" not in path.parts)  # other libraries' words there

NAMES = """
observed seed monitor max_seconds effort stages Stage Stages Scatter scatter_of estimate_scatter residual_replication
complaint complaints complaint_about refusal UndeterminedError is_one_sided is_curved
restricts supports_steps holds_by_rows on_rows states_variance slope_at_zero model_of Screened Grown Listed Filled
Extended Stabilized End Outcome swapped revived regrown is_enough n_meetings MEETINGS FEW DOUBTFUL Scoring _scored
explore_scored Cells Shares Slab Layout layout folded expanded pack Curvature Restricted Scaled evened hollow_eigenpairs
Powers climbed powers_in_span Quiet Widths learn keep polished strategy moments_by_number moved like precise double pick
inert visible written_at_once Described worth worths alike families families_ effective_votes_ doubt_table
confusion_ confusion_spread_ decision gold MixedMembershipCommunities factorization_ n_jackknife rivals
unasked is_watched PATIENCE SILENCE
goodness without_data n_spare allowed on_core within Entries oracle residual_excess
intervals_of to_frames HostSteps QuickSteps Equations Watch watch Watcher
""".split()  # noqa: SIM905
"""Identifiers, with or without underscores in front: the second column of the review's table of names."""

PHRASES = [
    "stand out",
    "stands out",
    "to spare",
    "cancel each other",
    "scatters",
    "how entries scatter",
    "is worth",
    "are worth",
    "think alike",
    "yes or no",
    "one run is enough",
    "in doubt",
    "measurably worse",
    "which is enough for every tensor",
    "several minima, and too few",
    "sure of itself",
    "as ever",
    "unasked",
    "can do without",
    "to the eye",
    "the loudness changes",
    "energy explained",
    "energy is explained",
    "give to a person",
    "how many judges it takes",
    "*needs*",
    "*costs*",
    "*guarantees*",
    "*fails*",
]
"""Parts of sentences that practitioners had to read twice, and labels that numpydoc does not know."""

ON_PAGES = [*PHRASES, "rooms", "rivals", "mends", "what was left out as well"]
"""Words that pages may not use, either."""

ALLOWED = {
    ("cli", "seed"),  # the option of the command line
    ("plotting", "visible"),  # words of matplotlib
    ("plotting", "families"),
    ("plotting", "layout"),
    ("diagonalize", "_layout"),  # of memory
}
"""Words that mean something else there."""

PAGES = sorted(
    path
    for pattern in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/*.md", "docs/*/*.md")
    for path in REPOSITORY.glob(pattern)
)


def names_in(tree):
    """Yield the names of functions, classes, parameters, attributes and constants; local variables are free."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg | ast.keyword):
            yield node.arg
        elif isinstance(node, ast.Attribute):
            yield node.attr
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def found(phrases, text):
    """Return the phrases that are in a text, as whole words."""
    text = " ".join(text.split()).lower()
    return [phrase for phrase in phrases if re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", text)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_names_are_those_of_the_field(path):
    used = {name for name in names_in(ast.parse(path.read_text())) if name and {name, name.strip("_")} & set(NAMES)}
    place = path.relative_to(PACKAGE).parts[0]
    assert {name for name in used if (place, name) not in ALLOWED} == set()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_sentences_are_those_of_the_field(path):
    """In messages, docstrings and comments."""
    assert found(PHRASES, re.sub(r"[\"'#]", " ", path.read_text())) == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(REPOSITORY).as_posix())
def test_pages_are_written_in_the_words_of_the_field(path):
    assert found(ON_PAGES, path.read_text()) == []


def test_the_lists_are_words():
    assert all(ast.parse(name, mode="eval") for name in NAMES)
    assert len(set(NAMES)) == len(NAMES)
