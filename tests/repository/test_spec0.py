"""The lowest versions and the calendar of SPEC 0: what the step of CI says, whatever day it is."""

from __future__ import annotations

import datetime as dt
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DAYS = {(1, 0): dt.date(2023, 1, 1), (1, 1): dt.date(2024, 1, 1), (2, 0): dt.date(2025, 1, 1)}


@pytest.fixture(scope="module")
def spec0():
    path = ROOT / ".ci" / "spec0.py"
    if not path.exists():
        pytest.skip("not in a checkout: .ci is not part of the source distribution")
    spec = spec_from_file_location("spec0", path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_version_is_supported_for_two_years(spec0):
    assert spec0.oldest_supported(DAYS, 2, dt.date(2025, 12, 31)) == (1, 1)
    assert spec0.oldest_supported(DAYS, 2, dt.date(2026, 1, 2)) == (2, 0)


def test_the_newest_version_is_supported_however_old(spec0):
    assert spec0.oldest_supported(DAYS, 2, dt.date(2040, 2, 29)) == (2, 0)


@pytest.mark.parametrize(("declared", "kind"), [("1.0.3", "warning"), ("1.1", "notice"), ("2", "error")])
def test_dropping_too_early_is_an_error_and_too_late_a_warning(spec0, declared, kind):
    assert spec0.verdict("it", declared, (1, 1))[0] == kind


def test_every_core_package_has_a_minimum(spec0):
    found = spec0.minimums((ROOT / "pyproject.toml").read_text())
    assert set(found) == {"python", *spec0.CORE}
    assert found["python"] in spec0.PYTHON
