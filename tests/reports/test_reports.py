"""Reports for people: what they say is what the results say, labels are text, and browsers show them at any width."""

from __future__ import annotations

import csv
import html
import inspect
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import codiag
from codiag.cli import app
from codiag.io import preference_votes
from codiag.labels import Labelled, Labels
from codiag.models import DawidSkene, LatentDirichlet, MixedMembershipCommunities
from codiag.synthetic import crowd_votes, mixed_membership_graph, noisy_tensor, worker_confusions

pytest.importorskip("matplotlib", reason="matplotlib is not installed; it is the extra 'plot'")

from browser import DARK, WIDTHS, assert_dark_is_dark, assert_readable, shown
from codiag.reports import (
    communities_report,
    crowd_report,
    factorization_report,
    index_advice,
    jury_report,
    sign_advice,
    topics_report,
)

HOSTILE = "<script>alert('1')</script>\"><img src=//x.org/y onerror=alert(2)>&amp;\x1b[31m"
KINDS = ["fit", "crowd", "jury", "communities", "topics"]
VOID = {"meta", "img", "br"}
runner = CliRunner()


@pytest.fixture(scope="module")
def results():
    """Return a result of every kind, with labels that are HTML."""
    problem = noisy_tensor((6, 20, 5), 2, noise=0.02, seed=0)
    labels = Labels((HOSTILE, "time", "dose"), ([f"{HOSTILE}{place}" for place in range(6)], None, None))
    tensor = Labelled(problem.tensor, labels)
    choice = codiag.choose_rank(tensor, range(1, 4), seed=0)
    tasks, workers, votes = crowd_votes(60, worker_confusions(9, 3, seed=0), density=0.5, seed=1).votes
    named = (
        [f"{HOSTILE}{task}" for task in tasks],
        [f"{HOSTILE}{one}" for one in workers],
        [f"{HOSTILE}{v}" for v in votes],
    )
    graph = mixed_membership_graph(120, 2, alpha_0=0.2, inside=0.4, outside=0.02, seed=0)
    ends = np.argwhere(np.triu(np.asarray(graph.adjacency.todense())))
    edges = [(f"{HOSTILE}{one}", f"{HOSTILE}{other}") for one, other in ends]
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(30, 0.2), 3)
    counts = np.array([rng.multinomial(40, share @ topics) for share in rng.dirichlet(np.full(3, 0.3), 400)])
    return {
        "fit": (choice, tensor),
        "crowd": DawidSkene(random_state=0, max_iter=500).fit(named),
        "communities": MixedMembershipCommunities(2, random_state=0).fit(edges),
        "topics": (LatentDirichlet(3, random_state=0).fit(counts), counts, [f"{HOSTILE}{word}" for word in range(30)]),
    }


@pytest.fixture(scope="module")
def pages(results):
    choice, tensor = results["fit"]
    return {
        "fit": factorization_report(choice.fit, tensor, choice=choice, title=HOSTILE),
        "crowd": crowd_report(results["crowd"], title=HOSTILE),
        "jury": jury_report(results["crowd"], title=HOSTILE),
        "communities": communities_report(results["communities"], title=HOSTILE),
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


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_holds_all_it_needs_and_labels_are_text(pages, kind):
    structure = Structure(pages[kind])
    assert structure.open == []
    assert len(structure.ids) == len(set(structure.ids))
    assert not structure.found & {"link", "iframe", "img onerror", "script src"}
    assert structure.found.isdisjoint({"script"}) or kind == "topics"
    for target in structure.references:
        assert target.startswith("data:image/") or target.removeprefix("#") in structure.ids
    assert "url(" not in pages[kind]
    assert "@import" not in pages[kind]
    assert "\x1b" not in pages[kind]
    assert "<script>alert('1')</script>" in html.unescape(pages[kind])  # as text


@pytest.mark.parametrize("name", codiag.reports.__all__)
def test_every_report_takes_the_file_to_write_after_its_data(name):
    parameters = list(inspect.signature(getattr(codiag.reports, name)).parameters.values())
    required = [one for one in parameters if one.default is one.empty]
    assert parameters[len(required)].name == "path"
    assert parameters[len(required)].default is None
    assert all(one.kind is one.KEYWORD_ONLY for one in parameters[len(required) + 1 :])


def test_a_report_writes_its_page(results, pages, tmp_path):
    assert communities_report(results["communities"], tmp_path / "page.html", title=HOSTILE) == pages["communities"]
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == pages["communities"]
    with pytest.raises(ValueError, match="sort must be 'votes' or 'accuracy'; got 'name'"):
        crowd_report(results["crowd"], sort="name")


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
    cells = Structure(pages["fit"]).cells
    words = html.unescape(pages["fit"])
    assert choice.reason in words
    for row in choice.rows():
        assert any([cells[place], *cells[place + 2 : place + 8]] == list(row[:7]) for place in range(len(cells)))
    fit, start = choice.fit, cells.index("standard error") + 4  # and a heading for each of three modes
    for place, row in enumerate(np.reshape(cells[start : start + 7 * fit.rank], (fit.rank, 7))):
        assert row[:2].tolist() == [str(place), fit.diagnose().verdicts[place]]
        assert row[2:4].tolist() == [f"{fit.weights[place]:.4g}", f"{fit.weight_standard_errors[place]:.2g}"]
        peaks = [np.argmax(np.abs(factor[:, place])) for factor in fit.factors]
        assert row[4].endswith(str(peaks[0]))
        assert row[5:].tolist() == [str(peak) for peak in peaks[1:]]
    for line in str(choice.fit.diagnose()).split("\n"):
        assert line in words
    assert f"{100 * (1 - choice.fit.relative_error**2):.4g} %" in words


def test_a_choice_is_a_table_in_notebooks(results):
    choice, _ = results["fit"]
    found = Structure(choice._repr_html_())
    assert html.escape(choice.reason) in choice._repr_html_()
    assert found.cells[8:] == [cell for row in choice.rows() for cell in row]


def test_what_stands_out_is_named():
    tensor = np.random.default_rng(0).random((12, 9, 8))
    tensor[3] *= 30
    tensor[5, 2, 2] = np.nan
    fit = codiag.factorize(Labelled(tensor, Labels(("day", "b", "c"), (np.arange(100, 112), None, None))), 2, seed=0)
    left = tensor - fit.to_tensor()
    said = index_advice(fit, left)
    assert any(line.startswith("Check day 103:") for line in said)
    left[:, 4] *= 100
    assert any(
        line.startswith("Check b 4: the residuals there are more than 3 times") for line in index_advice(fit, left)
    )


def test_positive_data_with_negative_factors_is_told():
    rng = np.random.default_rng(1)
    factors = [rng.random((size, 2)) for size in (6, 7, 8)]
    tensor = np.einsum("ir,jr,kr->ijk", *factors)
    for sign, told in ((0, False), (1.0, True)):
        turned = factors[0] - sign * np.array([0.0, 0.5])
        data = np.einsum("ir,jr,kr->ijk", turned, *factors[1:])
        fit = codiag.factorize(data, 2, seed=0)
        left = np.maximum(data, 0) - fit.to_tensor()
        assert bool(sign_advice(fit, left)) is told
    kept = codiag.factorize(tensor, 2, constraints="nonnegative", seed=0)
    assert sign_advice(kept, tensor - kept.to_tensor()) == []


def test_residuals_are_computed_once(results, monkeypatch):
    calls = []
    compute = codiag.plotting.residual_entries
    for module in ("codiag.reports._factorization", "codiag.plotting._diagnostics"):
        monkeypatch.setattr(f"{module}.residual_entries", lambda *given: calls.append(1) or compute(*given))
    choice, tensor = results["fit"]
    factorization_report(choice.fit, tensor)
    assert len(calls) == 1


def test_tensors_too_large_to_be_drawn_say_so(monkeypatch, results):
    monkeypatch.setattr("codiag.reports._factorization.is_large", lambda _: True)
    monkeypatch.setattr("codiag.reports._factorization._leverage", lambda _: "")
    choice, tensor = results["fit"]
    assert "has 600 entries, too many to be drawn" in factorization_report(choice.fit, tensor)


def test_a_crowd_is_told_from_the_least_sure_task_on(results, pages):
    model, cells = results["crowd"], Structure(pages["crowd"]).cells
    table = model.label_table()
    order = np.argsort(table["probability"], kind="stable")
    order = order[table["probability"][order] < 0.999][:20]
    assert order.size > 1
    probabilities = [f"{table['probability'][place]:.3f}" for place in order]
    first = cells.index("next probability") + 1
    assert cells[first + 3 : first + 6 * order.size : 6] == probabilities
    confusion = model.worker_table()
    names = [f"p({given}|{true})" for true in model.classes_ for given in model.classes_]
    busiest = np.argmax(confusion["votes"])
    shares = re.findall(r'--share: [\d.]+">([\d.]+)<', pages["crowd"])
    assert shares[:9] == [f"{confusion[name][busiest]:.2f}" for name in names]  # rows are true classes


@pytest.fixture(scope="module")
def jury():
    """Return a model of twins and five other judges, its votes, and known labels of half of the items."""
    crowd = crowd_votes(300, worker_confusions(6, 2, seed=3), seed=4)
    matrix = np.array(["bad", "good"])[crowd.votes[2].reshape(300, 6)]
    matrix = np.concatenate([matrix, matrix[:, :1]], axis=1)
    names = np.array(["ann", "bob", "carl", "dora", "eve", "fred", "zoe"])
    task, worker = np.indices(matrix.shape).reshape(2, -1)
    votes = {"task": task, "worker": names[worker], "label": matrix.ravel()}
    gold = dict(enumerate(np.array(["bad", "good"])[crowd.truth[:150]].tolist()))
    return DawidSkene(random_state=0).fit(votes, gold=gold), votes, gold


def test_a_jury_is_told_by_its_questions(jury):
    model, votes, gold = jury
    page = jury_report(model, votes=votes, gold=gold)
    words, cells = html.unescape(re.sub("<[^>]+>", " ", page)), Structure(page).cells
    assert "Family 1: ann and zoe are duplicates of each other: their errors correlate at 0.9" in words
    low, high = model.effective_votes_interval_
    assert f"7 judges are worth {model.effective_votes_:.1f} independent ones ({low:.1f} to {high:.1f})." in words
    judges = model.worker_table()
    best = np.argsort(-judges["accuracy"], kind="stable")
    first = cells.index("family") + 1
    assert cells[first : first + 6 * best.size : 6] == judges["worker"][best].tolist()
    assert cells[first + 4 : first + 6 * best.size : 6] == [f"{weight:.2f}" for weight in judges["weight"][best]]
    voices = words.split("all who stand alone: ")[1].split(".")[0]
    assert ("ann" in voices) + ("zoe" in voices) == 1
    assert "Of 150 items with known labels" in words
    start = cells.index("share right") + 1
    assert sum(int(cells[place]) for place in range(start + 1, cells.index("item"), 4)) == 150


def test_a_jury_of_too_few_voices_is_told_what_would_help(jury):
    _, votes, _ = jury
    twins = np.isin(votes["worker"], ["ann", "bob", "zoe"])
    few = {name: column[twins] for name, column in votes.items()}
    with pytest.warns(UserWarning, match="too few to tell who is right"):
        model = DawidSkene(random_state=0, families={"ann": 1, "zoe": 1}).fit(few)
    words = " ".join(html.unescape(re.sub("<[^>]+>", " ", jury_report(model))).split())
    assert f"With caution: {model.diagnostics_.reason}." in words
    assert "these have too few independent voices to show which of them are right" in words


def test_a_crowd_names_families(jury):
    assert "Family 1: ann and zoe are duplicates of each other" in crowd_report(jury[0])


def test_a_jury_without_known_labels_is_not_said_to_be_checked(jury):
    model, votes, _ = jury
    plain = jury_report(DawidSkene(random_state=0).fit(votes))
    words = " ".join(html.unescape(re.sub("<[^>]+>", " ", plain)).split())
    assert "No labels are known, and votes alone cannot show whether they are: known labels can." in words
    assert "Known labels, first of all: a person's labels of about a hundred items" in words
    assert "share right" not in plain
    with pytest.raises(ValueError, match="votes must be given with gold"):
        jury_report(model, gold={0: "bad"})


def test_position_bias_is_in_the_table_of_judges():
    rng = np.random.default_rng(0)
    judges, task, order = np.indices((5, 150, 2)).reshape(3, -1)
    likes = (task + (rng.random((5, 150)) < 0.15)[judges, task]) % 3  # 0 for x, 1 for y, 2 for neither
    first = np.where(likes == 2, "tie", np.where(likes == order, "first", "second")).astype("<U6")
    first[(judges == 2) & (likes < 2) & (rng.random(judges.size) < 0.6)] = "first"
    names, sides = np.array(["ann", "bob", "carl", "dora", "eve"]), np.array(["x", "y"])
    preferences = preference_votes((task, names[judges], sides[order], sides[1 - order], first))
    model = DawidSkene(random_state=0).fit(preferences.votes)
    page = jury_report(model, preferences=preferences)
    bias = {name: preferences.position_bias[name][2] for name in ("position_bias", "standard_error")}
    shown_bias = f"{bias['position_bias']:+.3f} ± {bias['standard_error']:.3f}"
    cells = Structure(page).cells
    assert cells[cells.index("carl") + 6] == shown_bias
    assert "shown in both orders" in page
    assert f"the side matters to carl ({bias['position_bias']:+.2f})." in page


def test_communities_and_topics_are_told_by_their_strongest(results, pages):
    model = results["communities"]
    words = html.unescape(pages["communities"])
    for place in range(2):
        strongest = model.nodes_[np.argmax(model.memberships_[:, place])]
        assert strongest.replace("\x1b", "\\x1b") in words
    mixed = model.nodes_[np.argmin(model.memberships_.max(axis=1))]
    assert mixed.replace("\x1b", "\\x1b") in words
    topics, _, vocabulary = results["topics"]
    cells = Structure(pages["topics"]).cells
    for top in topics.top_words(np.array(vocabulary), 10):
        place = cells.index(top[0].replace("\x1b", "\\x1b"))
        assert cells[place : place + 20 : 2] == [word.replace("\x1b", "\\x1b") for word in top]


def test_topics_need_a_word_for_every_column(results):
    model, counts, vocabulary = results["topics"]
    with pytest.raises(ValueError, match="vocabulary must have one word for each of 30 columns; got shape"):
        topics_report(model, counts, vocabulary[1:])


def test_documents_are_told_by_their_names(results):
    model, counts, vocabulary = results["topics"]
    names = [f"letter {place}.txt" for place in range(len(counts))]
    words = topics_report(model, counts, vocabulary, documents=names)
    for topic in range(3):
        assert f"letter {np.argmax(model.transform(counts)[:, topic])}.txt (" in words
    assert "numbered from 0" not in words
    assert "Documents are numbered from 0." in topics_report(model, counts, vocabulary)
    with pytest.raises(ValueError, match="documents must have one name for each of 400 rows"):
        topics_report(model, counts, vocabulary, documents=names[1:])


def test_links_are_not_called_probabilities_where_they_have_weights():
    graph = mixed_membership_graph(120, 2, alpha_0=0.2, inside=0.4, outside=0.02, seed=0)
    model = MixedMembershipCommunities(2, random_state=0).fit(5 * graph.adjacency)
    assert np.max(model.connectivity_) > 1
    page = communities_report(model)
    assert "Expected weight of the link between nodes of two communities" in page
    assert "likely" not in page


def test_rows_of_components_have_their_weights(results, pages):
    words = html.unescape(pages["fit"])
    assert "with its number and weight" in words
    assert "one that cannot be seen is thinner than the line" in words


@pytest.fixture
def files(tmp_path):
    """Write a file for every command that has reports."""
    factor = np.random.default_rng(0).random((6, 2))
    np.save(tmp_path / "x.npy", np.einsum("ir,jr,kr->ijk", factor, factor, factor))
    votes = crowd_votes(200, worker_confusions(9, 2, seed=0), seed=1).votes
    graph = mixed_membership_graph(80, 2, alpha_0=0.1, inside=0.4, outside=0.02, seed=0)
    for name, head, rows in (
        ("votes.csv", ["task", "worker", "label"], zip(*votes, strict=True)),
        ("edges.csv", ["a", "b"], np.argwhere(np.triu(np.asarray(graph.adjacency.todense()))).tolist()),
    ):
        with (tmp_path / name).open("w", newline="") as file:
            csv.writer(file).writerows([head, *rows])
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(12, 0.2), 2)
    counts = np.array([rng.multinomial(30, share @ topics) for share in rng.dirichlet([0.4, 0.4], 300)])
    np.savez(tmp_path / "corpus.npz", counts=counts)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "file", "options", "words"),
    [
        ("factorize", "x.npy", ["--rank", "auto"], "Rank 2: it explains the tensor up to rounding"),
        ("label", "votes.csv", [], "Tasks most in doubt"),
        ("judge", "votes.csv", [], "Who can be trusted"),
        ("communities", "edges.csv", ["-k", "2"], "Nodes between communities"),
        ("topics", "corpus.npz", ["-k", "2"], "Words of the topics"),
    ],
)
def test_commands_write_reports_and_replace_none_unasked(files, command, file, options, words, monkeypatch):
    def short(fit, tensor, path, *, choice, observed, title):  # the page takes its time to draw, and is tested above
        assert (observed, choice.rank, tensor.shape) == (None, fit.rank, fit.shape)
        path.write_text(f"<h1>{title}</h1>{choice.reason}")

    monkeypatch.setattr("codiag.reports.factorization_report", short)
    page = files / "report.html"
    asked = [command, str(files / file), *options, "--report", str(page)]
    done = runner.invoke(app, asked)
    assert done.exit_code == 0, done.output
    assert words in page.read_text()
    assert f"<h1>{file}</h1>" in page.read_text()
    again = runner.invoke(app, asked)
    assert again.exit_code == 2
    assert "--force" in again.output
    assert sorted(path.name for path in files.iterdir()) == [
        "corpus.npz",
        "edges.csv",
        "report.html",
        "votes.csv",
        "x.npy",
    ]


def test_mistakes_end_before_any_work(files, monkeypatch):
    asked = ["factorize", str(files / "x.npy"), "--rank", "2", "--report"]
    wrong = runner.invoke(app, [*asked, str(files / "report.txt")])
    assert wrong.exit_code == 2
    assert "--report must end in .html" in wrong.output
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr("codiag.factorize", lambda *_, **__: pytest.fail("this is work"))
    lost = runner.invoke(app, [*asked, str(files / "report.html")])
    assert lost.exit_code == 2
    assert "pip install 'codiag[plot]'" in lost.output
    assert not (files / "report.html").exists()


@pytest.mark.parametrize("name", ["report.html", Path("report.html")])
def test_a_path_in_the_place_of_data_is_explained(name):
    fit = codiag.factorize(noisy_tensor((6, 7, 8), 2, noise=0.01, seed=0).tensor, 2, seed=0)
    with pytest.raises(TypeError, match=r"tensor must be data.*'report.html'.*factorization_report\(fit, tensor, path"):
        factorization_report(fit, name)
    model = LatentDirichlet(2, random_state=0)
    with pytest.raises(TypeError, match="counts must be data"):
        topics_report(model, name, list("abcdefghi"))
    with pytest.raises(TypeError, match="vocabulary must be data"):
        topics_report(model, np.ones((3, 9)), name)


def test_reports_take_the_problem_that_was_solved_and_refuse_a_choice_of_the_rank():
    tensor = noisy_tensor((6, 7, 8), 1, noise=0.1, seed=0).tensor
    tensor[0, 0, 0] = np.nan
    problem = codiag.Problem(tensor, 1)
    fit = codiag.factorize(problem, seed=0)
    assert factorization_report(fit, problem) == factorization_report(fit, tensor)
    choice = codiag.choose_rank(tensor, [1], seed=0)
    with pytest.raises(TypeError, match=r"got RankChoice. Of a RankChoice, give choice.fits\[choice.rank\]"):
        factorization_report(choice, tensor)
