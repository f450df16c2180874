"""What the site has beyond its pages: chapters of measurements, links to edit a page, and pictures for previews."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
if not (DOCS / "conf.py").exists():
    pytest.skip("the pages lie in the repository", allow_module_level=True)
pytest.importorskip("docutils", reason="the site needs the group 'docs'")
sys.path.append(str(DOCS))
from site_pages import moved, source_of  # noqa: E402
from site_results import CHAPTERS, RESULTS, anchors, chapters  # noqa: E402

MARKDOWN = sorted(path for path in DOCS.rglob("*.md") if not {"_build", "gallery", "benchmarks"} & set(path.parts))


def test_every_section_of_the_measurements_is_in_one_chapter():
    text = RESULTS.read_text()
    sections = [section for parts in chapters(text).values() for section in parts]
    titles = [section.partition("\n")[0] for section in sections]
    assert set(re.findall(r"(?m)^## .*$", text)) <= set(titles)
    assert len(set(titles)) == len(titles)
    assert set(chapters(text)) <= set(CHAPTERS)


def test_a_section_without_a_title_and_one_of_no_chapter_are_kept():
    found = chapters("# Results\n\n<!-- losses x -->\nA table.\n<!-- end of losses x -->\n\n## Zyx\nText.\n")
    assert found == {"losses": ["## Losses x\nA table."], "others": ["## Zyx\nText."]}


def test_links_to_measurements_lead_to_their_chapter():
    text = "[a](benchmarks.md#limit) [b](../benchmarks/RESULTS.md#limit) [c](benchmarks.md)"
    expected = "[a](benchmarks/components.md#limit) [b](benchmarks/components.md#limit) [c](benchmarks.md)"
    assert moved(text, DOCS, DOCS, "https://example.org") == expected


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_links_to_sections_of_the_measurements_exist(page):
    known = anchors(RESULTS.read_text())
    linked = re.findall(r"(?:benchmarks|RESULTS)\.md#([\w-]+)", page.read_text())
    assert [anchor for anchor in linked if anchor not in known] == []


def sections_of(page):
    """Return the anchors of a page: of its headings, and those that it names."""
    text = re.sub(r"(?ms)^```.*?^```", "", page.read_text())
    headings = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in re.findall(r"(?m)^#+ (.*)$", text)]
    return {heading.strip().replace(" ", "-") for heading in headings} | set(re.findall(r"(?m)^\(([\w-]+)\)=", text))


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_links_to_sections_of_pages_exist(page):
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)#([\w-]+)\)", page.read_text()):
        path = (page.parent / target).resolve() if target else page
        if path.suffix == ".md" and path.name not in ("benchmarks.md", "RESULTS.md"):
            assert anchor in sections_of(path), f"{target}#{anchor}"


@pytest.mark.parametrize(
    ("page", "file"),
    [
        ("guide/rank", "docs/guide/rank.md"),
        ("index", "docs/index.md"),
        ("changelog", "CHANGELOG.md"),
        ("gallery/first_steps/factorize", "examples/first_steps/factorize.py"),
        ("api/generated/codiag.factorize", "src/codiag/_factorize.py"),
        ("benchmarks/rank", None),
        ("genindex", None),
    ],
)
def test_pages_are_edited_where_they_come_from(page, file):
    assert source_of(page) == file


def test_the_installation_lists_every_extra():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    listed = re.findall(r"(?m)^\| `(\w+)` \|", (DOCS / "start" / "install.md").read_text())
    assert set(listed) == set(extras)


@pytest.mark.parametrize("word", ["scree", "NetCDF", "Excel", "LDA", "GridSearchCV", "PARAFAC", "ICA", "FAQ"])
def test_words_that_people_search_for_are_in_the_questions(word):
    assert re.search(rf"\b{word}\b", (DOCS / "start" / "faq.md").read_text())


def test_pictures_of_previews_are_there():
    assert (DOCS / "_static" / "logo.svg").read_text().startswith("<svg")
    assert (DOCS / "_static" / "social.png").stat().st_size < 200_000
