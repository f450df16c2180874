"""The scripts of the gallery: all have its form, and some are run. The documentation runs all of them."""

from __future__ import annotations

import ast
import importlib
import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(FOLDER.glob("*/*.py"))
NAMES = [path.stem for path in SCRIPTS]
REAL = re.compile(
    r"load_(crowd|facebook|kos|IL2data|covid19_serology|kinetic|wine|sample_images)|statsmodels|sklearn import datasets"
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="the examples lie beside the tests, in the repository"),
]


def cells(script):
    """Return the texts between blocks of code: comments under a line `# %%`."""
    return re.findall(r"^# %%\n((?:^#.*\n)+)", script, flags=re.MULTILINE)


@pytest.fixture(params=SCRIPTS, ids=NAMES)
def script(request):
    return request.param.read_text(encoding="utf-8")


def test_there_are_enough_of_them():
    assert len(SCRIPTS) >= 22
    assert sum(bool(REAL.search(path.read_text(encoding="utf-8"))) for path in SCRIPTS) >= 8
    assert len(set(NAMES)) == len(NAMES)  # pages that are not run are told apart by name
    assert all((path.parent / "GALLERY_HEADER.rst").is_file() for path in SCRIPTS)


def test_a_script_begins_with_a_title_and_a_paragraph(script):
    title, underline, blank, *paragraph = ast.get_docstring(ast.parse(script)).splitlines()
    assert underline == "=" * len(title)
    assert blank == ""
    assert len(" ".join(paragraph).split()) >= 25


def test_a_script_compiles_and_says_before_its_picture_what_one_sees(script):
    compile(script, "script", "exec")
    picture = script.rindex("plt.show()")
    assert len(cells(script[:picture])[-1].split()) >= 30


def test_a_script_needs_no_file_and_no_argument(script):
    assert not re.search(r"sys\.argv|argparse|__file__|/home/|/tmp/|/Users/|[A-Z]:\\\\", script)
    for call in re.findall(r"load_(?:crowd|facebook|kos)\([^)]*\)", script):
        assert "download=True" in call  # else it would fail where the data is not at hand


def test_a_script_draws_in_colors_that_everyone_can_tell_apart(script):
    named = set(re.findall(r"cmap=\"(\w+)\"", script))
    assert named <= {"magma", "magma_r", "PuOr", "gray", "cividis"}
    assert not re.search(r"color=\"(red|green|r|g)\"", script)


@pytest.fixture
def run(monkeypatch):
    """Return a function that runs a script and gives what it defines; figures go nowhere."""
    pytest.importorskip("matplotlib").use("Agg")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.setattr(pyplot, "show", lambda: None)

    def run(name):
        (path,) = FOLDER.glob(f"*/{name}.py")
        before = len(pyplot.get_fignums())
        found = runpy.run_path(str(path))
        assert len(pyplot.get_fignums()) > before
        return found

    yield run
    pyplot.close("all")


def test_factorize(run):
    found = run("factorize")
    assert found["fit"].converged
    assert found["fit"].standard_errors.max() < 0.05


def test_constraints_help(run):
    errors = list(run("constraints")["errors"].values())
    assert errors == sorted(errors, reverse=True)


def test_cities(run):
    found = run("cities")
    assert np.abs(found["found"] - found["places"]).max() < 4  # degrees


def test_joint_diagonalization(run):
    found = run("joint_diagonalization")
    assert found["errors"].mean() < 2 * found["joint"].standard_errors.mean()


def test_fluorescence(run):
    assert run("fluorescence")["largest_error"] < 0.1


def test_complex_signals(run):
    found = run("complex_signals")
    assert np.abs(found["found_angles"] - found["angles"]).max() < 0.02
    assert found["distance"] < 0.05


def test_blind_sources(run):
    assert max(run("blind_sources")["distances"].values()) < 0.2


def test_report(run):
    pytest.importorskip("pandas")
    found = run("report")
    assert found["choice"].rank == 3
    page = found["path"].with_name("report.html").read_text(encoding="utf-8")
    assert found["choice"].reason in page


def test_communities(run):
    assert run("communities")["score"] > 0.8


def test_crowd_labels(run):
    found = run("crowd_labels")
    assert found["right"] > found["voted"] + 0.05


def test_topics(run):
    assert run("topics")["error"] < 0.05


@pytest.fixture
def site_gallery(monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(str(FOLDER.parent / "docs"))
    return importlib.import_module("site_gallery")


NEEDING = {"blog_topics", "crowd_of_strangers", "dog_breeds", "dormitories"}
"""Scripts whose data is downloaded."""


@pytest.fixture
def offline(site_gallery, monkeypatch):
    """Make sure that no data can be had, and that the loaders are put back."""

    def unreachable(*_, download):
        raise ConnectionError

    monkeypatch.setattr(site_gallery, "LOADERS", dict.fromkeys(site_gallery.LOADERS, unreachable))
    yield site_gallery
    site_gallery.put_in_place(set())


def test_pages_whose_data_is_simulated_say_so(offline):
    read = []
    offline.mark_simulated(SimpleNamespace(connect=lambda _, function: read.append(function)), None)
    assert {path.stem for path in SCRIPTS if not offline.can_load(path)} == NEEDING
    for name, said in (("dog_breeds", True), ("wine", False)):
        source = ["Title\n=====\n\nText.\n"]
        read[0](None, f"gallery/real_data/{name}", source)
        assert ("simulated" in source[0]) == said
        assert source[0].startswith("Title\n=====\n")
        assert source[0].endswith("Text.\n")


def test_a_script_without_its_data_runs_on_simulated_data(offline, run):
    offline.restyle({}, "dormitories.py")  # as sphinx-gallery names it
    assert run("dormitories")["agreement"] > 0.5


@pytest.mark.parametrize("name", ["rte", "dog"])
def test_simulated_crowds_are_like_those_that_they_stand_for(site_gallery, name):
    stand_ins = importlib.import_module("site_stand_ins")
    crowd = stand_ins.load_crowd(name)
    assert crowd.truth["task"].size == stand_ins.TASKS[name]
    assert np.all(np.bincount(crowd.votes["task"])[1:] == 10)
    right = crowd.truth["truth"][crowd.votes["task"] - 1] == crowd.votes["label"]
    assert 0.6 < right.mean() < 0.9
