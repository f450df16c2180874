"""Examples in docstrings of the paper's theory give what they say."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = ["bounds", "directions", "perturbation", "projection_law", "worst_noise"]


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_say(name):
    failed, tried = doctest.testmod(importlib.import_module(f"experiments.theory.{name}"))
    assert failed == 0 < tried
