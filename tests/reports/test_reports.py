"""Reports for people: what they say is what the results say, labels are text, and browsers show them at any width."""

from __future__ import annotations

import html
import inspect
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import codiag
from codiag.io import preference_votes
from codiag.labels import Labelled, Labels
from codiag.models import Jury, LatentDirichlet
from codiag.synthetic import crowd_votes, noisy_tensor, worker_confusions

pytest.importorskip("matplotlib", reason="matplotlib is not installed; it is in the extra 'report'")
pytest.importorskip("jinja2", reason="jinja2 is not installed; it is in the extra 'report'")

from browser import DARK, WIDTHS, assert_dark_is_dark, assert_readable, shown
from codiag.reports import factorization_report, jury_report, rank_report, topics_report

HOSTILE = "<script>alert('1')</script>\"><img src=//x.org/y onerror=alert(2)>&amp;\x1b[31m{{ 7 * 7 }}"
KINDS = ["fit", "rank", "jury", "topics"]
VOID = {"meta", "img", "br"}


@pytest.fixture(scope="module")
def results():
    """Return a result of every kind, with labels that are HTML."""
    problem = noisy_tensor((6, 20, 5), 2, noise=0.02, rng=0)
    labels = Labels((HOSTILE, "time", "dose"), ([f"{HOSTILE}{place}" for place in range(6)], None, None))
    tensor = Labelled(problem.tensor, labels)
    tasks, workers, votes = crowd_votes(60, worker_confusions(9, 3, rng=0), density=0.5, rng=1).votes
    named = {
        "task": [f"{HOSTILE}{task}" for task in tasks],
        "worker": [f"{HOSTILE}{worker}" for worker in workers],
        "label": [f"{HOSTILE}{vote}" for vote in votes],
    }
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(30, 0.2), 3)
    counts = np.array([rng.multinomial(40, share @ topics) for share in rng.dirichlet(np.full(3, 0.3), 400)])
    return {
        "fit": (codiag.choose_rank(tensor, range(1, 4), rng=0), tensor),
        "jury": Jury(random_state=0).fit(named),
        "topics": (LatentDirichlet(3, random_state=0).fit(counts), counts, [f"{HOSTILE}{word}" for word in range(30)]),
    }


@pytest.fixture(scope="module")
def pages(results):
    choice, tensor = results["fit"]
    return {
        "fit": factorization_report(choice.fit, tensor, choice=choice, title=HOSTILE),
        "rank": rank_report(choice, title=HOSTILE),
        "jury": jury_report(results["jury"], title=HOSTILE),
        "topics": topics_report(*results["topics"], title=HOSTILE),
    }


class Structure(HTMLParser):
    """The elements of a page, with what is open, what refers where, and the text of every cell."""

    def __init__(self, page):
        super().__init__()
        self.open, self.found, self.references, self.ids, self.cells = [], set(), [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        known = dict(attrs)
        self.found |= {
            tag,
            *(f"{tag} {name}" for name in known if name.startswith("on") or (tag, name) == ("script", "src")),
        }
        self.references += [known[name] for name in ("src", "href") if name in known]
        self.ids += [known["id"]] if "id" in known else []
        self.open += [] if tag in VOID else [tag]
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.cells[-1] += data


def words_of(page):
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", page)).split())


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_holds_all_it_needs_and_labels_are_text(pages, kind):
    structure = Structure(pages[kind])
    assert structure.open == []
    assert len(structure.ids) == len(set(structure.ids))
    assert not structure.found & {"link", "iframe", "img onerror", "script src"}
    assert structure.found.isdisjoint({"script"})
    for target in structure.references:
        assert target.startswith("data:image/") or target.removeprefix("#") in structure.ids
    assert "url(" not in pages[kind]
    assert "@import" not in pages[kind]
    assert "\x1b" not in pages[kind]
    assert "<script>alert('1')</script>" in html.unescape(pages[kind])  # as text
    assert "{{ 7 * 7 }}" in pages[kind]


@pytest.mark.parametrize("name", codiag.reports.__all__)
def test_every_report_takes_the_file_to_write_after_its_data(name):
    parameters = list(inspect.signature(getattr(codiag.reports, name)).parameters.values())
    required = [one for one in parameters if one.default is one.empty]
    assert parameters[len(required)].name == "path"
    assert parameters[len(required)].default is None
    assert all(one.kind is one.KEYWORD_ONLY for one in parameters[len(required) + 1 :])


def test_a_report_writes_its_page(results, pages, tmp_path):
    assert rank_report(results["fit"][0], tmp_path / "page.html", title=HOSTILE) == pages["rank"]
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == pages["rank"]
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_without_jinja2_a_sentence_names_the_extra(results, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"pip install 'codiag\[report\]'"):
        rank_report(results["fit"][0], tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("width", WIDTHS)
def test_pages_can_be_read_at_any_width(seen, width):
    for told in seen[width]:
        assert_readable(told, width)


@pytest.fixture(scope="module")
def seen(pages, tmp_path_factory):
    told = shown(pages.values(), WIDTHS, tmp_path_factory.mktemp("browser"))
    return {width: told[place :: len(WIDTHS)] for place, width in enumerate(WIDTHS)}


def test_dark_is_dark(pages, seen, tmp_path):
    for light, dark in zip(seen[768], shown(pages.values(), [768], tmp_path, DARK), strict=True):
        assert_dark_is_dark(light, dark)


def test_a_fit_is_told_with_its_choice_and_diagnosis(results, pages):
    choice, _ = results["fit"]
    cells, words = Structure(pages["fit"]).cells, words_of(pages["fit"])
    assert choice.reason in words
    fit, start = choice.fit, cells.index("standard error") + 4  # and a heading for each of three modes
    for place, row in enumerate(np.reshape(cells[start : start + 7 * fit.rank], (fit.rank, 7))):
        assert row[:2].tolist() == [str(place + 1), fit.diagnose().verdicts[place]]
        assert row[2:4].tolist() == [f"{fit.weights[place]:.4g}", f"{fit.weight_standard_errors[place]:.2g}"]
        peaks = [np.argmax(np.abs(factor[:, place])) for factor in fit.factors]
        assert row[4].endswith(str(peaks[0]))
        assert row[5:].tolist() == [str(peak) for peak in peaks[1:]]
    for line in str(choice.fit.diagnose()).split("\n"):
        assert line in words
    assert f"{100 * (1 - choice.fit.relative_error**2):.4g} % of the variance explained" in words


@pytest.mark.parametrize("kind", ["fit", "rank"])
def test_the_evidence_for_every_rank_is_shown(results, pages, kind):
    choice, cells = results["fit"][0], Structure(pages[kind]).cells
    assert choice.reason in words_of(pages[kind])
    for row in choice.rows():
        assert any([cells[place], *cells[place + 2 : place + 8]] == list(row[:7]) for place in range(len(cells)))


def test_a_choice_is_a_table_in_notebooks(results):
    choice, _ = results["fit"]
    found = Structure(choice._repr_html_())
    assert html.escape(choice.reason) in choice._repr_html_()
    assert found.cells[8:] == [cell for row in choice.rows() for cell in row]


def test_what_stands_out_is_named():
    tensor = np.random.default_rng(0).random((12, 9, 8))
    tensor[3] *= 30
    tensor[5, 2, 2] = np.nan
    fit = codiag.factorize(Labelled(tensor, Labels(("day", "b", "c"), (np.arange(100, 112), None, None))), 2, rng=0)
    words = words_of(factorization_report(fit, tensor))
    assert "Index 103 of day carries component 2 alone" in words
    assert "times larger at index 103 of day" in words


def test_the_deviance_is_named_under_a_loss():
    counts = np.random.default_rng(0).poisson(3 * np.ones((6, 5, 4)) * np.arange(6)[:, None, None])
    fit = codiag.factorize(counts, 1, loss="poisson", rng=0)
    assert f"{100 * fit.deviance.explained:.4g} % of the deviance explained" in words_of(
        factorization_report(fit, counts)
    )


def test_residuals_are_computed_once(results, monkeypatch):
    calls = []
    compute = codiag.plotting.residual_entries
    for module in ("codiag.reports._fit", "codiag.plotting._diagnostics"):
        monkeypatch.setattr(f"{module}.residual_entries", lambda *given: calls.append(1) or compute(*given))
    choice, tensor = results["fit"]
    factorization_report(choice.fit, tensor)
    assert len(calls) == 1


def test_tensors_too_large_to_be_drawn_say_so(monkeypatch, results):
    monkeypatch.setattr("codiag.reports._fit.is_large", lambda _: True)
    choice, tensor = results["fit"]
    assert "has 600 entries, too many to be drawn" in factorization_report(choice.fit, tensor)


@pytest.fixture(scope="module")
def jury():
    """Return a jury in which ann and zoe always give the same answer, and its votes."""
    crowd = crowd_votes(300, worker_confusions(6, 2, rng=0), rng=1)
    matrix = np.array(["bad", "good"])[crowd.votes[2].reshape(300, 6)]
    matrix = np.concatenate([matrix, matrix[:, :1]], axis=1)
    names = np.array(["ann", "bob", "carl", "dora", "eve", "fred", "zoe"])
    task, worker = np.indices(matrix.shape).reshape(2, -1)
    return Jury(random_state=0).fit({"task": task, "worker": names[worker], "label": matrix.ravel()})


def test_a_jury_is_told_by_its_judges_and_clusters(jury):
    page = jury_report(jury)
    words, cells = words_of(page), Structure(page).cells
    assert "Cluster 1: ann and zoe; their errors have a correlation of" in words
    assert "ann and zoe gave the same answers to all items that both judged" in words
    low, high = jury.effective_annotators_interval_
    assert f"of {jury.n_effective_annotators_:.1f} independent ones ({low:.1f} to {high:.1f})." in words
    judges = jury.worker_table()
    best = np.argsort(-judges["accuracy"], kind="stable")
    first = cells.index("cluster") + 1
    assert cells[first : first + 6 * best.size : 6] == judges["worker"][best].tolist()
    assert cells[first + 4 : first + 6 * best.size : 6] == [f"{weight:.2f}" for weight in judges["weight"][best]]


def test_a_jury_that_cannot_tell_who_is_right_says_so():
    crowd = crowd_votes(300, worker_confusions(2, 2, rng=0), rng=1)
    matrix = crowd.votes[2].reshape(300, 2)[:, [0, 1, 0]]
    with pytest.warns(UserWarning, match="labels are those"):
        model = Jury(clusters=[0, 1, 0], random_state=0).fit(matrix)
    assert f"Labels are those of the majority: {model.reason_}." in words_of(jury_report(model))


def test_a_jury_is_told_from_the_least_certain_item_on(results, pages):
    cells = Structure(pages["jury"]).cells
    smallest = np.sort(results["jury"].label_table()["probability"])[:20]
    first = cells.index("next probability") + 1
    assert cells[first + 3 : first + 6 * smallest.size : 6] == [f"{value:.3f}" for value in smallest]


def test_position_bias_is_in_the_table_of_judges():
    rng = np.random.default_rng(0)
    judges, task, order = np.indices((5, 150, 2)).reshape(3, -1)
    likes = (task + (rng.random((5, 150)) < 0.15)[judges, task]) % 3  # 0 for x, 1 for y, 2 for neither
    first = np.where(likes == 2, "tie", np.where(likes == order, "first", "second")).astype("<U6")
    first[(judges == 2) & (likes < 2) & (rng.random(judges.size) < 0.6)] = "first"
    names, sides = np.array(["ann", "bob", "carl", "dora", "eve"]), np.array(["x", "y"])
    preferences = preference_votes((task, names[judges], sides[order], sides[1 - order], first))
    page = jury_report(Jury(random_state=0).fit(preferences.votes), preferences=preferences)
    bias = {name: preferences.position_bias[name][2] for name in ("position_bias", "standard_error")}
    cells = Structure(page).cells
    assert cells[cells.index("carl") + 6] == f"{bias['position_bias']:+.3f} ± {bias['standard_error']:.3f}"


def test_topics_are_told_by_their_words(results, pages):
    topics, _, vocabulary = results["topics"]
    cells = Structure(pages["topics"]).cells
    for top in topics.top_words(np.array(vocabulary), 10):
        place = cells.index(top[0].replace("\x1b", "\\x1b"))
        assert cells[place : place + 20 : 2] == [word.replace("\x1b", "\\x1b") for word in top]


def test_topics_need_a_word_for_every_column(results):
    model, counts, vocabulary = results["topics"]
    with pytest.raises(ValueError, match=r"^vocabulary must"):
        topics_report(model, counts, vocabulary[1:])


def test_documents_are_told_by_their_names(results):
    model, counts, vocabulary = results["topics"]
    names = [f"letter {place}.txt" for place in range(len(counts))]
    words = topics_report(model, counts, vocabulary, documents=names)
    for topic in range(3):
        assert f"letter {np.argmax(model.transform(counts)[:, topic])}.txt (" in words
    assert "numbered from 1" not in words
    assert "Documents are numbered from 1." in topics_report(model, counts, vocabulary)
    with pytest.raises(ValueError, match=r"^documents must"):
        topics_report(model, counts, vocabulary, documents=names[1:])


@pytest.mark.parametrize("name", ["report.html", Path("report.html")])
def test_a_path_in_the_place_of_data_is_explained(name):
    fit = codiag.factorize(noisy_tensor((6, 7, 8), 2, noise=0.01, rng=0).tensor, 2, rng=0)
    with pytest.raises(TypeError, match="^tensor must"):
        factorization_report(fit, name)
    model = LatentDirichlet(2, random_state=0)
    with pytest.raises(TypeError, match="^counts must"):
        topics_report(model, name, list("abcdefghi"))
    with pytest.raises(TypeError, match="^vocabulary must"):
        topics_report(model, np.ones((3, 9)), name)


def test_reports_of_other_results_are_refused(results):
    choice, tensor = results["fit"]
    with pytest.raises(TypeError, match="^fit must"):
        factorization_report(choice, tensor)
    with pytest.raises(TypeError, match="^choice must"):
        rank_report(choice.fit)
    with pytest.raises(TypeError, match="^model must"):
        jury_report(results["topics"][0])


def test_reports_take_the_problem_that_was_solved():
    tensor = noisy_tensor((6, 7, 8), 1, noise=0.1, rng=0).tensor
    tensor[0, 0, 0] = np.nan
    problem = codiag.Problem(tensor, 1)
    fit = codiag.factorize(problem, rng=0)
    assert factorization_report(fit, problem) == factorization_report(fit, tensor)
