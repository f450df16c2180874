"""The README runs, and the numbers in it are the numbers it gives."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import codiag
from codiag.models import DawidSkene

README = (Path(__file__).parents[1] / "README.md").read_text()


def test_snippets_run_and_say_the_truth(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where snippets write their figures
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL):
        if "savefig" in block and find_spec("matplotlib") is None:
            continue
        exec(block.replace("print(fit)", "fit"), names)
    fit, problem = names["fit"], names["problem"]
    assert repr(fit) in README
    assert f"# {fit.relative_error:.4f}: ||T - fit||" in README
    assert f"{np.mean(fit.standard_errors):.4f} on average" in README
    assert f"# {codiag.factor_error(fit, problem):.4f}: how far they are" in README
    for name in ("unmixed", "calibrated"):
        error = codiag.factor_error(names[name], names["truth"])
        assert re.search(rf"factor_error\({name}, truth\) +# {error:.4f}", README)
    assert f"{names['choice'].reason}\n\nrank" in README
    model, crowd = names["model"], names["crowd"]
    majority = DawidSkene(init="majority", em_rounds=0).fit(crowd.votes)
    right, voted = (np.mean(one.labels_ == crowd.truth[one.tasks_]) for one in (model, majority))
    assert f"# {right:.3f} right; of the majority vote {voted:.3f}" in README


def test_links_lead_somewhere():
    root = Path(__file__).parents[1]
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", README):
        assert (root / target).exists(), target


def test_the_two_commands_stand_on_the_first_screen():
    assert README.index("make demo") < README.index("make test") < 900
