"""The README runs, and the numbers in it are the numbers it gives."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import codiag

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
CLAIMS = r"Of the paper's \d+ claims, [^.]*\."
"""The paper's claims; tests/repository/test_reproduction.py compares the counts."""


@pytest.mark.slow
def test_snippets_run_and_say_the_truth(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="the snippet draws, which needs the extra 'plot'")
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    first, second = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(first.replace("print(", "str("), names)
    assert f"# {names['fit'].diagnose()}\n" in first
    exec(second.replace("print(", "str("), names)
    fit, problem = names["fit"], names["problem"]
    assert f"# {fit!r}\n" in second
    assert f"# {fit.relative_error:.4f}: ||T - fit||" in second
    assert f"# {fit.standard_errors.shape}, {np.mean(fit.standard_errors):.4f} on average" in second
    assert f"# {codiag.factor_error(fit, problem):.4f}: how far they are" in second
    assert f"# {fit.diagnose()} Or why not" in second


def test_links_lead_somewhere():
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_the_two_commands_stand_on_the_first_screen():
    assert README.index("make demo") < README.index("make test") < 900


@pytest.fixture(scope="module")
def readme():
    sys.path.insert(0, str(ROOT))
    return pytest.importorskip("benchmarks.readme", reason="the measurements lie in the repository")


@pytest.fixture(scope="module")
def record(readme):
    return json.loads(readme.RECORD.read_text())


class TestRecord:
    """What was measured, ``benchmarks/readme.json``, is what the README says."""

    DEFINITIONS = (
        "Python 3.11",
        "95 %",
        "10 % noise",
        "below about 0.3",
        "above 1 %",
        "PARAFAC2",
        "AISTATS 2015",
        "at most 1 % above",
        "(0.1 % in the rows",
        "N(0, 1)",
        "1000 iterations",
        "random start with 1000",
        "BSD-3",
        "HDF5",
        "November 2026",
    )
    """Numbers of the README that nobody measures."""

    def test_the_table_is_that_of_the_record(self, readme, record):
        assert readme.table(record) in README

    def unexplained(self, text, readme, record):
        """Return the numbers of a README that are neither measured nor defined, with a word before them."""
        text = " ".join(re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)", " ", text, flags=re.DOTALL).split())
        for words in (readme.table(record), *readme.sentences(record).values(), *self.DEFINITIONS):
            text = text.replace(" ".join(words.split()), "")
        return re.findall(r"\S* ?\S*\d\S*", re.sub(CLAIMS, "", text))

    def test_every_other_number_is_measured_or_defined(self, readme, record):
        assert self.unexplained(README, readme, record) == []

    def test_a_number_that_nobody_measured_is_seen(self, readme, record):
        assert self.unexplained(README + "It is 97 % faster.", readme, record) == ["is 97"]
        changed = json.loads(json.dumps(record)) | {"tensorly tests": {"passed": 1, "of": 2}}
        assert self.unexplained(README, readme, changed) != []

    @pytest.mark.parametrize(
        ("share", "seconds", "n_faults"), [(1.0, 0.1, 0), (0.9, 0.19, 0), (0.7, 0.1, 1), (1.0, 0.3, 1), (0.0, 9.0, 2)]
    )
    def test_a_comparison_sees_what_is_worse(self, readme, share, seconds, n_faults):
        before = {"codiag": {"share": 1.0, "seconds": 0.1}, "TensorLy": {"share": 0.4, "seconds": 0.2}}
        now = {"codiag": {"share": share, "seconds": 2 * seconds}, "TensorLy": {"share": 0.0, "seconds": 0.4}}
        assert len(readme.worse("a machine of half the speed", now, before)) == n_faults

    def test_what_is_measured_is_written(self, readme, record, tmp_path, monkeypatch):
        path = tmp_path / "README.md"
        path.write_text(README)
        monkeypatch.setattr(readme, "README", path)
        readme.write_readme(record)
        assert path.read_text() == README
        readme.write_readme(record | {"tensorly tests": {"passed": 1, "of": 2}})
        assert "(1 of 2 of its own tests pass)" in path.read_text()


def test_links_of_the_page_on_the_package_index_lead_out():
    hook = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["metadata"]["hooks"][
        "fancy-pypi-readme"
    ]
    page = README
    for one in hook["substitutions"]:
        page = re.sub(one["pattern"], one["replacement"], page)
    assert re.findall(r"\]\((?!https://)", page) == []
    assert page.count("raw.githubusercontent.com") == len(re.findall(r"!\[", README))
