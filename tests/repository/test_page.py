"""The page of a reproduction in a browser: at the width of a phone, a tablet and a desk, in light and in dark."""

from __future__ import annotations

import html
import re

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from browser import DARK, WIDTHS, assert_dark_is_dark, assert_readable, shown
from experiments.chapters import chapters_of, probability_of, why
from experiments.messages import ERRATA, PLACES
from experiments.pages import write_pages
from experiments.paper import CLAIMS, EXPERIMENTS
from experiments.records import Journal, Record

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Write a page with figures of every kind: lines with bands, points, names for ticks, logarithmic axes."""
    folder = tmp_path_factory.mktemp("page")
    rng = np.random.default_rng(0)
    names = {
        "drivers": ["TPM (nearest)", "OJD0 (nearest)", "OJD1 (nearest)"],
        "nonorthogonal": ["NOJD0", "NOJD1", "NOJD1 (factors)", "Lathauwer", "ALS", "NLS", "oracle"],
        "starts": [f"{name}{what}" for name in ("OJD1", "NOJD1") for what in ("", ", objective", ", from the first")],
    }
    for name, values in names.items():
        journal = Journal(folder, name)
        for cell in EXPERIMENTS[name].cells(False):
            if cell["trial"] < 20 and cell.get("model", "text") == "text":
                journal.append(Record(cell, {value: rng.uniform(0.001, 1.0) for value in values}))
    write_pages(folder, folder)
    return folder / "reproduction" / "index.html"


@pytest.fixture(scope="module")
def seen(page, tmp_path_factory):
    return shown([page.read_text()], WIDTHS, tmp_path_factory.mktemp("browser"))


@pytest.mark.parametrize(("place", "width"), list(enumerate(WIDTHS)))
def test_nothing_is_wider_than_the_screen_and_all_can_be_read(seen, place, width):
    told = seen[place]
    assert_readable(told, width)
    assert len(told["badges"]) == len(CLAIMS)
    assert max(told["badges"]) <= width


def test_dark_is_dark(page, seen, tmp_path):
    assert_dark_is_dark(seen[1], *shown([page.read_text()], [768], tmp_path, DARK))


def test_the_page_and_the_markdown_tell_the_same(page):
    folder = page.parents[1]
    _, judgements = chapters_of(folder)
    text, markdown = html.unescape(page.read_text()), (folder / "REPRODUCTION.md").read_text()
    for one in judgements:
        row = f"| {one.claim.number} | {one.claim.sentence} | {one.measured} | {one.verdict} | {probability_of(one)} |"
        assert row in markdown
        assert one.measured in text
        assert why(one) in text


def test_the_page_begins_with_the_paper_s_figures_and_says_what_is_wrong_in_the_paper(page):
    text = html.unescape(page.read_text())
    for words, name in PLACES:
        if f'<section id="{name}"' in text:
            assert f'<a href="#{name}">{words}</a>' in text
    for row in ERRATA:
        assert all(cell in text for cell in row)
    assert not re.search(r"\bnan\b", re.sub(r'src="[^"]*"', "", text))


def test_pictures_are_named_after_what_they_show(page):
    names = {path.name for path in page.parent.glob("*.png")}
    assert "figure-2-bottom-non-orthogonal-full-rank-text-noise.png" in names
    assert len(names) >= 3
