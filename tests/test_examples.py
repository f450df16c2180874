"""The examples run, and show what they say."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the examples lie beside the tests, in the repository")


def load(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_topics():
    assert load("topics").main(3000) < 0.05


def test_single_topic():
    errors = load("single_topic").main(10_000)
    assert max(errors.values()) < 0.3
    assert errors["polished"] == min(errors.values())


def test_gaussian_mixture():
    assert load("gaussian_mixture").main(10_000) < 0.3


def test_hidden_markov():
    assert load("hidden_markov").main(10_000) > 0.8


def test_multiview():
    assert load("multiview").main(20_000) < 0.1


def test_crowd_labels():
    assert load("crowd_labels").main(1000) > 0.05


def test_communities():
    assert load("communities").main(1000) > 0.8


def test_fluorescence(tmp_path):
    pytest.importorskip("matplotlib")
    figure = tmp_path / "spectra.png"
    assert load("fluorescence").main(str(figure)) < 0.1
    assert figure.stat().st_size > 20_000


def test_blind_sources(tmp_path):
    pytest.importorskip("matplotlib")
    figure = tmp_path / "sources.png"
    assert load("blind_sources").main(3000, str(figure)) < 0.2
    assert figure.stat().st_size > 20_000


def test_every_example_is_tested():
    tested = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    assert {path.stem for path in FOLDER.glob("*.py")} <= tested


def test_report(tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    example = load("report")
    choice = example.main(example.simulate(tmp_path / "spectra.csv"))
    assert choice.rank == 3
    assert choice.reason in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert (tmp_path / "components.png").read_bytes().startswith(b"\x89PNG")
