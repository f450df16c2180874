"""The README runs, and the numbers in it are the numbers it gives."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

import codiag

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
RESULTS = ROOT / "benchmarks" / "RESULTS.md"


def test_snippets_run_and_say_the_truth(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="the snippet draws, which needs the extra 'plot'")
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL):
        exec(block.replace("print(", "str("), names)
    fit, problem = names["fit"], names["problem"]
    assert f"# {fit!r}\n" in README
    assert f"# {fit.relative_error:.4f}: ||T - fit||" in README
    assert f"# {fit.standard_errors.shape}, {np.mean(fit.standard_errors):.4f} on average" in README
    assert f"# {codiag.factor_error(fit, problem):.4f}: how far they are" in README
    assert f"# {fit.diagnose()} Or why not" in README


def test_links_lead_somewhere():
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_the_two_commands_stand_on_the_first_screen():
    assert README.index("make demo") < README.index("make test") < 900


@pytest.mark.skipif(not RESULTS.exists(), reason="the measurements lie in the repository")
def test_numbers_of_the_table_were_measured():
    """Every share and the time beside it stand in one row of the measurements, where times have more digits."""
    rows = [line.strip("|").replace("*", "").split("|") for line in RESULTS.read_text().splitlines() if line[:1] == "|"]
    table = re.search(r"\| tensor \|.*?\n\n", README, re.DOTALL)[0]
    measured = re.findall(r"\| \**(\d+) %\**, ([\d.]+) s", table)
    assert len(measured) >= 20
    for share, seconds in measured:
        with_share = [row for row in rows if f" {share}% " in row]
        assert any(_rounds_to(cell, seconds) for row in with_share for cell in row), (share, seconds)


def _rounds_to(cell, number):
    digits = len(number.partition(".")[2])
    return re.fullmatch(r" \d+\.\d+ ", cell) and abs(float(cell) - float(number)) <= 0.5001 * 10**-digits


def test_links_of_the_page_on_the_package_index_lead_out():
    hook = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["metadata"]["hooks"][
        "fancy-pypi-readme"
    ]
    page = README
    for one in hook["substitutions"]:
        page = re.sub(one["pattern"], one["replacement"], page)
    assert re.findall(r"\]\((?!https://)", page) == []
    assert page.count("raw.githubusercontent.com") == len(re.findall(r"!\[", README))
