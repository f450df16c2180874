"""CONTRIBUTING.md names functions that exist, and the call path of a fit is the one it lists."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import codiag
from codiag.synthetic import noisy_tensor

SOURCE = Path(codiag.__file__).parent
GUIDE = Path(__file__).parents[2] / "CONTRIBUTING.md"
if not GUIDE.exists():
    pytest.skip("the guide for contributors lies in the repository", allow_module_level=True)
NAMED = re.findall(r"`([\w/]+\.py): ([\w.]+)`", GUIDE.read_text())
STEPS = re.findall(r"^\| \d+ \| `([\w/]+\.py): ([\w.]+)` \|", GUIDE.read_text(), re.MULTILINE)


def problem_of(kind):
    """Return a tensor, a rank and options of `factorize`."""
    rng = np.random.default_rng(0)
    means = np.einsum("ir,jr,kr->ijk", *(rng.gamma(1.0, size=(size, 3)) for size in (20, 15, 12)))
    if kind == "least squares":
        return noisy_tensor((20, 15, 12), 5, noise=0.01, rng=0).tensor, 5, {}
    if kind == "poisson":
        return rng.poisson(means), 3, {"loss": "poisson"}
    incomplete = np.where(rng.random(means.shape) < 0.2, np.nan, means + 0.01 * rng.standard_normal(means.shape))
    return incomplete, 3, {"constraints": "nonnegative"}


def calls_of(function):
    """Return the functions of codiag that a call enters, in order."""
    found = []

    def note(frame, event, _):
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(SOURCE):
            found.append((path.relative_to(SOURCE).as_posix(), frame.f_code.co_qualname))

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.parametrize(("path", "name"), sorted(set(NAMED)))
def test_functions_that_are_named_exist(path, name):
    text = (SOURCE / path).read_text()
    assert re.search(rf"^ *(?:def|class) {name.split('.')[-1]}\b", text, re.MULTILINE)


@pytest.mark.parametrize(("package", "files"), re.findall(r"(?m)^\| `(\w+)/` \| (.*?) \|", GUIDE.read_text()))
def test_files_that_are_named_exist(package, files):
    assert [name for name in re.findall(r"`(_\w+\.py)`", files) if not (SOURCE / package / name).exists()] == []


def test_the_path_is_short():
    assert 10 < len(STEPS) <= 25


@pytest.mark.parametrize("kind", ["least squares", "poisson", "non-negative and incomplete"])
def test_every_fit_takes_the_path(kind):
    tensor, rank, options = problem_of(kind)
    calls, place = calls_of(lambda: codiag.factorize(tensor, rank, rng=0, **options)), 0
    steps = STEPS
    if "incomplete" in kind:  # there sweeps may be enough
        steps = [step for step in STEPS if not step[0].startswith("least_squares/")]
        steps.insert(steps.index(("search/_loop.py", "local_minimum")) + 1, ("search/_approach.py", "approach"))
    for step in steps:
        assert step in calls[place:], f"{step} is not called after the steps before it"
        place = calls.index(step, place) + 1
