"""What must hold whatever the input is, for every area; see `fuzz`."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

import codiag
from fuzz.areas import AREAS
from fuzz.case import LIMIT, check
from fuzz.planted import FAULTS
from fuzz.strategies import broken

EXAMPLES = settings.default.max_examples
"""Of the profile: 100 in the suite, 1000 in the whole suite, more for ``make fuzz``; see `conftest.py`."""
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="limits of time and memory are those of Linux")


def run(calls, n_examples, limit=LIMIT, **options):
    @settings(max_examples=n_examples, deadline=None, suppress_health_check=list(HealthCheck), **options)
    @given(calls)
    def hold(case):
        with np.errstate():
            check(case, limit)

    hold()


@pytest.mark.parametrize("area", AREAS)
def test_what_is_said_is_true(area):
    calls, weight = AREAS[area]
    run(calls, EXAMPLES * weight // 20)


@pytest.mark.parametrize("area", AREAS)
def test_wrong_arguments_are_refused_by_name(area):
    calls, weight = AREAS[area]
    run(broken(calls), EXAMPLES * weight // 20)


def run_with(fault, limit=3.0):
    """Run the properties with a fault patched in."""
    real = functools.reduce(getattr, fault.target.split(".")[1:], __import__(fault.target.split(".")[0]))

    @functools.wraps(real)
    def faulty(*arguments, **options):
        return fault.wrong(real, *arguments, **options)

    with mock.patch(fault.target, faulty):
        run(fault.calls, 100, limit, phases=[Phase.generate], report_multiple_bugs=False)


@pytest.mark.parametrize(
    "fault", [pytest.param(name, marks=ON_LINUX if name in ("endless loop", "memory") else ()) for name in FAULTS]
)
def test_planted_faults_are_found(fault):
    if fault == "shared memory":
        pytest.importorskip("tensorly")
    with pytest.raises(AssertionError, match=f"\n{FAULTS[fault].kind}: "):
        run_with(FAULTS[fault])


@pytest.mark.slow
@ON_LINUX
@pytest.mark.parametrize(("fault", "code"), {"gone": 3, "endless in C": -signal.SIGVTALRM}.items())
def test_faults_that_end_the_process_are_found(fault, code):
    words = f"from fuzz import planted, test_properties as own; own.run_with(planted.DEADLY[{fault!r}])"
    paths = os.pathsep.join([str(Path(__file__).parents[1]), str(Path(codiag.__file__).parents[1])])
    ended = subprocess.run([sys.executable, "-c", words], env=os.environ | {"PYTHONPATH": paths}, capture_output=True)
    assert ended.returncode == code, ended.stderr
