"""The README runs, and the numbers in it are the numbers it gives."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

import codiag

README = (Path(__file__).parents[1] / "README.md").read_text()


def test_snippets_run_and_say_the_truth():
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL):
        exec(block.replace("print(fit)", "fit"), names)
    fit, stack = names["fit"], names["stack"]
    # n_sweeps may differ by one on another BLAS.
    assert re.sub(r"n_sweeps=\d", "", repr(fit)) in re.sub(r"n_sweeps=\d", "", README)
    assert f"# {fit.noise:.4f}: the standard deviation" in README
    assert f"# {np.mean(fit.standard_errors):.4f} on average" in README
    assert f"# {codiag.factor_error(fit, stack.factor):.4f}: how far they are" in README


def test_links_lead_somewhere():
    root = Path(__file__).parents[1]
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", README):
        assert (root / target).exists(), target


def test_the_two_commands_stand_on_the_first_screen():
    assert README.index("make demo") < README.index("make test") < 800
