"""The map of topics and the relevance of words: the formulas, and what a browser does with them."""

from __future__ import annotations

import html
import json
import re
import subprocess

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import jensenshannon

from codiag.models import SingleTopic

pytest.importorskip("matplotlib", reason="matplotlib is not installed; it is the extra 'plot'")
pytest.importorskip("jinja2", reason="jinja2 is not installed; it is in the extra 'report'")

from browser import BROWSER
from codiag.reports import page_data, relevance, topic_map, topics_report

HOSTILE = "</script><script>alert(1)</script>"
DRIVE = """
<script>
addEventListener("load", () => {
  const rows = () => [...document.querySelectorAll("#explorer tbody tr")].map(
    (row) => [row.querySelector("th").textContent, Number(row.dataset.relevance)]);
  const slider = document.getElementById("relevance"), told = {start: rows()};
  for (const share of ["0", "1"]) {
    slider.value = share;
    slider.dispatchEvent(new Event("input"));
    told[share] = rows();
  }
  const third = document.querySelector('.topic[data-topic="2"]');
  third.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter"}));
  told.third = rows();
  told.pressed = third.getAttribute("aria-pressed");
  told.list = document.getElementById("topic-choice").value;
  told.circles = [...document.querySelectorAll(".topic circle")].map((one) => Number(one.getAttribute("r")));
  const place = document.createElement("pre");
  place.id = "told";
  place.textContent = JSON.stringify(told);
  document.body.append(place);
});
</script>
"""


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(60, 0.2), 4)
    counts = np.array([rng.multinomial(40, topics[topic]) for topic in rng.choice(4, 600, p=[0.4, 0.3, 0.2, 0.1])])
    return SingleTopic(4, random_state=0, max_iter=5).fit(counts), counts


WORDS = np.array([f"w{i}" for i in range(59)] + [HOSTILE])


def test_relevance_is_the_log_probability_at_one_and_the_log_lift_at_zero(model):
    topics, weights = model[0].components_, model[0].weights_
    overall = weights @ topics
    with np.errstate(divide="ignore"):
        assert_allclose(relevance(topics, weights, 1.0), np.log(topics))
        assert_allclose(np.exp(relevance(topics, weights, 0.0)), topics / overall)
        middle = 0.3 * np.log(topics) + 0.7 * np.log(topics / overall)
    assert_allclose(relevance(topics, weights, 0.3), middle)
    absent = np.array([[1.0, 0.0], [0.5, 0.5]])
    assert relevance(absent, np.array([0.5, 0.5]), 0.5)[0, 1] == -np.inf


def test_the_map_keeps_divergences_as_far_as_a_plane_can():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.ones(9), 3)
    places, shown = topic_map(topics)  # three points fit into a plane
    assert_allclose(shown, 1)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert_allclose(np.linalg.norm(places[one] - places[other]), jensenshannon(topics[one], topics[other]))
    assert topic_map(topics[:1])[0].tolist() == [[0.0, 0.0]]
    places, shown = topic_map(rng.dirichlet(np.ones(9), 8))
    assert places.shape == (8, 2)
    assert 0 < shown < 1
    assert_allclose(topic_map(np.array([topics[0], topics[0]]))[0], 0, atol=1e-12)


def test_the_page_holds_every_word_that_the_slider_can_bring_up(model):
    data = page_data(model[0], WORDS, 40)
    topics, weights = model[0].components_, model[0].weights_
    for share in (0.0, 0.35, 1.0):
        order = np.argsort(-relevance(topics, weights, share), axis=1)[:, : data["nWords"]]
        for topic, described in enumerate(data["topics"]):
            possible = [place for place in order[topic] if topics[topic, place] > 0]
            assert set(WORDS[possible]) <= set(described["words"])
    for topic, described in enumerate(data["topics"]):
        places = [WORDS.tolist().index(word) for word in described["words"]]
        assert_allclose(described["own"], topics[topic, places], rtol=1e-4)
        assert_allclose(described["overall"], (weights @ topics)[places], rtol=1e-4)


def test_words_cannot_end_the_script(model):
    page = topics_report(*model, WORDS)
    assert HOSTILE not in page
    text = re.search(r'<script type="application/json" id="topics-data">(.*?)</script>', page)[1]
    words = {word for topic in json.loads(text)["topics"] for word in topic["words"]}
    assert HOSTILE in words


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here; Debian has it as the package chromium")
def test_the_slider_and_the_map_work_in_a_browser(model, tmp_path):
    path = tmp_path / "topics.html"
    page = topics_report(*model, WORDS, path)
    assert path.read_text(encoding="utf-8") == page
    path.write_text(page.replace("</body>", DRIVE + "</body>"), encoding="utf-8")
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    command += ["--virtual-time-budget=10000", "--dump-dom", path.as_uri()]
    text = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    told = json.loads(html.unescape(re.search(r'<pre id="told">(.*?)</pre>', text, re.DOTALL)[1]))
    topics, weights = model[0].components_, model[0].weights_
    for key, topic, share in (("start", 0, 0.6), ("0", 0, 0.0), ("1", 0, 1.0), ("third", 2, 1.0)):
        expected = relevance(topics, weights, share)[topic]
        order = np.argsort(-expected)[: len(told[key])]
        assert_allclose([number for _, number in told[key]], expected[order], rtol=1e-3, atol=1e-3)
        distinct = np.append(np.diff(expected[order]) < -1e-3, True) & np.append(True, np.diff(expected[order]) < -1e-3)
        for place in np.flatnonzero(distinct):
            assert told[key][place][0] == WORDS[order[place]]
    assert told["pressed"] == "true"
    assert told["list"] == "2"  # a value; the reader sees topic 3
    assert_allclose(np.array(told["circles"])[:2] ** 2 / told["circles"][0] ** 2, weights[:2] / weights[0], rtol=1e-3)
