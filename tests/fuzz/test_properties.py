"""What must hold whatever the input is, for every area; see `fuzz`."""

from __future__ import annotations

import functools
import multiprocessing
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from fuzz.areas import AREAS
from fuzz.case import LIMIT, check
from fuzz.planted import DEADLY, FAULTS
from fuzz.strategies import broken

EXAMPLES = settings.default.max_examples
"""Of the profile: 100 in the suite, 1000 in the whole suite, more for ``make fuzz``; see `conftest.py`."""


def run(calls, n_examples, limit=LIMIT, **options):
    @settings(max_examples=n_examples, suppress_health_check=list(HealthCheck), **options)
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


def run_with(fault, limit=0.5):
    """Run the properties with a fault patched in."""
    real = functools.reduce(getattr, fault.target.split(".")[1:], __import__(fault.target.split(".")[0]))

    @functools.wraps(real)
    def faulty(*arguments, **options):
        return fault.wrong(real, *arguments, **options)

    with mock.patch(fault.target, faulty):
        run(fault.calls, 100, limit, phases=[Phase.generate], report_multiple_bugs=False)


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(fault):
    if fault == "shared memory":
        pytest.importorskip("tensorly")
    with pytest.raises(AssertionError, match=f"\n{FAULTS[fault].kind}: "):
        run_with(FAULTS[fault])


@pytest.mark.slow
@pytest.mark.parametrize("fault", DEADLY)
def test_faults_that_end_the_process_are_found(fault):
    process = multiprocessing.get_context("fork").Process(target=run_with, args=(DEADLY[fault],))
    process.start()
    process.join(60)
    assert process.exitcode not in (0, None)
