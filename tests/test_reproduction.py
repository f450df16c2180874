"""The paper's experiments: resumed, in parallel, and shown."""

from __future__ import annotations

import csv
import dataclasses
import json
import shutil
import subprocess
import sys
import time
from functools import partial
from html.parser import HTMLParser
from io import StringIO

import numpy as np
import pytest
from typer.testing import CliRunner

from codiag.cli import app
from codiag.experiments import paper
from codiag.experiments.page import Chapter, chapter_markdown, whole_markdown, whole_page
from codiag.experiments.paper import EXPERIMENTS
from codiag.experiments.paper.trials import grid
from codiag.experiments.reports import Finding, Panel, Report, Series, spread
from codiag.experiments.runs import Experiment, Record, as_csv, read_records, run, seed_of

runner = CliRunner()


def cells(quick, n_trials=4):
    return grid({"size": [3, 5]}, 2 if quick else n_trials)


def measure(cell, seed):
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((40, 40))
    return {"draw": rng.random(), "norm": float(np.linalg.norm(matrix @ matrix)) * cell["size"]}


def report(records):
    points = {size: [r.values["draw"] for r in records if r.cell["size"] == size] for size in (3, 5)}
    panel = Panel(
        "draws", "size", "value", [spread("draw", points), Series("paper", [3], [0.5], kind="paper")], x_log=True
    )
    rows = [[str(record.cell["size"]), f"{record.values['draw']:.3f}"] for record in records]
    return Report(
        ["size", "draw"], rows, [panel], [Finding("draws are <random>", "they are", "yes")], ["A note & more."]
    )


TOY = Experiment("toy", "A toy", "draws are random", "none", cells, measure, report)


def test_trials_come_first_and_seeds_come_from_the_axes():
    assert cells(True)[:2] == [{"size": 3, "trial": 0}, {"size": 5, "trial": 0}]
    assert seed_of("toy", {"a": 1, "b": 2}) == seed_of("toy", {"b": 2, "a": 1})
    assert seed_of("toy", {"a": 1}) != seed_of("other", {"a": 1})


def test_a_run_that_was_stopped_goes_on_and_ends_the_same(tmp_path):
    whole = run(TOY, tmp_path / "whole")
    few = dataclasses.replace(TOY, cells=partial(cells, n_trials=2))
    run(few, tmp_path / "parts")
    path = tmp_path / "parts" / "full.jsonl"
    kept = path.read_text()
    path.write_text(kept + '{"cell": {"size": 3, "tri')  # killed while writing
    seen = []
    resumed = run(TOY, tmp_path / "parts", progress=lambda done, total: seen.append((done, total)))
    assert resumed == whole
    assert seen[0] == (4, 8)
    assert seen[-1] == (8, 8)
    assert path.read_text().startswith(kept)
    assert run(TOY, tmp_path / "parts", progress=None) == whole
    assert len(read_records(path)) == 8


def test_a_killed_process_leaves_what_it_had(tmp_path):
    """The real thing: a process killed in the middle, then the same command again."""
    whole = run(EXPERIMENTS["bounds"], tmp_path / "whole", quick=True, minutes=0.05)
    command = [sys.executable, "-m", "codiag", "reproduce", "bounds", "--quick", "--out", str(tmp_path / "killed")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    path = tmp_path / "killed" / "bounds" / "quick.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (not path.exists() or path.read_text().count("\n") < 3):
        time.sleep(0.05)
    process.kill()
    process.wait()
    left = read_records(path)
    assert len(left) >= 3
    resumed = run(EXPERIMENTS["bounds"], tmp_path / "killed" / "bounds", quick=True, minutes=0.05)
    both = min(len(whole), len(resumed))
    assert both > 3
    assert resumed[:both] == whole[:both]


def test_two_processes_give_the_numbers_of_one(tmp_path):
    experiment = dataclasses.replace(EXPERIMENTS["bounds"], cells=_few_bounds)
    assert run(experiment, tmp_path / "two", jobs=2) == run(experiment, tmp_path / "one", jobs=1)


def _few_bounds(quick):
    return EXPERIMENTS["bounds"].cells(True)[:4]


def test_no_run_is_begun_after_the_time(tmp_path):
    assert run(TOY, tmp_path, minutes=-1) == []
    assert len(run(TOY, tmp_path)) == 8


def test_numbers_go_to_csv():
    rows = list(csv.DictReader(StringIO(as_csv([Record({"a": 1}, {"x": 0.1, "y": float("nan")})]))))
    assert rows == [{"a": "1", "name": "x", "value": "0.1"}, {"a": "1", "name": "y", "value": "nan"}]


class Page(HTMLParser):
    """What a reader without eyes meets."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.text = [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data

    def all(self, name):
        return [attrs for tag, attrs in self.tags if tag == name]


def toy_chapter(tmp_path):
    from codiag.plotting import draw_report

    records = run(TOY, tmp_path)
    figure = tmp_path / "full.png"
    shown = TOY.report(records)
    draw_report(shown, figure, tmp_path / "full.svg")
    assert (tmp_path / "full.svg").read_text().count("<svg") == 1
    return Chapter(TOY, shown, "codiag reproduce toy", len(records), 10, figure)


def test_the_page_is_whole_and_can_be_read_by_keyboard(tmp_path):
    pytest.importorskip("matplotlib")
    page = Page(whole_page([toy_chapter(tmp_path)], [("Another", "no data")]))
    assert page.open == []
    assert page.all("html")[0]["lang"] == "en"
    assert "width=device-width" in page.all("meta")[1]["content"]
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert {link["href"].removeprefix("#") for link in page.all("a")} <= set(ids)
    assert all(image["alt"] and image["src"].startswith("data:image/png;base64,") for image in page.all("img"))
    assert all(cell["scope"] == "col" for cell in page.all("th"))
    assert all(box["tabindex"] == "0" for box in page.all("div"))
    assert not page.all("script")
    assert "draws are <random>" in page.text
    assert "8 of 10 runs (80 %)" in page.text
    assert "Another: no data" in page.text


def test_chapters_are_read_as_text(tmp_path):
    pytest.importorskip("matplotlib")
    chapter = toy_chapter(tmp_path)
    whole = whole_markdown([chapter], [("Another", "no data")], tmp_path)
    assert "Of the claims 1 hold." in whole
    assert "Not run: no data." in whole
    text = chapter_markdown(chapter, "full.png")
    assert text in whole
    for words in (
        "## A toy",
        "`codiag reproduce toy`",
        "| draws are <random> | they are | holds |",
        "![A toy](full.png)",
    ):
        assert words in text


BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def test_a_browser_shows_the_page_without_scrolling_sideways(tmp_path):
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        pytest.skip("no Chromium is installed")
    pytest.importorskip("matplotlib")
    path = tmp_path / "index.html"
    path.write_text(whole_page([toy_chapter(tmp_path)], []))
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=390,844"]
    told = subprocess.run([browser, *options, "--dump-dom", path.as_uri()], capture_output=True, text=True, timeout=60)
    assert "What holds" in told.stdout
    subprocess.run(
        [browser, *options, f"--screenshot={tmp_path / 'shot.png'}", path.as_uri()],
        check=True,
        timeout=60,
        capture_output=True,
    )
    assert (tmp_path / "shot.png").stat().st_size > 5000


SOME = {"asymmetric": slice(0, 4, 2), "projections": slice(0, 4), "communities": slice(0, 3), "bounds": slice(0, 60)}
SOME |= {"convergence": slice(0, 30), "flops": slice(0, 2), "crowd": slice(0, 3)}


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_runs_and_reports(name, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    experiment = EXPERIMENTS[name]
    if experiment.missing():
        pytest.skip(experiment.missing())
    wanted = experiment.cells(True)[SOME.get(name, slice(0, 1))]
    few = dataclasses.replace(experiment, cells=lambda _: wanted)
    monkeypatch.setitem(paper.EXPERIMENTS, name, few)
    result = runner.invoke(app, ["reproduce", name, "--quick", "--out", str(tmp_path), "--minutes", "0.3"])
    assert result.exit_code == 0, result.output
    for ending in ("jsonl", "csv", "png", "svg", "md"):
        assert (tmp_path / name / f"quick.{ending}").stat().st_size > 100
    assert experiment.title in result.stdout
    assert experiment.title in (tmp_path / "index.html").read_text()
    for line in (tmp_path / name / "quick.jsonl").read_text().splitlines():
        assert set(json.loads(line)) == {"cell", "values"}


def test_full_sizes_are_those_of_the_paper():
    sizes = {name: experiment.cells(False) for name, experiment in EXPERIMENTS.items() if not experiment.missing()}
    assert max(cell["trial"] for cell in sizes["projections"]) == 999
    assert {cell["d"] for cell in sizes["orthogonal"]} == {25, 50, 100}
    assert {cell["share"] for cell in sizes["nonorthogonal"]} == {0.2, 1.0}
    assert {cell["model"] for cell in sizes["orthogonal"]} == {"authors", "text", "theory"}
    assert max(cell["trial"] for cell in sizes["topic"]) == 49
    assert max(cell["trial"] for cell in sizes["convergence"]) == 999


def test_unknown_names_are_answered_with_the_known(tmp_path):
    result = runner.invoke(app, ["reproduce", "everything", "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "name must be all, or one of projections" in " ".join(result.output.split())
